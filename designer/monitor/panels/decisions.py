"""The decision log: which unit was picked, when, and why; a click goes to that moment."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QSplitter,
    QTableView,
    QWidget,
)

from designer.monitor.colours import clear
from designer.monitor.panel import Panel
from designer.monitor.player import Player
from designer.monitor.units import count_text
from designer.text import tr
from designer.theme.theme import theme
from designer.widgets import FittedColumns, head_width, set_head_font
from engine.recording import Decision, RunRecording

WHY = {
    "rr": "It is its turn: the next one in the order of the operators that has something to do",
    "mc": "The most rows wait for it: the fewest switches (minimum cost)",
    "mm": "It frees the most memory for each second it needs (minimum memory)",
}

SCORE = {
    "rr": "Score: how soon it is its turn",
    "mc": "Score: rows that wait for it",
    "mm": "Score: MemB, rows freed a second × rows that wait; none above 0: the rows that wait",
}

TIME, TURN, UNIT, STEP, CANDIDATES = range(5)  # columns of the table
CELL_MARGIN, ICON = 16, 18  # pixels beside a cell's words, and of the colour before a unit's name
UNIT_WIDTH, STEP_WIDTH = 130, 92  # pixels of a unit's name before other columns go, and of a step

BOLD, PLAIN = QFont.Weight.DemiBold, QFont.Weight.Normal
Index = QModelIndex | QPersistentModelIndex


def heads() -> tuple[str, ...]:
    """The heads of the table's columns."""
    return tr("Time (s)"), tr("Turn"), tr("Unit"), tr("Step"), tr("Candidates")


class Decisions(QAbstractTableModel):
    """All decisions; only those in sight are read from the log."""

    def __init__(self, panel: DecisionsPanel) -> None:
        super().__init__(panel)
        self.panel = panel
        self.recording: RunRecording | None = None
        self.count = 0
        self.read = lru_cache(maxsize=2048)(self._read)

    def _read(self, number: int) -> Decision:
        assert self.recording is not None
        return self.recording.decision(number)

    def show_recording(self, recording: RunRecording | None) -> None:
        """Take over the decisions that were added, or those of another run."""
        count = len(recording.decisions) if recording else 0
        if recording is not self.recording:
            self.beginResetModel()
            self.recording, self.count = recording, count
            self.read.cache_clear()
            self.endResetModel()
        elif count > self.count:
            self.beginInsertRows(QModelIndex(), self.count, count - 1)
            self.count = count
            self.endInsertRows()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else self.count

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return CANDIDATES + 1

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DisplayRole and orientation == Qt.Orientation.Horizontal:
            return heads()[section]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        return self.text(index.row(), index.column()) if role == Qt.ItemDataRole.DisplayRole else None

    def text(self, row: int, column: int) -> str:
        """What a cell tells."""
        one = self.read(row)
        if column == TIME:
            return f"{one.time:.3f}"
        if column == TURN:
            return f"{one.activation:,}"
        if column == UNIT:
            return self.panel.label_of(one.unit)
        if column == STEP:
            return f"{one.step} {count_text(one.packs)}" if 0 < one.packs < 1 << 20 else one.step
        return str(len(one.candidates))


class Log(QTableView):
    """The table, painted by hand: every cell changes with every step, and the style sheet's own way takes long."""

    def __init__(self, panel: DecisionsPanel) -> None:
        super().__init__()
        self.panel = panel
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setModel(panel.model)

    def paintEvent(self, event: QPaintEvent) -> None:
        colors, panel, metrics = theme(), self.panel, self.fontMetrics()
        painter = QPainter(self.viewport())
        painter.setFont(self.font())
        painter.fillRect(self.viewport().rect(), colors.base)
        first, last = self.rowAt(0), self.rowAt(self.viewport().height() - 1)
        if first < 0:
            return
        tall, current, size = self.rowHeight(first), self.currentIndex().row(), metrics.ascent()
        down = (tall + metrics.ascent() - metrics.descent()) // 2  # to the letters' line
        for row in range(first, (last if last >= 0 else panel.model.count - 1) + 1):
            top = self.rowViewportPosition(row)
            if row == current:
                painter.fillRect(0, top, self.viewport().width(), tall, colors.accent)
            painter.setPen(colors.accent_text if row == current else colors.text)
            for column in range(CANDIDATES + 1):
                if self.isColumnHidden(column):
                    continue
                left = self.columnViewportPosition(column) + CELL_MARGIN // 2
                text = panel.model.text(row, column)
                if column == UNIT:
                    color = panel.colours.unit(panel.model.read(row).unit)
                    painter.fillRect(left, top + (tall - size) // 2, size, size, color)
                    room = self.columnWidth(column) - CELL_MARGIN - round(ICON * panel.scale)
                    left += round(ICON * panel.scale)
                    text = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, room)
                painter.drawText(left, top + down, text)


class Candidates(QWidget):
    """The candidates of one decision with their scores; the one that was picked stands out."""

    def __init__(self, panel: DecisionsPanel) -> None:
        super().__init__()
        self.panel = panel
        self.decision: Decision | None = None
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setMinimumWidth(160)

    def show_decision(self, decision: Decision | None) -> None:
        """Another decision."""
        self.decision = decision
        self.update()

    def ranked(self) -> list[tuple[str, float]]:
        """The candidates, the best first."""
        return sorted(self.decision.candidates, key=lambda one: -one[1]) if self.decision else []

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors = theme()
        painter.fillRect(self.rect(), colors.base)
        if self.decision is None:
            return
        scale = self.panel.scale
        margin, line = 14.0, 25.0 * scale
        painter.setFont(self.panel.font_of(13))
        painter.setPen(colors.muted)
        policy = self.decision.policy
        why = tr(WHY.get(policy, "The highest score of the policy {0}"), policy)
        text = f"{why}\n{tr(SCORE[policy])}" if policy in SCORE else why
        flags = int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop)
        head = QRectF(painter.boundingRect(QRectF(margin, 8, self.width() - 2 * margin, 10_000), flags, text))
        painter.drawText(head, flags, text)
        ranked = self.ranked()
        scores = [score for _, score in ranked]
        low, high = min(scores, default=0.0), max(scores, default=0.0)
        top = head.bottom() + 6
        for number, (unit, score) in enumerate(ranked):
            y = top + number * line
            if y > self.height():
                break
            picked = unit == self.decision.unit
            color = self.panel.colours.unit(unit)
            room = self.width() - 2 * margin
            part = 1.0 if high == low else 0.04 + 0.96 * (score - low) / (high - low)
            frame = QRectF(margin, y + 2, room, line - 5)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(clear(color, 60))
            painter.drawRoundedRect(QRectF(frame.left(), frame.top(), frame.width() * part, frame.height()), 4, 4)
            if picked:
                painter.setPen(self.panel.outline(color))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRoundedRect(frame, 4, 4)
            painter.setPen(colors.text)
            painter.setFont(self.panel.font_of(13, BOLD if picked else PLAIN))
            inside, side = frame.adjusted(9, 0, -9, 0), Qt.AlignmentFlag
            painter.drawText(inside, int(side.AlignVCenter | side.AlignLeft), self.panel.label_of(unit))
            painter.drawText(inside, int(side.AlignVCenter | side.AlignRight), score_text(score))


def score_text(score: float) -> str:
    """A score, short; what stands for "never before all others" is told as such."""
    if score <= -1e9:
        return "–"
    return count_text(score) if abs(score) >= 1e5 else f"{score + 0.0:,.6g}"


class DecisionsPanel(Panel):
    """Why this unit now?"""

    name = "decisions"
    title = "Decisions"
    order = 60
    what = "Every decision with its candidates and their scores; a click or the arrow keys go to its moment"

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self.model = Decisions(self)
        self.table = Log(self)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setShowGrid(False)
        self.table.setWordWrap(False)
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setHighlightSections(False)
        self.columns = FittedColumns(self.table, self._widths, wide=UNIT, spare=(CANDIDATES, TURN, STEP))
        self.candidates = Candidates(self)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.table)
        split.addWidget(self.candidates)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        split.setSizes([560, 360])
        self.body.addWidget(split, 1)
        self.table.clicked.connect(self._go)
        self.table.selectionModel().currentChanged.connect(self._moved)
        self._placing = False
        self._digits = (0, 0)  # of the largest numbers in the table
        self.restyle()

    def outline(self, color: QColor) -> QPen:
        """A pen around what was picked."""
        return QPen(color, 2.0 * self.scale)

    def restyle(self) -> None:
        self.table.setFont(self.font_of(13))
        set_head_font(self.table.horizontalHeader(), self.font_of(12))
        self.table.verticalHeader().setDefaultSectionSize(round(25 * self.scale))
        self.columns.fit()
        self.candidates.update()

    def _widths(self) -> list[int]:
        """What each column needs for its head and the largest number of the run; a long name of a unit may be cut."""
        recording, metrics = self.recording, self.table.fontMetrics()
        end, count = (recording.end, self.model.count) if recording is not None else (0.0, 0)
        needs = [
            metrics.horizontalAdvance(f"{end:.3f}") + CELL_MARGIN,
            metrics.horizontalAdvance(f"{count:,}") + CELL_MARGIN,
            round((UNIT_WIDTH + ICON) * self.scale),
            round(STEP_WIDTH * self.scale),
            0,
        ]
        header = self.table.horizontalHeader()
        return [max(need, head_width(header, head)) for need, head in zip(needs, heads(), strict=True)]

    def draw(self, recording: RunRecording) -> None:
        self.model.show_recording(recording)
        digits = len(str(self.model.count)), len(str(int(recording.end)))
        if digits != self._digits:
            self._digits = digits
            self.columns.fit()
        number = recording.decision_at(self.player.at)
        self.headline_of((f"{max(number + 1, 0):,}", tr("of {0} decisions", f"{self.model.count:,}")))
        current = self.table.currentIndex().row()
        if current >= 0 and not self.player.following and number >= 0:
            times = recording.decisions["time"]
            if current < len(times) and times[current] == times[number]:
                number = current  # of several at one moment the person has chosen one
        if number != current and not self._placing:
            self._placing = True
            if number >= 0:
                self.table.setCurrentIndex(self.model.index(number, 0))
                self.table.scrollTo(self.model.index(number, 0), QAbstractItemView.ScrollHint.PositionAtCenter)
            else:
                self.table.clearSelection()
                self.candidates.show_decision(None)
            self._placing = False
        elif number >= 0:
            self._tell(number)

    def _tell(self, number: int) -> None:
        if 0 <= number < self.model.count:
            self.candidates.show_decision(self.model.read(number))

    def _moved(self, now: Index, before: Index) -> None:
        """Another decision is in front: by the keys or a click, or because the timeline moved."""
        if self._placing or not now.isValid():
            self._tell(now.row())
        else:
            self._go(now)

    def _go(self, index: Index) -> None:
        recording = self.recording
        if recording is not None:
            self._placing = True
            self.player.pause()
            self.player.seek(float(recording.decisions["time"][index.row()]))
            self._placing = False
            self._tell(index.row())


PANEL = DecisionsPanel
