"""What is drawn on: the canvas by Qt, or an SVG file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Frame = tuple[float, float, float, float]  # left, top, width, height
Ink = str | tuple[str, int]  # a colour by its role in the theme or as `#rrggbb`; with how opaque it is, of 255

FONTS = {"title": (14, 600), "small": (11, 400), "tiny": (10, 400)}  # pixels, and how bold


class Path(Protocol):
    """The line around a shape. Its words are those of Qt's own paths, which are among them."""

    def moveTo(self, x: float, y: float, /) -> Any: ...
    def lineTo(self, x: float, y: float, /) -> Any: ...
    def cubicTo(self, x1: float, y1: float, x2: float, y2: float, x: float, y: float, /) -> Any: ...
    def closeSubpath(self) -> Any: ...


Trace = Callable[..., None]  # draws the line around one kind of shape: takes a path, then what the shape depends on


class Sheet(Protocol):
    """A few kinds of marks, each with what fills it and the line around it."""

    def shape(
        self, trace: Trace, *what: Any, fill: Ink | None = None, line: Ink | None = None, width: float = 1.0
    ) -> None:
        """The shape that `trace` draws of `what`, which never looks different for the same `what`."""

    def box(
        self,
        frame: Frame,
        corner: float,
        fill: Ink | None = None,
        line: Ink | None = None,
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """A rectangle with round corners."""

    def dot(self, x: float, y: float, radius: float, fill: Ink, line: Ink | None = None, width: float = 1.0) -> None:
        """A circle."""

    def stroke(self, points: Sequence[tuple[float, float]], line: Ink, width: float) -> None:
        """A line through points, round at its ends."""

    def words(self, x: float, y: float, text: str, font: str, ink: Ink, before: bool = False) -> None:
        """A line of text that begins at a point or, `before` it, ends there."""

    def icon(self, operator: str, family: str, x: float, y: float, size: float) -> None:
        """An operator's drawing, or its family's."""
