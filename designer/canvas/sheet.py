"""The canvas as a sheet that nodes, lanes, notes and groups are drawn on, by Qt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF

from designer.drawing.node import Advance
from designer.drawing.sheet import FONTS, Frame, Ink, Trace
from designer.theme.icons import operator_pixmap
from designer.theme.theme import load_theme, theme

ICON_PIXELS = 72  # an icon's picture, sharp also where the canvas is large

_fonts: dict[str, QFont] = {}
_advances: dict[str, Advance] = {}


def use_font(base: QFont) -> None:
    """Derive the canvas's fonts from the program's."""
    for name, (pixels, weight) in FONTS.items():
        font = QFont(base)
        font.setPixelSize(pixels)
        if weight > QFont.Weight.Normal:
            font.setWeight(QFont.Weight(weight))
        _fonts[name], _advances[name] = font, QFontMetricsF(font).horizontalAdvance


def canvas_font(name: str) -> QFont:
    """One of the canvas's fonts: title, small or tiny."""
    return _fonts[name]


def advance(name: str) -> Advance:
    """What tells how wide a text is in one of the canvas's fonts."""
    return _advances[name]


@lru_cache(maxsize=1024)
def traced(trace: Trace, *what: Any) -> QPainterPath:
    """A shape as Qt has it."""
    path = QPainterPath()
    trace(path, *what)
    return path


@lru_cache(maxsize=512)
def _color(theme_name: str, ink: Ink) -> QColor:
    name, opaque = ink if isinstance(ink, tuple) else (ink, 255)
    color = QColor(name if name.startswith("#") else getattr(load_theme(theme_name), name))
    color.setAlpha(opaque)
    return color


@lru_cache(maxsize=512)
def _pen(theme_name: str, ink: Ink, width: float, kind: str) -> QPen:
    pen = QPen(_color(theme_name, ink), width)
    if kind == "round":
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    elif kind == "dashed":
        pen.setStyle(Qt.PenStyle.DashLine)
    return pen


class QtSheet:
    """A painter's. `seen` is the part that is looked at, where the painter knows."""

    def __init__(self, painter: QPainter, seen: QRectF | None = None) -> None:
        self._painter = painter
        self._theme = theme().name
        self._seen = seen

    def shape(
        self, trace: Trace, *what: Any, fill: Ink | None = None, line: Ink | None = None, width: float = 1.0
    ) -> None:
        self._dip(fill, line, width)
        self._painter.drawPath(traced(trace, *what))

    def box(
        self,
        frame: Frame,
        corner: float,
        fill: Ink | None = None,
        line: Ink | None = None,
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        box, seen = QRectF(*frame), self._seen
        if seen and fill and not line and box.top() + corner < seen.top() and seen.bottom() < box.bottom() - corner:
            # No corner is seen, and this takes a fifth of the time.
            self._painter.fillRect(box.intersected(seen), _color(self._theme, fill))
            return
        self._dip(fill, line, width, "dashed" if dashed else "")
        self._painter.drawRoundedRect(box, corner, corner)

    def dot(self, x: float, y: float, radius: float, fill: Ink, line: Ink | None = None, width: float = 1.0) -> None:
        self._dip(fill, line, width)
        self._painter.drawEllipse(QPointF(x, y), radius, radius)

    def stroke(self, points: Sequence[tuple[float, float]], line: Ink, width: float) -> None:
        self._dip(None, line, width, "round")
        self._painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in points]))

    def words(self, x: float, y: float, text: str, font: str, ink: Ink, before: bool = False) -> None:
        self._painter.setFont(_fonts[font])
        self._painter.setPen(_color(self._theme, ink))
        self._painter.drawText(QPointF(x - _advances[font](text) if before else x, y), text)

    def icon(self, operator: str, family: str, x: float, y: float, size: float) -> None:
        picture = operator_pixmap(operator, family, _color(self._theme, "glyph"), ICON_PIXELS)
        self._painter.drawPixmap(QRectF(x, y, size, size), picture, QRectF(picture.rect()))

    def _dip(self, fill: Ink | None, line: Ink | None, width: float, kind: str = "") -> None:
        """Take the pen and the brush."""
        if line is None:
            self._painter.setPen(Qt.PenStyle.NoPen)
        else:
            self._painter.setPen(_pen(self._theme, line, width, kind))
        if fill is None:
            self._painter.setBrush(Qt.BrushStyle.NoBrush)
        else:
            self._painter.setBrush(_color(self._theme, fill))
