"""Wings, body and archetype of the papers' workflows."""

from __future__ import annotations

import pytest

from engine.model.binding import bind
from engine.model.file import load
from engine.model.shape import Archetype, shape
from engine.model.workflow import Workflow
from engine.operators import catalogue
from tests.end_to_end.helpers import WORKFLOWS

OPERATORS = {
    "S": ("parquet_source", {"path": "in/{id}"}),
    "T": ("parquet_target", {"path": "out/{id}"}),
    "f": ("filter", {"condition": "true"}),
    "a": ("aggregate", {"group": [], "aggregates": [{"name": "n", "expression": "count(*)"}]}),
    "j": ("join", {"keys": [{"left": "k", "right": "k"}]}),
    "l": ("lookup", {"keys": [{"main": "k", "reference": "k"}], "take": [{"column": "v"}]}),
}


def graph(edges: str):
    """Nodes are named by their kind: `S1 f1` is an edge from a source to a filter."""
    pairs = [edge.split(">") for edge in edges.split()]
    nodes = {}
    for id_ in dict.fromkeys(end.partition(".")[0] for pair in pairs for end in pair):
        operator, settings = OPERATORS[id_[0]]
        nodes[id_] = {
            "operator": operator,
            "settings": {k: v.format(id=id_) if k == "path" else v for k, v in settings.items()},
        }
    return bind(
        Workflow.model_validate({"papilio": 1, "nodes": nodes, "edges": [{"from": a, "to": b} for a, b in pairs]}),
        catalogue(),
    )


@pytest.mark.parametrize(
    ("edges", "archetype", "body"),
    [
        ("S1>f1 f1>f2 f2>T1", Archetype.LINE, "T1"),
        ("S1>f1 f1>j1.left S2>f2 f2>j1.right j1>f3 f3>T1", Archetype.WISHBONE, "T1"),
        ("S1>f1 f1>l1.main S2>l1.reference l1>l2.main S3>l2.reference l2>T1", Archetype.PRIMARY_FLOW, "T1"),
        ("S1>f1 S2>f2 S3>f3 S4>f4 f1>j1.left f2>j1.right f3>j2.left f4>j2.right j1>j3.left j2>j3.right j3>T1", Archetype.TREE, "T1"),
        ("S1>f1 f1>T1 T1>a1 a1>T2 T1>a2 a2>T3 T1>a3 a3>T4", Archetype.FORK, "T1"),
        ("S1>a1 a1>T1 S1>a2 a2>T2", Archetype.FORK, "S1"),
        # The balanced butterfly of the physical design paper's Fig. 5, and its right-deep one of Fig. 8.
        ("S1>f1 S2>a2 a2>T1 f1>j3.left T1>j3.right j3>T2 T2>a4 a4>T3 T2>a5 a5>T4", Archetype.BALANCED, "T2"),
        ("S1>f1 f1>T1 T1>f3 f3>T2 T2>a4 a4>T3 T1>a2 a2>T4 T4>a5 a5>T5 T1>a6 a6>T6", Archetype.RIGHT_DEEP, "T1"),
    ],
)  # fmt: skip
def test_the_archetypes_of_the_papers_are_told_by_their_shape(edges, archetype, body):
    found = shape(graph(edges))
    assert found.archetype == archetype
    assert found.body == (body,)


@pytest.mark.parametrize(
    "edges",
    [
        "S1>f1 f1>T1 S2>f2 f2>T2",  # two lines that never meet
        "S1>f1 f1>T1 T1>f2 f2>T2 S2>f3 f3>T3",  # a longer one, and another beside it
    ],
)
def test_what_is_none_of_them_is_called_other(edges):
    assert shape(graph(edges)).archetype == Archetype.OTHER


def test_a_workflow_without_nodes_is_no_butterfly():
    assert shape(bind(Workflow.model_validate({"papilio": 1}), catalogue())).archetype == Archetype.OTHER


def test_the_wings_hold_every_node_once():
    bound = bind(load(WORKFLOWS / "fig1.butterfly.yaml"), catalogue())
    found = shape(bound)
    assert sorted((*found.left, *found.body, *found.right)) == sorted(bound.order)
    assert found.archetype == Archetype.BALANCED
    assert found.body == ("joined",)
    assert "join" in found.left
    assert "view_4" in found.right
