"""Auto-layout: layers from left to right with few crossings, the butterfly's body in a column of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from designer.document.document import Document
from designer.document.layout import NODE_HEIGHT, NODE_WIDTH, Point, edge_key, height_for, positions, tidy

COLUMN = NODE_WIDTH + 84.0  # from one layer to the next
ROW = NODE_HEIGHT + 56.0  # from one node of a layer to the next


@dataclass
class Arrangement:
    """Where every node goes, and the points that long edges pass."""

    places: dict[str, Point] = field(default_factory=dict)
    bends: dict[str, list[Point]] = field(default_factory=dict)  # by (source, target), as `edge_key` writes edges


def arrange(document: Document, wings: Mapping[str, str] | None = None) -> Arrangement:
    """Lay out a whole workflow. `wings` keeps the left wing before the body and the right wing behind it."""
    nodes = list(document.workflow.nodes)
    edges = [(edge.source, edge.target) for edge in document.workflow.edges]
    edges = [(source, target) for source, target in dict.fromkeys(edges) if source != target]
    known = set(nodes)
    edges = [pair for pair in edges if pair[0] in known and pair[1] in known]
    heights = {id_: node_height(document, id_) for id_ in nodes}
    places, passed = layered(nodes, edges, heights, wings or {})
    result = Arrangement(places)
    for edge in document.workflow.edges:
        points = passed.get((edge.source, edge.target))
        if points:
            result.bends[edge_key(edge)] = points
    return result


def place_missing(document: Document, found: Arrangement) -> None:
    """Put nodes that the file has no place for where they were arranged, before anything is shown or undone."""
    layout, known = document.workflow.layout, positions(document.workflow)
    if not known and found.bends:
        layout["bends"] = {
            key: [coordinate for point in points for coordinate in tidy(point)] for key, points in found.bends.items()
        }
    section = layout.setdefault("nodes", {})
    for id_ in document.workflow.nodes:
        if id_ not in known:
            section[id_] = list(tidy(found.places.get(id_, (0.0, 0.0))))
    if not section:
        del layout["nodes"]


def node_height(document: Document, id_: str) -> float:
    """A node grows with its ports."""
    ports = document.ports.of(id_)
    return height_for(max(len(ports.inputs), len(ports.outputs)))


def layered(
    nodes: Sequence[str],
    edges: Sequence[tuple[str, str]],
    heights: Mapping[str, float],
    wings: Mapping[str, str],
) -> tuple[dict[str, Point], dict[tuple[str, str], list[Point]]]:
    """The layered layout itself, by fast-sugiyama. Nodes without edges stand in a row below."""
    number = {id_: index for index, id_ in enumerate(nodes)}
    body = next((id_ for id_ in nodes if wings.get(id_) == "body"), None)
    drawn = {(number[source], number[target]) for source, target in edges}
    pairs = [(number[source], number[target]) for source, target in edges]
    if body is not None:  # each end of the left wing comes before the body
        leaving = {source for source, target in edges if wings.get(target) != "right" or wings.get(source) != "left"}
        joined = {id_ for pair in edges for id_ in pair}
        ends = [id_ for id_ in nodes if wings.get(id_) == "left" and id_ in joined and id_ not in leaving]
        pairs += [(number[id_], number[body]) for id_ in ends if (number[id_], number[body]) not in drawn]
    places: dict[str, Point] = {}
    bends: dict[tuple[str, str], list[Point]] = {}
    top = 0.0
    for part, links in _components(pairs, len(nodes)):
        columns = _columns(part)
        low = min(at for _, (at, _) in part)
        rows = {id_: (at - low) / _SPACING for id_, (at, _) in part}
        bottom = top
        for id_ in rows:
            if id_ < len(nodes):
                y = top + rows[id_] * ROW - (heights[nodes[id_]] - NODE_HEIGHT) / 2
                places[nodes[id_]] = (columns[id_] * COLUMN, _grid(y))
                bottom = max(bottom, y + heights[nodes[id_]])
        for source, target, way in _passed(links, len(nodes)):
            if (source, target) in drawn:
                bends[nodes[source], nodes[target]] = _points(way, columns, rows, top)
            bottom = max([bottom, *(top + rows[id_] * ROW + NODE_HEIGHT / 2 for id_ in way)])
        top = _grid(bottom + ROW)
    single = [name for name in nodes if name not in places]
    across = max(4, round(len(single) ** 0.5))
    for index, name in enumerate(single):
        places[name] = ((index % across) * COLUMN, top + (index // across) * ROW)
    return places, bends


_SPACING = 10.0


def _components(
    pairs: Sequence[tuple[int, int]], size: int
) -> list[tuple[list[tuple[int, tuple[float, float]]], list[tuple[int, int]]]]:
    """Each connected part with its nodes' places (also those of the bends, numbered beyond the nodes) and its edges."""
    if not pairs:
        return []
    from fast_sugiyama import from_edges

    # Sweeping back and forth helps most on graphs that a person reads; on huge ones it takes minutes.
    found = from_edges(
        pairs,
        minimum_length=1,
        vertex_spacing=_SPACING,
        dummy_vertices=True,
        dummy_size=_SPACING,
        crossing_minimization="barycenter",
        transpose=len(pairs) <= 600,
    )
    parts: list[Any] = [(list(placed), list(links or ())) for placed, _, _, links in found]
    return sorted(parts, key=lambda part: -len(part[0]))


def _columns(part: Iterable[tuple[int, tuple[float, float]]]) -> dict[int, int]:
    """Each node's layer, sources first. The library counts downwards."""
    levels = sorted({round(level, 3) for _, (_, level) in part}, reverse=True)
    column = {level: index for index, level in enumerate(levels)}
    return {id_: column[round(level, 3)] for id_, (_, level) in part}


def _passed(links: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int, list[int]]]:
    """The edges that pass layers on their way: both ends and the bends between."""
    following = {source: target for source, target in links if source >= size}
    found = []
    for source, target in links:
        if source < size <= target:
            way = [target]
            while way[-1] in following and following[way[-1]] >= size:
                way.append(following[way[-1]])
            end = following.get(way[-1])
            if end is not None:
                found.append((source, end, way))
    return found


def _points(way: Sequence[int], columns: Mapping[int, int], rows: Mapping[int, float], top: float) -> list[Point]:
    """A line across each passed column; columns passed at one height are crossed in one line."""
    points: list[Point] = []
    for id_ in sorted(way, key=lambda one: columns[one]):
        x, y = columns[id_] * COLUMN, _grid(top + rows[id_] * ROW + NODE_HEIGHT / 2)
        if points and points[-1][1] == y:
            points[-1] = (x + NODE_WIDTH, y)
        else:
            points += [(x, y), (x + NODE_WIDTH, y)]
    return points


def _grid(value: float) -> float:
    return round(value / 10) * 10.0


def crossings(places: Mapping[str, Point], edges: Sequence[tuple[str, str]]) -> int:
    """How many pairs of straight lines between the nodes cross."""
    lines = [(*places[source], *places[target]) for source, target in edges]
    count = 0
    for index, (ax, ay, bx, by) in enumerate(lines):
        for cx, cy, dx, dy in lines[index + 1 :]:
            if {(ax, ay), (bx, by)} & {(cx, cy), (dx, dy)}:
                continue
            one = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
            two = (bx - ax) * (dy - ay) - (by - ay) * (dx - ax)
            three = (dx - cx) * (ay - cy) - (dy - cy) * (ax - cx)
            four = (dx - cx) * (by - cy) - (dy - cy) * (bx - cx)
            count += one * two < 0 and three * four < 0
    return count
