"""Parallelism: how many units run at a time, against the cores there are, and the Spark jobs behind them."""

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
from engine.recording.series import activity

_LOCAL = re.compile(r"local\[(\d+)")


def cores_of(recording: Any) -> int | None:
    """The cores of a run: from its settings, or from its master."""
    if recording.cores:
        return int(recording.cores)
    found = _LOCAL.match(recording.started.master or "")
    return int(found[1]) if found else None


class ParallelismPanel(TimePlot):
    """Units running, cores, Spark jobs and their tasks."""

    name = "parallelism"
    title = "Parallelism"
    order = 50
    what = "How many units run at the same time, and the Spark jobs of the run"

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self.running = pg.PlotCurveItem([0, 1], [0], stepMode="center", fillLevel=0.0)
        self.tasks = pg.PlotCurveItem([0, 1], [0], stepMode="center")
        self.cores = pg.InfiniteLine(angle=0, label="", labelOpts={"position": 0.02, "anchors": [(0, 1), (0, 1)]})
        for item in (self.running, self.tasks, self.cores):
            self.plot.addItem(item, ignoreBounds=True)
        self.restyle()

    def restyle(self) -> None:
        super().restyle()
        if not hasattr(self, "cores"):
            return
        colors = theme()
        self.name_axis("left", tr("units running"))
        self.running.setPen(self.pen(colors.left, 1.2))
        self.running.setBrush(clear(colors.left, 120))
        self.tasks.setPen(self.pen(colors.body, 1.6))
        self.cores.setPen(self.pen(colors.muted, 1.2, Qt.PenStyle.DashLine))
        self.cores.label.setColor(colors.muted)
        self.cores.label.setFont(self.font_of(12))

    def draw_plot(self, recording: Any, start: float, stop: float) -> None:
        if not self.same(recording):
            self._draw_curves(recording, start, stop)
        state = recording.state(self.player.at)
        now = sum(unit.state is State.RUNNING for unit in state.units.values())
        whole = sum(lane.last("active") for lane in recording.lanes) / max(recording.end, 1e-9)
        parts = [(str(now), tr("units running now")), (f"{whole:.2f}", tr("on average"))]
        if recording.jobs:
            stages = sum(len(job.stages) for job in recording.jobs.values())
            parts.append((f"{len(recording.jobs)}", tr("Spark jobs, {0} stages", stages)))
        self.headline_of(*parts)

    def _draw_curves(self, recording: Any, start: float, stop: float) -> None:
        edges = np.linspace(start, stop, min(self.pixels, 600) + 1)
        units = activity(recording, edges).sum(axis=0)
        self.running.setData(edges, units)
        jobs = self._jobs(recording, edges)
        self.tasks.setVisible(jobs is not None)
        if jobs is not None:
            self.tasks.setData(edges, jobs)
        cores = cores_of(recording)
        self.cores.setVisible(cores is not None)
        top = max(float(units.max(initial=0.0)), float(jobs.max(initial=0.0)) if jobs is not None else 0.0, 1.0)
        if cores is not None:
            self.cores.setValue(cores)
            self.cores.label.setFormat(tr("{0} cores", cores))
            top = max(top, cores)
        self.set_top(top * 1.12)
        self.values.setTickSpacing(*((1, 1) if top <= 12 else (None, None)))
        colors = theme()
        entries = [(colors.left, tr("units running"))]
        if jobs is not None:
            entries.append((colors.body, tr("Spark jobs running")))
        self.key_of(*entries)

    def _jobs(self, recording: Any, edges: Any) -> Any:
        """How many Spark jobs ran in each span, on average; None where the log has none."""
        begun = [
            (job.started - recording.begin, (job.ended or recording.begin + recording.end) - recording.begin)
            for job in list(recording.jobs.values())
            if job.started
        ]
        if not begun:
            return None
        grown = np.zeros(len(edges))
        for start, end in begun:
            grown += np.clip(edges, start, max(start, end)) - start
        return np.diff(grown) / np.maximum(np.diff(edges), 1e-12)


PANEL = ParallelismPanel
