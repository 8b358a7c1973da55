"""Notes and groups."""

from __future__ import annotations

from designer.document.layout import NODE_WIDTH, Group, Point
from designer.drawing.node import Advance, elided
from designer.drawing.sheet import Frame, Sheet

NOTE_INSET = (10.0, 6.0)  # of its text
GROUP_CORNER = 10.0
COLLAPSED = (NODE_WIDTH + 36, 84.0)


def draw_note(sheet: Sheet, size: Point, chosen: bool = False) -> None:
    """A note without its text."""
    sheet.box((0, 0, *size), 6, "note", "accent" if chosen else "note_border", 2 if chosen else 1)


def draw_note_corner(sheet: Sheet, size: Point) -> None:
    """Where a note is dragged larger."""
    right, bottom = size
    for step in (4, 8):
        sheet.stroke([(right - step - 3, bottom - 3), (right - 3, bottom - step - 3)], "note_border", 1.4)


def group_box(group: Group, frame: Frame) -> Frame:
    """A group where it is drawn: the frame around its nodes, or a box in the middle of where they stand."""
    if not group.collapsed:
        return frame
    left, top, _, height = frame
    return left, top + 10 + (height - COLLAPSED[1]) / 2, *COLLAPSED


def gate(box: Frame, output: bool) -> Point:
    """Where edges of a collapsed group's nodes meet its box."""
    left, top, width, height = box
    return left + width if output else left, top + height / 2


def draw_group(sheet: Sheet, size: Point, collapsed: bool, chosen: bool = False) -> None:
    """The frame of a group, without its words."""
    line, box = "accent" if chosen else "faint", (0.0, 0.0, *size)
    if collapsed:  # a second sheet behind, as a stack has
        sheet.box((4, 4, *size), GROUP_CORNER, "group", line, 1.4)
        sheet.box(box, GROUP_CORNER, "group", line, 1.4)
    else:
        sheet.box(box, GROUP_CORNER, ("group", 150), line, 1.4, dashed=True)


def draw_group_words(sheet: Sheet, group: Group, width: float, advance: Advance, count: str) -> None:
    """By what it is collapsed or expanded, its title, and `count`: how many nodes a collapsed one has."""
    arrow = [(-3, -5), (3, 0), (-3, 5)] if group.collapsed else [(-5, -3), (0, 3), (5, -3)]
    sheet.stroke([(17 + x, 17 + y) for x, y in arrow], "muted", 2)
    sheet.words(32, 22, elided(group.title, width - 44, advance), "title", "text")
    if group.collapsed:
        sheet.words(32, 46, count, "small", "muted")
