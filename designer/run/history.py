"""The runs of the store: searched, compared, seen again, resumed; and how long a workflow took over time."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, QTimer, Signal
from PySide6.QtGui import QBrush, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from designer.text import tr
from designer.theme.theme import theme, themes
from designer.widgets import Hint, label
from engine.errors import PapilioError

if TYPE_CHECKING:
    from designer.run.trend import Trend
    from engine.store import RunRecord

TREND_FROM = 820  # pixels of the panel; the list comes first
MOST = 500  # runs, the newest
KEY = Qt.ItemDataRole.UserRole
ROLES = {"done": "ok", "simulated": "ok", "failed": "error", "cancelled": "muted", "interrupted": "error",
         "running": "accent"}  # fmt: skip


class _Found(QObject):
    done = Signal(list, str)


class _Read(QRunnable):
    """Reads the store beside the window's own thread."""

    def __init__(self, told: _Found) -> None:
        super().__init__()
        self.told = told

    def run(self) -> None:
        """All runs, newest first, each with its status; one whose process is gone is interrupted."""
        from engine.control import status_of
        from engine.store import MetadataStore  # its library takes a second to load, which the first window has not

        found, problem = [], ""
        try:
            with MetadataStore() as store:
                found = [(record, status_of(record)) for record in store.list_runs(limit=MOST)]
        except PapilioError as error:
            problem = str(error)
        with contextlib.suppress(RuntimeError):  # the window was closed meanwhile
            self.told.done.emit(found, problem)


class RunsPanel(QWidget):
    """Past runs. Double click replays one, two can be compared, a killed one can be resumed."""

    replay_asked = Signal(str, bool)  # its log; whether it is still under way
    compare_asked = Signal(list)  # logs
    resume_asked = Signal(str, str)  # run, log

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, tuple[RunRecord, str]] = {}
        self._workflow = ""
        self._read = False
        self._told = _Found()
        self._told.done.connect(self._show)
        self.search = QLineEdit()
        self.search.setPlaceholderText(tr("Search runs: workflow, status, policy, date"))
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName(tr("Search runs"))
        self.search.textChanged.connect(self._filter)
        self.replay_button = QPushButton(tr("Replay"))
        self.compare_button = QPushButton(tr("Compare"))
        self.resume_button = QPushButton(tr("Resume"))
        self.note = label("", "muted")
        self.tree = QTreeWidget()
        self.tree.setRootIsDecorated(False)
        self.tree.setSortingEnabled(True)
        self.tree.setAccessibleName(tr("Runs"))
        self.tree.setHeaderLabels([tr("Begun"), tr("Workflow"), tr("Status"), tr("Seconds"), tr("Policy"),
                                   tr("Granularity"), tr("Peak memory"), tr("Run")])  # fmt: skip
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.setAlternatingRowColors(True)
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.tree.sortByColumn(0, Qt.SortOrder.DescendingOrder)
        self.hint = Hint(self.tree, tr("Reading…"))
        self.tree.itemSelectionChanged.connect(self._selected)
        self.tree.itemDoubleClicked.connect(lambda _: self.replay())
        self.replay_button.clicked.connect(self.replay)
        self.compare_button.clicked.connect(self.compare)
        self.resume_button.clicked.connect(self.resume)
        self.trend: Trend | None = None  # drawn once somebody looks: its library takes a moment to load
        row = QHBoxLayout()
        row.setContentsMargins(10, 6, 10, 2)
        row.addWidget(self.search, 1)
        for button in (self.replay_button, self.compare_button, self.resume_button):
            row.addWidget(button)
        row.addWidget(self.note)
        self._split = split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.tree)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(row)
        layout.addWidget(split, 1)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(700)
        self._soon.timeout.connect(self.refresh)
        themes().changed.connect(self._fill)
        self._selected()

    # -- reading

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.trend is None:
            from designer.run.trend import Trend

            self.trend = Trend()
            self._split.addWidget(self.trend)
            self._split.setSizes([900, 340])
            self._split.setStretchFactor(0, 1)
            self._show_trend()
        if not self._read:
            self.refresh()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_trend()

    def _show_trend(self) -> None:
        """Where there is room for it, and a run in it."""
        if self.trend is not None:
            self.trend.setVisible(self.width() >= TREND_FROM and bool(self.trend.runs))

    def refresh(self) -> None:
        """Read the store, where somebody looks."""
        self._read = self.isVisible()
        if self._read:
            QThreadPool.globalInstance().start(_Read(self._told))

    def refresh_soon(self) -> None:
        """Once the run that begins is in the store."""
        self._soon.start()

    def _show(self, found: list[tuple[RunRecord, str]], problem: str) -> None:
        self.records = {record.run: (record, status) for record, status in found}
        self.note.setText(problem)
        self.hint.tell(tr("No runs yet. F9 runs what is on the canvas; each run is listed here."))
        self._fill()

    def _fill(self) -> None:
        chosen = set(self.chosen())
        self.tree.setSortingEnabled(False)
        self.tree.clear()
        colors = theme()
        for run, (record, status) in self.records.items():
            item = _Row(record, status)
            item.setForeground(2, QBrush(getattr(colors, ROLES.get(status, "text"))))
            self.tree.addTopLevelItem(item)
            item.setSelected(run in chosen)
        self.tree.setSortingEnabled(True)
        self._filter()
        self._selected()

    def _filter(self) -> None:
        words = self.search.text().lower().split()
        shown = 0
        for at in range(self.tree.topLevelItemCount()):
            item = self.tree.topLevelItem(at)
            assert item is not None
            text = " ".join(item.text(column) for column in range(item.columnCount())).lower()
            item.setHidden(not all(word in text for word in words))
            shown += not item.isHidden()
        if self.records:
            self.note.setText(tr("{0} of {1} runs", shown, len(self.records)))

    # -- choosing

    def chosen(self) -> list[str]:
        """The selected runs."""
        return [str(item.data(0, KEY)) for item in self.tree.selectedItems()]

    def log_of(self, run: str) -> str:
        """The log of a run."""
        from engine.store.runs import LOG

        return str(Path(self.records[run][0].folder) / LOG)

    def _selected(self) -> None:
        chosen = self.chosen()
        self.replay_button.setEnabled(len(chosen) == 1)
        self.compare_button.setEnabled(len(chosen) >= 2)
        one = self.records.get(chosen[0]) if len(chosen) == 1 else None
        spark = one is not None and one[0].master != "simulated"
        self.resume_button.setEnabled(one is not None and one[1] == "interrupted" and spark)
        if one is not None:
            self.show_workflow(one[0].workflow)
        else:
            self.show_workflow(self._workflow)

    def show_workflow(self, name: str) -> None:
        """Show how long the runs of a workflow took."""
        self._workflow = name
        if self.trend is not None:
            self.trend.show_runs(name, [record for record, _ in self.records.values() if record.workflow == name])
            self._show_trend()

    def replay(self) -> None:
        """See the selected run again, or watch it if it is under way."""
        chosen = self.chosen()
        if len(chosen) == 1:
            self.replay_asked.emit(self.log_of(chosen[0]), self.records[chosen[0]][1] == "running")

    def compare(self) -> None:
        """Put the selected runs beside each other."""
        chosen = self.chosen()
        if len(chosen) >= 2:
            self.compare_asked.emit([self.log_of(run) for run in chosen])

    def resume(self) -> None:
        """Finish the selected run, which was killed."""
        chosen = self.chosen()
        if len(chosen) == 1:
            self.resume_asked.emit(chosen[0], self.log_of(chosen[0]))


class _Row(QTreeWidgetItem):
    """A run in the list; numbers sort as numbers."""

    def __init__(self, record: RunRecord, status: str) -> None:
        peak = (record.summary.get("queue") or {}).get("max_bytes")
        super().__init__([
            f"{record.started.astimezone():%Y-%m-%d %H:%M:%S}", record.workflow, status,
            "" if record.seconds is None else f"{record.seconds:,.1f}", record.policy, record.granularity,
            f"{peak / 1e6:,.1f} MB" if peak else "", record.run,
        ])  # fmt: skip
        self.setData(0, KEY, record.run)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        for column in (3, 6):
            self.setTextAlignment(column, right)
        self._numbers = {3: record.seconds or 0.0, 6: float(peak or 0)}

    def __lt__(self, other: Any) -> bool:
        tree = self.treeWidget()
        column = tree.sortColumn() if tree is not None else 0
        if column in self._numbers and isinstance(other, _Row):
            return self._numbers[column] < other._numbers[column]
        return self.text(column) < other.text(column)
