"""The minimap: the whole workflow in a corner, and what of it is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, QTimer
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from designer.text import tr
from designer.theme.theme import theme, themes
from engine.model.problems import Level

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

WIDTH, HEIGHT = 210, 132
LATER_MS = 200  # after a change: problems come first


class Minimap(QWidget):
    """Drag in it to move the view."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__(view.viewport())  # not beside it: Qt paints all of what lies below another, at each step
        self.view = view
        self.home = QPoint()
        self.wanted = True
        self.setFixedSize(WIDTH, HEIGHT)
        # With nothing to be seen through it, a pan moves it and what lies around it as they are, and paints neither.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setToolTip(tr("Drag to look elsewhere"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._picture: QPixmap | None = None
        self._content = QRectF()
        self._seen = QRect()  # where the frame of what is seen is painted
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(LATER_MS)
        self._timer.timeout.connect(self._redraw)
        view.canvas.laid_out.connect(self._timer.start)
        view.canvas.chosen.connect(self._timer.start)
        themes().changed.connect(self._timer.start)
        for bar in (view.horizontalScrollBar(), view.verticalScrollBar()):
            bar.valueChanged.connect(self.look)
        view.zoomed.connect(self.look)

    def place(self) -> None:
        """Back into the corner."""
        self.home = QPoint(self.view.viewport().width() - WIDTH - 14, self.view.viewport().height() - HEIGHT - 14)
        self.move(self.home)
        self.look()

    def look(self) -> None:
        """Show what is seen; where everything is, no map is needed."""
        everything = self.view.visible_frame().contains(self.view.canvas.content())
        self.setVisible(self.wanted and not everything and self.view.viewport().width() > 3 * WIDTH)
        if self._picture is None:
            self.update()
            return
        frame = self._frame()
        if frame != self._seen:
            self.update(self._seen)
            self.update(frame)
            self._seen = frame

    def show_map(self, shown: bool) -> None:
        """Show it or not."""
        self.wanted = shown
        self.place()

    def _redraw(self) -> None:
        self._picture = None
        self.look()

    def _scale(self) -> float:
        return min((WIDTH - 16) / max(self._content.width(), 1), (HEIGHT - 16) / max(self._content.height(), 1))

    def _to_map(self, frame: QRectF) -> QRectF:
        scale = self._scale()
        x = (WIDTH - self._content.width() * scale) / 2 + (frame.left() - self._content.left()) * scale
        y = (HEIGHT - self._content.height() * scale) / 2 + (frame.top() - self._content.top()) * scale
        return QRectF(x, y, max(frame.width() * scale, 1.5), max(frame.height() * scale, 1.5))

    def _frame(self) -> QRect:
        """The pixels of the frame around what is seen."""
        return self._to_map(self.view.visible_frame()).toAlignedRect().adjusted(-2, -2, 2, 2)

    def _draw(self) -> QPixmap:
        colors = theme()
        content = self.view.canvas.content()
        self._content = content if not content.isEmpty() else QRectF(-300, -200, 600, 400)
        ratio = self.devicePixelRatioF()
        picture = QPixmap(int(WIDTH * ratio), int(HEIGHT * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(colors.canvas)
        painter = QPainter(picture)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors.border, 1))
        painter.setBrush(colors.raised)
        painter.drawRoundedRect(QRectF(0.5, 0.5, WIDTH - 1, HEIGHT - 1), 8, 8)
        for item in self.view.canvas.nodes.values():
            if item.isVisible():
                color = colors.accent if item.isSelected() else colors.wing(item.wing)
                if item.level is Level.ERROR:
                    color = colors.error
                painter.fillRect(self._to_map(item.frame()), color)
        painter.end()
        return picture

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._picture is None:
            self._picture = self._draw()
            self._seen = self._frame()
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._picture)
        painter.setClipRect(QRectF(1, 1, WIDTH - 2, HEIGHT - 2))
        fill = QColor(theme().accent)
        fill.setAlpha(30)
        painter.setBrush(fill)
        painter.setPen(QPen(theme().accent, 1.4))
        painter.drawRect(self._to_map(self.view.visible_frame()))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._go(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._go(event.position())

    def _go(self, at: QPointF) -> None:
        scale = self._scale()
        x = self._content.left() + (at.x() - (WIDTH - self._content.width() * scale) / 2) / scale
        y = self._content.top() + (at.y() - (HEIGHT - self._content.height() * scale) / 2) / scale
        self.view.centerOn(x, y)
