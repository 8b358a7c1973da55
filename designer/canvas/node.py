"""A node on the canvas: one item that paints its shape, its ports and its badge."""

from __future__ import annotations

import re
from functools import lru_cache

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from designer.canvas.arrange import height_for
from designer.document.layout import NODE_WIDTH
from designer.document.ports import Ports
from designer.theme.icons import operator_pixmap
from designer.theme.theme import theme
from engine.model.operator import Carries, Category, Operator, Port, Role
from engine.model.problems import Level

FAR = 0.3  # below this zoom a node is a coloured box
NEAR = 0.62  # above it ports have their names
PORT = 5.5  # a port's radius
SIDE = 56.0  # room beside a node for ports and their names
BELOW = 50.0  # room below a node for what a run tells of it
EDGE_OF_SHAPE = 12.0  # how much the corners of blocking nodes are cut

_WORDS = re.compile(r"[^\s_]*[\s_]*")  # an id breaks behind `_` as a title does at a space

TITLE = QFont()
SMALL = QFont()
TINY = QFont()


def use_font(base: QFont) -> None:
    """Derive the canvas's fonts from the program's."""
    global TITLE, SMALL, TINY
    TITLE, SMALL, TINY = QFont(base), QFont(base), QFont(base)
    TITLE.setPixelSize(14)
    TITLE.setWeight(QFont.Weight.DemiBold)
    SMALL.setPixelSize(11)
    TINY.setPixelSize(10)


def form_of(kind: type[Operator] | None) -> str:
    """The shape by which a node is told apart: a recordset, or one of the three categories."""
    if kind is None:
        return "unknown"
    return "recordset" if kind.role is not Role.ACTIVITY else kind.category.value


@lru_cache(maxsize=256)
def outline(form: str, height: float) -> QPainterPath:
    """A row-synchronized node is round, a semi-blocking one cut on the left, a blocking one cut on both sides."""
    path = QPainterPath()
    width, cut = NODE_WIDTH, EDGE_OF_SHAPE
    if form == Category.ROW_SYNCHRONIZED:
        path.addRoundedRect(QRectF(0, 0, width, height), 26, 26)
    elif form in (Category.SEMI_BLOCKING, Category.BLOCKING):
        right = cut if form == Category.BLOCKING else 0.0
        path.moveTo(cut, 0)
        path.lineTo(width - right, 0)
        path.lineTo(width, right)
        path.lineTo(width, height - right)
        path.lineTo(width - right, height)
        path.lineTo(cut, height)
        path.lineTo(0, height - cut)
        path.lineTo(0, cut)
        path.closeSubpath()
    else:
        path.addRoundedRect(QRectF(0, 0, width, height), 5, 5)
    return path


def fitted(title: str, width: float) -> list[str]:
    """A title in one line, or in two where it is too long for one."""
    metrics = QFontMetricsF(TITLE)
    if metrics.horizontalAdvance(title) <= width:
        return [title]
    first, words = "", _WORDS.findall(title)
    while words and metrics.horizontalAdvance((first + words[0]).rstrip()) <= width:
        first += words.pop(0)
    if not first or not words:
        return [metrics.elidedText(title, Qt.TextElideMode.ElideRight, width)]
    return [first.rstrip(), metrics.elidedText("".join(words), Qt.TextElideMode.ElideRight, width)]


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
        self._shown_title: list[str] = []
        self._shown_operator = ""
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
        width = NODE_WIDTH - 70
        self._shown_title = fitted(title, width)
        name = kind.title if kind else operator
        self._shown_operator = QFontMetricsF(SMALL).elidedText(name, Qt.TextElideMode.ElideRight, width)
        self.update()

    def frame(self) -> QRectF:
        """The node itself, in the scene."""
        return QRectF(self.pos().x(), self.pos().y(), NODE_WIDTH, self.height)

    # -- ports

    def port_place(self, output: bool, name: str) -> QPointF:
        """Where a port stands on the node: rows in the middle of a side, refused rows at its foot."""
        ports = self.ports.outputs if output else self.ports.inputs
        rows = [port.name for port in ports if port.carries is Carries.ROWS]
        x = NODE_WIDTH if output else 0.0
        if name in rows:
            if len(rows) == 1:
                return QPointF(x, self.height / 2)
            margin = 16.0
            return QPointF(x, margin + rows.index(name) * (self.height - 2 * margin) / (len(rows) - 1))
        others = [port.name for port in ports if port.carries is not Carries.ROWS]
        if name in others:
            inset = 5.0 if form_of(self.kind) == Category.ROW_SYNCHRONIZED else 1.0
            return QPointF(x - inset, self.height - 9 - 15 * others.index(name))
        return QPointF(x, self.height / 2)

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

    def shape(self) -> QPainterPath:
        path = QPainterPath()
        path.addRect(QRectF(0, 0, NODE_WIDTH, self.height))
        return path

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        zoom = painter.worldTransform().m11()
        if zoom < FAR:
            self._paint_far(painter)
            return
        colors = theme()
        wing = colors.wing(self.wing)
        if self.dimmed:
            painter.setOpacity(0.35)
        form = form_of(self.kind)
        shape = outline(form, self.height)
        selected = self.isSelected()
        if selected:
            glow = QColor(colors.accent)
            glow.setAlpha(70)
            painter.setPen(QPen(glow, 8))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(shape)
        painter.setBrush(colors.recordset if form == "recordset" else colors.node)
        border = colors.accent if selected else self._border(form)
        painter.setPen(QPen(border, 2.2 if selected or form == Category.BLOCKING else 1.4))
        painter.drawPath(shape)
        self._paint_face(painter, form, shape, wing)
        self._paint_ports(painter, zoom)
        if self.level is not None:
            self._paint_badge(painter)
        if self.mark is not None:
            self._paint_mark(painter, shape)
        for decorate in getattr(self.scene(), "decorations", ()):
            decorate(painter, self)

    def _border(self, form: str) -> QColor:
        colors = theme()
        if form == "unknown":
            return colors.error
        return colors.muted if form == Category.BLOCKING else colors.node_border

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

    def _paint_face(self, painter: QPainter, form: str, shape: QPainterPath, wing: QColor) -> None:
        """The wing's colour behind the icon, the title and the operator's name."""
        colors = theme()
        painter.save()
        painter.setClipPath(shape, Qt.ClipOperation.IntersectClip)
        painter.fillRect(QRectF(0, 0, 46, self.height), wing)
        if form == Category.BLOCKING:  # a bar that rows stop at
            painter.fillRect(QRectF(NODE_WIDTH - 9, 0, 4, self.height), wing)
        elif form == Category.SEMI_BLOCKING:  # the same with a gap
            painter.fillRect(QRectF(NODE_WIDTH - 9, 0, 4, self.height * 0.36), wing)
            painter.fillRect(QRectF(NODE_WIDTH - 9, self.height * 0.64, 4, self.height), wing)
        painter.restore()
        family = self.kind.family if self.kind else ""
        glyph = QColor("#ffffff") if not colors.is_dark else QColor("#14171b")
        picture = operator_pixmap(self.operator, family, glyph, 72)
        middle = self.height / 2
        painter.drawPixmap(QRectF(12 if form == Category.ROW_SYNCHRONIZED else 10, middle - 13, 26, 26), picture,
                           QRectF(0, 0, 72, 72))  # fmt: skip
        painter.setPen(colors.text)
        painter.setFont(TITLE)
        two = len(self._shown_title) > 1
        for number, line in enumerate(self._shown_title):
            painter.drawText(QPointF(55, middle - (9 if two else 2) + 16 * number), line)
        painter.setPen(colors.muted)
        painter.setFont(SMALL)
        painter.drawText(QPointF(55, middle + (22 if two else 16)), self._shown_operator)

    def _paint_ports(self, painter: QPainter, zoom: float) -> None:
        colors = theme()
        painter.setFont(TINY)
        metrics = QFontMetricsF(TINY)
        for output, ports in ((False, self.ports.inputs), (True, self.ports.outputs)):
            for port in ports:
                at = self.port_place(output, port.name)
                refused = port.carries is Carries.REFUSED
                color = colors.refused if refused else colors.muted
                hot = self.hot_port == (output, port.name)
                if hot:
                    color = colors.refused if refused else colors.accent
                full = hot or (output, port.name) in self.connected
                painter.setPen(QPen(color, 1.8))
                painter.setBrush(color if full else colors.node)
                radius = PORT + 2 if hot else PORT
                if not output and port.required and not full:
                    painter.setPen(QPen(colors.error if self.level is Level.ERROR else color, 1.8))
                painter.drawEllipse(at, radius, radius)
                if zoom >= NEAR and (hot or len(ports) > 1):
                    painter.setPen(color)
                    offset = 11.0 if output else -11.0 - metrics.horizontalAdvance(port.name)
                    below = 14 if refused else -5
                    painter.drawText(QPointF(at.x() + offset, at.y() + below), port.name)

    def _paint_badge(self, painter: QPainter) -> None:
        colors = theme()
        color = colors.error if self.level is Level.ERROR else colors.warning
        center = QPointF(NODE_WIDTH - 6, 3)
        painter.setPen(QPen(colors.canvas, 2))
        painter.setBrush(color)
        painter.drawEllipse(center, 9.5, 9.5)
        painter.setPen(QPen(QColor("#ffffff"), 2.2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(QPointF(center.x(), center.y() - 4.5), QPointF(center.x(), center.y() + 0.8))
        painter.drawPoint(QPointF(center.x(), center.y() + 4.6))

    def badge_frame(self) -> QRectF:
        """Where the badge is, in the scene."""
        return QRectF(self.pos().x() + NODE_WIDTH - 17, self.pos().y() - 8, 22, 22)

    def _paint_mark(self, painter: QPainter, shape: QPainterPath) -> None:
        colors = theme()
        color = {"added": colors.ok, "removed": colors.error, "changed": colors.warning}[str(self.mark)]
        painter.setPen(QPen(color, 4))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(shape)
