"""Throughput, selectivity and time share of every operator, up to the moment that is shown."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from designer.monitor.colours import mixed
from designer.monitor.panel import Panel
from designer.monitor.player import Player
from designer.monitor.plot import AXIS_WIDTH, NARROW, NARROW_AXIS, lettering
from designer.monitor.units import count_text
from designer.text import tr
from designer.theme.theme import theme
from engine.recording import RunRecording
from engine.recording.series import Share, shares

GAP, BESIDE = 10, 6  # pixels between two columns, and between a bar and its number
FOOT = 26  # pixels for what a column stands for
BAR = 0.62  # of a lane's height
MOST_WORDS = 0.7  # of a column's width for the numbers


@dataclass(frozen=True)
class Column:
    """One measure of all operators: the lengths of the bars, and what is written beside them."""

    title: str
    values: list[float]
    texts: list[str]


def columns_of(found: list[Share]) -> list[Column]:
    """The three measures of these operators."""
    return [
        Column(
            tr("rows a second"),
            [share.rows_per_second for share in found],
            [count_text(share.rows_per_second) for share in found],
        ),
        Column(
            tr("selectivity"),
            [share.selectivity if share.selectivity is not None else 0.0 for share in found],
            ["–" if share.selectivity is None else f"{share.selectivity:.3g}" for share in found],
        ),
        Column(
            tr("share of the time"),
            [share.time_share for share in found],
            [f"{share.time_share * 100:.1f} %" for share in found],
        ),
    ]


class Chart(QWidget):
    """A lane for each operator: its name, and a bar with its number in each column."""

    def __init__(self, panel: OperatorsPanel) -> None:
        super().__init__()  # painted by hand, because all of it changes with every step of the timeline
        self.panel = panel
        self.found: list[Share] = []
        self.columns = columns_of([])
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._cut: dict[str, str] = {}  # names as far as there is room for them

    def show_shares(self, found: list[Share]) -> None:
        """Other figures."""
        self.found, self.columns = found, columns_of(found)
        self.update()

    def forget(self) -> None:
        """Other fonts, another size or another run."""
        self._cut.clear()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.forget()

    # -- where things stand

    @property
    def names_width(self) -> int:
        """The room for the operators' names."""
        width = NARROW_AXIS if self.width() < NARROW * self.panel.scale else AXIS_WIDTH
        return round(width * min(self.panel.scale, 1.45))

    @property
    def lane_height(self) -> float:
        """How much each operator has."""
        return (self.height() - self._top - round(FOOT * self.panel.scale)) / max(len(self.found), 1)

    @property
    def _top(self) -> int:
        return round(5 * self.panel.scale)

    def lettering(self) -> tuple[QFont, int]:
        """The letters of names and numbers, and every how many lanes have them."""
        size, every = lettering(self.lane_height, self.panel.scale)
        return self.panel.font_of(size), every

    def column_frame(self, number: int) -> QRectF:
        """Where a column's bars stand."""
        room = (self.width() - self.names_width - GAP) / len(self.columns)
        height = self.lane_height * max(len(self.found), 1)
        return QRectF(self.names_width + number * room, self._top, room - GAP, height)

    def bars(self, number: int) -> list[QRectF]:
        """A column's bars, as they are painted; the longest leaves room for the numbers."""
        column, frame = self.columns[number], self.column_frame(number)
        metrics = QFontMetrics(self.lettering()[0])
        words = max((metrics.horizontalAdvance(text) for text in column.texts), default=0) + 2 * BESIDE
        longest = frame.width() - min(words, frame.width() * MOST_WORDS)
        part = longest / (max(column.values, default=0.0) or 1.0)
        lane, tall = self.lane_height, self.lane_height * BAR
        return [
            QRectF(frame.left(), frame.top() + lane * (place + 0.5) - tall / 2, value * part, tall)
            for place, value in enumerate(column.values)
        ]

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        colors = theme()
        painter.fillRect(self.rect(), colors.base)
        if not self.found:
            return
        font, every = self.lettering()
        metrics = QFontMetrics(font)
        fills = [mixed(self.panel.colours.unit(share.unit), 0.12) for share in self.found]
        down = (metrics.ascent() - metrics.descent()) / 2  # from the middle of a lane to its letters' line
        painter.setFont(font)
        self._paint_names(painter, metrics, every, down)
        for number, column in enumerate(self.columns):
            frame = self.column_frame(number)
            painter.setPen(QPen(colors.border, 1))
            painter.drawLine(frame.topLeft(), frame.bottomLeft())
            painter.setPen(colors.text)
            for bar, fill, text in zip(self.bars(number), fills, column.texts, strict=True):
                painter.fillRect(bar, fill)
                if every == 1:
                    painter.drawText(QPointF(bar.right() + BESIDE, bar.center().y() + down), text)
        painter.setFont(self.panel.font_of(12))
        painter.setPen(colors.muted)
        foot = round(FOOT * self.panel.scale)
        for number, column in enumerate(self.columns):
            frame = self.column_frame(number)
            below = QRectF(frame.left(), self.height() - foot, frame.width(), foot)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignCenter), column.title)

    def _paint_names(self, painter: QPainter, metrics: QFontMetrics, every: int, down: float) -> None:
        painter.setPen(theme().muted)
        right = self.names_width - round(6 * self.panel.scale)
        for place in range(0, len(self.found), every):
            name = self.panel.label_of(self.found[place].unit)
            cut = self._cut.get(name)
            if cut is None:
                room = right - round(8 * self.panel.scale)
                cut = self._cut[name] = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)
            middle = self._top + self.lane_height * (place + 0.5)
            painter.drawText(QPointF(right - metrics.horizontalAdvance(cut), middle + down), cut)


class OperatorsPanel(Panel):
    """Three bars for each operator, side by side on shared lanes."""

    name = "operators"
    title = "Operators"
    order = 40
    what = "How fast each operator works, how much it lets through, and its part of all the work"

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self.chart = Chart(self)
        self.body.addWidget(self.chart, 1)

    def begin(self) -> None:
        self.chart.show_shares([])
        self.chart.forget()

    def restyle(self) -> None:
        self.chart.forget()

    def draw(self, recording: RunRecording) -> None:
        found = shares(recording, self.player.at)
        self.chart.show_shares(found)
        if found:
            most = max(found, key=lambda share: share.time_share)
            self.headline_of((self.label_of(most.unit), tr("takes {0} % of the time", f"{most.time_share * 100:.0f}")))


PANEL = OperatorsPanel
