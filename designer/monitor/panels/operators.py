"""Throughput, selectivity and time share of every operator, up to the moment that is shown."""

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetrics, QPen

from designer.monitor.colours import mixed
from designer.monitor.panel import Panel
from designer.monitor.player import Player
from designer.monitor.plot import AXIS_WIDTH, NARROW, NARROW_AXIS, ValueAxis, lettering
from designer.monitor.units import count_text
from designer.text import tr
from designer.theme.theme import theme
from engine.recording import RunRecording
from engine.recording.series import Share, shares


class OperatorsPanel(Panel):
    """Three bars for each operator, side by side on shared lanes."""

    name = "operators"
    title = "Operators"
    order = 40
    what = "How fast each operator works, how much it lets through, and its part of all the work"

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self.drawn: list[Share] = []
        self._names: list[tuple[int, str]] = []
        self.layout_ = pg.GraphicsLayoutWidget()
        self.layout_.setFrameShape(self.layout_.Shape.NoFrame)
        self.plots: list[pg.PlotItem] = []
        self.bars: list[pg.BarGraphItem] = []
        self.notes: list[list[pg.TextItem]] = [[], [], []]
        for number in range(3):
            axes = {"bottom": ValueAxis("bottom"), "left": ValueAxis("left")}
            plot = self.layout_.addPlot(row=0, col=number, axisItems=axes)
            plot.hideButtons()
            plot.setMenuEnabled(False)
            plot.setMouseEnabled(x=False, y=False)
            plot.getViewBox().invertY(True)
            bars = pg.BarGraphItem(x0=[], y=[], width=[], height=0.6)
            plot.addItem(bars)
            self.plots.append(plot)
            self.bars.append(bars)
        self.body.addWidget(self.layout_, 1)
        self.restyle()

    def restyle(self) -> None:
        colors = theme()
        self.layout_.setBackground(colors.base)
        titles = (tr("rows a second"), tr("selectivity"), tr("share of the time"))
        for number, (plot, title) in enumerate(zip(self.plots, titles, strict=True)):
            for side in ("left", "bottom"):
                axis = plot.getAxis(side)
                axis.setPen(QPen(colors.border, 1))
                axis.setTextPen(colors.muted)
                axis.enableAutoSIPrefix(False)
                axis.setTickFont(self.font_of(12))
                axis.setStyle(tickLength=0, tickTextOffset=round(6 * self.scale))
            style = {"color": colors.muted.name(), "font-size": f"{round(12 * self.scale)}px"}
            plot.setLabel("bottom", title, **style)
            plot.getAxis("left").setWidth(self.axis_width if number == 0 else 10)
            plot.getAxis("bottom").setHeight(round(26 * self.scale))
            plot.getAxis("bottom").setTicks([[]])  # each bar has its number beside it
            if number:
                plot.getAxis("left").setTicks([[]])
        self._names = []

    @property
    def axis_width(self) -> int:
        """The room for the operators' names."""
        width = NARROW_AXIS if self.width() < NARROW * self.scale else AXIS_WIDTH
        return round(width * min(self.scale, 1.45))

    def resizeEvent(self, event: object) -> None:
        self.plots[0].getAxis("left").setWidth(self.axis_width)
        self.draw_again()

    def draw(self, recording: RunRecording) -> None:
        found = self.drawn = shares(recording, self.player.at)
        colors = [mixed(self.colours.unit(share.unit), 0.12) for share in found]
        values = (
            [share.rows_per_second for share in found],
            [share.selectivity if share.selectivity is not None else 0.0 for share in found],
            [share.time_share for share in found],
        )
        texts = (
            [count_text(share.rows_per_second) for share in found],
            ["–" if share.selectivity is None else f"{share.selectivity:.3g}" for share in found],
            [f"{share.time_share * 100:.1f} %" for share in found],
        )
        lanes = list(range(len(found)))
        size, every = lettering(self.plots[0].getViewBox().height() / max(len(found), 1), self.scale)
        font = self.font_of(size)
        metrics = QFontMetrics(font)
        room = self.axis_width - round(14 * self.scale)
        names = [
            (lane, metrics.elidedText(self.label_of(share.unit), Qt.TextElideMode.ElideRight, room))
            for lane, share in enumerate(found)
            if lane % every == 0
        ]
        for number, (plot, bars) in enumerate(zip(self.plots, self.bars, strict=True)):
            bars.setOpts(x0=[0] * len(found), y=lanes, width=values[number], height=0.62, brushes=colors, pens=colors)
            if number == 0 and names != self._names:
                self._names = names
                plot.getAxis("left").setTickFont(font)
                plot.getAxis("left").setTicks([names])
            top = max(values[number], default=0.0) or 1.0
            widest = max((metrics.horizontalAdvance(text) for text in texts[number]), default=0) + 12
            beside = min(widest / max(plot.getViewBox().width(), 1), 0.7)  # the part of the plot that numbers take
            plot.setXRange(0, top / (1 - beside), padding=0)
            plot.setYRange(-0.6, max(len(found), 1) - 0.4, padding=0)
            self._write(number, values[number], texts[number], font, every == 1)
        if found:
            most = max(found, key=lambda share: share.time_share)
            self.headline_of((self.label_of(most.unit), tr("takes {0} % of the time", f"{most.time_share * 100:.0f}")))

    def _write(self, number: int, values: list[float], texts: list[str], font: QFont, fits: bool) -> None:
        """The number beside each bar, where the lanes are high enough."""
        notes, plot = self.notes[number], self.plots[number]
        shown = len(values) if fits else 0
        while len(notes) < shown:
            note = pg.TextItem(anchor=(0, 0.5))
            plot.addItem(note, ignoreBounds=True)
            notes.append(note)
        color = theme().text
        for lane, note in enumerate(notes):
            note.setVisible(lane < shown)
            if lane < shown:
                if (note.toPlainText(), note.textItem.font(), note.color) != (texts[lane], font, color):
                    note.setFont(font)
                    note.setText(texts[lane], color=color)
                note.setPos(values[lane], lane)


PANEL = OperatorsPanel
