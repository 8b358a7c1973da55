"""Random workflows of real operators, bound, with lookups, routers, recordsets inside and rejoins."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from engine.model.binding import Bound, bind
from engine.model.workflow import Workflow
from engine.operators import catalogue

PARQUET = {"operator": "parquet_source", "settings": {"path": "in/p"}}
CSV = {"operator": "csv_source", "settings": {"path": "in/c.csv"}}
FILTER = {"operator": "filter", "settings": {"condition": "a > 1"}}
COPY = {"operator": "copy"}
RANDOM = {"operator": "derive", "settings": {"columns": [{"name": "r", "expression": "rand()"}]}}
SORT = {"operator": "sort", "settings": {"by": [{"column": "a"}]}}
AGGREGATE = {
    "operator": "aggregate",
    "settings": {"group": ["a"], "aggregates": [{"name": "n", "expression": "count(*)"}]},
}
UNION = {"operator": "union"}
JOIN = {"operator": "join", "settings": {"keys": [{"left": "a", "right": "a"}]}}
LOOKUP = {
    "operator": "lookup",
    "settings": {
        "keys": [{"main": "a", "reference": "a"}],
        "take": [{"column": "a", "name": "b"}],
        "on_duplicate": "first",
    },
}
STAGING = {"operator": "staging"}


def target(name: str, **settings: Any) -> dict[str, Any]:
    return {"operator": "parquet_target", "settings": {"path": f"out/{name}", **settings}}


def bound_of(nodes: dict[str, Any], *edges: str) -> Bound:
    """A bound workflow; an edge is `a.port>b.port`."""
    document = {
        "papilio": 1,
        "nodes": nodes,
        "edges": [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges],
    }
    bound = bind(Workflow.model_validate(document), catalogue())
    assert not bound.errors, [problem.text() for problem in bound.errors]
    return bound


@st.composite
def bound_workflows(draw: st.DrawFn) -> Bound:
    """Up to some fifteen nodes, each fed by any that stand before it."""
    nodes: dict[str, Any] = {}
    edges: list[str] = []
    outputs: list[str] = []  # `node.port` that may be read
    unread: dict[str, None] = {}
    recordsets: set[str] = set()

    def add(id_: str, node: dict[str, Any], ports: tuple[str, ...], inputs: list[tuple[str, str]]) -> None:
        nodes[id_] = node
        for source, port in inputs:
            edges.append(f"{source}>{id_}.{port}")
            unread.pop(source.split(".")[0], None)
        outputs.extend(f"{id_}.{port}" for port in ports)
        unread[id_] = None

    for number in range(draw(st.integers(1, 3))):
        recordsets.add(f"s{number}")
        add(f"s{number}", draw(st.sampled_from((PARQUET, CSV))), ("out",), [])
    for number in range(draw(st.integers(1, 9))):
        id_ = f"n{number}"
        some = st.sampled_from(outputs)
        kind = draw(
            st.sampled_from(
                [
                    "filter",
                    "copy",
                    "random",
                    "sort",
                    "aggregate",
                    "union",
                    "join",
                    "lookup",
                    "lookup",
                    "target",
                    "staging",
                ]
            )
        )
        if kind in ("target", "staging"):
            inner = [output for output in outputs if output.split(".")[0] not in recordsets]
            if not inner:
                continue
            recordsets.add(id_)
            mode = draw(st.sampled_from(("overwrite", "append")))
            node = STAGING if kind == "staging" else target(id_, mode=mode)
            add(id_, node, ("out",), [(draw(st.sampled_from(inner)), "in")])
        elif kind == "join":
            add(id_, JOIN, ("out",), [(draw(some), "left"), (draw(some), "right")])
        elif kind == "lookup":
            add(id_, LOOKUP, ("out",), [(draw(some), "main"), (draw(some), "reference")])
        elif kind == "union":
            sources = draw(st.lists(some, min_size=2, max_size=3, unique=True)) if len(outputs) > 1 else outputs[:1]
            add(id_, UNION, ("out",), [(source, "in") for source in sources])
        elif kind == "filter":
            add(id_, FILTER, draw(st.sampled_from((("match",), ("match", "rest")))), [(draw(some), "in")])
        else:
            node = {"copy": COPY, "random": RANDOM, "sort": SORT, "aggregate": AGGREGATE}[kind]
            add(id_, node, ("out",), [(draw(some), "in")])
    for id_ in list(unread):
        operator = nodes[id_]["operator"]
        if operator == "parquet_target":
            continue
        at = next(output for output in outputs if output.split(".")[0] == id_)
        if id_ in recordsets:
            add(f"c_{id_}", COPY, ("out",), [(at, "in")])
            at = f"c_{id_}.out"
        add(f"t_{id_}", target(f"t_{id_}"), (), [(at, "in")])
    return bound_of(nodes, *edges)
