"""What stands between an elastic run's source and its facts gives the same facts batch by batch as all at once."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from engine.cli._workflow import Given
from engine.errors import BadInput
from engine.model.elastic import Live
from engine.partition.batches import refuse_blocking
from tests.end_to_end.helpers import WORKFLOWS, papilio_here, write

LIVE = Live(source="lines", facts="facts", key="k")
KEYS = [{"main": "k", "reference": "k"}]
COLUMNS = {"k": "int", "v": "int"}
ALL = "needs all rows at once, and live they come batch by batch"
CODE = "def transform(input):\n    return input\n"


def csv(name: str) -> dict[str, Any]:
    return {"operator": "csv_source", "path": f"{name}.csv", "columns": dict(COLUMNS)}


def refused(folder: Path, step: dict[str, Any], *edges: str) -> str:
    """What is told of a step between `lines` and `facts`; `known` does not move, what `split` gives arrives."""
    nodes = {
        "lines": csv("lines"),
        "known": csv("known"),
        "split": {"operator": "filter", "condition": "v > 1"},
        "step": step,
        "facts": {"operator": "parquet_target", "path": "out/facts"},
        "other": {"operator": "parquet_target", "path": "out/other"},
        "plain": {"operator": "copy"},
    }
    given = ["lines -> split", "known -> plain", "plain -> other", *edges, "step -> facts"]
    bound = Given(write(folder, {name: copy.deepcopy(node) for name, node in nodes.items()}, given)).open()
    bound.raise_errors()
    try:
        refuse_blocking(bound, LIVE)
    except BadInput as error:
        return str(error)
    return ""


ONE = ("split.match -> step",)
BLOCKING = [
    {"operator": "sort", "by": [{"column": "v"}]},
    {"operator": "aggregate", "group": ["k"], "aggregates": [{"name": "v", "expression": "sum(v)"}]},
    {"operator": "deduplicate", "keys": ["k"]},
    {"operator": "limit", "rows": 3},
    {"operator": "sequence", "order": [{"column": "v"}]},
    {"operator": "surrogate_key", "key": ["k"], "column": "n"},
    {"operator": "sql", "query": "SELECT k, v FROM input", "columns": COLUMNS},
    {"operator": "python", "code": CODE, "columns": COLUMNS},
]


@pytest.mark.parametrize("step", BLOCKING, ids=lambda step: step["operator"])
def test_what_needs_all_rows_is_refused_with_file_node_and_reason(step, tmp_path):
    told = refused(tmp_path, step, *ONE)
    assert told.startswith(f"{tmp_path}/")
    assert f": node `step`: `{step['operator']}` {ALL}" in told


@pytest.mark.parametrize(
    "step",
    [
        {"operator": "filter", "condition": "v > 1"},
        {"operator": "derive", "columns": [{"name": "w", "expression": "v + 1"}]},
        {"operator": "sample", "fraction": 0.5},
        {
            "operator": "python",
            "style": "batches",
            "code": "def transform(batches):\n    return batches\n",
            "columns": COLUMNS,
        },
    ],
    ids=lambda step: step["operator"],
)
def test_what_works_row_by_row_goes(step, tmp_path):
    assert refused(tmp_path, step, *ONE) == ""


LOOKUP = {"operator": "lookup", "keys": KEYS, "take": [{"column": "v", "name": "w"}]}
EXISTS = {"operator": "exists", "keys": KEYS}
JOIN = {"operator": "join", "keys": [{"left": "k", "right": "k"}]}
UNION = {"operator": "union"}
BY_LEFT, BY_RIGHT = (
    ("split.match -> step.left", "known -> step.right"),
    ("known -> step.left", "split.match -> step.right"),
)
BOTH = ("split.match -> step.left", "split.rest -> step.right")


@pytest.mark.parametrize(
    ("step", "edges", "reason"),
    [
        (LOOKUP, ("split.match -> step.main", "known -> step.reference"), ""),
        (LOOKUP, ("split.match -> step.main", "split.rest -> step.reference"), "looks up rows that arrive by `reference`"),
        (LOOKUP, ("known -> step.main", "split.match -> step.reference"), "looks up rows that arrive by `reference`"),
        (EXISTS, ("split.match -> step.main", "known -> step.reference"), ""),
        (EXISTS, ("known -> step.main", "split.match -> step.reference"), "looks up rows that arrive by `reference`"),
        (JOIN, BY_LEFT, ""),
        (JOIN | {"kind": "left"}, BY_LEFT, ""),
        (JOIN | {"kind": "anti"}, BY_LEFT, ""),
        (JOIN | {"kind": "full"}, BY_LEFT, "of kind `full` would give rows of its right input with each batch again"),
        (JOIN | {"kind": "right"}, BY_LEFT, "of kind `right` would give rows"),
        (JOIN | {"kind": "right"}, BY_RIGHT, ""),
        (JOIN | {"kind": "semi"}, BY_RIGHT, "rows of its left input with each batch again"),
        (JOIN, BOTH, "joins rows that arrive with others that arrive"),
        (UNION, ("split.match -> step.in", "split.rest -> step.in"), ""),
        (UNION, ("split.match -> step.in", "known -> step.in"), "would add the rows of an input that does not move"),
        (UNION | {"distinct": True}, ("split.match -> step.in", "split.rest -> step.in"), ALL),
        ({"operator": "set_operation", "kind": "except"}, BY_LEFT, ALL),
    ],
)  # fmt: skip
def test_two_inputs_go_where_each_row_that_arrives_finds_all_that_it_needs(step, edges, reason, tmp_path):
    told = refused(tmp_path, step, *edges)
    assert bool(told) == bool(reason)
    assert reason in told


def test_the_shipped_workflow_goes_though_its_dimensions_and_references_sort_and_number_rows():
    bound = Given(WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml").open()
    refuse_blocking(bound, bound.workflow.elastic.live)


def test_a_live_run_with_a_blocking_operator_ends_before_anything_begins(tmp_path):
    nodes = {
        "lines": csv("lines"),
        "sorted": BLOCKING[0],
        "facts": {"operator": "parquet_target", "path": "out/facts"},
    }
    elastic = {
        "rate": {"kind": "ramp", "from_rows_s": 1, "to_rows_s": 1, "seconds": 1},
        "live": {"source": "lines", "facts": "facts", "key": "k", "scale": 0.001},
    }
    file = write(tmp_path, nodes, ["lines -> sorted", "sorted -> facts"], elastic=elastic)
    done = papilio_here("scale", "run", file, "--run-dir", tmp_path / "run", home=tmp_path)
    assert done.returncode == 2
    assert f"{file}: node `sorted`: `sort` {ALL}" in done.stderr
    assert not (tmp_path / "run").exists()
    assert list(tmp_path.glob("*.parquet")) == [], "no rows were generated"
