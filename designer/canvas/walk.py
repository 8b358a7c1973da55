"""Walking the graph by arrow keys."""

from __future__ import annotations

from collections.abc import Mapping

from designer.document.document import Document
from designer.document.layout import Point


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
