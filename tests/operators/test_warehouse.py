"""Operators of a warehouse, on real Spark. Expected rows come from DuckDB, from plain Python, or by hand."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from pydantic import ValidationError

from engine.model.operator import Category, Inputs, Role
from tests.operators.harness import Rows, by_key, findings, make, run

# ---------------------------------------------------------------- aggregates

SALES = [
    ("de", "a", 1, Decimal("1.50")), ("de", "b", 2, None), ("de", "a", None, Decimal("2.25")),
    (None, "a", 4, Decimal("1.00")), ("fr", None, 9, Decimal("-3.00")), ("fr", "c", None, None),
]  # fmt: skip
COLUMNS = "`the Land` string, item string, n int, price decimal(12,2)"


def answer(sql: str) -> Rows:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE sales ({COLUMNS.replace('`', chr(34))})")
        connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", SALES)
        return connection.execute(sql).fetchall()


def test_aggregate_computes_over_each_group_and_keeps_the_groups_that_are_wanted(spark):
    aggregate = make(
        "aggregate",
        group=["the Land"],
        aggregates=[
            {"name": "rows", "expression": "count(*)"},
            {"name": "items", "expression": "count(distinct item)"},
            {"name": "the sum", "expression": "sum(price)"},
            {"name": "per", "expression": "cast(sum(n) as double) / count(n)"},
            {"name": "big", "expression": "max(n) filter (where n > 2)"},
        ],
        having="rows > 1 OR `the Land` IS NULL",
    )
    result = run(spark, aggregate, {"in": spark.createDataFrame(SALES, COLUMNS)})
    assert by_key(result["out"]) == by_key(
        answer(
            'SELECT "the Land", count(*), count(DISTINCT item), sum(price), sum(n)::DOUBLE / count(n), '
            'max(n) FILTER (WHERE n > 2) FROM sales GROUP BY 1 HAVING count(*) > 1 OR "the Land" IS NULL'
        )
    )
    assert aggregate.category is Category.BLOCKING


def test_a_total_over_no_rows_is_one_row_and_a_group_without_measures_is_its_values(spark):
    rows = spark.createDataFrame(SALES, COLUMNS)
    measures = [{"name": "n", "expression": "count(*)"}, {"name": "s", "expression": "sum(n)"}]
    total = run(spark, make("aggregate", aggregates=measures), {"in": rows.where("false")})
    assert total["out"] == [(0, None)]
    view = make(
        "materialized_view",
        group=["the Land", "item"],
        refresh="incremental",
        priority=3,
        staleness_bound_s=60,
        period_s=5,
    )
    assert by_key(run(spark, view, {"in": rows})["out"]) == by_key(answer("SELECT DISTINCT #1, #2 FROM sales"))


def test_aggregate_says_what_is_wrong():
    schema = {"land": "string", "n": "int", "m": "map<int,int>"}

    def wrong(**settings: Any) -> list[str]:
        return findings(make("aggregate", **settings), in_=schema)

    assert wrong(group=["lnd", "m"], aggregates=[{"name": "M", "expression": "n + 1"}]) == [
        "no column `lnd`; did you mean `land`?",
        "`n + 1` aggregates nothing; use a function like `sum` or `count`",
        "two columns would be called `M`",
        "`m` is a `map<int,int>`, by which rows cannot be grouped",
        "`n` stands outside of an aggregate function and is no column of the group",
    ]
    assert wrong(group=["land"], aggregates=[{"name": "x", "expression": "sum(n)"}], having="n > 1") == [
        "`n > 1`: no column `n`"
    ]
    assert (
        wrong(
            group=["LAND"],
            aggregates=[{"name": "x", "expression": "concat(land, max(transform(array(n), y -> y))[0])"}],
        )
        == []
    )
    with pytest.raises(ValidationError, match="needs the columns of a group, or something to compute"):
        make("aggregate")
    with pytest.raises(ValidationError):
        make("materialized_view", group=["land"], staleness_bound_s=0)


# ---------------------------------------------------------------- slowly changing dimension

DAY1, DAY2, DAY3 = (datetime.date(2026, 1, day) for day in (1, 2, 3))
SOURCE = "`cust.No` int, name string, city string, phone string"
DIMENSION = f"surrogate_key bigint, {SOURCE}, valid_from date, valid_to date, is_current boolean, version int"


def scd(**settings: Any) -> Any:
    return make("slowly_changing_dimension", **{"key": ["cust.No"], "types": {"phone": 1}, **settings})


def test_the_first_load_opens_a_version_of_every_key_and_refuses_keys_that_come_twice(spark):
    rows = spark.createDataFrame(
        [
            (7, "Ann", "Ulm", None),
            (3, "Bob", None, "1"),
            (9, "x", "y", "z"),
            (9, "x", "y", "z"),
            (None, "No", "key", "2"),
        ],
        SOURCE,
    )
    result = run(spark, scd(effective="date'2026-01-01'"), {"in": rows})
    assert by_key(result["out"]) == by_key(
        [
            (1, None, "No", "key", "2", DAY1, None, True, 1),
            (2, 3, "Bob", None, "1", DAY1, None, True, 1),
            (3, 7, "Ann", "Ulm", None, DAY1, None, True, 1),
        ]
    )
    assert result["duplicate"] == [(9, "x", "y", "z")] * 2


def test_a_load_overwrites_type_1_and_opens_versions_for_type_2(spark):
    current = [
        (1, 1, "Ann", "Ulm", "1", DAY1, DAY2, False, 1),
        (2, 1, "Ann", "Bonn", "1", DAY2, None, True, 2),  # type 1 changes: all versions get it
        (3, 2, "Bob", None, "2", DAY1, None, True, 1),  # type 2 changes, from nothing
        (4, 3, "Cyd", "Kiel", "3", DAY1, None, True, 1),  # both change
        (5, 4, "Dan", None, None, DAY1, None, True, 1),  # nothing changes, and null equals null
        (6, 5, "Eva", "Köln", "5", DAY1, None, True, 1),  # comes twice: stays as it is
        (7, 6, "Fay", "Jena", "6", DAY1, None, True, 1),  # no longer in the source
        (8, 8, "Hal", "Gera", "8", DAY1, DAY2, False, 1),  # was closed, and comes back unchanged
    ]
    arrived = [
        (1, "Ann", "Bonn", "one"), (2, "Bob", "Hof", "2"), (3, "Cyd", "Lahr", None), (4, "Dan", None, None),
        (5, "Eva", "a", "b"), (5, "Eva", "c", "d"), (7, "Gus", "Bern", "7"), (8, "Hal", "Gera", "8"),
    ]  # fmt: skip
    frames = {"in": spark.createDataFrame(arrived, SOURCE), "current": spark.createDataFrame(current, DIMENSION)}
    kept = [
        (1, 1, "Ann", "Ulm", "one", DAY1, DAY2, False, 1),
        (2, 1, "Ann", "Bonn", "one", DAY2, None, True, 2),
        (3, 2, "Bob", None, "2", DAY1, DAY3, False, 1),
        (9, 2, "Bob", "Hof", "2", DAY3, None, True, 2),
        (4, 3, "Cyd", "Kiel", None, DAY1, DAY3, False, 1),
        (10, 3, "Cyd", "Lahr", None, DAY3, None, True, 2),
        (5, 4, "Dan", None, None, DAY1, None, True, 1),
        (6, 5, "Eva", "Köln", "5", DAY1, None, True, 1),
        (11, 7, "Gus", "Bern", "7", DAY3, None, True, 1),
        (8, 8, "Hal", "Gera", "8", DAY1, DAY2, False, 1),
        (12, 8, "Hal", "Gera", "8", DAY3, None, True, 2),
    ]
    result = run(spark, scd(effective="date'2026-01-03'"), frames)
    assert by_key(result["out"]) == by_key([*kept, (7, 6, "Fay", "Jena", "6", DAY1, None, True, 1)])
    assert by_key(result["duplicate"]) == [(5, "Eva", "a", "b"), (5, "Eva", "c", "d")]
    result = run(spark, scd(effective="date'2026-01-03'", deleted="close"), frames, ports=["out"])
    assert by_key(result["out"]) == by_key([*kept, (7, 6, "Fay", "Jena", "6", DAY1, DAY3, False, 1)])


def expected_dimension(current: Rows, arrived: Rows, day: datetime.date) -> Rows:
    """What a load must give, said a second time in plain Python: two type 2 columns, one of type 1, close."""
    by: dict[int, list[tuple[Any, ...]]] = {}
    for row in arrived:
        by.setdefault(row[0], []).append(row)
    result, opened = [], []
    for sk, key, name, city, phone, start, end, now, version in current:
        news = by.get(key, [])
        if len(news) == 1:
            phone = news[0][3]
            if now and (name, city) != news[0][1:3]:
                end, now = day, False
        elif not news and now:
            end, now = day, False
        result.append((sk, key, name, city, phone, start, end, now, version))
    for key in sorted(by):
        if len(by[key]) == 1 and not any(row[1] == key and row[7] for row in result):
            last = max((row[8] for row in current if row[1] == key), default=0)
            opened.append((*by[key][0], day, None, True, last + 1))
    top = max((row[0] for row in current), default=0)
    return result + [(top + number, *row) for number, row in enumerate(opened, 1)]


def test_loads_of_any_rows_give_what_plain_python_gives(spark):
    chance = random.Random(5)

    def load() -> Rows:
        some = [None, "a", "b"]
        keys = chance.sample(range(20), 16) + chance.choices(range(20), k=2)  # some are missing, some come twice
        return [(key, *(chance.choice(some) for _ in range(3))) for key in keys]

    dimension: Rows = []
    for day in (DAY1, DAY2, DAY3):
        arrived = load()
        frames = {"in": spark.createDataFrame(arrived, SOURCE), "current": spark.createDataFrame(dimension, DIMENSION)}
        result = run(spark, scd(effective=f"date'{day}'", deleted="close"), frames, ports=["out"])
        dimension = expected_dimension(dimension, arrived, day)
        assert by_key(result["out"]) == by_key(dimension)
    assert {row[8] for row in dimension} == {1, 2, 3}  # the loads did make histories


def test_a_load_that_would_begin_before_the_versions_it_follows_stops(spark):
    current = spark.createDataFrame([(1, 1, "Ann", "Ulm", "1", DAY2, None, True, 1)], DIMENSION)
    rows = spark.createDataFrame([(1, "Ann", "Bonn", "1")], SOURCE)
    with pytest.raises(Exception, match="the new versions begin before the ones they follow"):
        run(spark, scd(effective="date'2026-01-01'"), {"in": rows, "current": current})


def test_slowly_changing_dimension_says_what_is_wrong():
    rows = {"cust.No": "int", "name": "string", "phone": "string", "version": "int", "m": "map<int,int>"}
    assert findings(scd(types={"cust.No": 1, "phne": 1}, effective="'2026-01-01'"), in_=rows) == [
        "no column `phne`; did you mean `phone`?",
        "its type is string; write a date or a timestamp, such as `date'2026-01-31'`",
        "`cust.No` belongs to the key, which never changes",
        "two columns would be called `version`",
        "`m` is a `map<int,int>`, whose changes cannot be seen; make it a text first",
    ]
    assert findings(scd(effective="updated"), in_={"cust.No": "int", "phone": "string"}) == [
        "`updated`: no column `updated`"
    ]
    current = {
        "cust.No": "date",
        "phne": "string",
        "surrogate_key": "string",
        "valid_from": "date",
        "valid_to": "date",
        "is_current": "boolean",
    }
    assert findings(scd(), in_={"cust.No": "int", "phone": "string"}, current=current) == [
        "the dimension has no column `phone`; did you mean `phne`?",
        "the dimension has no column `version`",
        "`cust.No` is a `int` and in the dimension a `date`",
        "the dimension has a column `phne`, and the new rows have not",
        "`surrogate_key` is a `string`, not a number",
    ]
    unknown = scd().output_schemas(Inputs({"in": [{"cust.No": "int"}], "current": [None]}))["out"]
    assert unknown == {
        "surrogate_key": "bigint",
        "cust.No": "?",
        "valid_from": "?",
        "valid_to": "?",
        "is_current": "boolean",
        "version": "int",
    }


# ---------------------------------------------------------------- date dimension


def test_date_dimension_knows_what_python_knows_of_every_day(spark):
    dimension = make("date_dimension", first_day="2023-12-25", last_day="2024-03-02", fiscal_year_start=2)
    assert dimension.role is Role.SOURCE
    assert dimension.input_ports() == ()
    expected = []
    day = datetime.date(2023, 12, 25)
    while day <= datetime.date(2024, 3, 2):
        fiscal_month = (day.month - 2) % 12  # since February, when the year named after its end begins
        expected.append(
            (
                int(day.strftime("%Y%m%d")), day, day.year, (day.month + 2) // 3, day.month, day.strftime("%B"),
                day.isocalendar().week, day.day, day.isoweekday(), day.timetuple().tm_yday, day.strftime("%A"),
                day.isoweekday() > 5, day.year + (day.month >= 2), fiscal_month // 3 + 1,
            )
        )  # fmt: skip
        day += datetime.timedelta(days=1)
    assert sorted(run(spark, dimension)["out"]) == expected


def test_date_dimension_takes_dates_in_their_order():
    with pytest.raises(ValidationError, match="the last day, 2024-01-01, is before the first, 2024-01-02"):
        make("date_dimension", first_day="2024-01-02", last_day="2024-01-01")
    with pytest.raises(ValidationError):
        make("date_dimension", first_day="2024-01-02", last_day="2024-13-01")
