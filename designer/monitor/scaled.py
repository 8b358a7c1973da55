"""What the two panels of an elastic run share: lines for each stage, and decisions as markers on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainterPath

from designer.monitor.colours import colour
from designer.monitor.player import Player
from designer.monitor.plot import TimePlot
from designer.text import tr
from designer.theme.theme import theme
from engine.events import ScalingDecided
from engine.recording.elastic import ElasticSeries

UP, DOWN, CROSS = QPainterPath(), QPainterPath(), QPainterPath()
UP.addPolygon([QPointF(-0.5, 0.45), QPointF(0.5, 0.45), QPointF(0.0, -0.5)])
UP.closeSubpath()
DOWN.addPolygon([QPointF(-0.5, -0.45), QPointF(0.5, -0.45), QPointF(0.0, 0.5)])
DOWN.closeSubpath()
CROSS.addRoundedRect(QRectF(-0.18, -0.55, 0.36, 0.7), 0.1, 0.1)  # an exclamation mark
CROSS.addEllipse(QPointF(0.0, 0.4), 0.18, 0.18)
SIGNS = {"scale out": UP, "scale in": DOWN, "unreachable": CROSS}
MARK_PIXELS = 13


class ScaledPlot(TimePlot):
    """Stages over time."""

    def __init__(self, player: Player) -> None:
        self.series = ElasticSeries()
        self.curves: dict[str, pg.PlotDataItem] = {}
        super().__init__(player)
        self.marks = pg.ScatterPlotItem(pxMode=True, hoverable=True, tip=None)
        self.marks.setZValue(40)
        self.marks.sigHovered.connect(self._hovered)
        self.plot.addItem(self.marks, ignoreBounds=True)

    # -- for the panels themselves

    def lines(self) -> dict[str, list[float]]:
        """What is drawn, sample by sample: a line for each stage or other measure."""
        raise NotImplementedError

    def values_of(self, stage: str) -> list[float]:
        """Where the decisions on a stage are marked, sample by sample."""
        return self.lines().get(stage, [])

    def draw_stages(self, start: float, stop: float, draw: Any) -> float:
        """Draw every line and the decisions on them; returns how high they go."""
        top = 0.0
        times = np.array(self.series.times)
        seen = (times >= start) & (times <= stop)
        for number, (name, found) in enumerate(self.lines().items()):
            values = np.array(found) + self.aside(number)
            if len(values) != len(times):
                continue
            curve = self.curves.get(name)
            if curve is None:
                curve = self.curves[name] = draw()
                self.plot.addItem(curve, ignoreBounds=True)
            stage = self.series.stage_of(name)
            style = Qt.PenStyle.SolidLine if name == stage else Qt.PenStyle.DashLine
            curve.setPen(self.pen(self.colour_of(name), 2.2, style))
            curve.setData(times, values)
            if seen.any():
                top = max(top, float(values[seen].max()))
        self._mark()
        return top

    def aside(self, number: int) -> float:
        """How far a stage's line is moved so that equal ones do not hide each other."""
        return 0.0

    def colour_of(self, name: str) -> QColor:
        """The colour of a stage, or of the one that another measure is of."""
        return colour(list(self.series.nodes).index(self.series.stage_of(name)))

    # -- Panel

    def begin(self) -> None:
        for curve in self.curves.values():
            self.plot.removeItem(curve)
        self.curves = {}
        self.series = ElasticSeries()
        self.marks.setData([])

    def draw_plot(self, recording: Any, start: float, stop: float) -> None:
        self.series.read(recording)
        if not self.series.times:
            self.say(tr("This run does not scale; `papilio scale` runs do"))
            self.headline_of(("–", tr("no stages")))
            return
        self.say("")
        self.draw_elastic(recording, start, stop)

    def draw_elastic(self, recording: Any, start: float, stop: float) -> None:
        """Draw a span of an elastic run."""
        raise NotImplementedError

    def _mark(self) -> None:
        spots = []
        for at, decision in self.series.decisions:
            values = self.values_of(decision.stage)
            place = self.series.place(at)
            if not 0 <= place < len(values):
                continue
            color = theme().error if decision.action == "unreachable" else self.colour_of(decision.stage)
            spots.append(
                {
                    "pos": (at, values[place] + self.aside(list(self.series.nodes).index(decision.stage))),
                    "symbol": SIGNS.get(decision.action, CROSS),
                    "size": MARK_PIXELS * self.scale,
                    "brush": color,
                    "pen": self.pen(theme().base, 1.2),
                    "data": decision,
                }
            )
        self.marks.setData(spots)

    def _hovered(self, _: object, points: Any, __: object) -> None:
        self.plot.setToolTip(decision_text(points[0].data()) if len(points) else self.what)


def decision_text(decision: ScalingDecided) -> str:
    """A decision in words."""
    after = decision.nodes + {"scale out": 1, "scale in": -1}.get(decision.action, 0) * decision.number
    step = f"{decision.nodes} → {after}" if after != decision.nodes else f"{decision.nodes}"
    return f"{decision.stage}: {decision.action} ({step})\n{decision.reason}"
