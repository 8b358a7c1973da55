"""Activity: one lane for each operator, a bar while it is active, an arrow on a long one (scheduling, figure A1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QImage, QPainter, QPen, QPolygonF, QTransform
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from designer.monitor.colours import clear
from designer.monitor.player import Player
from designer.monitor.plot import Drawn, TimePlot, lettering
from designer.text import tr
from designer.theme.theme import theme
from engine.recording import RunRecording, State
from engine.recording.series import activity

EXACT = 3000  # turns in sight up to which each is a bar of its own
LONG = 46  # pixels from which on a bar has an arrow
BAR = 0.68  # of a lane's height


class Bars(Drawn):
    """The bars of all lanes. Where too many are in sight, each pixel is as strong as the unit was active in it."""

    def __init__(self, panel: ActivityPanel) -> None:
        super().__init__()
        self.panel = panel
        self.lanes: list[tuple[str, Any, Any]] = []  # unit, begins, ends
        self.picture: np.ndarray[Any, Any] | None = None
        self.start = self.stop = 0.0

    def show_span(self, recording: RunRecording, start: float, stop: float, pixels: int) -> None:
        """What is to be seen of a span of time."""
        self.start, self.stop = start, stop
        found = []
        for name, lane in zip(recording.units.names, recording.lanes, strict=False):
            begin, end = lane.within(start, stop)
            open_ = recording.open.get(name)
            if open_ is not None and open_ <= stop:
                begin, end = np.append(begin, open_), np.append(end, max(recording.end, open_))
            found.append((name, begin, end))
        if sum(len(begin) for _, begin, _ in found) > EXACT:
            self.picture = activity(recording, np.linspace(start, stop, pixels + 1))
            found = [(name, begin[:0], end[:0]) for name, begin, end in found]
        else:
            self.picture = None
        self.lanes = found
        self.prepareGeometryChange()
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        place = painter.transform()
        painter.save()
        painter.resetTransform()
        colors = theme()
        height = abs(place.m22())
        self._paint_lanes(painter, place, height)
        painter.setPen(Qt.PenStyle.NoPen)
        for number, (unit, begin, end) in enumerate(self.lanes):
            color = self.panel.colours.unit(unit)
            top = place.map(QPointF(0, number)).y() - height * BAR / 2
            if self.picture is not None:
                self._paint_picture(painter, place, number, color, top, height * BAR)
                continue
            lefts = begin * place.m11() + place.dx()
            widths = np.maximum((end - begin) * place.m11(), 1.0)
            painter.setBrush(color)
            tall = height * BAR
            painter.drawRects([QRectF(x, top, w, tall) for x, w in zip(lefts.tolist(), widths.tolist(), strict=True)])
            ink = QPen(clear(colors.base, 225), max(1.2, 1.6 * self.panel.scale))
            for x, width in zip(lefts.tolist(), widths.tolist(), strict=True):
                if width >= LONG * self.panel.scale and height > 9:
                    self._arrow(painter, ink, x, width, top + tall / 2, min(tall * 0.22, 6.0 * self.panel.scale))
            painter.setPen(Qt.PenStyle.NoPen)
        painter.restore()

    def _paint_lanes(self, painter: QPainter, place: QTransform, height: float) -> None:
        if height < 4:
            return
        frame = place.mapRect(self.boundingRect())
        band = clear(theme().window, 150)
        for number in range(0, len(self.lanes), 2):
            middle = place.map(QPointF(0, number)).y()
            painter.fillRect(QRectF(frame.left(), middle - height / 2, frame.width(), height), band)

    def _paint_picture(
        self, painter: QPainter, place: QTransform, number: int, color: Any, top: float, tall: float
    ) -> None:
        assert self.picture is not None
        if number >= len(self.picture):
            return
        line = self.picture[number]
        pixels = np.zeros((1, len(line), 4), np.uint8)
        pixels[0, :, 0], pixels[0, :, 1], pixels[0, :, 2] = color.blue(), color.green(), color.red()
        strength = np.where(line > 0, 0.18 + 0.82 * line, 0.0)  # even a short turn is seen
        pixels[0, :, 3] = (strength * 255).astype(np.uint8)
        image = QImage(pixels.data, len(line), 1, QImage.Format.Format_ARGB32)
        left = place.map(QPointF(self.start, 0)).x()
        right = place.map(QPointF(self.stop, 0)).x()
        painter.drawImage(QRectF(left, top, right - left, tall), image, QRectF(0, 0, len(line), 1))

    def _arrow(self, painter: QPainter, ink: QPen, x: float, width: float, y: float, head: float) -> None:
        painter.setPen(ink)
        right = x + width - 7
        painter.drawLine(QPointF(x + 7, y), QPointF(right, y))
        painter.drawPolyline(
            QPolygonF([QPointF(right - head, y - head), QPointF(right, y), QPointF(right - head, y + head)])
        )


class ActivityPanel(TimePlot):
    """Who was active when: the X-ray of a run."""

    name = "activity"
    title = "Activity"
    order = 20
    what = "One lane for each operator, with a bar while it is active"

    def __init__(self, player: Player) -> None:
        self.labels: list[str] = []
        super().__init__(player)
        self.bars = Bars(self)
        self.plot.addItem(self.bars, ignoreBounds=True)
        self.view.invertY(True)

    def begin(self) -> None:
        self.labels = []

    def restyle(self) -> None:
        super().restyle()
        self.labels = []

    def draw_plot(self, recording: RunRecording, start: float, stop: float) -> None:
        names = recording.units.names
        labels = [self.label_of(name) for name in names]
        if labels != self.labels:
            self.labels = labels
            self._name(labels)
        if not self.same(recording):
            self.view.setYRange(-0.5, max(len(names), 1) - 0.5, padding=0)
            self.bars.show_span(recording, start, stop, self.pixels)
        state = recording.state(self.player.at)
        running = [name for name, unit in state.units.items() if unit.state is State.RUNNING]
        turns = sum(unit.turns for unit in state.units.values())
        shown = ", ".join(self.label_of(name) for name in running[:3]) or tr("nobody")
        self.headline_of((f"{turns:,}", tr("turns")), (shown, tr("active")))

    def _name(self, labels: list[str]) -> None:
        height = self.view.height() / max(len(labels), 1)
        size, every = lettering(height, self.scale)
        font = self.font_of(size)
        axis = self.item.getAxis("left")
        axis.setTickFont(font)
        metrics = QFontMetrics(font)
        room = self.axis_width - round(AXIS_MARGIN * self.scale)
        ticks = [
            (number, metrics.elidedText(label, Qt.TextElideMode.ElideMiddle, room))
            for number, label in enumerate(labels)
            if number % every == 0
        ]
        axis.setTicks([ticks])

    def resizeEvent(self, event: object) -> None:
        self.labels = []
        super().resizeEvent(event)


AXIS_MARGIN = 14  # pixels beside a lane's name

PANEL = ActivityPanel
