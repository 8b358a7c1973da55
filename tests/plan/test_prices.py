"""Measured prices: where they come from, and that they say of the steps what Spark was seen to do."""

from __future__ import annotations

import json
from importlib import resources

from engine.experiments.bench_plan_steps import COMMAND
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
