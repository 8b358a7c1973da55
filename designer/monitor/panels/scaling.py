"""Nodes of each stage over time, with the scaler's decisions as markers (elastic, figures 10 and 11)."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg

from designer.monitor.scaled import ScaledPlot
from designer.monitor.units import count_text
from designer.text import tr


class ScalingPanel(ScaledPlot):
    """How many nodes every stage has: ▲ one more, ▼ one less, ! the limit is out of reach."""

    name = "scaling"
    title = "Scaling"
    order = 60
    what = "Nodes of every stage of an elastic run; hover a marker for the decision and its reason"

    def restyle(self) -> None:
        super().restyle()
        self.values.write = lambda value: f"{value:,.0f}" if value == round(value) else ""
        self.name_axis("left", tr("nodes"))

    def lines(self) -> dict[str, list[float]]:
        return self.series.nodes

    def aside(self, number: int) -> float:
        most = max((max(values, default=0.0) for values in self.series.nodes.values()), default=0.0)
        return (number - len(self.series.nodes) // 2) * 0.012 * max(most, 1.0)

    def draw_elastic(self, recording: Any, start: float, stop: float) -> None:
        top = self.draw_stages(start, stop, lambda: pg.PlotDataItem(stepMode="right"))
        self.set_top(max(top, 1.0) * 1.15)
        place = max(self.series.place(self.player.at), 0)
        at_work = sum(values[place] for values in self.series.nodes.values() if place < len(values))
        self.headline_of(
            (f"{at_work:,.0f}", tr("nodes at work")),
            (f"{self.series.ready[place]:,.0f}", tr("ready")),
            (f"{count_text(self.series.rates[place])}", tr("rows/s come in")),
        )
        self.key_of(
            *(
                (self.colour_of(stage), f"{stage} {values[place]:,.0f}")
                for stage, values in self.series.nodes.items()
                if place < len(values)
            )
        )


PANEL = ScalingPanel
