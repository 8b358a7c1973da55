"""What changed between two versions is told in the words of a workflow."""

from __future__ import annotations

import copy
import math
from typing import Any

from engine.store.diff import Change, diff_documents
from tests.store.examples import WORKFLOW


def changed(**edits: Any) -> dict[str, Any]:
    return copy.deepcopy(WORKFLOW) | edits


def test_a_document_does_not_differ_from_itself_in_another_order() -> None:
    other = dict(reversed(changed(edges=list(reversed(WORKFLOW["edges"]))).items()))
    assert diff_documents(WORKFLOW, other) == []


def test_nodes_that_came_and_went_are_named() -> None:
    after = changed()
    after["nodes"]["sorted"] = after["nodes"].pop("recent")
    node = WORKFLOW["nodes"]["recent"]
    assert diff_documents(WORKFLOW, after) == [
        Change("removed", "node", "recent", node, None),
        Change("added", "node", "sorted", None, node),
    ]


def test_a_changed_setting_is_told_with_both_values() -> None:
    after = changed()
    after["nodes"]["out"]["settings"] = {"path": "out", "rows": 2000, "mode": "append"}
    after["nodes"]["out"]["title"] = "Result"
    assert diff_documents(WORKFLOW, after) == [
        Change("changed", "setting", "out.rows", 1000, 2000),
        Change("removed", "setting", "out.ratio", 0.5, None),
        Change("added", "setting", "out.mode", None, "append"),
        Change("added", "node", "out.title", None, "Result"),
    ]


def test_edges_are_compared_by_their_ends_and_counted() -> None:
    first, second = WORKFLOW["edges"]
    third = {"from": "recent.rest", "to": "out.in"}
    assert diff_documents(WORKFLOW, changed(edges=[third, second, second])) == [
        Change("removed", "edge", "orders.out → recent.in", first, None),
        Change("added", "edge", "recent.rest → out.in", None, third),
        Change("added", "edge", "recent.match → out.in", None, second),
    ]


def test_a_moved_node_changes_the_layout_alone() -> None:
    after = changed()
    after["layout"]["nodes"]["out"] = [320, 80]
    assert diff_documents(WORKFLOW, after) == [Change("changed", "layout", "nodes.out", [320, 0], [320, 80])]


def test_parameters_roots_and_other_fields_are_told() -> None:
    after = changed(parameters={}, roots={"data": "else"}, **{"x-team": {"owner": "me", "labels": ["a", "b"]}})
    after.pop("description")
    assert diff_documents(WORKFLOW, after) == [
        Change("removed", "field", "description", "Orders by day", None),
        Change("removed", "parameter", "day", WORKFLOW["parameters"]["day"], None),
        Change("changed", "root", "data", "data/tpch", "else"),
        Change("changed", "field", "x-team.owner", None, "me"),
    ]


def test_types_count_and_nan_is_itself() -> None:
    assert diff_documents({"a": math.nan}, {"a": math.nan}) == []
    assert diff_documents({"a": 1}, {"a": True}) == [Change("changed", "field", "a", 1, True)]


def test_documents_of_an_odd_shape_are_compared_too() -> None:
    assert diff_documents({"nodes": [1], "edges": {}}, {"nodes": {}, "edges": [1]}) == [
        Change("changed", "field", "nodes", [1], {}),
        Change("changed", "field", "edges", {}, [1]),
    ]
    assert diff_documents({"nodes": {"a": 1}}, {"nodes": {"a": {}}}) == [Change("changed", "node", "a", 1, {})]
