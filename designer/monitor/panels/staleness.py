"""Staleness of every table and view over time, with its bound (streaming warehouse, section 2.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import Qt

from designer.monitor.player import Player
from designer.monitor.plot import TimePlot
from designer.monitor.units import seconds_text
from designer.text import tr
from engine.recording.series import staleness

NAMED = 12  # tables that are told by name


def _tick(value: float) -> str:
    """A staleness on the axis: whole seconds without their fraction."""
    return seconds_text(value).replace(".00 s", " s").replace(".0 s", " s").removesuffix(".0")


class StalenessPanel(TimePlot):
    """How far each table lags behind: it grows with time and falls when the table is refreshed."""

    name = "staleness"
    title = "Staleness"
    order = 30
    what = "How far every table lags behind its sources, and the bound it should keep"

    def __init__(self, player: Player) -> None:
        self.curves: dict[str, pg.PlotCurveItem] = {}
        self.lines: dict[str, pg.InfiniteLine] = {}
        self.drawn: dict[str, tuple[Any, Any]] = {}
        super().__init__(player)

    def begin(self) -> None:
        for item in (*self.curves.values(), *self.lines.values()):
            self.plot.removeItem(item)
        self.curves, self.lines = {}, {}

    def restyle(self) -> None:
        super().restyle()
        self.values.write = _tick
        self.name_axis("left", tr("staleness"))

    def draw_plot(self, recording: Any, start: float, stop: float) -> None:
        if not self.same(recording):
            self._draw_curves(recording, start, stop)
        if not self.drawn:
            self.headline_of(("–", tr("staleness")))
            return
        at, now = self.player.at, {}
        for table, (times, values) in self.drawn.items():
            place = int(np.searchsorted(times, at, side="right"))
            now[table] = float(values[place - 1] + at - times[place - 1]) if place else 0.0
        worst = max(now, key=now.__getitem__)
        parts = [(seconds_text(now[worst]), tr("the stalest now: {0}", self._title(recording, worst)))]
        if recording.bounds:
            late = sum(now.get(table, 0.0) > bound for table, bound in recording.bounds.items())
            parts.append((f"{late}", tr("of {0} beyond their bound", len(recording.bounds))))
        self.headline_of(*parts)

    def _draw_curves(self, recording: Any, start: float, stop: float) -> None:
        found = self.drawn = staleness(recording, recording.end)
        if not found:
            self.say(tr("Known of streaming warehouses, and of targets that an earlier run has loaded"))
            return
        self.say("")
        top = 0.0
        entries = []
        for table, (times, values) in found.items():
            color = self.colours.unit(table)
            curve = self.curves.get(table)
            if curve is None:
                curve = self.curves[table] = pg.PlotCurveItem(antialias=True)
                self.plot.addItem(curve, ignoreBounds=True)
            curve.setPen(self.pen(color, 1.8))
            curve.setData(times, values)
            seen = values[(times >= start) & (times <= stop)]
            top = max(top, float(seen.max()) if len(seen) else 0.0)
            bound = recording.bounds.get(table)
            if bound is not None:
                self._draw_bound(table, color, bound)
                top = max(top, min(bound, 2 * top or bound))
            entries.append((color, self._title(recording, table)))
        self.set_top(top)
        self.key_of(*entries[:NAMED])

    def _title(self, recording: Any, table: str) -> str:
        return str(recording.started.nodes.get(table, {}).get("title") or table)

    def _draw_bound(self, table: str, color: Any, bound: float) -> None:
        line = self.lines.get(table)
        if line is None:
            line = self.lines[table] = pg.InfiniteLine(angle=0)
            self.plot.addItem(line, ignoreBounds=True)
        line.setPen(self.pen(color, 1.2, Qt.PenStyle.DashLine))
        line.setValue(bound)


PANEL = StalenessPanel
