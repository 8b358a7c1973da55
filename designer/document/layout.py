"""The layout section: where nodes stand, notes, groups and the bends of edges. It never changes what runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import BadInput
from engine.model.workflow import Edge, Workflow

Point = tuple[float, float]

FARTHEST = 1_000_000.0  # a position beyond it was not put there by a person
NODE_WIDTH, NODE_HEIGHT = 176.0, 64.0
MIN_NOTE = (60.0, 40.0)
SECTIONS = ("nodes", "notes", "groups", "bends")


@dataclass(frozen=True)
class Note:
    """A Markdown note on the canvas."""

    text: str
    at: Point
    size: Point = (240.0, 120.0)

    def plain(self) -> dict[str, Any]:
        """The note as the file has it."""
        return {"text": self.text, "at": list(tidy(self.at)), "size": list(tidy(self.size))}


@dataclass(frozen=True)
class Group:
    """Nodes framed together, shown as one box while collapsed."""

    title: str
    nodes: tuple[str, ...]
    collapsed: bool = False

    def plain(self) -> dict[str, Any]:
        """The group as the file has it."""
        return {"title": self.title, "nodes": list(self.nodes), "collapsed": self.collapsed}


def check_layout(workflow: Workflow, file: str) -> None:
    """Refuse a layout section of another form; single wrong entries are passed over and placed anew."""
    for section in SECTIONS:
        value = workflow.layout.get(section)
        if value is None and section in workflow.layout:
            del workflow.layout[section]
        elif value is not None and not isinstance(value, dict):
            raise BadInput(f"{file}: `layout.{section}` must be a mapping of names, not {type(value).__name__}")


def tidy(point: Iterable[float]) -> tuple[float, ...]:
    """Coordinates as the file has them: whole numbers where a tenth does not matter."""
    return tuple(int(value) if float(value).is_integer() else round(float(value), 1) for value in point)


def positions(workflow: Workflow) -> dict[str, Point]:
    """Where the nodes stand; one without a sensible place is left out."""
    found = {}
    for id_, value in workflow.layout.get("nodes", {}).items():
        point = _point(value)
        if point is not None and id_ in workflow.nodes:
            found[id_] = point
    return found


def notes(workflow: Workflow) -> dict[str, Note]:
    """The notes by their ids."""
    found = {}
    for id_, value in workflow.layout.get("notes", {}).items():
        if isinstance(value, Mapping) and isinstance(value.get("text"), str):
            size = _point(value.get("size")) or (240.0, 120.0)
            at = _point(value.get("at")) or (0.0, 0.0)
            found[id_] = Note(value["text"], at, (max(size[0], MIN_NOTE[0]), max(size[1], MIN_NOTE[1])))
    return found


def groups(workflow: Workflow) -> dict[str, Group]:
    """The groups by their ids, with those of their nodes that there are; a node is in one group at most."""
    found, taken = {}, set()
    for id_, value in workflow.layout.get("groups", {}).items():
        if isinstance(value, Mapping) and isinstance(value.get("nodes"), list):
            members = [node for node in value["nodes"] if isinstance(node, str) and node in workflow.nodes]
            members = [node for node in dict.fromkeys(members) if node not in taken]
            taken.update(members)
            found[id_] = Group(str(value.get("title") or id_), tuple(members), value.get("collapsed") is True)
    return found


def height_for(ports: int) -> float:
    """The height of a node with so many ports on a side."""
    return NODE_HEIGHT if ports <= 3 else NODE_HEIGHT + 18.0 * (ports - 3)


def edge_key(edge: Edge) -> str:
    """How the layout names an edge."""
    return f"{edge.from_} → {edge.to}"


def bends(workflow: Workflow) -> dict[str, list[Point]]:
    """The points that long edges pass on their way, where auto-layout gave them any."""
    found = {}
    for key, value in workflow.layout.get("bends", {}).items():
        if isinstance(value, list) and len(value) % 2 == 0 and all(map(_is_coordinate, value)):
            found[key] = list(zip(map(float, value[::2]), map(float, value[1::2]), strict=True))
    return found


def _point(value: Any) -> Point | None:
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_is_coordinate, value)):
        return float(value[0]), float(value[1])
    return None


def _is_coordinate(value: Any) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) <= FARTHEST
    )
