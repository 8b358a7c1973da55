"""How long the runs of a workflow took, over time: a small plot in the panel of runs."""

from __future__ import annotations

import pyqtgraph as pg

from designer.text import tr
from designer.theme.theme import theme, themes
from engine.store import RunRecord

KEY_TOP, MARK = 4, 8  # pixels above the key, and of a mark


class Trend(pg.PlotWidget):
    """The seconds of a workflow's runs, in the order they were begun; a mark for each, by policy."""

    SYMBOLS = ("o", "s", "t", "d", "star", "+")

    def __init__(self) -> None:
        super().__init__()
        self.setMinimumWidth(220)
        self.setMenuEnabled(False)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.runs: list[RunRecord] = []
        self._name = ""
        self.getViewBox().sigResized.connect(self._fit)
        themes().changed.connect(self._draw)
        self._draw()

    def show_runs(self, name: str, runs: list[RunRecord]) -> None:
        """Show the runs of a workflow that came to an end."""
        self._name = name
        ended = [run for run in runs if run.seconds is not None and run.status in ("done", "simulated")]
        self.runs = sorted(ended, key=lambda run: run.started)
        self._draw()

    def _draw(self) -> None:
        colors = theme()
        item = self.getPlotItem()
        item.clear()
        self.setBackground(colors.base)
        for side in ("left", "bottom"):
            axis = item.getAxis(side)
            axis.setPen(pg.mkPen(colors.border))
            axis.setTextPen(pg.mkPen(colors.muted))
            axis.enableAutoSIPrefix(False)
        item.setLabel("left", tr("seconds"), color=colors.muted.name())
        item.setLabel("bottom", tr("run, oldest first"), color=colors.muted.name())
        item.setTitle(self._name or None, color=colors.text.name(), size="9pt")
        if item.legend is None:
            item.addLegend(offset=(-4, KEY_TOP), labelTextSize="8pt")
        item.legend.setLabelTextColor(colors.muted)
        item.legend.clear()
        item.getAxis("bottom").setTickSpacing(max(1, len(self.runs) // 8), 1)
        kinds: dict[str, list[int]] = {}
        for at, run in enumerate(self.runs):
            simulated = tr("simulated") if run.status == "simulated" else run.granularity
            kinds.setdefault(f"{run.policy}, {simulated}", []).append(at)
        item.legend.setColumnCount(2 if len(kinds) > 1 else 1)
        for number, (kind, places) in enumerate(sorted(kinds.items())):
            color = colors.region(number)
            seconds = [self.runs[at].seconds or 0.0 for at in places]
            item.plot(
                [at + 1 for at in places],
                seconds,
                pen=pg.mkPen(color, width=1.5),
                symbol=self.SYMBOLS[number % len(self.SYMBOLS)],
                symbolBrush=color,
                symbolPen=None,
                symbolSize=MARK,
                name=kind,
            )
        self._fit()

    def _fit(self) -> None:
        """Room for all marks below the key: none stands behind it."""
        top = max((run.seconds or 0.0 for run in self.runs), default=1.0) or 1.0
        item = self.getPlotItem()
        if item.legend is None:  # Qt resizes it while it is made
            return
        taken = KEY_TOP + item.legend.boundingRect().height() + MARK
        key = min(taken / max(item.getViewBox().height(), 1), 0.75)
        item.setYRange(0, top * 1.05 / (1 - key), padding=0)
        item.setXRange(0.5, max(2, len(self.runs)) + 0.5, padding=0)
