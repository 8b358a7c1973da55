"""Operators that clean rows, on real Spark."""

from __future__ import annotations

import datetime
from decimal import Decimal

import duckdb
import pytest
from pydantic import ValidationError

from engine.model.operator import Category, Inputs
from tests.operators.harness import by_key, findings, make, run

# ---------------------------------------------------------------- checks that refuse rows


def test_not_null_quarantines_rows_and_says_which_columns_are_empty(spark):
    rows = spark.createDataFrame(
        [(1, "a", 1.5), (None, "b", 2.5), (None, None, 3.5), (4, "", None)],
        "id int, `the.na``me` string, x double",
    )
    result = run(spark, make("not_null", columns=["ID", "the.na`me"]), {"in": rows})
    assert by_key(result["out"]) == [(1, "a", 1.5), (4, "", None)]
    assert by_key(result["quarantine"]) == [
        (None, "b", 2.5, "no value in ID"),
        (None, None, 3.5, "no value in ID, the.na`me"),
    ]


def test_validate_names_every_rule_a_row_broke_and_counts_unknown_as_broken(spark):
    rows = spark.createDataFrame(
        [(1, "de"), (-1, "xx"), (None, "de"), (None, None), (5, None)], "n int, `land code` string"
    )
    rules = [
        {"name": "n is positive", "condition": "n > 0 OR n = 100"},
        {"name": "it's a land", "condition": "`land code` IN ('de', 'fr')", "null_is_fine": True},
    ]
    result = run(spark, make("validate", rules=rules, max_refused=3), {"in": rows})
    assert by_key(result["out"]) == [(1, "de"), (5, None)]
    assert by_key(result["reject"]) == [
        (-1, "xx", "n is positive, it's a land"),
        (None, "de", "n is positive"),
        (None, None, "n is positive"),
    ]


def test_validate_takes_its_limits_by_count_and_percent():
    rule = {"name": "r", "condition": "n > 0"}
    assert make("validate", rules=[rule], max_refused=2).limit_broken(3, 10)
    share = make("validate", rules=[rule], max_refused_percent=30)
    assert share.limit_broken(3, 10) is None
    assert share.limit_broken(4, 10) == "40.00 % of the rows (4 of 10) were refused, and 30 % are allowed"
    assert share.limit_broken(0, 0) is None, "of no rows none is refused"
    both = make("validate", rules=[rule], max_refused=5, max_refused_percent=30)
    assert both.limit_broken(4, 10) == share.limit_broken(4, 10), "whichever is broken first"
    assert both.limit_broken(6, 100) == "6 of 100 rows were refused, and 5 are allowed"


def test_a_reason_that_comes_in_is_replaced_for_refused_rows(spark):
    rows = spark.createDataFrame([(1, "old", "7"), (2, "old", "x")], "id int, _reason string, n string")
    rule = {"name": "small", "condition": "id < 2"}
    result = run(spark, make("validate", rules=[rule]), {"in": rows})
    assert result == {"out": [(1, "old", "7")], "reject": [(2, "small", "x")]}
    result = run(spark, make("convert", columns={"n": {"type": "int"}}), {"in": rows})
    assert result == {"out": [(1, 7)], "reject": [(2, "n: 'x' is no int", "x")]}


def test_convert_refuses_what_does_not_convert_as_it_came(spark):
    rows = spark.createDataFrame(
        [
            (1, " 7 ", "31.12.2024", "1,234.50", datetime.date(2024, 2, 29)),
            (2, "x", "31.12.2024", "5.00", None),
            (3, None, None, None, None),
            (4, "99999999999", "2024-12-31", "much", None),
            (5, "", "29.02.2023", "1.00", None),
        ],
        "id int, `n.o` string, `Day of` string, amount string, written date",
    )
    columns = {
        "n.o": {"type": "INTEGER"},
        "day OF": {"type": "date", "format": "dd.MM.yyyy"},
        "amount": {"type": "decimal(10,2)", "format": "9,999.99"},
        "written": {"type": "string", "format": "d/M/yy"},
    }
    result = run(spark, make("convert", columns=columns), {"in": rows})
    assert by_key(result["out"]) == [
        (1, 7, datetime.date(2024, 12, 31), Decimal("1234.50"), "29/2/24"),
        (3, None, None, None, None),
    ]
    assert by_key(result["reject"]) == [
        (2, "x", "31.12.2024", "5.00", None, "n.o: 'x' is no int"),
        (4, "99999999999", "2024-12-31", "much", None,
         "n.o: '99999999999' is no int; day OF: '2024-12-31' is no date; amount: 'much' is no decimal(10,2)"),
        (5, "", "29.02.2023", "1.00", None, "n.o: '' is no int; day OF: '29.02.2023' is no date"),
    ]  # fmt: skip


def test_convert_knows_times_and_numbers_too_large(spark):
    rows = spark.createDataFrame([(3e10, "2024-05-01 13h"), (2.0, "1h")], "x double, t string")
    columns = {"x": {"type": "int"}, "t": {"type": "timestamp_ntz", "format": "yyyy-MM-dd HH'h'"}}
    result = run(spark, make("convert", columns=columns), {"in": rows})
    assert result["out"] == []
    assert by_key(result["reject"]) == [
        (2.0, "1h", "t: '1h' is no timestamp_ntz"),
        (3e10, "2024-05-01 13h", "x: '3.0E10' is no int"),
    ]


def test_convert_tells_while_drawing_what_cannot_work():
    columns = {
        "d": {"type": "int"},
        "n": {"type": "date", "format": "yyyy"},
        "s": {"type": "binary", "format": "x"},
    }
    assert findings(make("convert", columns=columns), in_={"d": "date", "n": "int", "s": "string"}) == [
        "`d` is a `date`, which cannot become a `int`",
        "a format is for text, and `n` is a `int`",
        "there is no format for a `binary`",
    ]
    assert findings(make("convert", columns={"s": {"type": "integr"}}), in_={"s": "string"}) == [
        "`integr` is no Spark type"
    ]


# ---------------------------------------------------------------- values replaced


def test_replace_null_keeps_the_type_of_the_column(spark):
    rows = spark.createDataFrame(
        [(None, None, None, 3), (Decimal("1.50"), "a", datetime.date(2020, 1, 1), 4)],
        "price decimal(4,2), `the name` string, day date, other int",
    )
    values = {"price": "other * 2", "the name": "concat('no ', other)", "DAY": "'1970-01-01'"}
    result = run(spark, make("replace_null", values=values), {"in": rows})
    assert by_key(result["out"]) == [
        (Decimal("1.50"), "a", datetime.date(2020, 1, 1), 4),
        (Decimal("6.00"), "no 3", datetime.date(1970, 1, 1), 3),
    ]


def test_replace_null_refuses_values_that_do_not_fit():
    operator = make("replace_null", values={"n": "'none'", "i": "0.5", "s": "0"})
    assert findings(operator, in_={"n": "int", "i": "bigint", "s": "string"}) == [
        "`'none'` is a `string`, which does not fit into `n`, a `int`",
        "`0.5` is a `decimal(1,1)`, which does not fit into `i`, a `bigint`",
        "`0` is a `int`, which does not fit into `s`, a `string`; a text stands in quotes",
    ]


def test_value_map_replaces_keeps_clears_or_defaults(spark):
    rows = spark.createDataFrame([("A", 1), ("it's", 2), ("z", 3), (None, None)], "Status string, code int")
    mapping = {"A": "active", "it's": "n\\a"}
    result = run(spark, make("value_map", column="status", mapping=mapping), {"in": rows})
    assert result["out"] == [("active", 1), ("n\\a", 2), ("z", 3), (None, None)]
    cleared = make("value_map", column="Status", mapping={"A": 1, "z": 2.5}, otherwise="clear", into="rank no")
    assert run(spark, cleared, {"in": rows})["out"] == [
        ("A", 1, 1.0), ("it's", 2, None), ("z", 3, 2.5), (None, None, None)
    ]  # fmt: skip
    defaulted = make("value_map", column="code", mapping={"1": "one", "2": None}, otherwise="default", default="many")
    assert run(spark, defaulted, {"in": rows})["out"] == [
        ("A", "one"), ("it's", None), ("z", "many"), (None, "many")
    ]  # fmt: skip
    typed = make("value_map", column="code", mapping={"1": "one"}, type="string", into="word")
    assert [row[2] for row in run(spark, typed, {"in": rows})["out"]] == ["one", "2", "3", None]


def test_value_map_checks_values_and_types_while_drawing():
    schema = {"n": "int", "word": "string"}
    assert findings(make("value_map", column="n", mapping={"one": 1}), in_=schema) == ["`one` is no `int`, as `n` is"]
    assert findings(make("value_map", column="n", mapping={"1": "one"}, into="WORD"), in_=schema) == [
        "there is already a column `WORD`; choose another name",
        "the results mix text with other types; say which `type` is meant",
    ]
    with pytest.raises(ValidationError, match="goes with `otherwise: default`"):
        make("value_map", column="n", mapping={"1": 2}, default=3)


# ---------------------------------------------------------------- texts


def test_clean_text_puts_texts_in_order(spark):
    texts = ["\u00a0 straße \t nach\u2003Ü \n", "a\u0000b\u200bc", " \t ", "", None]
    rows = spark.createDataFrame([(index, text) for index, text in enumerate(texts)], "id int, `the text` string")

    def cleaned(**settings):
        result = run(spark, make("clean_text", columns=["the text"], **settings), {"in": rows})
        return [text for _, text in sorted(result["out"])]

    assert cleaned() == ["straße \t nach\u2003Ü", "a\u0000b\u200bc", "", "", None]
    assert cleaned(collapse_spaces=True, remove_control=True, case="upper", empty_to_null=True) == [
        "STRASSE NACH Ü", "ABC", None, None, None
    ]  # fmt: skip
    assert cleaned(trim=False, remove_control=True, case="title") == [
        "\u00a0 Straße  Nach\u2003ü ", "Abc", "  ", "", None
    ]  # fmt: skip


def test_clean_text_is_for_text():
    assert findings(make("clean_text", columns=["n"]), in_={"n": "int"}) == ["`n` is a `int`, and this is for text"]


def test_regex_replaces_extracts_and_matches(spark):
    rows = spark.createDataFrame([("Ord-12/ü",), ("none",), ("-/",), (None,)], "`a.b` string")
    replaced = make("regex", column="a.b", pattern=r"(\d+)/(\p{L})", replacement="$2'$1")
    assert run(spark, replaced, {"in": rows})["out"] == [("Ord-ü'12",), ("none",), ("-/",), (None,)]
    extracted = make("regex", column="a.b", pattern=r"-(\d*)/", mode="extract", group=1, into="no.")
    assert [row[1] for row in run(spark, extracted, {"in": rows})["out"]] == ["12", None, "", None]
    matched = make("regex", column="a.b", pattern="^[A-Z]", mode="match", into="is capital")
    assert [row[1] for row in run(spark, matched, {"in": rows})["out"]] == [True, False, False, None]


@pytest.mark.parametrize(
    "pattern", [r"\p{Lu}\h+\R", r"(?<year>\d{4})++", r"[a-z&&[^x]]", r"(?U)\w", r"\Q(\E", r"\x{1F600}"]
)
def test_regex_knows_patterns_that_only_java_has(pattern):
    assert findings(make("regex", column="s", pattern=pattern), in_={"s": "string"}) == []


def test_regex_warns_of_broken_patterns():
    operator = make("regex", column="s", pattern="(a", mode="extract")
    assert findings(operator, in_={"s": "string"}) == [
        "the pattern seems to be broken: missing ), unterminated subpattern at position 0"
    ]
    operator = make("regex", column="s", pattern="(a)", mode="extract", group=2)
    assert findings(operator, in_={"s": "string"}) == ["group 2 is asked for, and the pattern has 1"]


def test_split_text_into_columns_an_array_or_rows(spark):
    rows = spark.createDataFrame([("a|b|c|d",), ("x",), ("",), (None,)], "`the text` string")
    columns = make("split_text", column="the text", separator="|", columns=["first", "2nd part"])
    assert run(spark, columns, {"in": rows})["out"] == [
        ("a|b|c|d", "a", "b|c|d"), ("x", "x", None), ("", "", None), (None, None, None)
    ]  # fmt: skip
    array = make("split_text", column="the text", pattern="[|x]", into="array", columns=["the text"])
    assert run(spark, array, {"in": rows})["out"] == [(["a", "b", "c", "d"],), (["", ""],), ([""],), (None,)]
    in_rows = make("split_text", column="the text", separator="b|", into="rows", columns=["part"])
    assert run(spark, in_rows, {"in": rows})["out"] == [
        ("a|b|c|d", "a|"), ("a|b|c|d", "c|d"), ("x", "x"), ("", ""), (None, None)
    ]  # fmt: skip


def test_split_text_is_told_how_to_cut():
    with pytest.raises(ValidationError, match="either a `separator` or a `pattern`"):
        make("split_text", column="s", columns=["a"])
    with pytest.raises(ValidationError, match="makes one column, and 2 are named"):
        make("split_text", column="s", separator=",", into="rows", columns=["a", "b"])
    assert findings(make("split_text", column="s", separator=",", columns=["a", "A", "t"]),
                    in_={"s": "string", "t": "int"}) == [
        "two columns are called `A`",
        "there is already a column `t`; choose another name",
    ]  # fmt: skip


# ---------------------------------------------------------------- duplicates

DUPLICATES = [
    (1, "x", 3.0), (1, "x", 1.0), (1, "x", None), (2, None, 5.0), (2, None, 5.0), (None, None, 1.0),
    (None, None, 2.0), (3, "y", 9.0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "order"),
    [
        ({"keys": ["id", "the key"]}, "v ASC NULLS FIRST"),
        ({"keys": ["ID", "the key"], "order": [{"column": "v", "nulls": "last"}]}, "v ASC NULLS LAST"),
        (
            {"keys": ["id", "the key"], "order": [{"column": "v", "nulls": "last"}], "keep": "last"},
            "v DESC NULLS FIRST",
        ),
    ],
)
def test_deduplicate_keeps_one_row_of_each_key(spark, settings, order):
    schema = "id int, `the key` string, v double"
    result = run(spark, make("deduplicate", **settings), {"in": spark.createDataFrame(DUPLICATES, schema)})
    with duckdb.connect() as oracle:
        oracle.execute('CREATE TABLE t (id INT, "the key" TEXT, v DOUBLE)')
        oracle.executemany("INSERT INTO t VALUES (?, ?, ?)", DUPLICATES)
        ranked = f'SELECT *, row_number() OVER (PARTITION BY id, "the key" ORDER BY {order}) AS n FROM t'
        unique = oracle.execute(f"SELECT * EXCLUDE n FROM ({ranked}) WHERE n = 1").fetchall()
        others = oracle.execute(f"SELECT * EXCLUDE n FROM ({ranked}) WHERE n > 1").fetchall()
    assert by_key(result["unique"]) == by_key(unique)
    assert by_key(result["duplicate"]) == by_key(others)


def test_deduplicate_without_keys_compares_whole_rows_and_takes_no_rows_too(spark):
    schema = "id int, `the key` string, v double"
    result = run(spark, make("deduplicate"), {"in": spark.createDataFrame(DUPLICATES, schema)})
    assert by_key(result["unique"]) == by_key(list(set(DUPLICATES)))
    assert result["duplicate"] == [(2, None, 5.0)]
    empty = run(spark, make("deduplicate", keys=["id"]), {"in": spark.createDataFrame([], schema)})
    assert empty == {"unique": [], "duplicate": []}


def test_deduplicate_chooses_among_rows_with_columns_that_have_no_order(spark):
    rows = spark.createDataFrame([(1, {"a": 1}, 2), (1, {"b": 1}, 1)], "id int, m map<string,int>, v int")
    result = run(spark, make("deduplicate", keys=["id"]), {"in": rows})
    assert result == {"unique": [(1, {"b": 1}, 1)], "duplicate": [(1, {"a": 1}, 2)]}
    assert findings(make("deduplicate", keys=["m"]), in_={"m": "map<int,int>"}) == [
        "`m` is a `map<int,int>`, by which rows cannot be ordered or grouped"
    ]
    assert make("deduplicate").category is Category.BLOCKING


def test_schemas_nobody_knows_stay_unknown():
    inputs = Inputs({"in": [None]})
    for operator in (
        make("not_null", columns=["a"]),
        make("convert", columns={"a": {"type": "int"}}),
        make("replace_null", values={"a": "b + 1"}),
        make("value_map", column="a", mapping={"x": 1}),
        make("deduplicate"),
    ):
        assert findings(operator, in_=None) == []
        assert set(operator.output_schemas(inputs).values()) == {None}
