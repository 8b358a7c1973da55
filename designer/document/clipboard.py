"""Parts of a workflow as YAML text: what the clipboard holds, readable in any editor and by any window."""

from __future__ import annotations

from collections.abc import Collection

from designer.document.changes import free_id
from designer.document.document import Document
from designer.document.edits import Drafted, Edit
from designer.document.layout import (
    Group,
    Note,
    Point,
    bends,
    check_layout,
    edge_key,
    groups,
    notes,
    positions,
    tidy,
)
from engine.errors import BadInput
from engine.model.file import to_yaml, workflow_from
from engine.model.workflow import Edge, Workflow, references
from engine.model.yamldata import read_yaml

MAX_TEXT = 4 * 1024 * 1024


def copied(document: Document, nodes: Collection[str], notes_: Collection[str] = ()) -> str:
    """Nodes with the edges and the whole groups among them, their places, and what their settings refer to."""
    whole = document.workflow
    wanted = {id_: whole.nodes[id_] for id_ in whole.nodes if id_ in nodes}
    names = {name for node in wanted.values() for name in references(node.settings)}
    names |= {name for root in names & whole.roots.keys() for name in references(whole.roots[root])}
    there, remarks = positions(whole), notes(whole)
    layout: dict[str, object] = {}
    if wanted:
        layout["nodes"] = {id_: list(tidy(there[id_])) for id_ in wanted if id_ in there}
    inner = [edge for edge in whole.edges if edge.source in wanted and edge.target in wanted]
    bent = bends(whole)
    kept = {key: [value for point in bent[key] for value in tidy(point)] for key in map(edge_key, inner) if key in bent}
    if kept:
        layout["bends"] = kept
    framed = {id_: one.plain() for id_, one in groups(whole).items() if one.nodes and wanted.keys() >= set(one.nodes)}
    if framed:
        layout["groups"] = framed
    if notes_:
        layout["notes"] = {id_: remarks[id_].plain() for id_ in notes_}
    part = Workflow(
        papilio=whole.papilio,
        parameters={name: value for name, value in whole.parameters.items() if name in names},
        roots={name: value for name, value in whole.roots.items() if name in names},
        nodes=wanted,
        edges=inner,
        layout=layout,
    )
    return to_yaml(part)


def pasted(document: Document, text: str, at: Point | None) -> tuple[Edit, list[str]]:
    """An edit that adds what a text holds, and the new nodes' ids; `at` is where its middle comes to stand.

    Without `at` all stands a little beside where it was. A text that is no part of a workflow is a `BadInput`.
    """
    if len(text) > MAX_TEXT:
        raise BadInput("the clipboard holds more than a part of a workflow")
    data, lines = read_yaml(text, "the clipboard")
    part = workflow_from(data, "the clipboard", lines)
    check_layout(part, "the clipboard")
    if not part.nodes and not notes(part):
        raise BadInput("the clipboard holds no nodes")
    draft = Drafted(document.workflow)
    taken = set(document.workflow.nodes)
    new: dict[str, str] = {}
    for id_, node in part.nodes.items():
        new[id_] = id_ if id_ not in taken else free_id(id_, taken)
        taken.add(new[id_])
        draft.set(("nodes", new[id_]), node)
    shift = _place(draft, part, new, at)
    bent = bends(part)
    edges = list(document.workflow.edges)
    for edge in part.edges:
        if edge.source in new and edge.target in new:
            data = edge.model_dump(by_alias=True)
            data["from"] = new[edge.source] + edge.from_[len(edge.source) :]
            data["to"] = new[edge.target] + edge.to[len(edge.target) :]
            edges.append(Edge.model_validate(data))
            points = [tidy((x + shift[0], y + shift[1])) for x, y in bent.get(edge_key(edge), ())]
            if points:
                flat = [coordinate for point in points for coordinate in point]
                draft.set(("layout", "bends", edge_key(edges[-1])), flat)
    draft.set(("edges",), tuple(edges))
    for name, parameter in part.parameters.items():
        if name not in document.workflow.parameters:
            draft.set(("parameters", name), parameter)
    for name, root in part.roots.items():
        if name not in document.workflow.roots:
            draft.set(("roots", name), root)
    return draft.edit("Paste"), list(new.values())


def _place(draft: Drafted, part: Workflow, new: dict[str, str], at: Point | None) -> Point:
    """Find places for nodes, notes and groups; returns by how much all is shifted."""
    there = positions(part)
    for number, id_ in enumerate(part.nodes):
        there.setdefault(id_, (220.0 * number, 0.0))
    remarks = notes(part)
    points = [*there.values(), *(note.at for note in remarks.values())]
    middle_x = (min(x for x, _ in points) + max(x for x, _ in points)) / 2
    middle_y = (min(y for _, y in points) + max(y for _, y in points)) / 2
    shift_x, shift_y = (at[0] - middle_x, at[1] - middle_y) if at else (40.0, 40.0)
    shift_x, shift_y = round(shift_x / 10) * 10, round(shift_y / 10) * 10
    for id_, (x, y) in there.items():
        draft.set(("layout", "nodes", new[id_]), list(tidy((x + shift_x, y + shift_y))))
    taken = set(draft.workflow.layout.get("notes", {}))
    for id_, note in remarks.items():
        free = free_id(id_, taken)
        taken.add(free)
        moved = Note(note.text, (note.at[0] + shift_x, note.at[1] + shift_y), note.size)
        draft.set(("layout", "notes", free), moved.plain())
    taken = set(draft.workflow.layout.get("groups", {}))
    for id_, group in groups(part).items():
        free = free_id(id_, taken)
        taken.add(free)
        members = tuple(new[node] for node in group.nodes)
        draft.set(("layout", "groups", free), Group(group.title, members, group.collapsed).plain())
    return shift_x, shift_y
