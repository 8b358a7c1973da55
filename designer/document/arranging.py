"""Edits of the layout: moving, aligning, notes and groups. None of them changes what runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from designer.document.changes import free_id
from designer.document.document import Document
from designer.document.edits import ABSENT, Drafted, Edit
from designer.document.layout import (
    NODE_HEIGHT,
    NODE_WIDTH,
    Group,
    Note,
    Point,
    edge_key,
    groups,
    notes,
    positions,
    tidy,
)

Alignment = Literal["left", "center", "right", "top", "middle", "bottom"]


def move(document: Document, nodes: Mapping[str, Point], notes_: Mapping[str, Point] | None = None) -> Edit:
    """Nodes and notes to new places. An edge that passed bends is drawn straight again where an end moved."""
    draft = Drafted(document.workflow)
    _draft_places(draft, nodes)
    known = notes(document.workflow)
    for id_, at in (notes_ or {}).items():
        draft.set(("layout", "notes", id_), Note(known[id_].text, at, known[id_].size).plain())
    if len(nodes) == 1 and not notes_:
        return draft.edit("Move {0}", document.title_of(next(iter(nodes))))
    return draft.edit("Move")


def _draft_places(
    draft: Drafted, nodes: Mapping[str, Point], bent: Mapping[str, Sequence[Point]] | None = None
) -> None:
    there = positions(draft.workflow)
    moved = set()
    for id_, at in nodes.items():
        new = list(tidy(at))
        if there.get(id_) != tuple(map(float, new)):
            moved.add(id_)
        draft.set(("layout", "nodes", id_), new)
    for edge in draft.workflow.edges:
        key = edge_key(edge)
        if bent is not None:
            points = bent.get(key)
            flat = [coordinate for point in points for coordinate in tidy(point)] if points else ABSENT
            draft.set(("layout", "bends", key), flat)
        elif edge.source in moved or edge.target in moved:
            draft.set(("layout", "bends", key), ABSENT)


def arrange(document: Document, places: Mapping[str, Point], bends: Mapping[str, Sequence[Point]]) -> Edit:
    """Every node to the place that auto-layout found, and long edges around what stands between."""
    draft = Drafted(document.workflow)
    _draft_places(draft, places, bends)
    return draft.edit("Arrange")


def align(document: Document, nodes: Collection[str], side: Alignment) -> Edit:
    """Nodes on one line: at a side, or through their middles."""
    there = {id_: at for id_, at in positions(document.workflow).items() if id_ in nodes}
    draft = Drafted(document.workflow)
    if len(there) > 1:
        xs, ys = [x for x, _ in there.values()], [y for _, y in there.values()]
        line = {
            "left": min(xs), "center": (min(xs) + max(xs)) / 2, "right": max(xs),
            "top": min(ys), "middle": (min(ys) + max(ys)) / 2, "bottom": max(ys),
        }[side]  # fmt: skip
        across = side in ("left", "center", "right")
        _draft_places(draft, {id_: (line, y) if across else (x, line) for id_, (x, y) in there.items()})
    return draft.edit("Align")


def distribute(document: Document, nodes: Collection[str], direction: Literal["across", "down"]) -> Edit:
    """Nodes with the same distance from one to the next, the outer two where they are."""
    axis = 0 if direction == "across" else 1
    there = {id_: at for id_, at in positions(document.workflow).items() if id_ in nodes}
    order = sorted(there, key=lambda id_: there[id_][axis])
    draft = Drafted(document.workflow)
    if len(order) > 2:
        first, last = there[order[0]][axis], there[order[-1]][axis]
        step = (last - first) / (len(order) - 1)
        places = {}
        for number, id_ in enumerate(order):
            x, y = there[id_]
            places[id_] = (first + number * step, y) if axis == 0 else (x, first + number * step)
        _draft_places(draft, places)
    return draft.edit("Distribute")


# ---------------------------------------------------------------- notes


def add_note(document: Document, at: Point, text: str) -> tuple[Edit, str]:
    """A new note."""
    id_ = free_id("note", document.workflow.layout.get("notes", {}))
    draft = Drafted(document.workflow)
    draft.set(("layout", "notes", id_), Note(text, at).plain())
    return draft.edit("Add a note"), id_


def write_note(document: Document, id_: str, text: str) -> Edit:
    """Another text for a note."""
    known = notes(document.workflow)[id_]
    draft = Drafted(document.workflow)
    draft.set(("layout", "notes", id_), Note(text, known.at, known.size).plain())
    return draft.edit("Write a note")


def resize_note(document: Document, id_: str, size: Point) -> Edit:
    """Another size for a note."""
    known = notes(document.workflow)[id_]
    draft = Drafted(document.workflow)
    draft.set(("layout", "notes", id_), Note(known.text, known.at, size).plain())
    return draft.edit("Resize a note")


# ---------------------------------------------------------------- groups


def group(document: Document, nodes: Collection[str], title: str) -> tuple[Edit, str]:
    """Frame nodes together; they leave the groups they were in."""
    draft = Drafted(document.workflow)
    wanted = [id_ for id_ in document.workflow.nodes if id_ in nodes]
    for id_, known in groups(document.workflow).items():
        rest = tuple(node for node in known.nodes if node not in nodes)
        if rest != known.nodes:
            place = ("layout", "groups", id_)
            draft.set(place, Group(known.title, rest, known.collapsed).plain() if rest else ABSENT)
    new = free_id("group", document.workflow.layout.get("groups", {}))
    if wanted:
        draft.set(("layout", "groups", new), Group(title, tuple(wanted)).plain())
    return draft.edit("Group {0} nodes", str(len(wanted))), new


def ungroup(document: Document, ids: Collection[str]) -> Edit:
    """The frames go, the nodes stay."""
    draft = Drafted(document.workflow)
    for id_ in ids:
        draft.set(("layout", "groups", id_), ABSENT)
    return draft.edit("Ungroup")


def collapse(document: Document, id_: str, collapsed: bool) -> Edit:
    """Show a group as one box, or its nodes again."""
    known = groups(document.workflow)[id_]
    draft = Drafted(document.workflow)
    draft.set(("layout", "groups", id_), Group(known.title, known.nodes, collapsed).plain())
    return draft.edit("Collapse {0}" if collapsed else "Expand {0}", known.title)


def title_group(document: Document, id_: str, title: str) -> Edit:
    """Another title for a group."""
    known = groups(document.workflow)[id_]
    draft = Drafted(document.workflow)
    draft.set(("layout", "groups", id_), Group(title.strip() or known.title, known.nodes, known.collapsed).plain())
    return draft.edit("Rename the group {0}", known.title)


def group_frame(there: Mapping[str, Point], members: Collection[str]) -> tuple[float, float, float, float] | None:
    """The frame around a group's nodes: left, top, width, height."""
    points = [there[id_] for id_ in members if id_ in there]
    if not points:
        return None
    left, top = min(x for x, _ in points) - 18, min(y for _, y in points) - 38
    right, bottom = max(x for x, _ in points) + NODE_WIDTH + 18, max(y for _, y in points) + NODE_HEIGHT + 18
    return left, top, right - left, bottom - top
