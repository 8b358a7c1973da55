"""Edits of nodes and edges. Each function looks at a document and returns one edit; nothing is changed by it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from designer.document.document import Document
from designer.document.edits import ABSENT, Drafted, Edit
from designer.document.layout import NODE_HEIGHT, NODE_WIDTH, Group, Point, edge_key, groups, positions, tidy
from designer.document.planning import carried
from engine.model.operator import Carries, Port, Role
from engine.model.workflow import Edge, Node, Parameter

ROOM = 50.0  # between a node and the one that is put behind it on an edge
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9_]+")


# ---------------------------------------------------------------- names


def free_id(wanted: str, taken: Collection[str]) -> str:
    """A node's id near to a wanted text that no other node has."""
    base = _NOT_IN_ID.sub("_", wanted.strip().lower()).strip("_")[:60] or "node"
    if base not in taken:
        return base
    number = 2
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"


# ---------------------------------------------------------------- what may be connected


def why_not(document: Document, source: str, source_port: str, target: str, target_port: str) -> str | None:
    """Why rows cannot flow from one port to another, in words for the person; None where they can."""
    if source == target:
        return "a node cannot feed itself"
    ports = document.ports
    if ports.of(source).output(source_port) is None or ports.of(target).input(target_port) is None:
        return "there is no such port"
    if any(ports.ends(edge) == (source, source_port, target, target_port) for edge in document.workflow.edges):
        return "they are connected already"
    if source in _behind(document, target):
        return "the flow would go in a circle"
    return None


def _behind(document: Document, start: str) -> set[str]:
    """A node and all that its rows come to."""
    following: dict[str, list[str]] = {}
    for edge in document.workflow.edges:
        following.setdefault(edge.source, []).append(edge.target)
    seen, waiting = {start}, [start]
    while waiting:
        for other in following.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def first_fit(document: Document, operator: str, port: Port, from_output: bool) -> Port | None:
    """The port of an operator by which it would be connected to a port of another node."""
    kind = document.catalogue.get(operator)
    if kind is None:
        return None
    ports = document.ports.of_operator(Node(operator=operator))
    candidates = ports.inputs if from_output else [one for one in ports.outputs if one.carries is Carries.ROWS]
    return next(iter(candidates), None)


def fitting_operators(document: Document, node: str, port: Port, from_output: bool) -> list[str]:
    """The operators that can be put behind an output port, or before an input port."""
    recordset = document.ports.role(node) is not Role.ACTIVITY
    found = []
    for name, kind in document.catalogue.items():
        if first_fit(document, name, port, from_output) is None:
            continue
        if recordset and kind.role is not Role.ACTIVITY:
            continue
        found.append(name)
    return found


# ---------------------------------------------------------------- nodes and edges


def _edge(source: str, source_port: str, target: str, target_port: str) -> Edge:
    return Edge.model_validate({"from": f"{source}.{source_port}", "to": f"{target}.{target_port}"})


def _draft_connect(
    draft: Drafted, document: Document, source: str, source_port: str, target: str, target_port: str, single: bool
) -> None:
    edges = list(draft.get(("edges",)))
    if single:
        for edge in list(edges):
            if edge.target == target and target in document.workflow.nodes:
                into = document.ports.of(target).input(edge.target_port)
                if (into.name if into else edge.target_port) == target_port:
                    edges.remove(edge)
                    draft.set(("layout", "bends", edge_key(edge)), ABSENT)
    edges.append(_edge(source, source_port, target, target_port))
    draft.set(("edges",), tuple(edges))


def add_node(
    document: Document,
    operator: str,
    at: Point,
    *,
    settings: Mapping[str, Any] | None = None,
    title: str | None = None,
    behind: tuple[str, str] | None = None,
    before: tuple[str, str] | None = None,
    on_edge: Edge | None = None,
) -> tuple[Edit, str]:
    """A new node; it may be connected `behind` an output port, `before` an input port, or put `on_edge`."""
    workflow = document.workflow
    id_ = free_id(title or operator, workflow.nodes)
    kind = document.catalogue.get(operator)
    name = kind.title if kind else operator
    node = Node(operator=operator, title=title, settings=dict(settings or {}))
    draft = Drafted(workflow)
    draft.set(("nodes", id_), node)
    draft.set(("layout", "nodes", id_), list(tidy(at)))
    ports = document.ports.of_operator(node)
    into = next(iter(ports.inputs), None)
    out = next((port for port in ports.outputs if port.carries is Carries.ROWS), None)
    if on_edge is not None and into and out:
        _draft_on_edge(draft, document, id_, into.name, out.name, on_edge)
        return draft.edit("Insert {0}", name), id_
    if behind is not None and into:
        _draft_connect(draft, document, *behind, id_, into.name, False)
    if before is not None and out:
        port = document.ports.of(before[0]).input(before[1])
        _draft_connect(draft, document, id_, out.name, *before, single=not (port and port.many))
    return draft.edit("Add {0}", name), id_


def _draft_on_edge(draft: Drafted, document: Document, id_: str, into: str, out: str, on_edge: Edge) -> None:
    source, source_port, target, target_port = document.ports.ends(on_edge)
    draft.set(("edges",), tuple(edge for edge in document.workflow.edges if edge is not on_edge))
    draft.set(("layout", "bends", edge_key(on_edge)), ABSENT)
    _draft_connect(draft, document, source, source_port, id_, into, False)
    _draft_connect(draft, document, id_, out, target, target_port, False)
    _draft_room(draft, document, id_, source, target)


def _draft_room(draft: Drafted, document: Document, id_: str, source: str, target: str) -> None:
    """Where an edge is too short for the node put on it, all that comes behind moves to the right."""
    there = positions(document.workflow)
    if source not in there or target not in there or there[target][0] <= there[source][0]:
        return
    x, y = draft.get(("layout", "nodes", id_))
    if abs(there[source][1] - y) < NODE_HEIGHT:
        x = max(x, there[source][0] + NODE_WIDTH + ROOM)
    draft.set(("layout", "nodes", id_), list(tidy((x, y))))
    missing = x + NODE_WIDTH + ROOM - there[target][0]
    if missing <= 0 or abs(there[target][1] - y) >= NODE_HEIGHT:
        return
    moved = _behind(document, target)
    for other in moved & there.keys():
        draft.set(("layout", "nodes", other), list(tidy((there[other][0] + missing, there[other][1]))))
    for edge in document.workflow.edges:
        if edge.source in moved or edge.target in moved:
            draft.set(("layout", "bends", edge_key(edge)), ABSENT)


def insertable(document: Document, id_: str) -> bool:
    """Whether a node can be put on an edge: nothing is connected to it, and rows can pass it."""
    ports = document.ports.of(id_)
    passes = bool(ports.inputs) and any(port.carries is Carries.ROWS for port in ports.outputs)
    return passes and not any(id_ in (edge.source, edge.target) for edge in document.workflow.edges)


def insert(document: Document, id_: str, at: Point, on_edge: Edge) -> Edit:
    """A node that is there already, and that nothing is connected to, moves onto an edge."""
    draft = Drafted(document.workflow)
    draft.set(("layout", "nodes", id_), list(tidy(at)))
    ports = document.ports.of(id_)
    out = next(port for port in ports.outputs if port.carries is Carries.ROWS)
    _draft_on_edge(draft, document, id_, ports.inputs[0].name, out.name, on_edge)
    return draft.edit("Insert {0}", document.title_of(id_))


def connect(document: Document, source: str, source_port: str, target: str, target_port: str) -> Edit:
    """A new edge. On a port that takes one edge it replaces the one that is there."""
    draft = Drafted(document.workflow)
    if why_not(document, source, source_port, target, target_port) is None:
        port = document.ports.of(target).input(target_port)
        _draft_connect(draft, document, source, source_port, target, target_port, not (port and port.many))
    return draft.edit("Connect {0} to {1}", document.title_of(source), document.title_of(target))


def disconnect(document: Document, edges: Iterable[Edge]) -> Edit:
    """The edges go, the nodes stay."""
    gone = {id(edge) for edge in edges}
    draft = Drafted(document.workflow)
    for edge in document.workflow.edges:
        if id(edge) in gone:
            draft.set(("layout", "bends", edge_key(edge)), ABSENT)
    draft.set(("edges",), tuple(edge for edge in document.workflow.edges if id(edge) not in gone))
    return draft.edit("Delete edge" if len(gone) == 1 else "Delete edges")


def loose_edges(document: Document) -> list[Edge]:
    """The edges that name a node which there is not."""
    nodes = document.workflow.nodes
    return [edge for edge in document.workflow.edges if edge.source not in nodes or edge.target not in nodes]


def remove(
    document: Document,
    nodes: Collection[str],
    edges: Iterable[Edge] = (),
    notes: Collection[str] = (),
    frames: Collection[str] = (),
) -> Edit:
    """Nodes, edges, notes and groups' frames go. Where rows only passed a node, they go on to where it sent them.

    They do not by an edge that goes of its own accord; one between two nodes that go has none.
    """
    workflow, gone = document.workflow, set(nodes)
    cut = {id(edge) for edge in edges if not (edge.source in gone and edge.target in gone)}
    draft = Drafted(workflow)
    kept: list[Edge] = []
    lost: list[Edge] = []
    for edge in workflow.edges:
        (lost if id(edge) in cut or edge.source in gone or edge.target in gone else kept).append(edge)
    kept += _healed(document, gone, [edge for edge in lost if id(edge) not in cut], kept)
    draft.set(("edges",), tuple(kept))
    for edge in lost:
        draft.set(("layout", "bends", edge_key(edge)), ABSENT)
    for id_ in gone:
        draft.set(("nodes", id_), ABSENT)
        draft.set(("layout", "nodes", id_), ABSENT)
    _leave_groups(draft, gone)
    draft.set(("field", "plan"), carried(workflow.plan, lambda id_: None if id_ in gone else id_))
    for note in notes:
        draft.set(("layout", "notes", note), ABSENT)
    for frame in frames:
        draft.set(("layout", "groups", frame), ABSENT)
    if len(gone) == 1:
        return draft.edit("Delete {0}", document.title_of(next(iter(gone))))
    if gone:
        return draft.edit("Delete {0} nodes", str(len(gone)))
    return draft.edit("Delete")


def _healed(document: Document, gone: set[str], lost: list[Edge], kept: list[Edge]) -> list[Edge]:
    """The edges that close the gaps: only nodes with one way in are passed, and never rows that were refused."""
    into: dict[str, list[tuple[str, str, str, str]]] = {}
    ends = [document.ports.ends(edge) for edge in lost]
    for end in ends:
        into.setdefault(end[2], []).append(end)
    there = {document.ports.ends(edge)[2:] for edge in kept}
    healed = []
    for source, source_port, target, target_port in ends:
        if source not in gone or target in gone:
            continue
        seen = set()
        while source in gone and source not in seen:
            seen.add(source)
            port = document.ports.of(source).output(source_port)
            ways = into.get(source, [])
            if port is None or port.carries is Carries.REFUSED or len(ways) != 1:
                break
            source, source_port = ways[0][:2]
        recordsets = {document.ports.role(source), document.ports.role(target)}
        wanted = document.ports.of(target).input(target_port)
        free = (target, target_port) not in there or (wanted is not None and wanted.many)
        if source not in gone and free and Role.ACTIVITY in recordsets:
            healed.append(_edge(source, source_port, target, target_port))
            there.add((target, target_port))
    return healed


def _leave_groups(draft: Drafted, gone: Collection[str]) -> None:
    for id_, group in groups(draft.workflow).items():
        rest = tuple(node for node in group.nodes if node not in gone)
        if rest != group.nodes:
            place = ("layout", "groups", id_)
            draft.set(place, Group(group.title, rest, group.collapsed).plain() if rest else ABSENT)


# ---------------------------------------------------------------- what nodes say


def _changed(node: Node, **fields: Any) -> Node:
    return node.model_copy(update=fields)


def set_title(document: Document, id_: str, title: str) -> Edit:
    """What the canvas calls a node; an empty text shows its id again."""
    node = document.workflow.nodes[id_]
    draft = Drafted(document.workflow)
    draft.set(("nodes", id_), _changed(node, title=title.strip() or None))
    return draft.edit("Rename {0}", document.title_of(id_))


def set_remark(document: Document, id_: str, text: str) -> Edit:
    """The free text about a node."""
    draft = Drafted(document.workflow)
    draft.set(("nodes", id_), _changed(document.workflow.nodes[id_], note=text or None))
    return draft.edit("Write about {0}", document.title_of(id_), merge=f"remark {id_}")


def set_settings(document: Document, id_: str, settings: Mapping[str, Any], what: str = "") -> Edit:
    """All settings of a node; `what` names the one that changed, whose edits in a row are one step."""
    draft = Drafted(document.workflow)
    draft.set(("nodes", id_), _changed(document.workflow.nodes[id_], settings=dict(settings)))
    merge = f"setting {id_} {what}" if what else None
    return draft.edit("Change {1} of {0}", document.title_of(id_), what or "settings", merge=merge)


def set_setting(document: Document, id_: str, name: str, value: Any) -> Edit:
    """One setting of a node; `ABSENT` leaves it to the operator's default."""
    settings = dict(document.workflow.nodes[id_].settings)
    if value is ABSENT:
        settings.pop(name, None)
    else:
        settings[name] = value
    return set_settings(document, id_, settings, name)


def change_operator(document: Document, id_: str, operator: str) -> Edit:
    """Another operator for a node; settings that both know stay."""
    node = document.workflow.nodes[id_]
    kind = document.catalogue[operator]
    settings = {key: value for key, value in node.settings.items() if key in kind.model_fields}
    draft = Drafted(document.workflow)
    draft.set(("nodes", id_), _changed(node, operator=operator, settings=settings))
    return draft.edit("Turn {0} into {1}", document.title_of(id_), kind.title)


def change_id(document: Document, id_: str, new: str) -> Edit:
    """Another id for a node; edges, groups and its place follow."""
    workflow = document.workflow
    draft = Drafted(workflow)
    draft.set(("nodes", id_), ABSENT)
    draft.set(("nodes", new), workflow.nodes[id_])
    edges = []
    for edge in workflow.edges:
        if id_ in (edge.source, edge.target):
            data = edge.model_dump(by_alias=True)
            for side, node in (("from", edge.source), ("to", edge.target)):
                if node == id_:
                    data[side] = new + data[side][len(id_) :]
            moved = Edge.model_validate(data)
            bend = draft.get(("layout", "bends", edge_key(edge)))
            draft.set(("layout", "bends", edge_key(edge)), ABSENT)
            if bend is not ABSENT:
                draft.set(("layout", "bends", edge_key(moved)), bend)
            edge = moved
        edges.append(edge)
    draft.set(("edges",), tuple(edges))
    place = draft.get(("layout", "nodes", id_))
    draft.set(("layout", "nodes", id_), ABSENT)
    draft.set(("layout", "nodes", new), place)
    for key, group in groups(workflow).items():
        if id_ in group.nodes:
            renamed = tuple(new if node == id_ else node for node in group.nodes)
            draft.set(("layout", "groups", key), Group(group.title, renamed, group.collapsed).plain())
    draft.set(("field", "plan"), carried(workflow.plan, lambda node: new if node == id_ else node))
    return draft.edit("Change the id {0} to {1}", id_, new)


# ---------------------------------------------------------------- the workflow itself


def set_field(document: Document, field: str, value: str) -> Edit:
    """The workflow's name or description."""
    draft = Drafted(document.workflow)
    draft.set(("field", field), value or None)
    return draft.edit("Change the {0}", field, merge=f"field {field}")


def set_parameter(document: Document, name: str, parameter: Parameter | None) -> Edit:
    """A parameter, new or changed; None removes it."""
    draft = Drafted(document.workflow)
    draft.set(("parameters", name), ABSENT if parameter is None else parameter)
    return draft.edit("Change the parameter {0}", name, merge=f"parameter {name}")


def set_root(document: Document, name: str, folder: str | None) -> Edit:
    """A root folder, new or changed; None removes it."""
    draft = Drafted(document.workflow)
    draft.set(("roots", name), ABSENT if folder is None else folder)
    return draft.edit("Change the root {0}", name, merge=f"root {name}")
