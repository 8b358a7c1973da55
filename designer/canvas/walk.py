"""Walking the graph by arrow keys, and through its edges, notes and groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from designer.canvas.edge import EdgeItem
from designer.canvas.remarks import GroupItem, NoteItem
from designer.document.document import Document
from designer.document.layout import Point

if TYPE_CHECKING:
    from designer.canvas.scene import CanvasScene


def step(document: Document, places: Mapping[str, Point], at: str, direction: str) -> str | None:
    """The node that an arrow key leads to.

    Left and right follow the edges (to the neighbour nearest in height), up and down go to the next node of about
    the same column; where there is none, to the nearest node that way.
    """
    here = places[at]
    if direction in ("left", "right"):
        ends = [
            edge.source if direction == "left" else edge.target
            for edge in document.workflow.edges
            if (edge.target if direction == "left" else edge.source) == at
        ]
        linked = [id_ for id_ in dict.fromkeys(ends) if id_ in places]
        if linked:
            return min(linked, key=lambda id_: (abs(places[id_][1] - here[1]), places[id_][1]))
    axis = 0 if direction in ("left", "right") else 1
    sign = -1 if direction in ("left", "up") else 1
    ahead = [id_ for id_, point in places.items() if (point[axis] - here[axis]) * sign > 1]
    if not ahead:
        return None

    def cost(id_: str) -> float:
        forward = abs(places[id_][axis] - here[axis])
        aside = abs(places[id_][1 - axis] - here[1 - axis])
        return forward + 3 * aside

    return min(ahead, key=cost)


def next_item(scene: CanvasScene, kind: str, backwards: bool) -> EdgeItem | NoteItem | GroupItem | None:
    """The edge, note or group behind the selected one, or before it; from the last on to the first.

    With a node selected: the first edge that leaves it, or backwards the last that enters it; its group.
    """
    found: list[EdgeItem | NoteItem | GroupItem]
    nodes = set(scene.selected_nodes())
    if kind == "edge":
        edges = _edges_in_order(scene)
        own = (
            [item for item in edges if item.edge.source in nodes],
            [item for item in edges if item.edge.target in nodes],
        )
        if nodes and any(own):
            return (own[1] or own[0])[-1] if backwards else (own[0] or own[1])[0]
        found = [*edges]
    else:
        items = [*(scene.notes if kind == "note" else scene.groups).values()]
        found = sorted((item for item in items if item.isVisible()), key=lambda item: item.pos().toTuple())
    chosen = [item for item in found if (item.chosen if isinstance(item, EdgeItem) else item.isSelected())]
    if kind == "group":
        around = [item for item in found if isinstance(item, GroupItem) and nodes & set(item.held.nodes)]
        if around and not chosen:
            return around[0]
    if not found:
        return None
    if not chosen:
        return found[-1 if backwards else 0]
    at = found.index(chosen[0] if backwards else chosen[-1])
    return found[(at + (-1 if backwards else 1)) % len(found)]


def _edges_in_order(scene: CanvasScene) -> list[EdgeItem]:
    """The edges that are seen: from left to right and down by where they begin, then by where they end."""

    def place(item: EdgeItem) -> tuple[float, ...]:
        path = item.path()
        start, end = path.pointAtPercent(0), scene.nodes[item.edge.target].pos()
        source = scene.nodes[item.edge.source].pos()
        return source.x(), source.y(), start.y(), end.x(), end.y()

    return sorted((item for item in scene.edges.values() if item.isVisible()), key=place)
