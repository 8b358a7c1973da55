"""Operators that steer rows, on real Spark."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from engine.model.operator import Category
from tests.operators.harness import by_key, findings, make, run

ROWS = [(1, "a"), (5, "b"), (9, None), (None, "a"), (None, None)]
ROUTES = [
    {"port": "small", "condition": "n < 6 OR n IS NULL"},
    {"port": "a-like", "condition": "`the text` = 'a'"},
    {"port": "any", "condition": "n > 0"},
]


def test_router_sends_a_row_by_the_first_way_that_fits(spark):
    rows = spark.createDataFrame(ROWS, "n int, `the text` string")
    routes = [ROUTES[1], ROUTES[2]]
    result = run(spark, make("router", routes=routes), {"in": rows})
    assert by_key(result["a-like"]) == by_key([(1, "a"), (None, "a")])
    assert by_key(result["any"]) == by_key([(5, "b"), (9, None)])
    assert result["rest"] == [(None, None)]


def test_router_sends_a_row_by_all_ways_that_fit(spark):
    rows = spark.createDataFrame(ROWS, "n int, `the text` string")
    router = make("router", routes=ROUTES, mode="all")
    result = run(spark, router, {"in": rows})
    assert by_key(result["small"]) == by_key([(1, "a"), (5, "b"), (None, "a"), (None, None)])
    assert by_key(result["a-like"]) == by_key([(1, "a"), (None, "a")])
    assert by_key(result["any"]) == by_key([(1, "a"), (5, "b"), (9, None)])
    assert result["rest"] == []
    assert [port.name for port in router.output_ports()] == ["small", "a-like", "any", "rest"]


def test_router_checks_its_conditions_and_the_names_of_its_ports():
    (message,) = findings(make("router", routes=[{"port": "x", "condition": "m > 1"}]), in_={"n": "int"})
    assert message == "`m > 1`: no column `m`"

    def refused(*ports: str) -> str:
        with pytest.raises(ValidationError) as error:
            make("router", routes=[{"port": port, "condition": "true"} for port in ports])
        return str(error.value)

    assert "the port `A` stands twice" in refused("a", "A")
    assert "the port `rest` stands twice" in refused("rest")
    assert "should match pattern" in refused("a b")
    assert "at least 1 item" in refused()


def test_copy_changes_nothing(spark):
    rows = spark.createDataFrame(ROWS, "n int, `the text` string")
    copy = make("copy")
    assert by_key(run(spark, copy, {"in": rows})["out"]) == by_key(ROWS)
    assert copy.keeps_rows
    assert copy.category is Category.ROW_SYNCHRONIZED


def test_splitter_sends_every_row_one_way_and_equal_values_together(spark):
    rows: list[tuple[Any, ...]] = [(number % 20, f"t{number}", {"k": number}) for number in range(100)]
    data = spark.createDataFrame(rows, "`the key` int, t string, m map<string,int>")
    parts = run(spark, make("splitter", parts=3, by=["the key"]), {"in": data})
    assert by_key([row for part in parts.values() for row in part]) == by_key(rows)
    keys = [{row[0] for row in part} for part in parts.values()]
    assert len(keys) == 3
    assert all(keys)
    assert sum(map(len, keys)) == 20  # no key in two parts
    whole = run(spark, make("splitter"), {"in": data})
    assert by_key([*whole["part1"], *whole["part2"]]) == by_key(rows)
    assert min(len(whole["part1"]), len(whole["part2"])) > 20


def test_splitter_says_by_what_rows_cannot_be_divided():
    assert findings(make("splitter", by=["m", "x"]), in_={"m": "map<int,int>"}) == [
        "no column `x`",
        "`m` is a `map<int,int>`, by which rows cannot be divided",
    ]
