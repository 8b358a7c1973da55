"""The Spark SQL functions an expression may call, and the types they give. Nothing else is allowed.

A rule is a type, `=n` for the type of argument n, `=*` for the common type of all arguments, `[n` for the
element type of argument n, `?` where it depends on more than types. Functions that reach outside the rows
(`reflect`, `java_method`, `input_file_name`, `version`, readers of files, catalogs or secrets) are not here.
"""

from __future__ import annotations

import re

_SCALAR = """
string: ascii->int base64 bin char chr concat->?concat concat_ws contains->boolean elt->?  endswith->boolean
string: find_in_set->int format_number format_string hex initcap lcase left length->int char_length->int
string: character_length->int len->int levenshtein->int locate->int lower lpad ltrim luhn_check->boolean mask
string: md5 octet_length->int bit_length->int overlay position->int printf quote regexp_extract
string: regexp_extract_all->array<string> regexp_count->int regexp_instr->int regexp_like->boolean regexp->boolean
string: regexp_replace regexp_substr repeat replace reverse->?reverse right rlike->boolean rpad rtrim sentences->?
string: sha sha1 sha2 soundex space split->array<string> split_part startswith->boolean substr substring
string: substring_index to_char to_varchar translate trim btrim ucase unbase64->binary unhex->binary upper
string: url_decode url_encode parse_url try_parse_url crc32->bigint hash->int xxhash64->bigint encode->binary
string: decode->?  string uuid typeof collate->?
double: acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees e exp expm1 hypot ln log log10
double: log1p log2 pi pow power radians rint sec signum sign sin sinh sqrt tan tanh rand random randn
double: width_bucket->bigint nanvl
int: abs->=1 negative->=1 positive->=1 bround->?round round->?round ceil->?ceil ceiling->?ceil floor->?ceil
int: factorial->bigint mod->?mod pmod->?mod greatest->=* least->=* conv->string try_add->?+ try_subtract->?-
int: try_multiply->?* try_divide->?/ try_mod->?mod div->bigint bit_count shiftleft->=1 shiftright->=1
int: shiftrightunsigned->=1 getbit->tinyint bit_get->tinyint
boolean: isnull isnotnull isnan like ilike equal_null not->boolean
int: coalesce->=* nvl->=* ifnull->=* nvl2->=2 nullif->=1 if->?if nullifzero->=1 zeroifnull->=1
int: bigint->bigint binary->binary boolean->boolean date->date decimal->decimal(10,0) double->double float->float
int: int smallint->smallint timestamp->timestamp tinyint->tinyint
date: add_months current_date curdate date_add dateadd->?  date_sub last_day make_date next_day to_date trunc
date: try_to_date date_from_unix_date
int: datediff date_diff->?  day dayofmonth dayofweek dayofyear hour minute month quarter second weekday
int: weekofyear year unix_date extract->?extract date_part->?  datepart->?
timestamp: current_timestamp now localtimestamp->timestamp_ntz date_trunc from_utc_timestamp make_timestamp
timestamp: to_timestamp to_timestamp_ntz->timestamp_ntz to_timestamp_ltz timestamp_micros timestamp_millis
timestamp: timestamp_seconds to_utc_timestamp try_to_timestamp convert_timezone->timestamp_ntz timestampadd->?
string: date_format dayname monthname from_unixtime current_timezone
bigint: to_unix_timestamp unix_timestamp unix_micros unix_millis unix_seconds timestampdiff months_between->double
interval: make_interval make_dt_interval make_ym_interval
?: to_number try_to_number to_binary try_to_binary
array: array->?array array_append->=1 array_compact->=1 array_contains->boolean array_distinct->=1
array: array_except->=1 array_insert->=1 array_intersect->=1 array_join->string array_max->[1 array_min->[1
array: array_position->bigint array_prepend->=1 array_remove->=1 array_repeat->?repeat array_size->int
array: array_sort->=1 array_union->=1 arrays_overlap->boolean arrays_zip->?  cardinality->int element_at->[1
array: try_element_at->[1 flatten->[1 get->[1 sequence->?  shuffle->=1 size->int slice->=1 sort_array->=1
array: exists->boolean forall->boolean filter->=1 transform->?  aggregate->?  reduce->?  zip_with->?
map: map->?  map_concat->=1 map_contains_key->boolean map_entries->?  map_filter->=1 map_from_arrays->?
map: map_from_entries->?  map_keys->?keys map_values->?values str_to_map->map<string,string> transform_keys->?
map: transform_values->?  map_zip_with->?
struct: struct->?struct named_struct->?struct
string: get_json_object to_json schema_of_json from_json->?  json_array_length->int json_object_keys->array<string>
string: to_csv from_csv->?  monotonically_increasing_id->bigint spark_partition_id->int assert_true->void
"""

_AGGREGATE = """
bigint: count count_if approx_count_distinct regr_count
double: corr covar_pop covar_samp kurtosis skewness std stddev stddev_pop stddev_samp var_pop var_samp variance
double: percentile->?  median->?
=1: any_value first first_value last last_value max min mode max_by min_by approx_percentile percentile_approx
?: sum->?sum avg->?avg mean->?avg try_sum->?sum try_avg->?avg percentile_cont->?  percentile_disc->?
boolean: any some every bool_and bool_or
=1: bit_and bit_or bit_xor
?: collect_list->?list collect_set->?list array_agg->?list listagg->string string_agg->string histogram_numeric->?
"""

_WINDOW = """
int: row_number rank dense_rank ntile
double: percent_rank cume_dist
=1: lag lead nth_value
"""


def _table(text: str) -> dict[str, str]:
    rules: dict[str, str] = {}
    for line in text.strip().splitlines():
        default, _, names = line.partition(": ")
        for item in names.split():
            name, arrow, rule = item.partition("->")
            rules[name] = rule if arrow else default
    return rules


SCALAR: dict[str, str] = _table(_SCALAR)
AGGREGATE: dict[str, str] = _table(_AGGREGATE)
WINDOW: dict[str, str] = _table(_WINDOW)
ALL: dict[str, str] = {**SCALAR, **AGGREGATE, **WINDOW}

# Functions that may stand without parentheses.
BARE = {"current_date", "current_timestamp", "localtimestamp"}

# A second run over the same rows gives other values: such an operator's result is computed once and kept.
UNREPEATABLE = {"rand", "random", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id",
                "current_timestamp", "now", "localtimestamp", "current_date", "curdate"}  # fmt: skip
# Without arguments they tell the time.
CLOCKS = {"unix_timestamp", "to_unix_timestamp"}

_MOMENT = re.compile(r"\s*(now|today|yesterday|tomorrow)(\s+\S+)?\s*\Z", re.IGNORECASE)


def is_moment(text: str) -> bool:
    """Whether Spark may take a text for the time or the day at which it runs: `'now'`, `'today UTC'`."""
    return _MOMENT.match(text) is not None


# What costs little beside reading the row: no patterns, no parsing, no digests, nothing that walks over a list.
_LIGHT = """
abs add_months ascii bigint binary bit_count boolean bround ceil ceiling char_length character_length coalesce concat
contains date date_add date_sub datediff day dayofmonth dayofweek dayofyear decimal div double endswith equal_null
float floor greatest hour if ifnull int isnan isnotnull isnull last_day lcase least left len length lower ltrim minute
mod month months_between nanvl negative not nullif nullifzero nvl nvl2 pmod positive quarter replace right round rtrim
second shiftleft shiftright sign smallint startswith string substr substring timestamp tinyint trim trunc try_add
try_divide try_multiply try_subtract ucase unix_date upper weekday weekofyear year zeroifnull
"""
LIGHT = set(_LIGHT.split())
