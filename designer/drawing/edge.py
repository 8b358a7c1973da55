"""The way an edge takes from an output to an input."""

from __future__ import annotations

from collections.abc import Sequence

from designer.document.layout import Point
from designer.drawing.sheet import Path

WIDTH = 1.8


def way(path: Path, start: Point, end: Point, bends: Sequence[Point] = ()) -> None:
    """One curve, or curves between the lines across passed columns, and the head of an arrow."""
    path.moveTo(*start)
    at, (x, y) = start, end
    for point in bends:
        _reach(path, at, point)
        at = point
    if bends or x - at[0] > 24:
        _reach(path, at, end)
    else:
        _around(path, at, end)
    path.moveTo(x - 13, y - 5)
    path.lineTo(x - 6.5, y)
    path.lineTo(x - 13, y + 5)


def _reach(path: Path, start: Point, end: Point) -> None:
    """Straight on, or a curve to another height."""
    if abs(start[1] - end[1]) < 0.5:
        path.lineTo(*end)
    else:
        reach = max(24.0, (end[0] - start[0]) * 0.5)
        path.cubicTo(start[0] + reach, start[1], end[0] - reach, end[1], *end)


def _around(path: Path, start: Point, end: Point) -> None:
    """An edge that goes back: out to the right, between the two, and in from the left."""
    (x0, y0), (x, y) = start, end
    reach = (46.0 + min(abs(y - y0), 160.0) * 0.25) * 1.6
    middle = max(y0, y) + 74 if abs(y0 - y) < 70 else (y0 + y) / 2
    path.cubicTo(x0 + reach, y0, x0 + reach, middle, (x0 + x) / 2, middle)
    path.cubicTo(x - reach, middle, x - reach, y, x, y)
