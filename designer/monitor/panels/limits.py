"""Each measure of a stage as a share of its limit, which is one line for all (elastic, section 4)."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt

from designer.monitor.player import Player
from designer.monitor.scaled import ScaledPlot
from designer.text import tr
from designer.theme.theme import theme

_MOST = 3.0  # times the limit; beyond that only that it is far too much matters


class LimitsPanel(ScaledPlot):
    """How near every stage is to its limit, and what the scaler did about it."""

    name = "limits"
    title = "Limits"
    order = 62
    what = "Times, queue, buffers and data rate, each as a share of its limit; a stage's second measure is dashed"

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self.limit = pg.InfiniteLine(
            1.0, angle=0, label=tr("limit"), labelOpts={"position": 0.995, "anchors": [(1, 1), (1, 1)]}
        )
        self.limit.setZValue(50)  # its name lies over the lines and marks that cross it
        self.limit.hide()
        self.plot.addItem(self.limit, ignoreBounds=True)
        self.restyle()

    def begin(self) -> None:
        super().begin()
        self.limit.hide()  # until the run turns out to be one that scales

    def restyle(self) -> None:
        super().restyle()
        self.values.write = lambda value: f"{value:.0%}"
        self.name_axis("left", tr("share of the limit"))
        if hasattr(self, "limit"):
            self.limit.setPen(self.pen(theme().error, 1.6, Qt.PenStyle.DashLine))
            self.limit.label.setColor(theme().error)
            self.limit.label.fill = pg.mkBrush(theme().base)
            self.limit.label.setFont(self.font_of(12))

    def lines(self) -> dict[str, list[float]]:
        return self.series.shares

    def values_of(self, stage: str) -> list[float]:
        """A decision is marked on the measure of its stage that is nearest to its limit."""
        return [max(shares) for shares in zip(*(self.lines()[name] for name in self._of(stage)), strict=False)]

    def _of(self, stage: str) -> list[str]:
        return [name for name in self.series.shares if self.series.stage_of(name) == stage]

    def draw_elastic(self, recording: Any, start: float, stop: float) -> None:
        self.limit.show()
        top = self.draw_stages(start, stop, pg.PlotDataItem)
        self.set_top(min(max(top, 1.1), _MOST))
        place = max(self.series.place(self.player.at), 0)
        now = {stage: values[place] for stage, values in self.series.shares.items() if place < len(values)}
        worst = max(now, key=now.__getitem__, default="")
        over = {self.series.stage_of(name) for name, share in now.items() if share > 1}
        limited = {self.series.stage_of(name) for name in now}
        self.headline_of(
            (f"{now.get(worst, 0.0):.0%}", tr("of its limit: {0}", worst)),
            (f"{len(over)}", tr("of {0} stages above their limit", len(limited))),
        )
        self.key_of(*((self.colour_of(stage), self._words(stage)) for stage in self._limited()))

    def _limited(self) -> list[str]:
        """The stages that have a limit."""
        return list(dict.fromkeys(self.series.stage_of(name) for name in self.series.shares))

    def _words(self, stage: str) -> str:
        facts = [self.series.limit(name) for name in self._of(stage)]
        return f"{stage}: " + ", ".join(f"{one['measure']} {one['limit']:,g} {one['unit']}" for one in facts)


PANEL = LimitsPanel
