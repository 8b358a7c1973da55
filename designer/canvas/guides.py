"""Alignment while something is dragged: to the sides and middles of what stands around, else to the grid."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

GRID = 10.0

Frame = tuple[float, float, float, float]  # left, top, right, bottom
Line = tuple[float, float, float, float]

_SIDES: tuple[Callable[[float, float], float], ...] = (
    lambda start, end: start,
    lambda start, end: (start + end) / 2,
    lambda start, end: end,
)


@dataclass(frozen=True)
class Snapped:
    """By how much a frame moves to be aligned, and the lines that show with what."""

    dx: float
    dy: float
    lines: tuple[Line, ...] = ()


class Guides:
    """The sides and middles of the frames that stay."""

    def __init__(self, frames: Iterable[Frame]) -> None:
        known = list(frames)
        # Left sides with left sides, middles with middles, right sides with right sides; the same downwards.
        self._across = [sorted((at(frame[0], frame[2]), frame) for frame in known) for at in _SIDES]
        self._down = [sorted((at(frame[1], frame[3]), frame) for frame in known) for at in _SIDES]

    def snap(self, frame: Frame, reach: float) -> Snapped:
        """Where a frame that is dragged comes to stand."""
        left, top, right, bottom = frame
        x = _nearest(self._across, left, right, reach)
        y = _nearest(self._down, top, bottom, reach)
        dx = x[0] if x else round(left / GRID) * GRID - left
        dy = y[0] if y else round(top / GRID) * GRID - top
        lines = []
        if x:
            other = x[2]
            lines.append((x[1], min(other[1], top + dy) - 12, x[1], max(other[3], bottom + dy) + 12))
        if y:
            other = y[2]
            lines.append((min(other[0], left + dx) - 12, y[1], max(other[2], right + dx) + 12, y[1]))
        return Snapped(dx, dy, tuple(lines))


def _nearest(
    known: list[list[tuple[float, Frame]]], start: float, end: float, reach: float
) -> tuple[float, float, Frame] | None:
    best = None
    for side, frames in zip(_SIDES, known, strict=True):
        value = side(start, end)
        at = bisect_left(frames, (value,))
        for index in (at - 1, at):
            if 0 <= index < len(frames):
                distance = frames[index][0] - value
                if abs(distance) <= reach and (best is None or abs(distance) < abs(best[0])):
                    best = (distance, *frames[index])
    return best
