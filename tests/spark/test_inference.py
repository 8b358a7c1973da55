"""What we infer without Spark is what Spark's own analyser says."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from engine.model.expression_tree import aggregates
from engine.model.expressions import parse
from engine.model.functions import AGGREGATE, SCALAR, WINDOW
from engine.model.inference import Scope, infer
from engine.model.types import ddl
from tests.model.test_expressions import SCOPE, TYPES

QUALIFIED = ("left.", "right.")


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([], ddl(SCOPE.schema))


def test_spark_gives_every_expression_the_type_we_infer(frame):
    different = {}
    for text, kind in TYPES.items():
        if not text.startswith(QUALIFIED):
            column = F.expr(text).alias("x")
            selected = frame.agg(column) if aggregates(parse(text)) else frame.select(column)
            actual = dict(selected.dtypes)["x"]
            if kind is not None and actual != kind:
                different[text] = (kind, actual)
    assert not different


# The functions of the allow-list by arguments that Spark lets each be called with.
CALLS = {
    "a": (
        "abs acos acosh any_value approx_count_distinct array array_agg ascii asin asinh atan atanh avg "
        "bigint bin bit_and bit_count bit_length bit_or bit_xor boolean bround btrim cbrt ceil ceiling char "
        "char_length character_length chr coalesce collect_list collect_set concat concat_ws cos cosh cot "
        "count csc current_date current_timestamp date_from_unix_date decimal degrees dense_rank double exp "
        "expm1 factorial first first_value float floor format_string from_unixtime hash hex initcap int isnan "
        "isnotnull isnull kurtosis lag last last_value lcase lead len length listagg ln log log10 log1p log2 "
        "lower ltrim luhn_check make_dt_interval make_interval make_ym_interval max mean median min mode "
        "negative nullifzero octet_length percent_rank positive printf quote radians rank reverse rint round "
        "rtrim sec sentences sign signum sin sinh skewness smallint space sqrt std stddev stddev_pop "
        "stddev_samp string string_agg struct sum tan tanh timestamp timestamp_micros timestamp_millis "
        "timestamp_seconds tinyint to_binary to_date to_timestamp to_timestamp_ltz to_timestamp_ntz trim "
        "try_avg try_sum try_to_binary try_to_date try_to_timestamp typeof ucase unbase64 unhex upper "
        "url_decode url_encode var_pop var_samp variance xxhash64 zeroifnull"
    ),
    "s": (
        "any base64 binary bool_and bool_or count_if crc32 date day dayname dayofmonth dayofweek dayofyear "
        "every hour json_array_length json_object_keys last_day mask md5 minute month monthname not quarter "
        "second sha sha1 some soundex str_to_map to_unix_timestamp unix_timestamp weekday weekofyear year"
    ),
    "a, a": (
        "array_repeat atan2 bit_get contains corr covar_pop covar_samp div elt encode endswith equal_null "
        "find_in_set format_number getbit greatest hypot ifnull ilike least left levenshtein like locate lpad "
        "map max_by min_by mod nanvl nullif nvl pmod position pow power regexp regexp_count regexp_extract "
        "regexp_extract_all regexp_instr regexp_like regexp_substr regr_count repeat replace right rlike rpad "
        "sequence shiftleft shiftright shiftrightunsigned split startswith substr substring try_add "
        "try_divide try_mod try_multiply try_subtract"
    ),
    "s, s, s": "conv make_date nvl2 overlay regexp_replace split_part substring_index translate",
    "s, s": (
        "add_months convert_timezone date_add date_diff date_format date_sub date_trunc dateadd datediff "
        "decode from_utc_timestamp get_json_object months_between next_day parse_url sha2 to_utc_timestamp "
        "trunc try_parse_url"
    ),
    "d, 1": "approx_percentile percentile_approx to_char to_varchar",
    "": (
        "cume_dist curdate current_timezone e localtimestamp monotonically_increasing_id named_struct now "
        "ntile pi rand randn random row_number spark_partition_id uuid"
    ),
    "f, 0, 1, 5": "width_bucket",
    "t, a, a": "if",
    "d": "make_timestamp unix_date",
    "'s', ts": "date_part datepart",
    "ts": "unix_micros unix_millis unix_seconds",
    "s, '9'": "histogram_numeric to_number try_to_number",
    "arr, 1": (
        "array_append array_contains array_position array_prepend array_remove element_at get nth_value "
        "transform try_element_at"
    ),
    "arr": (
        "array_compact array_distinct array_max array_min array_size array_sort arrays_zip cardinality "
        "shuffle size sort_array to_json"
    ),
    "arr, arr": "array_except array_intersect array_union arrays_overlap map_from_arrays",
    "arr, 1, 1": "aggregate array_insert reduce slice",
    "arr, 's'": "array_join",
    "arr, x -> x > 1": "exists filter forall",
    "m": "map_concat map_entries map_keys map_values",
    "m, 'k'": "map_contains_key transform_keys",
    "m, m": "transform_values",
    "'UTF-8'": "schema_of_json",
    "st": "to_csv",
    "t": "assert_true",
    "s, 1": "percentile",
}

# Functions that want arguments of a very own kind.
OTHER_CALLS = [
    "collate(s, 'UTF8_LCASE')", "dateadd(day, 1, ts)", "date_add(month, 1, d)", "datediff(week, d, ts)",
    "date_diff(hour, ts, ts)", "extract(year from d)", "flatten(array(arr))", "from_csv(s, 'x int')",
    "from_json(s, 'x int')", "map_filter(m, (k, v) -> v > 1)", "map_from_entries(array(struct('a', 1)))",
    "map_zip_with(m, m, (k, x, y) -> x + y)", "percentile_cont(0.5) within group (order by f)",
    "percentile_disc(0.5) within group (order by f)", "reverse(arr)", "reverse(s)", "timestampadd(hour, 1, ts)",
    "timestampdiff(day, ts, ts)", "zip_with(arr, arr, (x, y) -> x + y)",
]  # fmt: skip


def every_call():
    """A call of every function of the allow-list, by its name."""
    for arguments, names in CALLS.items():
        for name in names.split():
            over = " over (partition by s order by a)" if name in WINDOW else ""
            yield name, f"{name}({arguments}){over}"
    for text in OTHER_CALLS:
        yield text.partition("(")[0], text


def test_every_function_of_the_allow_list_has_the_type_that_spark_gives_it(frame):
    different = {}
    called = list(every_call())
    assert {name for name, _ in called} == set(SCALAR) | set(AGGREGATE) | set(WINDOW)
    for name, text in called:
        column = F.expr(text).alias("x")
        actual = dict((frame.agg(column) if name in AGGREGATE else frame.select(column)).dtypes)["x"]
        kind = infer(parse(text), Scope(SCOPE.schema))
        if kind is not None and not _same(kind, actual):
            different[text] = (kind, actual)
    assert not different


def _same(ours: str, spark: str) -> bool:
    return ours == spark or (ours == "interval" and spark.startswith("interval"))
