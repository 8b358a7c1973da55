"""Parallelism: how many units run at a time, and how many cores Spark's tasks keep busy, against those there are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from designer.monitor.colours import clear
from designer.monitor.player import Player
from designer.monitor.plot import TimePlot
from designer.text import tr
from designer.theme.theme import theme
from engine.recording import State
from engine.recording.jobs import JobSeries
from engine.recording.series import activity

_LOCAL = re.compile(r"local\[(\d+)")
LATE_S = 1.0  # over which the cores that are busy now are taken


def cores_of(recording: Any) -> int | None:
    """The cores of a run: as Spark or its settings say, else from its master."""
    if recording.cores:
        return int(recording.cores)
    found = _LOCAL.match(recording.started.master or "")
    return int(found[1]) if found else None


class ParallelismPanel(TimePlot):
    """Units running, cores busy, cores there are."""

    name = "parallelism"
    title = "Parallelism"
    order = 50
    what = "How many units run at the same time, and how many cores the tasks of Spark keep busy"

    def __init__(self, player: Player) -> None:
        self.series = JobSeries()
        super().__init__(player)
        self.running = pg.PlotCurveItem([0, 1], [0], stepMode="center", fillLevel=0.0)
        self.busy = pg.PlotCurveItem([0, 1], [0], stepMode="center")
        self.cores = pg.InfiniteLine(angle=0, label="", labelOpts={"position": 0.02, "anchors": [(0, 1), (0, 1)]})
        for item in (self.running, self.busy, self.cores):
            self.plot.addItem(item, ignoreBounds=True)
        self.restyle()

    def begin(self) -> None:
        self.series = JobSeries()

    def restyle(self) -> None:
        super().restyle()
        if not hasattr(self, "cores"):
            return
        colors = theme()
        self.name_axis("left", tr("units, cores"))
        self.running.setPen(self.pen(colors.left, 1.2))
        self.running.setBrush(clear(colors.left, 120))
        self.busy.setPen(self.pen(colors.body, 1.8))
        self.cores.setPen(self.pen(colors.muted, 1.2, Qt.PenStyle.DashLine))
        self.cores.label.setColor(colors.muted)
        self.cores.label.setFont(self.font_of(12))

    def draw_plot(self, recording: Any, start: float, stop: float) -> None:
        self.series.read(recording)
        if not self.same(recording):
            self._draw_curves(recording, start, stop)
        at = self.player.at
        state = recording.state(at)
        now = sum(unit.state is State.RUNNING for unit in state.units.values())
        whole = sum(lane.last("active") for lane in recording.lanes) / max(recording.end, 1e-9)
        parts = [(str(now), tr("units running now")), (f"{whole:.2f}", tr("on average"))]
        busy = self.series.busy(np.array([max(0.0, at - LATE_S), max(at, 1e-3)]), recording.end)
        if busy is not None:
            cores = cores_of(recording)
            of = tr("of {0} cores busy", cores) if cores is not None else tr("cores busy")
            parts.append((f"{float(busy[0]):.1f}", of))
        if recording.jobs:
            stages = sum(len(job.stages) for job in recording.jobs.values())
            parts.append((f"{len(recording.jobs)}", tr("Spark jobs, {0} stages", stages)))
        self.headline_of(*parts)

    def _draw_curves(self, recording: Any, start: float, stop: float) -> None:
        edges = np.linspace(start, stop, min(self.pixels, 600) + 1)
        units = activity(recording, edges).sum(axis=0)
        self.running.setData(edges, units)
        busy = self.series.busy(edges, recording.end)
        self.busy.setVisible(busy is not None)
        top = max(float(units.max(initial=0.0)), 1.0)
        if busy is not None:
            self.busy.setData(edges, busy)
            top = max(top, float(busy.max(initial=0.0)))
        cores = cores_of(recording)
        self.cores.setVisible(cores is not None)
        if cores is not None:
            self.cores.setValue(cores)
            self.cores.label.setFormat(tr("{0} cores", cores))
            top = max(top, cores)
        self.set_top(top * 1.12)
        self.values.setTickSpacing(*((1, 1) if top <= 12 else (None, None)))
        colors = theme()
        entries = [(colors.left, tr("units running"))]
        if busy is not None:
            entries.append((colors.body, tr("cores busy with tasks of Spark")))
        self.key_of(*entries)


PANEL = ParallelismPanel
