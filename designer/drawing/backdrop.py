"""What lies behind the nodes: a grid of dots, and the butterfly's lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from designer.document.layout import NODE_WIDTH
from designer.drawing.sheet import Frame, Sheet

GRID, GRID_DOT = 40, 2  # from dot to dot, and the size of one
LANES = {"left": "LEFT WING", "body": "BODY", "right": "RIGHT WING"}
_ROOM = 44.0  # of a lane around its nodes
_CORNER = 14.0
_TINT = {"light": 18, "dark": 26}  # by theme: how much of a wing's colour lies on its lane, of 255


def bands(nodes: Mapping[str, Sequence[tuple[float, float, float]]]) -> list[tuple[str, Frame]]:
    """The parts of the butterfly as bands of one height, from the left, top and bottom of each wing's nodes."""
    if len(nodes) < 2:
        return []
    sides = {wing: (min(x for x, _, _ in at), max(x for x, _, _ in at) + NODE_WIDTH) for wing, at in nodes.items()}
    top = min(y for at in nodes.values() for _, y, _ in at) - _ROOM - 8
    bottom = max(y for at in nodes.values() for _, _, y in at) + _ROOM
    order = sorted(sides.items(), key=lambda entry: entry[1])
    gaps = [right[0] - left[1] for (_, left), (_, right) in pairwise(order)]
    room = [_ROOM, *(min(max(gap / 2 - 4, 6), _ROOM) for gap in gaps), _ROOM]
    return [
        (wing, (left - room[number], top, right - left + room[number] + room[number + 1], bottom - top))
        for number, (wing, (left, right)) in enumerate(order)
    ]


def draw_lane(sheet: Sheet, wing: str, frame: Frame, name: str, theme: str) -> None:
    """A band behind a part of the butterfly, and its name."""
    sheet.box(frame, _CORNER, fill=(wing, _TINT[theme]))
    if name:
        sheet.words(frame[0] + 16, frame[1] + 24, name, "title", wing)
