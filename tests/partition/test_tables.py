"""A streaming workflow is cut into tables, and what cannot be kept up to date partition by partition is told."""

from __future__ import annotations

import pytest

from engine.errors import BadInput
from engine.operators import catalogue
from engine.partition.tables import Follow, tables_of
from engine.refresh.described import warehouse_of
from tests.spark.streaming import FILE, bound_in


def with_(text: str, **changes: str) -> str:
    """The small warehouse with the lines of some nodes replaced."""
    lines = text.splitlines()
    for node, line in changes.items():
        at = next(index for index, old in enumerate(lines) if old.startswith(f"  {node}:"))
        end = at + 1
        while lines[end].startswith("   "):
            end += 1
        lines[at:end] = [f"  {node}: {line}"]
    return "\n".join(lines)


def test_tables_and_their_sources_are_found(tmp_path):
    warehouse = warehouse_of(bound_in(tmp_path))
    assert {name: spec.sources for name, spec in warehouse.tables.items()} == {
        "click": (), "sale": (), "dear_click": ("click",), "click_second": ("click",), "sale_second": ("sale",),
        "joined": ("click_second", "sale_second"), "pair": ("click_second",),
    }  # fmt: skip
    assert warehouse.tables["click"].period_s == 1, "a generator knows its period"
    assert warehouse.tables["sale"].lateness_bound_s == 2
    assert warehouse.tables["click_second"].priority == 3, "the priority of the materialized view"


def test_an_aggregate_with_floats_or_having_is_recomputed(tmp_path):
    view = "{operator: materialized_view, settings: {group: [bucket, page], refresh: incremental, aggregates: [{name: clicks, expression: avg(cost)}]}}"
    plans = {plan.name: plan for plan in tables_of(bound_in(tmp_path, with_(FILE, per_second=view)))}
    assert plans["click_second"].follow is Follow.RECOMPUTE


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"per_sale": "{operator: materialized_view, settings: {group: [page], aggregates: [{name: bucket, expression: max(bucket)}]}}"},
            "node `per_sale`: table `sale_second`: `per_sale` groups rows of different times; add `ts` or `bucket` (or a `time_bucket` of it) to its group",
        ),
        (
            {"both": "{operator: join, settings: {keys: [{left: page}], kind: left}}"},
            "node `both`: table `joined`: `both` joins rows of different times",
        ),
        (
            {"both": "{operator: join, settings: {keys: [{left: bucket}, {left: page}], kind: full}}"},
            "a `full` join cannot be kept up to date",
        ),
        (
            {"dear": "{operator: limit, settings: {rows: 5}}"},
            "a `limit` cannot be kept up to date partition by partition",
        ),
        (
            {"pair": "{operator: stream_table, settings: {path: out/pair, time_column: pair, partition_s: 3}}"},
            "a partition of 3 s is no whole number of buckets of 2 s",
        ),
        (
            {"clean": "{operator: derive, settings: {columns: [{name: ts, expression: ts + INTERVAL 1 SECOND}]}}"},
            "`ts` is no time of the stream's records that reaches the table unchanged",
        ),
        (
            {"dear_click": "{operator: stream_table, settings: {path: out/dear, time_column: ts, lateness_bound_s: 1}}"},
            "lateness_bound_s belongs to base tables",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_told_with_its_node(tmp_path, changes, told):
    text = with_(FILE, **changes).replace(
        "from: dear.match", "from: dear" if "limit" in str(changes) else "from: dear.match"
    )
    if "derive" in changes.get("clean", ""):
        text = text.replace("from: clean.match", "from: clean")
    with pytest.raises(BadInput) as caught:
        tables_of(bound_in(tmp_path, text))
    assert told in str(caught.value)
    assert str(tmp_path / "small.butterfly.yaml") in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("- {from: click, to: second}\n", "- {from: pair, to: second}\n", "circle"),
        ("- {from: click, to: second}\n", "- {from: clik, to: second}\n", "names a node `clik` that does not exist; did you mean `click`?"),
        ("{period_s: 1, rows_per_s: 40", "{period_s: -1, rows_per_s: 40", "node `clicks`, setting `period_s`: Input should be greater than 0 (it is -1)"),
        ("{path: out/click, time_column: ts", "{path: out/click, time_column: page", "`page` is a `bigint`, not a timestamp"),
    ],
)  # fmt: skip
def test_bad_descriptions_are_told_with_file_and_node(tmp_path, old, new, told):
    assert old in FILE
    with pytest.raises(BadInput) as caught:
        tables_of(bound_in(tmp_path, FILE.replace(old, new)))
    assert told in str(caught.value), str(caught.value)
    assert str(tmp_path / "small.butterfly.yaml") in str(caught.value)


def test_the_designer_tells_what_cannot_be_kept_while_it_is_drawn(tmp_path):
    from designer.document.analysis import analyse
    from designer.document.document import Document

    view = "{operator: join, settings: {keys: [{left: page}], kind: left}}"
    found = analyse(Document(bound_in(tmp_path, with_(FILE, both=view)).workflow, catalogue()))
    assert ["joins rows of different times" in problem.message for problem in found.by_node["both"]] == [True]
