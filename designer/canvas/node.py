"""A node on the canvas: one item that paints its shape, its ports and its badge."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from designer.canvas.sheet import QtSheet, advance, traced
from designer.document.layout import NODE_WIDTH, height_for
from designer.document.ports import Ports
from designer.drawing.node import WORDS_WIDTH, draw_node, elided, fitted, form_of, outline, port_place
from designer.theme.theme import theme
from engine.model.operator import Operator, Port
from engine.model.problems import Level

FAR = 0.3  # below this zoom a node is a coloured box
NEAR = 0.62  # above it ports have their names
SIDE = 56.0  # room beside a node for ports and their names
BELOW = 50.0  # room below a node for what a run tells of it


class NodeItem(QGraphicsItem):
    """One node. What it shows is set from outside; it decides nothing."""

    def __init__(self, id_: str) -> None:
        super().__init__()
        self.id = id_
        self.kind: type[Operator] | None = None
        self.operator = ""
        self.title = ""
        self.ports = Ports((), ())
        self.height = height_for(0)
        self.wing: str | None = None
        self.level: Level | None = None
        self.connected: set[tuple[bool, str]] = set()  # (is it an output, name)
        self.hot_port: tuple[bool, str] | None = None
        self.mark: str | None = None  # "added", "removed", "changed" when two versions are compared
        self.dimmed = False
        self.title_lines: list[str] = []
        self.operator_line = ""
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable)
        self.setZValue(10)

    def keep_picture(self, kept: bool) -> None:
        """Paint it once and use the picture again until it changes. From afar painting it is less than that."""
        mode = QGraphicsItem.CacheMode
        self.setCacheMode(mode.DeviceCoordinateCache if kept else mode.NoCache)

    # -- what it shows

    def show_node(self, operator: str, kind: type[Operator] | None, title: str, ports: Ports) -> None:
        """Take over a node's operator, title and ports."""
        height = height_for(max(len(ports.inputs), len(ports.outputs)))
        if height != self.height:
            self.prepareGeometryChange()
        self.operator, self.kind, self.title, self.ports, self.height = operator, kind, title, ports, height
        self.title_lines = fitted(title, WORDS_WIDTH, advance("title"))
        self.operator_line = elided(kind.title if kind else operator, WORDS_WIDTH, advance("small"))
        self.update()

    def frame(self) -> QRectF:
        """The node itself, in the scene."""
        return QRectF(self.pos().x(), self.pos().y(), NODE_WIDTH, self.height)

    # -- ports

    def port_place(self, output: bool, name: str) -> QPointF:
        """Where a port stands on the node."""
        return QPointF(*port_place(self, output, name))

    def port_at(self, output: bool, name: str) -> QPointF:
        """Where a port stands in the scene; an unknown one in the middle of its side."""
        return self.pos() + self.port_place(output, name)

    def port_near(self, point: QPointF, reach: float) -> tuple[bool, Port] | None:
        """The port next to a point of the scene, no farther than `reach`."""
        best, nearest = None, reach
        for output, ports in ((True, self.ports.outputs), (False, self.ports.inputs)):
            for port in ports:
                at = self.port_at(output, port.name)
                distance = ((at.x() - point.x()) ** 2 + (at.y() - point.y()) ** 2) ** 0.5
                if distance <= nearest:
                    best, nearest = (output, port), distance
        return best

    # -- Qt

    def boundingRect(self) -> QRectF:
        return QRectF(-SIDE, -12, NODE_WIDTH + 2 * SIDE, self.height + 12 + BELOW)

    def line(self) -> QPainterPath:
        """The line around it, as its form has it."""
        return traced(outline, form_of(self.kind), self.height)

    def shape(self) -> QPainterPath:
        path = QPainterPath()
        path.addRect(QRectF(0, 0, NODE_WIDTH, self.height))
        return path

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        zoom = painter.worldTransform().m11()
        if zoom < FAR:
            self._paint_far(painter)
            return
        if self.dimmed:
            painter.setOpacity(0.35)
        draw_node(QtSheet(painter), self, self.isSelected(), named=zoom >= NEAR, hot=self.hot_port)
        if self.mark is not None:
            self._paint_mark(painter)
        for decorate in getattr(self.scene(), "decorations", ()):
            decorate(painter, self)

    def _paint_far(self, painter: QPainter) -> None:
        colors = theme()
        frame = QRectF(0, 0, NODE_WIDTH, self.height)
        painter.fillRect(frame, colors.accent if self.isSelected() else colors.wing(self.wing))
        if form_of(self.kind) != "recordset":
            painter.fillRect(frame.adjusted(8, 8, -8, -8), colors.node)
        if self.level is not None:
            color = colors.error if self.level is Level.ERROR else colors.warning
            painter.fillRect(QRectF(NODE_WIDTH - 52, 0, 52, 52), color)
        for decorate in getattr(self.scene(), "far_decorations", ()):
            decorate(painter, self)

    def badge_frame(self) -> QRectF:
        """Where the badge is, in the scene."""
        return QRectF(self.pos().x() + NODE_WIDTH - 17, self.pos().y() - 8, 22, 22)

    def _paint_mark(self, painter: QPainter) -> None:
        colors = theme()
        color = {"added": colors.ok, "removed": colors.error, "changed": colors.warning}[str(self.mark)]
        painter.setPen(QPen(color, 4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(self.line())
