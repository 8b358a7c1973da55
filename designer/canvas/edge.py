"""An edge on the canvas, and the path it takes. Qt paints it; Python only says which way it goes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QPainterPath, QPen, Qt
from PySide6.QtWidgets import QGraphicsPathItem

from designer.document.layout import Point
from designer.drawing.edge import WIDTH, way
from designer.theme.theme import theme
from engine.model.workflow import Edge


def route(start: QPointF, end: QPointF, bends: Sequence[Point] = ()) -> QPainterPath:
    """The way from an output to an input."""
    path = QPainterPath()
    way(path, (start.x(), start.y()), (end.x(), end.y()), bends)
    return path


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
        width = WIDTH
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
