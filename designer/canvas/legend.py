"""The legend of an overlay, in the canvas's lower left corner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from designer.canvas.sheet import canvas_font
from designer.text import tr
from designer.theme.theme import theme

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

ROWS = 24


class Legend(QWidget):
    """Colours with the names of what they stand for; clicks go through to the canvas."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__(view.viewport())
        self.view = view
        self.home = QPoint()
        self.rows: list[tuple[str, QColor]] = []
        self.more: list[tuple[str, str]] = []  # what is there to know beside the overlay's regions
        self._entries: list[tuple[QPointF, str, QColor]] = []
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # as the minimap: a pan moves it as it is
        self.hide()

    def refresh(self) -> None:
        """Take over the regions of the overlay in use."""
        regions = self.view.canvas.backdrop.regions()
        self.show_rows([*((region.label, region.color.name()) for region, _ in regions), *self.more])

    def show_rows(self, rows: list[tuple[str, str]]) -> None:
        """Names with their colours."""
        self.rows = [(text, QColor(color)) for text, color in rows[:ROWS]]
        if len(rows) > ROWS:
            self.rows.append((tr("and {0} more", len(rows) - ROWS), theme().faint))
        before = self.frame()
        self.setVisible(bool(self.rows))
        self.place()
        self.update()
        if self.frame() != before:
            self.view.fit_again()

    def frame(self) -> QRect:
        """The part of the canvas's foot that it covers."""
        return QRect() if self.isHidden() else self.geometry().adjusted(0, -4, 0, 14)

    def place(self) -> None:
        """Back into the corner, in as few lines as there is room for."""
        metrics = QFontMetricsF(canvas_font("small"))
        room = max(self.view.viewport().width() - 28 - (230 if self.view.minimap.isVisible() else 0), 200)
        self._entries = []
        x, y, widest = 12.0, 8.0, 0.0
        for label, color in self.rows:
            width = metrics.horizontalAdvance(label) + 44
            if x + width > room and x > 12:
                x, y = 12.0, y + 22
            self._entries.append((QPointF(x, y), label, color))
            x += width
            widest = max(widest, x)
        self.resize(int(widest) + 4, int(y) + 28)
        self.home = QPoint(14, self.view.viewport().height() - self.height() - 14)
        self.move(self.home)

    def paintEvent(self, event: QPaintEvent) -> None:
        colors = theme()
        painter = QPainter(self)
        painter.fillRect(self.rect(), colors.canvas)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(colors.border, 1))
        painter.setBrush(colors.raised)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        painter.setFont(canvas_font("small"))
        for at, label, color in self._entries:
            fill = QColor(color)
            fill.setAlpha(110)
            painter.setPen(QPen(color, 1.4))
            painter.setBrush(fill)
            painter.drawRoundedRect(QRectF(at.x(), at.y() + 4, 18, 12), 3, 3)
            painter.setPen(colors.text)
            painter.drawText(QRectF(at.x() + 26, at.y(), 400, 20), Qt.AlignmentFlag.AlignVCenter, label)
        painter.end()
