"""Runs side by side: panels with the same axes, a table of their figures, and exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QFont, QFontMetrics, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QMessageBox,
    QPushButton,
    QSizePolicy,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from designer.monitor.panel import key_text
from designer.monitor.panels.activity import ActivityPanel
from designer.monitor.panels.memory import OTHERS, SHOWN, MemoryPanel
from designer.monitor.player import Conductor, Player
from designer.monitor.scrubber import Scrubber
from designer.monitor.units import bytes_text, count_text, seconds_text
from designer.text import tr
from designer.theme.icons import program_icon
from designer.theme.theme import theme, themes
from designer.widgets import FittedColumns, head_width, label, take_role
from engine.recording.compare import FROM, Comparison
from engine.recording.series import EXACT, SNAPSHOTS, largest

HEADS = ("Run", "Policy", "Status", "Time (s)", "Average memory", "Peak memory", "Average packs", "Peak packs", "Turns",
         "Spills", "Queue figures")  # fmt: skip
RIGHT = range(3, 10)  # columns of numbers
SPARE = (10, 6, 7, 9, 2)  # columns that go where room is short, the first one first; the CSV file has them all
RUN_WIDTH, CELL_MARGIN = 150, 34  # pixels of a run's name before columns go, and beside a cell's words
HEAD_PADDING = 8  # pixels more than other tables have beside a head
SOURCES = {
    EXACT: "The run itself summed up what its queues held, at every change",
    SNAPSHOTS: "Reckoned from snapshots ten times a second: the run has not ended, was resumed, or its log has no end",
}


class CompareWindow(QMainWindow):
    """The same workflow under several policies, or any runs, in columns that share time and memory."""

    closed = Signal()

    def __init__(self, logs: list[Path], scale: float = 1.0, remark: str = "") -> None:
        super().__init__()
        self.remark = remark
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Compare runs"))
        self.setWindowIcon(program_icon())
        self.scale = scale
        self.players = [Player(self) for _ in logs]
        self.conductor = Conductor(self.players, self)
        self.page = QWidget()
        layout = QVBoxLayout(self.page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self.table = QTableWidget(0, len(HEADS))
        self._set_up_table()
        layout.addLayout(self._tools())
        layout.addWidget(self.table)
        self.remarks = label("", "muted", wrap=True)  # about all runs, and about logs that do not tell all
        self.remarks.setContentsMargins(14, 8, 14, 0)
        layout.addWidget(self.remarks)
        self.key = QLabel()
        self.key.setWordWrap(True)
        self.key.setContentsMargins(14, 10, 14, 0)
        layout.addWidget(self.key)
        columns = QHBoxLayout()
        columns.setSpacing(1)
        self.titles: list[QLabel] = []
        self.memory: list[MemoryPanel] = []
        self.activity: list[ActivityPanel] = []
        for player in self.players:
            columns.addLayout(self._column(player), 1)
        layout.addLayout(columns, 1)
        self.scrubber = Scrubber(self.conductor)
        self.scrubber.set_scale(scale)
        layout.addWidget(self.scrubber)
        self.setCentralWidget(self.page)
        room = self.screen().availableSize()
        self.resize(QSize(480 * max(2, len(logs)), 900).boundedTo(room))
        self.conductor.ticked.connect(self.refresh)
        themes().changed.connect(self.refresh)
        for player, log in zip(self.players, logs, strict=True):
            player.read_all.connect(lambda player=player: self._all_read(player))
            player.open(log)

    # -- building

    def _tools(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(12, 8, 12, 8)
        row.addStretch(1)
        for text, ending, write in (
            (tr("PNG…"), "png", self.save_png),
            (tr("SVG…"), "svg", self.save_svg),
            (tr("CSV…"), "csv", self.save_csv),
            (tr("HTML report…"), "html", self.save_html),
        ):
            button = QPushButton(text)
            button.setObjectName(f"export_{ending}")
            button.clicked.connect(lambda _=False, ending=ending, write=write: self._ask(ending, write))
            row.addWidget(button)
        return row

    def _set_up_table(self) -> None:
        table = self.table
        table.setHorizontalHeaderLabels([tr(head) for head in HEADS])
        for column in range(len(HEADS)):
            side = Qt.AlignmentFlag.AlignRight if column in RIGHT else Qt.AlignmentFlag.AlignLeft
            head = table.horizontalHeaderItem(column)
            assert head is not None
            head.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        table.verticalHeader().hide()
        table.setStyleSheet("QTableWidget::item { padding: 0 12px; } QHeaderView::section { padding: 6px 12px; }")
        table.setShowGrid(False)
        table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        table.setSelectionMode(QTableWidget.SelectionMode.NoSelection)
        table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.columns = FittedColumns(table, self._widths, wide=0, spare=SPARE)
        font = QFont(table.font())
        font.setPixelSize(round(14 * self.scale))
        table.setFont(font)
        table.horizontalHeader().setFont(font)
        table.verticalHeader().setDefaultSectionSize(round(30 * self.scale))

    def _widths(self) -> list[int]:
        """What each column of the table needs; the name of a run may be cut."""
        metrics, table = QFontMetrics(self.table.font()), self.table
        widths = []
        for column, head in enumerate(HEADS):
            cells = [item.text() for row in range(table.rowCount()) if (item := table.item(row, column)) is not None]
            words = max((metrics.horizontalAdvance(text) for text in cells), default=0) + CELL_MARGIN
            widths.append(max(words, head_width(table.horizontalHeader(), tr(head)) + HEAD_PADDING))
        widths[0] = min(widths[0], round(RUN_WIDTH * self.scale))
        return widths

    def _column(self, player: Player) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(0)
        title = QLabel()
        title.setContentsMargins(14, 10, 14, 0)
        memory, activity = MemoryPanel(player), ActivityPanel(player)
        memory.shows_key = False
        for panel in (memory, activity):
            panel.set_scale(self.scale)
            panel.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        column.addWidget(title)
        column.addWidget(memory, 1)
        column.addWidget(activity, 1)
        self.titles.append(title)
        self.memory.append(memory)
        self.activity.append(activity)
        return column

    # -- showing

    def comparison(self) -> Comparison:
        """The runs as far as their logs have been read."""
        recordings = [player.recording for player in self.players if player.recording is not None]
        return Comparison.of(recordings, self.remark)

    def _all_read(self, player: Player) -> None:
        player.look_after()
        self.refresh()

    def refresh(self) -> None:
        """The table, the titles, and one height for all memory panels."""
        found = self.comparison()
        names = found.names()
        take_role(self.remarks, "wrong" if any(one.flaw for one in found.recordings) else "muted")
        self.remarks.setText("\n".join(found.remarks()))
        self.remarks.setVisible(bool(self.remarks.text()))
        self.table.setRowCount(len(found.figures))
        for row, (name, one) in enumerate(zip(names, found.figures, strict=True)):
            texts = (
                one.run, name, one.status, f"{one.seconds:,.2f}", bytes_text(one.avg_bytes),
                bytes_text(one.max_bytes), f"{one.avg_packs:,.1f}", f"{one.max_packs:,}", f"{one.activations:,}",
                count_text(one.spills), tr(FROM[one.queues_from]),
            )  # fmt: skip
            for column, text in enumerate(texts):
                item = self.table.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    if column in RIGHT:
                        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                    self.table.setItem(row, column, item)
                if item.text() != text:
                    item.setText(text)
                    item.setToolTip(tr(SOURCES[one.queues_from]) if column == len(texts) - 1 else text)
            size, small, muted = round(22 * self.scale), round(14 * self.scale), theme().muted.name()
            self.titles[row].setText(
                f'<span style="font-size:{size}px;font-weight:700;color:{theme().text.name()}">{name}</span>'
                f'<span style="font-size:{small}px;color:{muted}"> &nbsp;{seconds_text(one.seconds)}</span>'
            )
        self.columns.fit()
        height = self.table.horizontalHeader().sizeHint().height()
        self.table.setFixedHeight(height + self.table.rowCount() * self.table.verticalHeader().defaultSectionSize() + 4)
        self._share(found)

    def _share(self, found: Comparison) -> None:
        """One height and one set of coloured queues for all memory panels."""
        most: dict[str, float] = {}
        for recording in found.recordings:
            for queue, size in largest(recording).items():
                most[queue] = max(size, most.get(queue, 0.0))
        ranking = sorted(most, key=lambda queue: -most[queue])
        for panel in self.memory:
            measure = panel.measure.currentData()
            top = max((getattr(one, f"max_{measure}") for one in found.figures), default=0.0)
            if (panel.least_top, panel.ranking) != (top, ranking):
                panel.least_top, panel.ranking = top, ranking
                panel.draw_again()
        first = self.memory[0] if self.memory else None
        if first is not None and first.recording is not None:
            shown = [queue for queue in first.recording.queues.names if queue in ranking[:SHOWN]]
            entries = [(first.colours.queue(queue), first.queue_text(queue)) for queue in shown]
            more = [(first.queue_colour(OTHERS), first.queue_text(OTHERS))] if len(ranking) > SHOWN else []
            key = key_text([*entries, *more], self.scale)
            if key != self.key.text():
                self.key.setText(key)

    # -- exporting

    def _ask(self, ending: str, write: Callable[[Path], None]) -> None:
        name, _ = QFileDialog.getSaveFileName(self, tr("Export the comparison"), f"comparison.{ending}", f"*.{ending}")
        if name:
            try:
                write(Path(name))
            except OSError as error:
                box = QMessageBox(QMessageBox.Icon.Warning, tr("Not exported"), str(error), parent=self)
                box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
                box.open()

    def save_png(self, path: Path) -> None:
        """The window as a picture."""
        if not self.page.grab().save(str(path), "PNG"):
            raise OSError(f"{path}: cannot be written")

    def save_svg(self, path: Path) -> None:
        """The window as a drawing."""
        drawing = QSvgGenerator()
        drawing.setFileName(str(path))
        drawing.setSize(QSize(self.page.width(), self.page.height()))
        drawing.setViewBox(QRect(0, 0, self.page.width(), self.page.height()))
        drawing.setTitle(self.windowTitle())
        painter = QPainter()
        if not painter.begin(drawing):
            raise OSError(f"{path}: cannot be written")
        self.page.render(painter, QPoint())
        painter.end()

    def save_csv(self, path: Path) -> None:
        """The figures as a table."""
        path.write_text(self.comparison().csv(), encoding="utf-8")

    def save_html(self, path: Path) -> None:
        """A report that needs nothing else."""
        path.write_text(self.comparison().html(), encoding="utf-8")

    def closeEvent(self, event: QCloseEvent) -> None:
        self.conductor.close()
        self.closed.emit()
        event.accept()
