"""Measured prices: where they come from, and that they say of the steps what Spark was seen to do."""

from __future__ import annotations

import json
import math
from importlib import resources

import pytest

from engine.experiments.bench_plan_steps import COMMAND, _prices
from engine.model.physical import Step
from engine.plan.costs import NOT_IN_PAPER, MeasuredCosts, PaperCosts, cost_model, shipped_prices, units
from engine.store.prices import keep_prices, read_prices


def test_every_step_has_a_price_that_was_measured_and_says_when_where_and_by_which_command():
    shipped = json.loads((resources.files("resources") / "plan" / "prices.json").read_text(encoding="utf-8"))
    assert shipped["command"] == COMMAND
    assert shipped["rows"] >= 500_000
    assert len(shipped["measured"].split("-")) == 3
    assert {"cores", "memory_gb", "pyspark"} <= shipped["machine"].keys()
    prices = shipped_prices()
    assert set(prices.us) == set(Step)
    assert all(price > 0 for price in prices.us.values())
    assert prices.wider_byte > 0


def test_groups_in_order_cost_less_than_groups_in_one_part_and_those_less_than_groups_all_over():
    model, rows, groups = MeasuredCosts(), 1_000_000, 900_000

    def cost(*steps: tuple[Step, int]) -> float:
        return units(sum(model.step(step, count) for step, count in steps))

    in_order = cost((Step.SCAN, rows), (Step.CLOSE, groups))
    in_part = cost((Step.GROUP, rows), (Step.FORM, groups))
    all_over = cost((Step.GROUP, rows), (Step.FORM, groups), (Step.GATHER, groups))
    assert in_order < in_part < all_over


def test_what_the_paper_does_not_count_costs_nothing_in_its_model():
    assert {step for step in Step if PaperCosts().step(step, 1_000) == 0} == NOT_IN_PAPER


def test_a_row_costs_a_sorter_more_the_wider_it_is_beyond_those_that_were_measured():
    model = cost_model("measured", {"row_bytes": 32, "wider_byte": 0.01})
    assert [model.width(size) for size in (0, 32, 132)] == [1.0, 1.0, 2.0]


def test_kept_prices_are_read_with_and_without_what_is_known_of_them(tmp_path):
    file = keep_prices({"scan": 2.0}, tmp_path, measured="2026-01-01", rows=7)
    assert json.loads(file.read_text(encoding="utf-8"))["measured"] == "2026-01-01"
    assert read_prices(file) == {"scan": 2.0}
    file.write_text('{"sort": 1}', encoding="utf-8")
    assert read_prices(file) == {"sort": 1}


def test_the_prices_of_steps_add_up_to_the_queries_that_they_were_taken_from():
    seconds = {
        "read": 1.0, "filter": 1.5, "sort": 4.0, "read parts": 0.8, "sort inside parts": 1.6, "few groups": 2.0,
        "many groups": 6.0, "many groups, each in one part": 3.0, "many groups in order": 2.5, "nested loops": 9.0,
        "merge join in order": 2.0, "hash join": 8.0, "sort-merge join": 9.0, "store and read": 5.0,
    }  # fmt: skip
    rows, joined, groups, single = 1_000, 2_000, 400, 700
    price = {step: us / 1_000_000 for step, us in _prices(seconds, rows, joined, groups, single).items()}
    compared = rows * math.log2(rows)
    hashed = rows * price[Step.GROUP] + groups * price[Step.FORM]
    assert hashed == pytest.approx(3.0)
    assert hashed + single * price[Step.GATHER] == pytest.approx(6.0)
    assert compared * price[Step.SORT] + rows * price[Step.EMIT] == pytest.approx(4.0)
    assert compared * price[Step.REORDER] == pytest.approx(0.8)
    assert 2 * rows * price[Step.HASH] + joined * price[Step.EMIT] == pytest.approx(8.0)
    # Two sides are read in any order and sorted, which takes 4 s each; the join itself took 0.4 s beyond reading.
    assert 2 * (compared * price[Step.SORT] + rows * price[Step.MERGE]) == pytest.approx(2 * 4.0 + 0.4)
