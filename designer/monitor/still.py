"""A plot that keeps its picture: the moment that is shown moves over it, and nothing else is painted anew."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QMouseEvent, QPaintEngine, QPainter, QPaintEvent, QPen, QPixmap, QRegion
from PySide6.QtWidgets import QWidget

from designer.monitor.colours import clear
from designer.theme.theme import theme

LINE, HOT = 1.6, 3.0  # pixels of the line at the moment, and below the pointer
GRIP = 11  # pixels beside the line that take hold of it
VEIL = 165  # how much of what comes after the moment is covered, of 255


class Grip(QWidget):
    """The line at the moment that is shown. Drag it to another."""

    def __init__(self, still: Still) -> None:
        super().__init__(still.viewport())
        self.still = still
        self.hot = False
        self.setCursor(Qt.CursorShape.SizeHorCursor)
        self.hide()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().accent, (HOT if self.hot else LINE) * self.still.scale_))
        middle = self.width() / 2
        painter.drawLine(QPointF(middle, 0), QPointF(middle, self.height()))

    def _heat(self, hot: bool) -> None:
        self.hot = hot
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._heat(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._heat(False)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.still.dragged.emit(self.still.time_at(self.mapToParent(event.position()).x()))


class Still(pg.PlotWidget):
    """A plot over time with the moment that is shown."""

    dragged = Signal(float)  # to this moment

    def __init__(self, axes: dict[str, pg.AxisItem]) -> None:
        self._picture: QPixmap | None = None
        self.at: float | None = None  # the moment; None shows none
        self.veiled = False  # what comes after it is covered
        self.scale_ = 1.0
        super().__init__(axisItems=axes)
        self.box: pg.ViewBox = self.getPlotItem().getViewBox()
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # the picture covers all of it
        self.grip = Grip(self)
        self.scene().changed.connect(lambda _: self.forget())
        self.box.sigRangeChanged.connect(lambda *_: self._place())
        self.box.sigResized.connect(lambda *_: self._place())

    def forget(self) -> None:
        """Paint anew what the plot shows, the next time that it is painted."""
        self._picture = None

    def show_moment(self, at: float | None, veiled: bool) -> None:
        """Move the line, and the veil over what comes after it."""
        if (at, veiled) != (self.at, self.veiled):
            before = QRegion(self.veil())
            self.at, self.veiled = at, veiled
            self._place()
            self.viewport().update(before.xored(QRegion(self.veil())))

    # -- where the moment stands

    def place_of(self, at: float) -> float:
        """The pixel of a moment."""
        return float(self.box.mapViewToScene(QPointF(at, 0.0)).x())

    def time_at(self, x: float) -> float:
        """The moment at a pixel."""
        return float(self.box.mapSceneToView(QPointF(x, 0.0)).x())

    def _area(self) -> QRectF:
        return QRectF(self.box.sceneBoundingRect())

    def veil(self) -> QRect:
        """What comes after the moment, in pixels."""
        area = self._area()
        if self.at is None or not self.veiled:
            return QRect()
        left = min(max(self.place_of(self.at), area.left()), area.right())
        return QRectF(left, area.top(), area.right() - left, area.height()).toRect()

    def _place(self) -> None:
        """Put the line where its moment stands now."""
        area = self._area()
        x = self.place_of(self.at) if self.at is not None else -1.0
        self.grip.setVisible(self.at is not None and area.left() - 1 <= x <= area.right() + 1)
        width = round(GRIP * self.scale_)
        self.grip.setGeometry(round(x - width / 2), round(area.top()), width, round(area.height()))

    # -- painting

    def resizeEvent(self, event: Any) -> None:
        super().resizeEvent(event)
        if hasattr(self, "grip"):  # pyqtgraph resizes it while it is made
            self._place()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        if painter.paintEngine().type() == QPaintEngine.Type.Raster:
            painter.drawPixmap(0, 0, self._kept())
        else:  # a drawing is to have lines
            painter.end()
            super().paintEvent(event)
            painter = QPainter(self.viewport())
        painter.fillRect(self.veil(), clear(theme().base, VEIL))
        painter.end()

    def _kept(self) -> QPixmap:
        shown, ratio = self.viewport().rect(), self.devicePixelRatioF()
        size = shown.size() * ratio
        if self._picture is None or self._picture.size() != size:
            picture = QPixmap(size)
            picture.setDevicePixelRatio(ratio)
            picture.fill(theme().base)
            painter = QPainter(picture)
            self.render(painter, QRectF(shown), shown)
            painter.end()
            self._picture = picture
        return self._picture
