"""Workflows and random edits that the designer's tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from designer.document import arranging, changes, clipboard
from designer.document.document import Document
from designer.document.edits import ABSENT, Edit
from designer.document.layout import groups, notes, positions
from engine.model.file import load
from engine.model.workflow import Parameter, Workflow
from engine.operators import catalogue

FIG1 = Path(__file__).parents[2] / "workflows" / "fig1.butterfly.yaml"


def empty() -> Document:
    return Document(Workflow(), catalogue())


def fig1() -> Document:
    return Document(load(FIG1).workflow, catalogue())


def small() -> Document:
    """A source, a filter, a derivation and a target, in a line."""
    nodes: dict[str, dict[str, Any]] = {
        "rows": {"operator": "csv_source", "settings": {"path": "in.csv", "columns": {"a": "int", "b": "string"}}},
        "some": {"operator": "filter", "settings": {"condition": "a > 1"}},
        "more": {"operator": "derive", "settings": {"columns": [{"name": "c", "expression": "a + 1"}]}},
        "table": {"operator": "parquet_target", "settings": {"path": "out"}},
    }
    edges = [
        {"from": "rows.out", "to": "some.in"},
        {"from": "some.match", "to": "more.in"},
        {"from": "more.out", "to": "table.in"},
    ]
    layout = {"nodes": {id_: [220 * number, 0] for number, id_ in enumerate(nodes)}}
    return Document(
        Workflow.model_validate({"papilio": 1, "nodes": nodes, "edges": edges, "layout": layout}), catalogue()
    )


_OPERATORS = ["csv_source", "filter", "derive", "join", "union", "aggregate", "not_null", "parquet_target", "unknown"]


@st.composite
def edits(draw: st.DrawFn, document: Document) -> Edit:
    """One random edit that a person could make of a document now."""
    ids = sorted(document.workflow.nodes)
    kind = draw(st.integers(0, 22))
    point = draw(st.tuples(st.integers(-500, 500), st.integers(-500, 500)))
    if kind <= 3 or not ids:
        return changes.add_node(document, draw(st.sampled_from(_OPERATORS)), point)[0]
    one = draw(st.sampled_from(ids))
    some = draw(st.lists(st.sampled_from(ids), unique=True, max_size=5))
    edge = draw(st.sampled_from(document.workflow.edges)) if document.workflow.edges else None
    other = draw(st.sampled_from(ids))
    out, into = document.ports.of(one).outputs, document.ports.of(other).inputs
    remark = draw(st.sampled_from([None, *notes(document.workflow)]))
    frame = draw(st.sampled_from([None, *groups(document.workflow)]))
    match kind:
        case 4 | 5 | 6 | 7 if out and into:
            ports = draw(st.sampled_from(out)).name, draw(st.sampled_from(into)).name
            return changes.connect(document, one, ports[0], other, ports[1])
        case 8 if edge is not None:
            return changes.disconnect(document, [edge])
        case 9:
            return changes.remove(document, some, [edge] if edge else [], [remark] if remark else [])
        case 10 if edge is not None:
            return changes.add_node(document, draw(st.sampled_from(_OPERATORS)), point, on_edge=edge)[0]
        case 11:
            return arranging.move(document, {one: point}, {remark: point} if remark else None)
        case 12:
            return changes.set_title(document, one, draw(st.sampled_from(["", "Orders", "Ölwanne"])))
        case 13:
            return changes.set_setting(document, one, "condition", draw(st.sampled_from(["a > 1", 1, True, ABSENT])))
        case 14:
            return changes.change_id(document, one, changes.free_id("renamed", ids))
        case 15:
            return arranging.align(document, some, draw(st.sampled_from(["left", "center", "bottom"])))
        case 16:
            return arranging.distribute(document, some, draw(st.sampled_from(["across", "down"])))
        case 17:
            return arranging.group(document, some, "Cleansing")[0]
        case 18 if frame is not None:
            return arranging.collapse(document, frame, draw(st.booleans()))
        case 19 if frame is not None:
            return arranging.ungroup(document, [frame])
        case 20:
            return arranging.add_note(document, point, "# Why")[0]
        case 21:
            return clipboard.pasted(document, clipboard.copied(document, some or ids, notes(document.workflow)), point)[
                0
            ]
        case 22 if edge is not None and changes.insertable(document, one):
            return changes.insert(document, one, point, edge)
        case 22:
            return draw(
                st.sampled_from(
                    [
                        changes.set_parameter(document, "day", Parameter(default=1)),
                        changes.set_parameter(document, "day", None),
                        changes.set_root(document, "data", "in"),
                        changes.set_field(document, "name", "Nightly"),
                        changes.change_operator(document, one, "filter"),
                        changes.set_remark(document, one, "because"),
                    ]
                )
            )
    places = positions(document.workflow)
    bent = {f"{edge.from_} → {edge.to}": [(1.0, 2.0)] for edge in document.workflow.edges[:3]}
    return arranging.arrange(document, {id_: (x + 10, y) for id_, (x, y) in places.items()}, bent)
