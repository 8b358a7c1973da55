"""Operators that bring flows together, on real Spark. Expected rows come from DuckDB or are written by hand."""

from __future__ import annotations

import contextlib
import datetime
import io
from typing import Any

import duckdb
import pytest
from pydantic import ValidationError

from engine.model.binding import bind
from engine.model.checks import check_texts
from engine.model.operator import Category, Inputs, Place, Role
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.partition.fused import fuse
from engine.spark import tools
from engine.spark.compile import Compiler
from engine.spark.failures import NodeFailed
from tests.operators.harness import Rows, by_key, findings, make, run


def answer(sql: str, **tables: tuple[Rows, str]) -> Rows:
    """DuckDB's rows for a query over tables given as rows and columns."""
    with duckdb.connect() as connection:
        for name, (rows, columns) in tables.items():
            connection.execute(f"CREATE TABLE {name} ({columns.replace('`', chr(34))})")
            if rows:
                connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        return connection.execute(sql).fetchall()


def message_of(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value)


# ---------------------------------------------------------------- join

LEFT = (
    [(1, "Ä", 10), (1, "b", 20), (2, "c", 30), (None, "d", 40), (5, None, None)],
    "id int, `the Name` string, v int",
)
RIGHT = ([(1, 15, "x"), (2, 35, "y"), (2, 5, None), (None, 45, "z"), (9, 1, "w")], "ID int, v int, `Extra.1` string")
BOTH = 'l.id, l."the Name", l.v, r.v, r."Extra.1"'


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("inner", f"SELECT {BOTH} FROM l JOIN r ON l.id = r.id"),
        ("left", f"SELECT {BOTH} FROM l LEFT JOIN r ON l.id = r.id"),
        ("right", f"SELECT {BOTH.replace('l.id', 'r.id', 1)} FROM l RIGHT JOIN r ON l.id = r.id"),
        ("full", f"SELECT {BOTH.replace('l.id', 'coalesce(l.id, r.id)', 1)} FROM l FULL JOIN r ON l.id = r.id"),
        ("semi", "SELECT l.* FROM l SEMI JOIN r ON l.id = r.id"),
        ("anti", "SELECT l.* FROM l ANTI JOIN r ON l.id = r.id"),
        ("cross", "SELECT l.*, r.* FROM l CROSS JOIN r"),
    ],
)
def test_join_gives_the_rows_of_its_kind_and_one_column_for_keys_of_one_name(spark, kind, sql):
    left, right = spark.createDataFrame(*LEFT), spark.createDataFrame(*RIGHT)
    keys = [] if kind == "cross" else [{"left": "id"}]
    join = make("join", kind=kind, keys=keys)
    result = run(spark, join, {"left": left, "right": right})
    assert by_key(result["out"]) == by_key(answer(sql, l=LEFT, r=RIGHT))
    names = list(join.output_schemas(Inputs({"left": [dict(left.dtypes)], "right": [dict(right.dtypes)]}))["out"])
    assert names == {
        "semi": ["id", "the Name", "v"],
        "anti": ["id", "the Name", "v"],
        "cross": ["id", "the Name", "v", "ID_right", "v_right", "Extra.1"],
    }.get(kind, ["id", "the Name", "v", "v_right", "Extra.1"])


@pytest.mark.parametrize("form", ["broadcast", "hash", "merge", "nested_loops"])
def test_a_form_changes_how_a_join_is_done_and_not_what_it_gives(spark, form):
    left = spark.createDataFrame(*LEFT)
    join = make(
        "join", form=form, null_safe=True, right_suffix="2",
        keys=[{"left": "id", "right": "id"}], condition="left.v <= right.v AND right.`the Name` <> 'b' OR left.id IS NULL",
    )  # fmt: skip
    result = run(spark, join, {"left": left, "right": left})  # with itself
    sql = 'SELECT a.*, b."the Name", b.v FROM l a JOIN l b ON a.id IS NOT DISTINCT FROM b.id AND (a.v <= b.v AND b."the Name" <> \'b\' OR a.id IS NULL)'
    assert by_key(result["out"]) == by_key(answer(sql, l=LEFT))
    hint = {"broadcast": "broadcast", "hash": "shuffle_hash", "merge": "merge", "nested_loops": "shuffle_replicate_nl"}
    plan = _plan(join, left)
    assert f"strategy={hint[form]}" in plan


def _plan(join: Any, frame: Any) -> str:
    """The analysed plan, which shows the hints."""
    from engine.spark.tools import build

    out = build(join, {"left": [frame], "right": [frame]}, frame.sparkSession, None)  # type: ignore[arg-type]
    return out._jdf.queryExecution().analyzed().toString().lower().replace("shufflehash", "shuffle_hash")


def test_join_on_a_condition_alone_keeps_rows_of_the_kept_side_when_the_other_is_empty(spark):
    left, none = spark.createDataFrame(*LEFT), spark.createDataFrame([], RIGHT[1])
    join = make("join", kind="left", condition="`the Name` < `Extra.1`")
    result = run(spark, join, {"left": left, "right": none})
    assert by_key(result["out"]) == by_key([(*row, None, None, None) for row in LEFT[0]])


def test_join_says_what_is_wrong_with_its_keys_and_names():
    left = {"id": "int", "name": "string", "m": "map<string,int>", "id_right": "int"}
    right = {"ID": "string", "name": "string", "m": "map<string,int>", "x": "date"}

    def wrong(**settings: Any) -> list[str]:
        return findings(make("join", **settings), left=left, right=right)

    assert wrong(keys=[{"left": "id", "right": "x"}]) == [
        "`id` is a `int` and `x` a `date`; convert one of them first",
        "two columns would be called `id_right`; choose another suffix",
    ]
    assert wrong(keys=[{"left": "id"}]) == ["`id` is a `int` and `id` a `string`; convert one of them first"]
    assert "`m` is a `map<string,int>`, which cannot be a key" in wrong(keys=[{"left": "m"}], right_suffix="_2")
    assert wrong(keys=[{"left": "nam", "right": "name"}], right_suffix="_2") == [
        "no column `nam`; did you mean `name`?"
    ]
    assert wrong(kind="anti") == ["a join needs keys or a condition; `cross` takes every pair of rows"]
    assert wrong(kind="cross", keys=[{"left": "name"}], right_suffix="_2") == [
        "a cross join takes every pair of rows; it has no keys and no condition"
    ]
    assert wrong(kind="semi", condition="name = 'x'") == [
        "both inputs have a column `name`; write `left.name` or `right.name`"
    ]
    assert wrong(kind="semi", condition="left.name = right.nme") == [
        "`left.name = right.nme`: no column `nme` on `right`; did you mean `name`?"
    ]
    assert wrong(kind="full", keys=[{"left": "name"}], form="broadcast", right_suffix="_2") == [
        "a full join cannot be done by broadcast"
    ]
    assert wrong(kind="left", condition="left.id > 1", form="nested_loops", right_suffix="_2") == [
        "nested loops are for inner and cross joins"
    ]
    assert wrong(kind="semi", condition="left.id > 1", form="hash") == ["a `hash` join needs keys"]
    assert findings(make("join", keys=[{"left": "id"}]), left=None, right=right) == []


# ---------------------------------------------------------------- lookup

ORDERS = [(1, "de", 10), (2, "fr", 20), (3, "xx", 30), (4, None, 40), (5, "de", 50)]
COUNTRIES = "code string, name string, since date, `rank` int"


def test_lookup_adds_columns_and_defaults_and_keeps_every_row_once(spark):
    orders = spark.createDataFrame(ORDERS, "id int, country string, v int")
    countries = spark.createDataFrame(
        [("de", "Germany", datetime.date(1949, 5, 23), None), ("fr", "France", None, 7), (None, "Nowhere", None, 1), (None, "Never", None, 2)],
        COUNTRIES,
    )  # fmt: skip
    lookup = make(
        "lookup",
        keys=[{"main": "country", "reference": "code"}],
        take=[
            {"column": "name", "name": "the country", "default": "it's \\ unknown"},
            {"column": "since", "default": "1900-01-01"},
            {"column": "rank", "default": -1},
            {"column": "code"},
        ],
    )
    result = run(spark, lookup, {"main": orders, "reference": countries})
    miss = ("it's \\ unknown", datetime.date(1900, 1, 1), -1, None)
    assert by_key(result["out"]) == by_key(
        [
            (1, "de", 10, "Germany", datetime.date(1949, 5, 23), None, "de"),  # found, and empty all the same
            (2, "fr", 20, "France", None, 7, "fr"),
            (3, "xx", 30, *miss),
            (4, None, 40, *miss),  # an empty key is never found
            (5, "de", 50, "Germany", datetime.date(1949, 5, 23), None, "de"),
        ]
    )
    assert lookup.category is Category.ROW_SYNCHRONIZED


def test_lookup_sends_rows_that_are_not_found_by_their_port_and_takes_the_first_of_several(spark):
    orders = spark.createDataFrame(ORDERS, "id int, `the.country` string, v int")
    countries = spark.createDataFrame(
        [("de", "old", None, 1), ("de", "new", None, 3), ("de", "newer", None, 3), ("fr", "France", None, None)],
        COUNTRIES,
    )
    lookup = make(
        "lookup",
        keys=[{"main": "the.country", "reference": "code"}],
        take=[{"column": "name"}],
        on_miss="miss",
        on_duplicate="first",
        order=[{"column": "rank", "descending": True}],
        broadcast=False,
    )
    result = run(spark, lookup, {"main": orders, "reference": countries})
    assert by_key(result["out"]) == [(1, "de", 10, "new"), (2, "fr", 20, "France"), (5, "de", 50, "new")]
    assert by_key(result["miss"]) == [(3, "xx", 30), (4, None, 40)]


def test_lookup_stops_where_the_reference_would_multiply_rows(spark):
    orders = spark.createDataFrame(ORDERS, "id int, country string, v int")
    countries = spark.createDataFrame([("de", "a", None, 1), ("de", "b", None, 1)], COUNTRIES)
    lookup = make("lookup", keys=[{"main": "country", "reference": "code"}], take=[{"column": "name"}])
    with pytest.raises(Exception, match="the reference of a lookup has several rows for the key") as error:
        run(spark, lookup, {"main": orders, "reference": countries})
    assert '{"code":"de"}' in message_of(error)


def test_a_lookup_may_count_only_some_rows_of_the_reference(spark):
    orders = spark.createDataFrame([(1, "de"), (2, "ch"), (3, None)], "id int, country string")
    countries = spark.createDataFrame(
        [("de", "Germany", True), ("de", "Prussia", False), ("ch", "Helvetia", False)],
        "code string, name string, today boolean",
    )
    lookup = make(
        "lookup",
        keys=[{"main": "country", "reference": "code"}],
        take=[{"column": "name", "default": "-"}],
        condition="today",
    )
    result = run(spark, lookup, {"main": orders, "reference": countries})
    assert by_key(result["out"]) == [(1, "de", "Germany"), (2, "ch", "-"), (3, None, "-")]
    wrong = make("lookup", keys=[{"main": "id"}], take=[{"column": "n"}], condition="country = 'de'")
    assert findings(wrong, main={"id": "int", "country": "string"}, reference={"id": "int", "n": "int"}) == [
        "`country = 'de'`: no column `country`"
    ]


def test_a_lookup_in_parquet_reads_its_reference_itself(spark, tmp_path):
    spark.createDataFrame(
        [(1, "ann", "x"), (2, "bob", "x"), (3, "eve", "y"), (None, "nobody", "x")],
        "id bigint, name string, kind string",
    ).write.parquet(str(tmp_path / "people"))
    lookup = make(
        "parquet_lookup",
        path="people",
        keys=[{"main": "person", "reference": "id"}],
        take=[{"column": "id", "default": -1}, {"column": "name", "name": "who"}],
        condition="kind = 'x'",
    )
    main = spark.createDataFrame([(10, 2), (11, 3), (12, None), (13, 2)], "number int, person int")
    result = run(spark, lookup, {"main": main}, folder=tmp_path)
    assert by_key(result["out"]) == [
        (10, 2, 2, "bob"), (11, 3, -1, None), (12, None, -1, None), (13, 2, 2, "bob"),
    ]  # fmt: skip
    assert lookup.category is Category.ROW_SYNCHRONIZED
    assert lookup.role is Role.ACTIVITY


@pytest.mark.parametrize("on_duplicate", ["fail", "first"])
def test_a_small_reference_is_gathered_so_that_its_keys_need_no_shuffle(spark, tmp_path, monkeypatch, on_duplicate):
    known = spark.range(0, 2000, 1, 4).selectExpr("id % 1000 AS id", "id % 1000 % 7 AS seventh", "id < 1000 AS counts")
    known.write.parquet(str(tmp_path / "known"))
    main = spark.range(0, 1500).selectExpr("id AS number", "id * 2 AS twice")
    settings = {
        "keys": [{"main": "twice", "reference": "id"}],
        "take": [{"column": "seventh", "default": -1}],
        "condition": "counts",  # of all rows each key has two, so that Spark has to look at those that count
        "on_duplicate": on_duplicate,
    }
    expected = by_key([(n, 2 * n, 2 * n % 7 if n < 500 else -1) for n in range(1500)])
    place = Place(lambda text: tmp_path / text, lambda text: "")
    plans = {}
    for limit in (tools.GATHERED_BYTES, 0):
        monkeypatch.setattr(tools, "GATHERED_BYTES", limit)
        itself = make("parquet_lookup", path="known", **settings)
        assert by_key(run(spark, itself, {"main": main}, folder=tmp_path)["out"]) == expected
        lookup, reference = make("lookup", **settings), spark.read.parquet(str(tmp_path / "known"))
        assert by_key(run(spark, lookup, {"main": main, "reference": reference})["out"]) == expected
        for name, one, inputs in (("itself", itself, {}), ("reference", lookup, {"reference": [reference]})):
            plans[name, limit > 0] = plan_of(tools.build(one, {"main": [main], **inputs}, spark, place))
    for name in ("itself", "reference"):
        assert "Coalesce 1" in plans[name, True]
        assert "Exchange hashpartitioning" not in plans[name, True]
        assert "Exchange hashpartitioning" in plans[name, False], "what is large stays spread out"


def test_a_reference_that_is_gathered_still_stops_the_run_where_it_would_multiply_rows(spark, tmp_path):
    spark.range(0, 100, 1, 4).selectExpr("id div 2 AS `a key`", "id").write.parquet(str(tmp_path / "known"))
    lookup = make(
        "parquet_lookup", path="known", keys=[{"main": "n", "reference": "a key"}], take=[{"column": "id"}],
        condition="id <> 7 OR `a key` = 3",
    )  # fmt: skip
    with pytest.raises(Exception, match="the reference of a lookup has several rows for the key") as error:
        run(spark, lookup, {"main": spark.range(10).selectExpr("id AS n")}, folder=tmp_path)
    assert '{"a key":' in message_of(error)


def test_a_lookup_in_parquet_takes_texts_without_sorting_its_reference_for_them(spark, tmp_path):
    named = spark.range(0, 2000, 1, 4).selectExpr(
        "id % 1000 AS id", "concat('name ', id) AS name", "id < 1000 AS counts"
    )
    named.write.parquet(str(tmp_path / "known"))
    main = spark.range(0, 1500).selectExpr("id AS number")
    settings = {
        "keys": [{"main": "number", "reference": "id"}], "take": [{"column": "name", "default": "-"}],
        "condition": "counts",
    }  # fmt: skip
    place = Place(lambda text: tmp_path / text, lambda text: "")
    itself, joined = make("parquet_lookup", path="known", **settings), make("lookup", **settings)
    expected = [(number, f"name {number}" if number < 1000 else "-") for number in range(1500)]
    assert by_key(run(spark, itself, {"main": main}, folder=tmp_path)["out"]) == by_key(expected)
    plan = plan_of(tools.build(itself, {"main": [main]}, spark, place))
    assert "Sort [" not in plan
    assert "Subquery" in plan, "its keys are counted apart"
    reference = spark.read.parquet(str(tmp_path / "known"))
    plan = plan_of(tools.build(joined, {"main": [main], "reference": [reference]}, spark, place))
    assert "Subquery" not in plan, "what leads to a reference of the flow is not computed twice"


@pytest.mark.parametrize("on_duplicate", ["fail", "first"])
def test_a_lookup_in_parquet_whose_keys_are_seen_to_be_unique_leaves_spark_nothing_to_check(
    spark, tmp_path, on_duplicate
):
    spark.range(0, 1000, 1, 4).selectExpr("id", "concat('name ', id) AS name").write.parquet(str(tmp_path / "known"))
    main = spark.range(0, 1500).selectExpr("id AS number")
    itself = make(
        "parquet_lookup", path="known", keys=[{"main": "number", "reference": "ID"}],
        take=[{"column": "name", "default": "-"}], condition="id % 2 = 0", on_duplicate=on_duplicate,
    )  # fmt: skip
    named = [(number, f"name {number}" if number < 1000 and number % 2 == 0 else "-") for number in range(1500)]
    assert by_key(run(spark, itself, {"main": main}, folder=tmp_path)["out"]) == by_key(named)
    place = Place(lambda text: tmp_path / text, lambda text: "")
    plan = plan_of(tools.build(itself, {"main": [main]}, spark, place))
    assert "BroadcastHashJoin" in plan
    for step in ("Aggregate", "Sort [", "Window", "Subquery", "Coalesce", "Exchange hashpartitioning"):
        assert step not in plan


def test_references_that_a_unit_prepares_are_joined_and_a_broken_one_is_told_with_its_node(spark, tmp_path):
    for name, factor in (("tens", 10), ("hundreds", 100)):
        spark.range(5).selectExpr("id", f"id * {factor} AS {name}").write.parquet(str(tmp_path / name))
    spark.range(6).write.parquet(str(tmp_path / "rows"))
    lookups = {
        name: {"operator": "parquet_lookup", "settings": {
            "path": f"${{data}}/{name}", "keys": [{"main": "id"}], "take": [{"column": name, "default": -1}]}}
        for name in ("tens", "hundreds")
    }  # fmt: skip
    workflow = Workflow.model_validate(
        {
            "papilio": 1, "name": "prepared", "roots": {"data": str(tmp_path)},
            "nodes": {
                "rows": {"operator": "parquet_source", "settings": {"path": "${data}/rows"}}, **lookups,
                "out": {"operator": "parquet_target", "settings": {"path": "${data}/out"}},
            },
            "edges": [{"from": "rows", "to": "tens.main"}, {"from": "tens", "to": "hundreds.main"},
                      {"from": "hundreds", "to": "out"}],
        }
    )  # fmt: skip
    bound = bind(workflow, catalogue())
    plan = fuse(bound)
    compiler = Compiler(bound, plan, spark, bound.place(), lambda *asked: pytest.fail("nothing is held"))
    frame = compiler.compile(plan.units[0]).frames["out"]
    assert by_key(frame.collect()) == [(n, 10 * n, 100 * n) for n in range(5)] + [(5, -1, -1)]
    for file in (tmp_path / "hundreds").glob("*.parquet"):
        file.write_bytes(b"broken")
    with pytest.raises(NodeFailed) as error:
        compiler.compile(plan.units[0])
    assert error.value.node == "hundreds"


def plan_of(frame) -> str:
    """The physical plan as Spark explains it."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        frame.explain()
    return written.getvalue()


def test_a_lookup_in_parquet_is_checked_against_the_files_columns(tmp_path):
    lookup = make(
        "parquet_lookup", path="people", columns={"id": "bigint", "name": "string"},
        keys=[{"main": "person", "reference": "idd"}], take=[{"column": "nam"}], condition="colour = 'x'",
    )  # fmt: skip
    inputs = Inputs({"main": [{"person": "int"}]}, lookup.declared())
    found = [finding.message for finding in (*check_texts(lookup, inputs), *lookup.check(inputs))]
    assert found == [
        "no column `idd`; did you mean `id`?",
        "no column `nam`; did you mean `name`?",
        "`colour = 'x'`: no column `colour`",
    ]
    place = Place(lambda text: tmp_path / text, lambda text: "")
    assert "people" in (lookup.missing(place) or ""), "a run says before it starts that the file is not there"


def test_lookup_says_what_is_wrong():
    main, reference = {"id": "int", "name": "string"}, {"id": "bigint", "name": "string", "n": "int"}
    lookup = make(
        "lookup",
        keys=[{"main": "id"}, {"main": "name", "reference": "n"}],
        take=[{"column": "name"}, {"column": "n", "name": "x", "default": "a"}, {"column": "id", "name": "X"}],
        order=[{"column": "m"}],
        on_miss="miss",
    )
    assert findings(lookup, main=main, reference=reference) == [
        "no column `m`",
        "`name` is a `string` and `n` a `int`; convert one of them first",
        "the main input has a column `name` already; give it a new name",
        "rows that are not found leave by `miss`; a default is not used",
        "`n` is a `int`, and its default is a text",
        "two columns would be called `X`",
        "an order is for `on_duplicate: first`",
    ]
    assert [port.name for port in lookup.output_ports()] == ["out", "miss"]
    plain = make("lookup", keys=[{"main": "id"}], take=[{"column": "n"}])
    assert [port.name for port in plain.output_ports()] == ["out"]
    assert plain.output_schemas(Inputs({"main": [main], "reference": [None]}))["out"] == {**main, "n": "?"}


def test_exists_divides_the_rows_and_never_multiplies_them(spark):
    rows = [(1, "a"), (1, "b"), (2, None), (None, "a"), (7, "a")]
    others = [(1, "a"), (1, "a"), (2, None), (None, "a"), (7, "x")]
    main = spark.createDataFrame(rows, "id int, `k.k` string")
    reference = spark.createDataFrame(others, "no bigint, text string")
    exists = make("exists", keys=[{"main": "id", "reference": "no"}, {"main": "k.k", "reference": "text"}])
    result = run(spark, exists, {"main": main, "reference": reference})
    tables = {"m": (rows, "id int, k string"), "o": (others, "no bigint, text string")}
    found = "EXISTS (SELECT 1 FROM o WHERE o.no = m.id AND o.text = m.k)"
    assert by_key(result["match"]) == by_key(answer(f"SELECT * FROM m WHERE {found}", **tables))
    assert by_key(result["rest"]) == by_key(answer(f"SELECT * FROM m WHERE NOT {found}", **tables))


# ---------------------------------------------------------------- surrogate keys


def test_surrogate_key_numbers_new_keys_in_their_order_behind_the_known_ones(spark):
    rows = [("b", 2, 1.0), ("a", 9, 2.0), ("b", 2, 3.0), (None, 1, 4.0), ("a", 1, 5.0), ("é", None, 6.0)]
    data = spark.createDataFrame(rows, "`nat Key` string, part int, v double")
    known = spark.createDataFrame(
        [("a", 1, 40), ("a", 1, 44), ("zz", 5, 41), ("b", 7, None)], "natural string, part int, sk int"
    )
    settings = {"key": ["nat Key", "part"], "column": "key_id"}
    result = run(spark, make("surrogate_key", **settings), {"in": data})
    numbers = {(None, 1): 1, ("a", 1): 2, ("a", 9): 3, ("b", 2): 4, ("é", None): 5}
    assert by_key(result["out"]) == by_key([(*row, numbers[row[:2]]) for row in rows])
    assert by_key(result["new_keys"]) == by_key([(*key, number) for key, number in numbers.items()])

    named = make("surrogate_key", **settings, known_key=["natural", "part"], known_column="sk")
    result = run(spark, named, {"in": data, "known": known})
    numbers = {("a", 1): 40, (None, 1): 45, ("a", 9): 46, ("b", 2): 47, ("é", None): 48}
    assert by_key(result["out"]) == by_key([(*row, numbers[row[:2]]) for row in rows])
    assert by_key(result["new_keys"]) == by_key([(*key, number) for key, number in numbers.items() if number > 40])


def test_surrogate_key_starts_where_it_is_told_and_gives_nothing_for_nothing(spark):
    data = spark.createDataFrame([(3,), (1,)], "id int")
    none = spark.createDataFrame([], "id int, sk bigint")
    operator = make("surrogate_key", key=["id"], column="sk", start=1000)
    result = run(spark, operator, {"in": data, "known": none})
    assert by_key(result["out"]) == [(1, 1000), (3, 1001)]
    assert run(spark, operator, {"in": none.select("id"), "known": none}) == {"out": [], "new_keys": []}


def test_surrogate_key_says_what_is_wrong():
    operator = make("surrogate_key", key=["id", "kind"], column="sk", known_key=["id"])
    assert findings(
        operator, in_={"id": "int", "kind": "map<int,int>", "SK": "int"}, known={"id": "string", "sk": "string"}
    ) == [
        "2 columns are expected, one for each of `key`",
        "the input has a column `sk` already",
        "`id` is a `int` and `id` a `string`; convert one of them first",
        "the known keys' `sk` is a `string`, not a number",
    ]
    missing = make("surrogate_key", key=["id"], column="sk")
    assert findings(missing, in_={"id": "int"}, known={"id": "int", "skey": "int"}) == [
        "the known keys have no column `sk`; did you mean `skey`?"
    ]


# ---------------------------------------------------------------- union and set operations


def test_union_by_name_fills_what_is_missing_and_finds_the_common_type(spark):
    first = spark.createDataFrame([(1, "a", None), (None, "b", 2.5)], "id int, `the name` string, x double")
    second = spark.createDataFrame([("c", 3_000_000_000, True)], "`the name` string, ID bigint, extra boolean")
    third = spark.createDataFrame([], "x float, id smallint")
    union = make("union", allow_missing=True)
    result = run(spark, union, {"in": [first, second, third]})
    assert by_key(result["out"]) == by_key(
        [(1, "a", None, None), (None, "b", 2.5, None), (3_000_000_000, "c", None, True)]
    )


def test_union_by_position_can_drop_equal_rows_and_merge_into_one_order(spark):
    one, two = [(2, "b"), (1, "a"), (None, "n")], [(1, "a"), (2, "c"), (None, "n")]
    columns = "k int, `a.b` string"
    merge = make("union", match="position", distinct=True, sorted_by=["k", "a.b"])
    result = run(
        spark, merge, {"in": [spark.createDataFrame(one, columns), spark.createDataFrame(two, "z int, y string")]}
    )
    expected = answer(
        "SELECT * FROM a UNION SELECT * FROM b ORDER BY 1 NULLS FIRST, 2",
        a=(one, "k int, t string"),
        b=(two, "k int, t string"),
    )
    assert result["out"] == expected  # in this very order


def test_union_names_the_columns_that_do_not_fit():
    def wrong(*schemas: dict[str, str] | None, **settings: Any) -> list[str]:
        return [finding.message for finding in make("union", **settings).check(Inputs({"in": list(schemas)}))]

    first, second = (
        {"id": "int", "name": "string", "m": "map<int,int>"},
        {"id": "string", "nam": "string", "m": "map<int,int>"},
    )
    assert wrong(first, second) == [
        "input 2 has no column `name`; did you mean `nam`?",
        "only input 2 has a column `nam`; did you mean `name`?",
        "`id` is a `int` in the first input and `id` a `string` in input 2; convert one of them first",
    ]
    assert wrong({"id": "int"}, first, match="position") == ["the first input has 1 columns and input 2 has 3"]
    assert wrong(first, first, distinct=True, sorted_by=["nme"]) == [
        "`m` is a `map<int,int>`, so rows cannot be told apart by it",
        "no column `nme`; did you mean `name`?",
    ]
    assert wrong(first, None, second) == []
    assert wrong(first, match="position", allow_missing=True) == [
        "columns may be missing only where they are matched by name"
    ]


@pytest.mark.parametrize("kind", ["intersect", "except"])
@pytest.mark.parametrize("all_", [False, True])
def test_set_operations_compare_whole_rows_and_null_equals_null(spark, kind, all_):
    left = [(1, "a"), (1, "a"), (1, "a"), (2, None), (2, None), (3, "c")]
    right = [("a", 1), (None, 2), ("d", 4), ("a", 1)]
    operation = make("set_operation", kind=kind, all=all_)
    frames = {
        "left": spark.createDataFrame(left, "n int, `t t` string"),
        "right": spark.createDataFrame(right, "`t t` string, n bigint"),
    }
    result = run(spark, operation, frames)
    sql = f"SELECT * FROM l {kind.upper()} {'ALL' if all_ else ''} SELECT n, t FROM r"
    expected = answer(sql, l=(left, "n int, t string"), r=(right, "t string, n bigint"))
    assert by_key(result["out"]) == by_key(expected)


def test_set_operation_names_the_columns_that_do_not_fit():
    operation = make("set_operation", kind="except")
    assert findings(operation, left={"a": "int", "b": "array<int>"}, right={"a": "date", "c": "map<int,int>"}) == [
        "`c` is a `map<int,int>`, so rows cannot be compared by it",
        "input 2 has no column `b`",
        "only input 2 has a column `c`",
        "`a` is a `int` in the first input and `a` a `date` in input 2; convert one of them first",
    ]


# ---------------------------------------------------------------- difference

OLD = (
    [(1, None, "a", 1), (2, None, "b", 2), (3, "x", "c", None), (None, "n", "d", 4), (6, None, "f", 6)],
    "id int, Kind string, `the text` string, v int",
)
NEW = (
    [("a", 1, None, 1), ("B", 2, None, 2), ("c", 3, "x", 5), ("d", None, "n", 4), (None, 7, None, None)],
    "`the text` string, ID int, kind string, v int",
)


def test_difference_flags_what_happened_to_every_key(spark):
    frames = {"old": spark.createDataFrame(*OLD), "new": spark.createDataFrame(*NEW)}
    everything = make("difference", keys=["id", "kind"], emit=["same", "new", "changed", "deleted"], flag="what")
    result = run(spark, everything, frames)
    sql = """
        SELECT CASE WHEN n.ID IS NULL AND n.v IS NULL AND n.k IS NULL THEN o."the text" ELSE n."the text" END,
               coalesce(n.ID, o.id), coalesce(n.Kind, o.Kind), CASE WHEN n.k IS NULL THEN o.v ELSE n.v END,
               CASE WHEN n.k IS NULL THEN 'deleted' WHEN o.k IS NULL THEN 'new'
                    WHEN n."the text" IS NOT DISTINCT FROM o."the text" AND n.v IS NOT DISTINCT FROM o.v THEN 'same'
                    ELSE 'changed' END
        FROM (SELECT *, 1 AS k FROM old) o FULL JOIN (SELECT *, 1 AS k FROM new) n
        ON o.id IS NOT DISTINCT FROM n.ID AND o.Kind IS NOT DISTINCT FROM n.kind"""
    assert by_key(result["out"]) == by_key(answer(sql, old=OLD, new=NEW))
    assert sorted(row[-1] for row in result["out"]) == ["changed", "changed", "deleted", "new", "same", "same"]

    some = make("difference", keys=["id", "kind"], compare=["the text"])
    result = run(spark, some, frames)
    assert by_key(result["out"]) == by_key(
        [("B", 2, None, 2, "changed"), (None, 7, None, None, "new"), ("f", 6, None, 6, "deleted")]
    )


def test_difference_stops_at_a_key_that_stands_twice(spark):
    once = spark.createDataFrame([(1, "a")], "id int, v string")
    twice = spark.createDataFrame([(1, "a"), (1, "b")], "id int, v string")
    with pytest.raises(Exception, match="a state has several rows for the key"):
        run(spark, make("difference", keys=["id"]), {"old": once, "new": twice})


def test_difference_says_what_is_wrong():
    difference = make("difference", keys=["id"], flag="v")
    new = {"id": "int", "v": "int", "w": "date", "m": "map<int,int>", "only": "int"}
    assert findings(difference, old={"idd": "int", "w": "int", "m": "map<int,int>"}, new=new) == [
        "the input has a column `v` already",
        "no column `id` in the old state; did you mean `idd`?",
        "`w` is a `int` in the old state and a `date` in the new, which do not compare",
        "`m` is a `map<int,int>` in the old state and a `map<int,int>` in the new, which do not compare",
        "the old state has no column `id`, so it is empty in deleted rows",
        "the old state has no column `v`, so it is empty in deleted rows",
        "the old state has no column `only`, so it is empty in deleted rows",
    ]
    with pytest.raises(ValidationError):
        make("difference", keys=["id"], emit=[])
