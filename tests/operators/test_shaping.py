"""Operators that shape rows, on real Spark."""

from __future__ import annotations

import datetime
import hashlib
import struct
import zlib
from decimal import Decimal

import duckdb
import pytest
from pydantic import ValidationError

from engine.model.operator import Inputs
from engine.operators import catalogue
from tests.operators.harness import by_key, findings, make, run

# ---------------------------------------------------------------- columns


def test_select_keeps_renames_reorders_and_casts(spark):
    rows = spark.createDataFrame([(1, "7", 2.5), (None, None, None)], "id int, `a.b ``c` string, X double")
    plain = make("select", columns=[{"column": "x"}, {"column": "a.b `c"}])
    assert run(spark, plain, {"in": rows})["out"] == [(2.5, "7"), (None, None)]
    changed = make(
        "select",
        columns=[
            {"column": "a.b `c", "type": "int"},
            {"column": "id", "name": "the `id`"},
            {"column": "id", "type": "decimal(5,1)", "name": "x"},
        ],
    )
    assert run(spark, changed, {"in": rows})["out"] == [(7, 1, Decimal("1.0")), (None, None, None)]


def test_select_drops_and_renames(spark):
    rows = spark.createDataFrame([(1, 2, 3)], "a int, `b.c` int, D int")
    assert run(spark, make("select", drop=["B.C"], rename={"d": "e.f"}), {"in": rows})["out"] == [(1, 3)]
    swapped = make("select", drop=["b.c"], rename={"a": "D", "D": "a"})
    assert list(swapped.output_schemas(Inputs({"in": [{"a": "int", "b.c": "int", "D": "int"}]}))["out"]) == [
        "D",
        "a",
    ]
    assert run(spark, swapped, {"in": rows})["out"] == [(1, 3)]


def test_select_finds_names_that_clash():
    schema = {"a": "int", "b": "date"}
    assert findings(make("select", rename={"a": "B"}), in_=schema) == ["two columns are called `b`"]
    assert findings(make("select", drop=["a", "b"]), in_=schema) == ["no column is left"]
    assert findings(make("select", columns=[{"column": "a"}, {"column": "b", "name": "A"}]), in_=schema) == [
        "two columns are called `A`"
    ]
    assert findings(make("select", columns=[{"column": "b", "type": "int"}]), in_=schema) == [
        "`b` is a `date`, which cannot become a `int`"
    ]
    assert findings(make("select", drop=["aa"]), in_=schema) == ["no column `aa`; did you mean `a`?"]
    with pytest.raises(ValidationError, match="either the `columns` that go on"):
        make("select", columns=[{"column": "a"}], drop=["b"])


def test_derive_lets_later_columns_use_earlier_ones(spark):
    rows = spark.createDataFrame([(2, Decimal("1.50")), (None, Decimal("2.00"))], "qty int, price decimal(10,2)")
    columns = [
        {"name": "total", "expression": "qty * price"},
        {"name": "the tax", "expression": "total * 0.19"},
        {"name": "qty", "expression": "qty + 1"},
        {"name": "QTY", "expression": "qty * 10"},
        {"name": "label", "expression": "concat(`the tax`, '/', qty)"},
    ]
    result = run(spark, make("derive", columns=columns), {"in": rows})
    assert by_key(result["out"]) == [
        (30, Decimal("1.50"), Decimal("3.00"), Decimal("0.5700"), "0.5700/30"),
        (None, Decimal("2.00"), None, None, None),
    ]


def test_derive_checks_each_expression_against_the_columns_there_are_by_then():
    schema = {"a": "int"}
    columns = [{"name": "b", "expression": "a > 1"}, {"name": "c", "expression": "NOT b"}]
    assert findings(make("derive", columns=columns), in_=schema) == []
    assert findings(make("derive", columns=columns[::-1]), in_=schema) == ["`NOT b`: no column `b`"]
    assert findings(make("derive", columns=[columns[0], {"name": "c", "expression": "upper(d)"}]), in_=schema) == [
        "`upper(d)`: no column `d`"
    ]
    assert findings(make("derive", columns=columns), in_=None) == []


def test_derive_leaves_other_rows_to_the_window_operator():
    operator = make("derive", columns=[{"name": "b", "expression": "sum(a) OVER (PARTITION BY a)"}])
    assert findings(operator, in_={"a": "int"}) == [
        "`sum(a) OVER (PARTITION BY a)`: `sum OVER` looks at other rows; that is for a `window`"
    ]


def test_checksum_is_the_hash_of_a_text_without_ambiguity(spark):
    moment = datetime.datetime(2024, 5, 1, 12, 0, tzinfo=datetime.UTC)
    rows = [("a", "bc", None), ("ab", "c", moment), ("", None, moment), (None, "", None)]
    texts = [
        "1:a,2:bc,-",
        "2:ab,1:c,16:1714564800000000",
        "0:,-,16:1714564800000000",
        "-,0:,-",
    ]
    frame = spark.createDataFrame(rows, "a string, `b c` string, t timestamp").select("a", "b c", "t")
    expected = {
        "md5": [hashlib.md5(text.encode()).hexdigest() for text in texts],
        "sha256": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
        "crc32": [zlib.crc32(text.encode()) for text in texts],
        "xxhash64": [xxhash64(text.encode()) for text in texts],
    }
    for algorithm, sums in expected.items():
        operator = make("checksum", columns=["a", "b c", "t"], algorithm=algorithm)
        assert [row[3] for row in run(spark, operator, {"in": frame})["out"]] == sums


def test_checksum_takes_every_type_that_has_one_writing(spark):
    frame = spark.sql(
        "SELECT true AS b, 1.50BD AS d, X'0aFF' AS x, array(1, NULL) AS a, struct(1 AS f, NULL AS g) AS s"
    )
    text = '4:true,4:1.50,4:0AFF,8:[1,null],16:{"f":1,"g":null}'
    operator = make("checksum", columns=["b", "d", "x", "a", "s"], algorithm="md5", into="sum")
    (row,) = run(spark, operator, {"in": frame})["out"]
    assert row[-1] == hashlib.md5(text.encode()).hexdigest()
    assert findings(make("checksum", columns=["m"]), in_={"m": "map<int,int>"}) == [
        "`m` is a `map<int,int>`, whose entries have no order to compute a checksum in"
    ]


def xxhash64(data: bytes, seed: int = 42) -> int:
    """XXH64 of fewer than 32 bytes as its specification has it, with Spark's seed, as a signed number."""
    p1, p2, p3, p4, p5 = (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
    )  # fmt: skip
    mask = 2**64 - 1

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> (64 - by)) & mask

    total = (seed + p5 + len(data)) & mask
    while len(data) >= 8:
        lane = rotated(struct.unpack("<Q", data[:8])[0] * p2 & mask, 31) * p1 & mask
        total, data = (rotated(total ^ lane, 27) * p1 + p4) & mask, data[8:]
    if len(data) >= 4:
        total ^= struct.unpack("<I", data[:4])[0] * p1 & mask
        total, data = (rotated(total, 23) * p2 + p3) & mask, data[4:]
    for byte in data:
        total = rotated(total ^ byte * p5 & mask, 11) * p1 & mask
    total = (total ^ total >> 33) * p2 & mask
    total = (total ^ total >> 29) * p3 & mask
    total ^= total >> 32
    return total - 2**64 if total >= 2**63 else total


# ---------------------------------------------------------------- rows


def test_filter_sends_every_row_to_exactly_one_port(spark):
    rows = spark.createDataFrame([(1, "a"), (5, "b"), (None, "c")], "n int, s string")
    result = run(spark, make("filter", condition="n > 2"), {"in": rows})
    assert result["match"] == [(5, "b")]
    assert by_key(result["rest"]) == [(1, "a"), (None, "c")]


def test_filter_names_the_near_column():
    (message,) = findings(make("filter", condition="l_qty > 2"), in_={"l_quantity": "int"})
    assert message == "`l_qty > 2`: no column `l_qty`; did you mean `l_quantity`?"


def test_sort_orders_by_several_columns_and_places_nulls(spark):
    rows = [(1, "b"), (2, "a"), (None, "a"), (2, None), (None, "c")]
    by = [{"column": "the.n", "descending": True, "nulls": "first"}, {"column": "s"}]
    result = run(spark, make("sort", by=by), {"in": spark.createDataFrame(rows, "`the.n` int, s string")})
    assert result["out"] == [(None, "a"), (None, "c"), (2, None), (2, "a"), (1, "b")]
    assert findings(make("sort", by=[{"column": "m"}]), in_={"m": "array<map<int,int>>"}) == [
        "`m` is a `array<map<int,int>>`, by which rows cannot be ordered or grouped"
    ]


def test_sample_draws_the_same_share_for_the_same_seed(spark):
    rows = spark.range(0, 10_000, 1, 2)
    drawn = run(spark, make("sample", fraction=0.1, seed=7), {"in": rows})["out"]
    assert 850 < len(drawn) < 1150
    assert len(set(drawn)) == len(drawn)
    assert run(spark, make("sample", fraction=0.1, seed=7), {"in": rows})["out"] == drawn
    assert run(spark, make("sample", fraction=0.1, seed=8), {"in": rows})["out"] != drawn
    assert not make("sample", fraction=0.1).is_repeatable()


def test_limit_takes_the_first_rows_of_an_order(spark):
    rows = spark.createDataFrame([(3, "a"), (1, "z"), (1, "b"), (2, "x")], "n int, s string")
    assert run(spark, make("limit", rows=2, order=[{"column": "n"}]), {"in": rows})["out"] == [
        (1, "b"),
        (1, "z"),
    ]
    assert len(run(spark, make("limit", rows=3), {"in": rows.coalesce(1)})["out"]) == 3
    assert make("limit", rows=2, order=[{"column": "n"}]).is_repeatable()
    assert not make("limit", rows=2).is_repeatable()


# ---------------------------------------------------------------- rows and their neighbours

SALES = [
    ("n", 1, 10.0, datetime.date(2024, 1, 1)), ("n", 2, 30.0, datetime.date(2024, 1, 2)),
    ("n", 3, 30.0, datetime.date(2024, 1, 5)), ("s", 4, None, datetime.date(2024, 1, 1)),
    ("s", 5, 7.5, datetime.date(2024, 1, 3)), (None, 6, 1.0, None), (None, 7, 2.0, datetime.date(2024, 1, 4)),
]  # fmt: skip
SALES_SCHEMA = "`the region` string, id int, amount double, day date"


def ask(query: str, rows=SALES) -> list[tuple]:
    """DuckDB's answer over the sales."""
    with duckdb.connect() as oracle:
        oracle.execute('CREATE TABLE sales ("the region" TEXT, id INT, amount DOUBLE, day DATE)')
        if rows:
            oracle.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", rows)
        return oracle.execute(query).fetchall()


def test_sequence_numbers_rows_in_an_order(spark):
    frame = spark.createDataFrame(SALES, SALES_SCHEMA)
    by_amount = [{"column": "amount", "descending": True}]
    result = run(spark, make("sequence", order=by_amount, into="no", start=100), {"in": frame})
    assert by_key(result["out"]) == by_key(
        ask('SELECT *, 99 + row_number() OVER (ORDER BY amount DESC NULLS LAST, "the region", id) FROM sales')
    )
    grouped = make("sequence", order=by_amount, partition=["the region"], start=5, step=-10)
    assert by_key(run(spark, grouped, {"in": frame})["out"]) == by_key(
        ask("""SELECT *, 15 - 10 * row_number() OVER
               (PARTITION BY "the region" ORDER BY amount DESC NULLS LAST, id) FROM sales""")
    )
    empty = spark.createDataFrame([], SALES_SCHEMA)
    assert run(spark, make("sequence", order=by_amount), {"in": empty})["out"] == []
    assert findings(make("sequence", order=by_amount, into="ID"), in_={"amount": "int", "id": "int"}) == [
        "there is already a column `ID`; choose another name"
    ]


def test_window_ranks_sums_and_looks_back(spark):
    operator = make(
        "window",
        partition=["the region"],
        order=[{"column": "amount", "descending": True, "nulls": "last"}],
        functions=[
            {"name": "the rank", "function": "rank()"},
            {"name": "dense", "function": "dense_rank()"},
            {"name": "share", "function": "percent_rank()"},
            {"name": "running", "function": "sum(amount)"},
            {"name": "n", "function": "count(*)"},
            {"name": "many", "function": "count(*) FILTER (WHERE amount > 5)"},
        ],
    )
    over = 'OVER (PARTITION BY "the region" ORDER BY amount DESC NULLS LAST)'
    assert by_key(run(spark, operator, {"in": spark.createDataFrame(SALES, SALES_SCHEMA)})["out"]) == by_key(
        ask(f"""SELECT *, rank() {over}, dense_rank() {over}, percent_rank() {over}, sum(amount) {over},
                       count(*) {over}, count(*) FILTER (WHERE amount > 5) {over} FROM sales""")
    )
    assert operator.is_repeatable()


def test_window_frames_count_rows_or_distances(spark):
    frame = spark.createDataFrame(SALES, SALES_SCHEMA)
    functions = [
        {"name": "near", "function": "sum(amount)"},
        {"name": "before", "function": "lag(amount, 1, -1)"},
        {"name": "number", "function": "row_number()"},
    ]
    by_rows = make("window", order=[{"column": "id"}], functions=functions, frame={"start": -1, "end": 1})
    assert by_key(run(spark, by_rows, {"in": frame})["out"]) == by_key(
        ask("""SELECT *, sum(amount) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING),
                      lag(amount, 1, -1) OVER (ORDER BY id), row_number() OVER (ORDER BY id) FROM sales""")
    )
    assert not by_rows.is_repeatable()
    by_days = make(
        "window",
        partition=["the region"],
        order=[{"column": "day"}],
        functions=functions[:1],
        frame={"unit": "range", "start": -2, "end": None},
    )
    assert by_key(run(spark, by_days, {"in": frame})["out"]) == by_key(
        ask("""SELECT *, sum(amount) OVER (PARTITION BY "the region" ORDER BY day NULLS FIRST
                      RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND UNBOUNDED FOLLOWING) FROM sales""")
    )


def test_window_tells_what_is_no_window_function():
    def told(function, **settings):
        functions = [{"name": "x", "function": function}]
        return findings(make("window", functions=functions, **settings), in_={"a": "int", "s": "string"})

    order = [{"column": "a"}]
    assert told("sum(a)") == []
    assert told("rank()") == ["`rank()` needs an order"]
    not_one = "is not one window function, like `rank()` or `sum(x)`; compute with its result in a `derive`"
    assert told("1 + sum(a)", order=order) == [f"`1 + sum(a)` {not_one}"]
    assert told("sum(a) / sum(a)", order=order) == [f"`sum(a) / sum(a)` {not_one}"]
    assert told("a", order=order) == ["`a`: `OVER` is not expected here"]
    assert told("rank() OVER (ORDER BY a)", order=order) == [
        "`rank() OVER (ORDER BY a)`: `OVER` is not expected here; the window is added by itself"
    ]
    assert told("sum(b)") == ["`sum(b)`: no column `b`"]
    assert told("sum(a)", order=[{"column": "s"}], frame={"unit": "range", "start": -1}) == [
        "a range with distances needs an order by one number or date"
    ]
    assert told("sum(a)", order=order, frame={"start": 2, "end": 1}) == ["the frame starts at 2, behind its end at 1"]


# ---------------------------------------------------------------- columns to rows and back


def test_pivot_makes_columns_of_values(spark):
    frame = spark.createDataFrame(SALES, SALES_SCHEMA)
    operator = make(
        "pivot",
        group=["THE REGION"],
        column="day",
        values=[
            {"value": "2024-01-01", "name": "the 1st"},
            {"value": "2024-01-02"},
            {"value": None, "name": "never"},
        ],
        aggregates=[
            {"name": "total", "expression": "sum(amount)"},
            {"name": "n", "expression": "max(id) + 1"},
        ],
    )
    rows = run(spark, operator, {"in": frame})["out"]
    assert by_key(rows) == by_key(
        ask("""SELECT "the region",
                sum(amount) FILTER (WHERE day = '2024-01-01'), 1 + max(id) FILTER (WHERE day = '2024-01-01'),
                sum(amount) FILTER (WHERE day = '2024-01-02'), 1 + max(id) FILTER (WHERE day = '2024-01-02'),
                sum(amount) FILTER (WHERE day IS NULL), 1 + max(id) FILTER (WHERE day IS NULL)
               FROM sales GROUP BY 1""")
    )
    single = make(
        "pivot",
        column="id",
        values=[{"value": 1}, {"value": 99}],
        aggregates=[{"name": "n", "expression": "count(*)"}],
    )
    assert list(single.output_schemas(Inputs({"in": [{"id": "int"}]}))["out"]) == ["1", "99"]
    assert run(spark, single, {"in": frame})["out"] == [(1, None)]


def test_pivot_checks_its_values():
    def told(*values, group=()):
        aggregates = [{"name": "n", "expression": "count(*)"}]
        operator = make("pivot", group=list(group), column="q", values=list(values), aggregates=aggregates)
        return findings(operator, in_={"q": "int", "a": "string"})

    assert told({"value": "x"}) == ["`x` is no `int`, as `q` is"]
    assert told({"value": 1}, {"value": 2, "name": "1"}) == ["two columns are called `1`"]
    assert told({"value": 1, "name": "A"}, group=["a"]) == ["two columns are called `A`"]


def test_unpivot_makes_rows_of_columns(spark):
    frame = spark.createDataFrame([(1, 10, 2.5, "x"), (2, None, 3.5, None)], "id int, `q.1` int, Q2 double, s string")
    operator = make("unpivot", keep=["id"], columns=["q.1", "Q2"], name_into="the quarter")
    assert by_key(run(spark, operator, {"in": frame})["out"]) == [
        (1, "Q2", 2.5), (1, "q.1", 10.0), (2, "Q2", 3.5), (2, "q.1", None)
    ]  # fmt: skip
    typed = make("unpivot", keep=["id"], columns=["q.1", "s"], type="string", nulls=False)
    assert by_key(run(spark, typed, {"in": frame})["out"]) == [(1, "q.1", "10"), (1, "s", "x")]
    mixed = make("unpivot", keep=["id"], columns=["q.1", "s", "id"])
    assert findings(mixed, in_={"id": "int", "q.1": "int", "s": "string"}) == [
        "two columns are called `id`",
        "the columns mix text with other types; say which `type` is meant",
    ]


# ---------------------------------------------------------------- nested values

JSON_ROWS = [
    (1, '{"a": 1, "tags": ["x", "y"], "more": true}', (1, ["x", "y"])), (2, '{"a": "no number"}', "refused"),
    (3, "broken {", "refused"), (4, None, None), (5, "", "refused"), (6, " {} ", (None, None)),
    (7, '[{"a": 1}]', "refused"), (8, '{"a": 3', "refused"), (9, "null", None), (10, '{"a": 1} and more', "refused"),
    (11, '{"a": 1}{"a": 2}', "refused"), (12, '{"tags": "x"}', "refused"), (13, '{"tags": null, "a": -5}', (-5, None)),
]  # fmt: skip


def test_parse_json_reads_fields_and_refuses_what_is_not_of_the_form(spark):
    frame = spark.createDataFrame([row[:2] for row in JSON_ROWS], "id int, `the text` string")
    form = "struct<a: int, tags: array<string>>"
    reason = "the text: no JSON of the form struct<a:int,tags:array<string>>: "
    refused = [(id_, text, reason + text) for id_, text, value in JSON_ROWS if value == "refused"]
    fine = [row for row in JSON_ROWS if row[2] != "refused"]
    result = run(spark, make("parse_json", column="the text", type=form), {"in": frame})
    assert sorted(result["out"]) == [(id_, text, *(value or (None, None))) for id_, text, value in fine]
    assert sorted(result["reject"]) == refused
    result = run(spark, make("parse_json", column="the text", type=form, into="The Text"), {"in": frame})
    assert sorted(result["out"]) == [(id_, value) for id_, _, value in fine]
    assert sorted(result["reject"]) == refused


def test_parse_json_reads_arrays_into_a_column(spark):
    rows = [(1, "[1, 2]"), (2, '[1, "x"]'), (3, None), (4, "{}"), (5, "[]"), (6, "[1"), (7, "1")]
    frame = spark.createDataFrame(rows, "id int, t string")
    result = run(spark, make("parse_json", column="t", type="array<int>", into='the "numbers"'), {"in": frame})
    assert sorted(result["out"]) == [(1, "[1, 2]", [1, 2]), (3, None, None), (5, "[]", [])]
    assert [row[0] for row in sorted(result["reject"])] == [2, 4, 6, 7]


def test_parse_json_needs_a_form_and_free_names():
    schema = {"t": "string", "a": "int"}
    assert findings(make("parse_json", column="t", type="array<int>"), in_=schema) == [
        "a `array<int>` needs a column to go `into`; only a struct has fields"
    ]
    assert findings(make("parse_json", column="t", type="struct<A:int>"), in_=schema) == [
        "there is already a column `A`; choose another name"
    ]
    assert findings(make("parse_json", column="a", type="int", into="b"), in_=schema) == [
        "`a` is a `int`, and this is for text",
        "JSON is read as a struct, an array or a map, not as a `int`",
    ]


def test_flatten_puts_fields_in_place_of_structs(spark):
    frame = spark.createDataFrame(
        [(1, ("x", 2), (3,), "z"), (2, None, (None,), None)],
        "id int, Who struct<name:string,`a b`:int>, w struct<n:int>, last string",
    )
    operator = make("flatten", columns=["who", "w"])
    schema = operator.output_schemas(Inputs({"in": [dict(frame.dtypes)]}))["out"]
    assert list(schema) == ["id", "Who_name", "Who_a b", "w_n", "last"]
    assert run(spark, operator, {"in": frame})["out"] == [(1, "x", 2, 3, "z"), (2, None, None, None, None)]
    assert run(spark, make("flatten", columns=["w"], prefix=""), {"in": frame.select("w")})["out"] == [
        (3,),
        (None,),
    ]
    assert findings(make("flatten", columns=["id", "w"], prefix="i"), in_={"id": "int", "w": "struct<d:int>"}) == [
        "`id` is a `int`, not a struct",
        "two columns are called `id`",
    ]


def test_explode_makes_a_row_of_each_element(spark):
    frame = spark.createDataFrame([(1, ["a", None]), (2, []), (3, None)], "id int, `the tags` array<string>")
    kept = run(spark, make("explode", column="the tags", into="tag"), {"in": frame})["out"]
    assert kept == [(1, ["a", None], "a"), (1, ["a", None], None), (2, [], None), (3, None, None)]
    assert run(spark, make("explode", column="the tags", keep_empty=False), {"in": frame})["out"] == [
        (1, "a"), (1, None)
    ]  # fmt: skip
    assert findings(make("explode", column="s"), in_={"s": "string"}) == ["`s` is a `string`, not an array"]


# ---------------------------------------------------------------- all of them


def test_every_operator_of_these_families_describes_itself_and_its_settings():
    for operator in catalogue().values():
        if operator.family in ("shaping", "cleansing"):
            assert operator.__doc__, operator.name
            undescribed = [name for name, field in operator.model_fields.items() if not field.description]
            assert not undescribed, (operator.name, undescribed)
