"""Queue memory over time: all queues together and each on its own, the budget, and where a queue spilled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QComboBox

from designer.monitor.area import Area
from designer.monitor.colours import mixed
from designer.monitor.panel import NORMAL
from designer.monitor.player import Player
from designer.monitor.plot import MARK, TimePlot
from designer.monitor.units import measure_text
from designer.text import tr
from designer.theme.theme import theme
from engine.recording.series import MEASURES, Figures, Memory, figures, memory, shared

SHOWN = 7  # queues with a colour of their own, four for the back row; the others are one
OTHERS = "others"
OTHERS_PALE = 0.5  # of the ground in their colour
NEAR = 3  # times what is drawn: up to there a budget is a line of the picture
NOTE_MARGIN = 8  # pixels above and below the letters of a note
STYLES = ("stacked", "lines", "total")


class MemoryPanel(TimePlot):
    """What the queues hold, from the snapshots in the log."""

    name = "memory"
    title = "Queue memory"
    order = 10
    what = "What all queues hold over time, and each of them"

    def __init__(self, player: Player) -> None:
        self.curves: dict[str, Area] = {}
        self.drawn: Memory | None = None
        self.ranking: list[str] = []
        self.shows_key = True
        self._facts: Figures
        super().__init__(player)
        self.measure = self._choice(MEASURES, (tr("Bytes"), tr("Packs"), tr("Rows")))
        self.style_ = self._choice(STYLES, (tr("Stacked"), tr("Lines"), tr("Total")))
        self.total = pg.PlotCurveItem(antialias=True)
        self.total.setZValue(30)
        self.disk = pg.PlotCurveItem(antialias=True)
        self.disk.setZValue(31)
        self.spilled = pg.ScatterPlotItem(symbol=MARK, pxMode=True)
        self.spilled.setZValue(40)
        self.budget = pg.InfiniteLine(angle=0, label="", labelOpts={"position": 0.02, "anchors": [(0, 1), (0, 1)]})
        self.budget.setZValue(35)
        self.above = pg.TextItem(anchor=(0, 0))  # of a budget that is far above what is drawn
        self.above.setZValue(36)
        for item in (self.total, self.disk, self.spilled, self.budget, self.above):
            self.plot.addItem(item, ignoreBounds=True)
        self._named: list[str] = []
        self.restyle()

    def _choice(self, values: tuple[str, ...], texts: tuple[str, ...]) -> QComboBox:
        box = QComboBox()
        for value, text in zip(values, texts, strict=True):
            box.addItem(text, value)
        box.currentIndexChanged.connect(self._again)
        self.tools.addWidget(box)
        return box

    def _again(self) -> None:
        self.restyle()
        self.draw_again()

    def begin(self) -> None:
        for curve in self.curves.values():
            self.plot.removeItem(curve)
        self.curves = {}
        self._named = []

    def restyle(self) -> None:
        super().restyle()
        if not hasattr(self, "_named"):
            return
        colors = theme()
        measure = self.measure.currentData()
        self.values.step = 1.0
        self.values.write = lambda value: measure_text(measure, value).removesuffix(f" {measure}")
        self.name_axis("left", tr("in all queues") if measure == "bytes" else tr("{0} in all queues", measure))
        self.total.setPen(self.pen(colors.text, 1.8))
        self.disk.setPen(self.pen(colors.error, 1.6, Qt.PenStyle.DotLine))
        self.budget.setPen(self.pen(colors.error, 1.4, Qt.PenStyle.DashLine))
        self.budget.label.setColor(colors.error)
        self.budget.label.setFont(self.font_of(12))
        self.above.setColor(colors.error)
        self.above.setFont(self.font_of(12))
        self.spilled.setBrush(colors.error)
        self.spilled.setPen(pg.mkPen(colors.base, width=1))
        self.spilled.setSize(12 * self.scale)
        self._named = []

    def queue_text(self, queue: str) -> str:
        """A queue as a person knows it: from whom to whom."""
        recording = self.recording
        facts: dict[str, Any] = recording.started.queues.get(queue, {}) if recording and recording.started else {}
        if not facts:
            return tr("other queues") if queue == OTHERS else queue
        return f"{self.label_of(facts['producer'])} → {self.label_of(facts['consumer'])}"

    def draw_plot(self, recording: Any, start: float, stop: float) -> None:
        measure, style = self.measure.currentData(), self.style_.currentData()
        if not self.same(recording, measure, style, tuple(self.ranking), self.least_top, self.view.height()):
            self._draw_curves(recording, start, stop, measure, style)
        self._draw_figures(recording, measure)
        for box in (self.measure, self.style_):  # last: with more or less room all is drawn again
            box.setVisible(len(recording.snapshots) > 0)

    def _draw_curves(self, recording: Any, start: float, stop: float, measure: str, style: str) -> None:
        found = self.drawn = memory(recording, measure, start, stop, self.pixels)
        self.say("" if len(recording.snapshots) else self._why_empty(recording))
        staged = self._staged(recording) if style == "stacked" else set()
        shown = self._chosen(found, staged) if style != "total" else {}
        dense = len(found.times) > self.pixels / 3  # smooth edges of a zigzag cost much and show nothing
        self._draw_queues(found, shown, style, dense)
        self.total.opts["antialias"] = not dense
        self.total.setPen(self.pen(theme().text, 1.0 if dense and self.scale == 1 else 1.8))
        self.total.setData(found.times, found.total)
        top = float(found.total.max()) if len(found.total) else 0.0
        disk = recording.snapshots["disk"][: len(recording.snapshots)]
        spilled = measure == "bytes" and bool(disk.any())
        self.disk.setVisible(spilled)
        if spilled:
            times = recording.snapshots["time"]
            self.disk.setData(times, disk[: len(times)])
        top = self._draw_budget(recording, measure, top)
        self._draw_spills(recording, found)
        self.set_top(max(top, self.least_top) * self._headroom())
        self.above.setPos(start, self.view.viewRange()[1][1])
        self._facts = figures(recording)

    def _why_empty(self, recording: Any) -> str:
        """Why there is nothing to draw."""
        if recording.started.queues:
            return (
                tr("No queue snapshots yet")
                if self.player.live
                else tr("The log of this run has no snapshots of its queues")
            )
        if recording.started.granularity == "fused":
            return tr("No queues in this run: it is fused, Spark itself passes the rows on")
        return tr("No queues in this run: its units hand no packs to each other")

    def _draw_figures(self, recording: Any, measure: str) -> None:
        if not recording.started.queues and not len(recording.snapshots):
            self.headline_of(("–", tr("no queues")))
            return
        at = recording.snapshot_at(self.player.at)
        now = float(recording.snapshots[measure][at]) if at >= 0 else 0.0
        facts = self._facts
        parts = [
            (measure_text(measure, now), tr("now")),
            (measure_text(measure, getattr(facts, f"max_{measure}")), tr("peak")),
            (measure_text(measure, getattr(facts, f"avg_{measure}")), tr("average")),
        ]
        if recording.spills:
            parts.append((str(len(recording.spills)), tr("spills")))
        self.headline_of(*parts)

    def _staged(self, recording: Any) -> set[str]:
        """Queues without a capacity: they lie on disk, and are no part of the memory of queues."""
        return {name for name, facts in recording.started.queues.items() if facts.get("capacity_packs", 1) is None}

    def _chosen(self, found: Memory, without: set[str]) -> dict[str, Any]:
        """The largest queues by their own, the others summed up; in the order of the flow."""
        # Many queues may have been as full as each other: then those come first that were so for longer.
        size = {name: (-values.max(), -values.sum()) for name, values in found.queues.items() if name not in without}
        ranked = sorted(size, key=size.__getitem__)
        if self.ranking:  # that of several runs, so that the same queues have a colour in each
            ranked = [name for name in self.ranking if name in found.queues and name not in without]
        most = SHOWN if self.scale == NORMAL or self.ranking else 4
        kept = set(ranked[:most])
        shown = {name: values for name, values in found.queues.items() if name in kept}
        if len(ranked) > most:
            shown[OTHERS] = np.sum([found.queues[name] for name in ranked[most:]], axis=0)
        return shown

    def _draw_queues(self, found: Memory, shown: dict[str, Any], style: str, dense: bool) -> None:
        below = np.zeros(len(found.times))
        if style == "stacked":
            shown = shared(shown, found.total)
        for curve in self.curves.values():
            curve.setVisible(False)
        for number, (name, values) in enumerate(shown.items()):
            if name not in self.curves:
                self.curves[name] = Area(antialias=True)
                self.plot.addItem(self.curves[name], ignoreBounds=True)
            curve = self.curves[name]
            color = self.queue_colour(name)
            curve.setVisible(True)
            curve.opts["antialias"] = not dense
            if style == "stacked":
                below = below + values
                curve.setPen(None)
                curve.setBrush(color)
                curve.setFillLevel(0.0)
                curve.setZValue(20 - number * 0.1)  # the lower ones lie over what stands above them
                curve.setData(found.times, below)
            else:
                curve.setPen(self.pen(color, 1.8))
                curve.setBrush(None)
                curve.setFillLevel(None)
                curve.setZValue(20)
                curve.setData(found.times, values)
        self._name(shown)

    def _name(self, shown: dict[str, Any]) -> None:
        named = list(shown)
        if named == self._named:
            return
        self._named = named
        if not self.shows_key:
            return
        self.key_of(*((self.queue_colour(name), self.queue_text(name)) for name in named))

    def queue_colour(self, queue: str) -> QColor:
        """A queue's colour; the others are paler than the grey that a node may have."""
        return mixed(theme().faint, OTHERS_PALE) if queue == OTHERS else self.colours.queue(queue)

    def _draw_budget(self, recording: Any, measure: str, top: float) -> float:
        """What all packs may take, or all queues when they are full: a line, or a note where that is far above."""
        limit, text = self._limit(recording) if measure == "bytes" else (None, "")
        near = limit is not None and limit < max(top, self.least_top, 1) * NEAR
        self.budget.setVisible(near)
        self.above.setVisible(limit is not None and not near)
        if limit is None:
            return top
        if not near:
            self.above.setText(tr("{0}, above this picture", text))
            return top
        self.budget.setValue(limit)
        self.budget.label.setFormat(text)
        return max(top, limit)

    def _headroom(self) -> float:
        """How much higher the picture has to be for the note at its top to lie over no curve."""
        if not self.above.isVisible() and not self.least_top:  # neighbours that share the axis leave the same room
            return 1.0
        height, note = max(self.view.height(), 1.0), QFontMetrics(self.font_of(12)).height() + NOTE_MARGIN
        return height / max(height - note, height / 2)

    def _limit(self, recording: Any) -> tuple[int | None, str]:
        if recording.budget_bytes is not None:
            return recording.budget_bytes, tr("budget {0}", measure_text("bytes", recording.budget_bytes))
        if recording.full_bytes is not None:
            return recording.full_bytes, tr("all queues full: {0}", measure_text("bytes", recording.full_bytes))
        return None, ""

    def _draw_spills(self, recording: Any, found: Memory) -> None:
        self.spilled.setVisible(bool(recording.spills))
        times = np.array([spill.time for spill in recording.spills])
        ys = np.interp(times, found.times, found.total) if len(found.times) and len(times) else np.zeros(len(times))
        self.spilled.setData(times, ys)


PANEL = MemoryPanel
