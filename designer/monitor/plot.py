"""A panel with time along its foot: themed axes with units, a cursor to drag, and the same span as its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainterPath, QPen

from designer.monitor.panel import Panel
from designer.monitor.player import Player
from designer.monitor.still import Still
from designer.monitor.units import seconds_text
from designer.text import tr
from designer.theme.theme import theme

LONG_S = 120  # from here on times are minutes and seconds
AXIS_WIDTH = 132  # the same in all panels of one width, so that times stand below each other
NARROW, NARROW_AXIS = 400, 88  # pixels of a panel below which its axis takes less
LABEL_GAP = 2  # pixels between an axis's label and the edge of the panel
LETTERS = (12, 11, 10)  # pixels of a lane's name
MARK = QPainterPath()  # of a spill: a flag on its moment
MARK.addPolygon([QPointF(-0.5, -0.5), QPointF(0.5, -0.5), QPointF(0.0, 0.45)])
MARK.closeSubpath()


def lettering(height: float, scale: float) -> tuple[int, int]:
    """The largest letters with which each lane of a height has its name; else every how many lanes have one."""
    size = next((size for size in LETTERS if size * scale <= height), LETTERS[0])
    return size, max(1, int(np.ceil(size * scale / max(height, 1))))


class TimeAxis(pg.AxisItem):
    """Seconds since the run's start, as a person writes them."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        if values and max(abs(value) for value in values) >= LONG_S:
            return [seconds_text(round(value, 3)).removesuffix(".0") if value else "0" for value in values]
        digits = max(0, -int(np.floor(np.log10(spacing)))) if spacing > 0 else 0
        return [f"{value:.{min(digits, 6)}f}" for value in values]


class ValueAxis(pg.AxisItem):
    """Amounts in their units."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.write: Any = lambda value: f"{value:g}"
        self.step = 0.0  # the least amount that there is: no ticks stand closer

    def tickSpacing(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, float]]:
        levels: list[tuple[float, float]] = super().tickSpacing(minVal, maxVal, size)
        return [level for level in levels if level[0] >= self.step] or [(self.step, 0)]

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        """No two ticks have one text; of those that would, the one of the wider spacing stays."""
        texts: dict[str, float] = {}
        levels = super().tickValues(minVal, maxVal, size)
        for _, values in levels:
            for value in values:
                texts.setdefault(self.write(value), value)
        kept = set(texts.values())
        return [(spacing, [value for value in values if value in kept]) for spacing, values in levels]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [self.write(value) for value in values]

    def resizeEvent(self, event: object = None) -> None:
        """Put the label where all of it is seen; pyqtgraph lets it stand out of its room."""
        super().resizeEvent(event)
        if self.label is not None:  # it is None once the plot is closed
            self.label.setPos(LABEL_GAP, self.label.y())


class Drawn(pg.GraphicsObject):
    """Painted by hand, wherever the plot is looked at."""

    def boundingRect(self) -> QRectF:
        view = self.getViewBox()
        return QRectF(view.viewRect()) if view is not None else QRectF()

    def viewRangeChanged(self) -> None:
        self.prepareGeometryChange()


class TimePlot(Panel):
    """A panel with a plot over time."""

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self._key: tuple[object, ...] = ()
        self._long = False
        self._said: tuple[Any, ...] = ("",)  # in the middle, and for which picture
        self.least_top = 0.0  # of the values: that of a neighbour which shares the axis
        self.values = ValueAxis("left")
        self.times = TimeAxis("bottom")
        self.plot = Still({"bottom": self.times, "left": self.values})
        self.plot.setFrameShape(self.plot.Shape.NoFrame)
        self.item: pg.PlotItem = self.plot.getPlotItem()
        self.view: pg.ViewBox = self.item.getViewBox()
        self.view.setMouseEnabled(x=True, y=False)
        self.view.setMenuEnabled(False)
        self.view.setDefaultPadding(0)
        self.item.hideButtons()
        self.item.setClipToView(False)
        self.plot.dragged.connect(player.seek)
        self.empty = pg.TextItem(anchor=(0.5, 0.5))
        self.empty.setZValue(70)
        self.plot.addItem(self.empty, ignoreBounds=True)
        self.view.sigRangeChangedManually.connect(self._zoomed)
        self.plot.scene().sigMouseClicked.connect(self._clicked)
        player.span.changed.connect(self.draw_again)
        self.body.addWidget(self.plot, 1)
        self.restyle()

    # -- for the panels themselves

    def draw_plot(self, recording: Any, start: float, stop: float) -> None:
        """Draw a span of time."""
        raise NotImplementedError

    def set_top(self, top: float) -> None:
        """How far up the values go."""
        top = max(top, self.least_top)
        self.view.setYRange(0, top * 1.08 if top > 0 else 1.0, padding=0)

    def say(self, text: str) -> None:
        """Words in the middle, where there is nothing to draw."""
        box = self.view.viewRect()
        said = (text, box, self.view.width(), theme().name, self.scale)
        if said == self._said:
            return
        self._said = said
        self.empty.setVisible(bool(text))
        if text:
            self.empty.setTextWidth(max(self.view.width() - 24, 40))
            self.empty.setHtml(f'<div align="center">{escape(text)}</div>')
            self.empty.setPos(box.center())

    def same(self, recording: Any, *more: object) -> bool:
        """Whether what is drawn still holds: scrubbing alone moves only the cursor."""
        span = self.player.span.range
        key = (id(recording), recording.count, span, self.pixels, self.scale, theme().name, more)
        same, self._key = key == self._key, key
        return same

    @property
    def pixels(self) -> int:
        """How many points it is worth drawing."""
        return max(200, int(self.view.width()))

    @property
    def axis_width(self) -> int:
        """The room for values or names beside the plot."""
        width = NARROW_AXIS if self.width() < NARROW * self.scale else AXIS_WIDTH
        return round(width * min(self.scale, 1.45))

    def resizeEvent(self, event: object) -> None:
        self.item.getAxis("left").setWidth(self.axis_width)
        self.draw_again()

    # -- Panel

    def _begin(self) -> None:
        self._key = ()
        super()._begin()

    def draw(self, recording: Any) -> None:
        start, stop = self.player.span.range
        self.draw_plot(recording, start, stop)
        empty = bool(self._said[0])  # then there is no time and no moment to show, and scrubbing costs nothing
        if not empty:
            self._show_span(start, stop)
        for axis in (self.values, self.times):
            self._show_axis(axis, not empty)
        at = self.player.at
        self.plot.show_moment(None if empty else at, at < recording.end)

    def _show_span(self, start: float, stop: float) -> None:
        if self.view.viewRange()[0] != [start, stop]:
            self.view.setXRange(start, stop, padding=0)
        long = stop >= LONG_S
        if long != self._long:
            self._long = long
            self._name_time()

    def _show_axis(self, axis: pg.AxisItem, shown: bool) -> None:
        """The words of an axis, or none where there is nothing that has a value."""
        if axis.style["showValues"] != shown:
            axis.setStyle(showValues=shown)
        if axis.label.isVisible() != shown:
            axis.showLabel(shown)

    def restyle(self) -> None:
        colors = theme()
        self.plot.setBackground(colors.base)
        for name in ("left", "bottom"):
            axis = self.item.getAxis(name)
            axis.setPen(QPen(colors.border, 1))
            axis.setTextPen(colors.muted)
            axis.enableAutoSIPrefix(False)
            axis.setTickFont(self.font_of(12))
            # Ticks have texts, no lines; those of a third level have neither, and are not worth being looked for.
            axis.setStyle(tickTextOffset=round(6 * self.scale), tickLength=0, maxTickLevel=1)
            axis.label.setFont(self.font_of(12))
        self.item.getAxis("left").setWidth(self.axis_width)
        self.item.setContentsMargins(0, round(5 * self.scale), 0, 0)  # the topmost words have half a line more
        self.item.getAxis("bottom").setHeight(round(40 * self.scale))
        self._name_time()
        self.item.showGrid(x=False, y=False)
        self.plot.scale_ = self.scale
        self.plot.forget()
        self.empty.setColor(colors.muted)
        self.empty.setFont(self.font_of(14))

    def _name_time(self) -> None:
        self.name_axis("bottom", tr("minutes:seconds since the start") if self._long else tr("seconds since the start"))

    def name_axis(self, side: str, text: str) -> None:
        """An axis with its unit."""
        style = {"color": theme().muted.name(), "font-size": f"{round(12 * self.scale)}px"}
        self.item.getAxis(side).setLabel(text, **style)

    def pen(self, color: QColor, width: float = 1.6, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
        """A line that does not grow when somebody zooms in, but for the back row."""
        pen = pg.mkPen(color, width=width * self.scale, style=style)
        pen.setCosmetic(True)
        return pen

    # -- the hand

    def _zoomed(self, *_: object) -> None:
        (start, stop), _ = self.view.viewRange()
        self.player.span.zoom(start, stop)

    def _clicked(self, event: Any) -> None:
        if event.double():
            self.player.span.reset()
        elif event.button() == Qt.MouseButton.LeftButton and self.item.sceneBoundingRect().contains(event.scenePos()):
            self.player.seek(float(self.view.mapSceneToView(event.scenePos()).x()))
