"""An edge on the canvas, and the path it takes. Qt paints it; Python only says which way it goes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QPainterPath, QPen, Qt
from PySide6.QtWidgets import QGraphicsPathItem

from designer.document.layout import Point
from designer.theme.theme import theme
from engine.model.workflow import Edge


def route(start: QPointF, end: QPointF, bends: Sequence[Point] = ()) -> QPainterPath:
    """The way from an output to an input: one curve, or curves between the lines across passed columns."""
    path = QPainterPath(start)
    at = start
    for x, y in bends:
        point = QPointF(x, y)
        if abs(at.y() - y) < 0.5:
            path.lineTo(point)
        else:
            _curve(path, at, point)
        at = point
    if end.x() - at.x() > 24 or bends:
        if abs(at.y() - end.y()) < 0.5:
            path.lineTo(end)
        else:
            _curve(path, at, end)
    else:
        _around(path, at, end)
    path.moveTo(end.x() - 13, end.y() - 5)  # the head of the arrow
    path.lineTo(end.x() - 6.5, end.y())
    path.lineTo(end.x() - 13, end.y() + 5)
    return path


def _curve(path: QPainterPath, start: QPointF, end: QPointF) -> None:
    reach = max(24.0, (end.x() - start.x()) * 0.5)
    path.cubicTo(QPointF(start.x() + reach, start.y()), QPointF(end.x() - reach, end.y()), end)


def _around(path: QPainterPath, start: QPointF, end: QPointF) -> None:
    """An edge that goes back: out to the right, between the two, and in from the left."""
    reach = 46.0 + min(abs(end.y() - start.y()), 160.0) * 0.25
    middle = (start.y() + end.y()) / 2
    if abs(start.y() - end.y()) < 70:
        middle = max(start.y(), end.y()) + 74
    half = QPointF((start.x() + end.x()) / 2, middle)
    path.cubicTo(QPointF(start.x() + reach * 1.6, start.y()), QPointF(start.x() + reach * 1.6, middle), half)
    path.cubicTo(QPointF(end.x() - reach * 1.6, middle), QPointF(end.x() - reach * 1.6, end.y()), end)


class EdgeItem(QGraphicsPathItem):
    """One edge. It has no Python `paint`, so that a thousand of them cost what their lines cost."""

    def __init__(self, edge: Edge, source_port: str, target_port: str, refused: bool) -> None:
        super().__init__()
        self.edge = edge
        self.source_port = source_port
        self.target_port = target_port
        self.refused = refused
        self.chosen = False
        self.hot = False
        self.faded = False
        self.mark: str | None = None
        self.setZValue(5)
        self.restyle()

    def restyle(self) -> None:
        """Take the pen for what the edge is now."""
        colors = theme()
        color = QColor(colors.refused if self.refused else colors.edge)
        width = 1.8
        if self.mark is not None:
            color = {"added": colors.ok, "removed": colors.error}.get(self.mark, color)
            width = 3.0
        if self.hot or self.chosen:
            color, width = QColor(colors.accent), 2.8
        if self.faded:
            color.setAlpha(50)
        pen = QPen(color, width, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin)
        if self.mark == "removed":
            pen.setStyle(Qt.PenStyle.DashLine)
        self.setPen(pen)

    def choose(self, chosen: bool) -> None:
        """Select the edge or not."""
        if chosen != self.chosen:
            self.chosen = chosen
            self.restyle()

    def heat(self, hot: bool) -> None:
        """Show that the pointer is on it, or that something would be put there."""
        if hot != self.hot:
            self.hot = hot
            self.restyle()
