"""Spark's jobs over time, each with its unit and its stages: how many of their tasks are done."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter
from PySide6.QtWidgets import QSplitter, QStyleOptionGraphicsItem, QTreeWidget, QTreeWidgetItem, QWidget

from designer.monitor.player import Player
from designer.monitor.plot import Drawn, TimePlot
from designer.text import tr
from designer.theme.theme import theme
from designer.widgets import FittedColumns, head_width, set_head_font
from engine.events import SparkJob
from engine.recording import RunRecording
from engine.recording.jobs import Job, JobSeries, tasks

BAR = 0.7  # of a lane's height
PALE = 140  # lightness of a bar from which on its letters are dark
LISTED = 40  # jobs: the last ones that had begun by the moment
STATES = {
    "running": "running", "active": "running", "pending": "waiting", "succeeded": "done", "complete": "done",
    "failed": "failed", "skipped": "skipped", "unknown": "unknown",
}  # fmt: skip
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
JOB, UNIT, TASKS, TIME, STATE = range(5)  # columns of the list
AXIS_WIDTH = 34  # pixels beside the bars
UNIT_WIDTH = 90  # pixels of a unit's name before other columns go


class JobBars(Drawn):
    """A bar for each job, in the colour of its unit; jobs that run at the same time stand below each other."""

    def __init__(self, panel: JobsPanel) -> None:
        super().__init__()
        self.panel = panel
        self.shown: list[Job] = []
        self.end = 0.0  # of those that have not ended

    def show_jobs(self, jobs: list[Job], end: float) -> None:
        """What is to be seen."""
        self.shown, self.end = jobs, end
        self.prepareGeometryChange()
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        place = painter.transform()
        painter.save()
        painter.resetTransform()
        height = abs(place.m22()) * BAR
        font = self.panel.font_of(11)
        painter.setFont(font)
        metrics = QFontMetrics(font)
        painted: dict[int, float] = {}  # lane → how far to the right
        for job in self.shown:
            left = place.map(QPointF(job.begin, 0)).x()
            right = place.map(QPointF(self.end if job.end is None else job.end, 0)).x()
            if right < painted.get(job.lane, -1.0) + 0.5:
                continue  # too many in one pixel
            painted[job.lane] = max(right, left + 1.0)
            top = place.map(QPointF(0, job.lane)).y() - height / 2
            frame = QRectF(left, top, max(right - left - 0.5, 1.0), height)
            failed = job.told[-1][1].status == "failed"
            color = theme().error if failed else self.panel.colours.unit(job.unit)
            painter.fillRect(frame, color)
            texts = [text for text in self.panel.bar_texts(job) if metrics.horizontalAdvance(text) + 8 <= frame.width()]
            if height >= metrics.height() and texts:
                painter.setPen(QColor(Qt.GlobalColor.white if color.lightness() < PALE else Qt.GlobalColor.black))
                painter.drawText(frame.adjusted(4, 0, -2, 0), int(Qt.AlignmentFlag.AlignVCenter), texts[0])
        painter.restore()


class JobsPanel(TimePlot):
    """Which jobs Spark ran, when and for whom; beside them their stages at the moment that is shown."""

    name = "jobs"
    title = "Spark jobs"
    order = 55
    what = "Every job of Spark with its unit and its stages, and how many of their tasks are done"

    def __init__(self, player: Player) -> None:
        self.series = JobSeries()
        self._listed: tuple[object, ...] = ()
        super().__init__(player)
        self.bars = JobBars(self)
        self.plot.addItem(self.bars, ignoreBounds=True)
        self.view.invertY(True)
        self.item.getAxis("left").setTicks([[]])
        self.list = QTreeWidget()
        self.list.setHeaderLabels([tr("Job, stage"), tr("Unit"), tr("Tasks"), tr("Time (s)"), tr("State")])
        for column in (TASKS, TIME):
            self.list.headerItem().setTextAlignment(column, RIGHT)
        self.list.setAccessibleName(tr("Spark jobs and their stages"))
        self.list.setUniformRowHeights(True)
        self.list.setIndentation(12)
        self.columns = FittedColumns(self.list, self._widths, wide=UNIT, spare=(STATE, TIME, TASKS))
        split = QSplitter(Qt.Orientation.Horizontal)
        self.body.removeWidget(self.plot)
        split.addWidget(self.plot)
        split.addWidget(self.list)
        split.setStretchFactor(0, 2)
        split.setStretchFactor(1, 3)
        split.setSizes([380, 570])
        self.body.addWidget(split, 1)
        self.restyle()

    def begin(self) -> None:
        self.series = JobSeries()
        self._listed = ()
        self.list.clear()

    @property
    def axis_width(self) -> int:
        """The room for the axis's name: lanes have none, and beside the list no other panel's times stand above."""
        return round(AXIS_WIDTH * self.scale)

    def restyle(self) -> None:
        super().restyle()
        if hasattr(self, "list"):
            self.list.setFont(self.font_of(13))
            set_head_font(self.list.header(), self.font_of(12))
            self.columns.fit()
        self.name_axis("left", tr("jobs at a time"))
        self._listed = ()

    def draw_plot(self, recording: RunRecording, start: float, stop: float) -> None:
        series = self.series
        series.read(recording)
        if not self.same(recording, len(series.lanes)):
            self.view.setYRange(-0.6, max(len(series.lanes), 1) - 0.4, padding=0)
            self.say("" if series.jobs else tr("No jobs of Spark: simulated runs and Spark Connect tell of none"))
            seen = [job for job in series.jobs if job.begin <= stop and (job.end is None or job.end >= start)]
            self.bars.show_jobs(seen, recording.end)
        at = self.player.at
        begun = bisect_right(series.jobs, at, key=lambda job: job.begin)
        running = sum(job.end is None or job.end > at for job in series.jobs[:begun])
        self.headline_of((f"{begun:,}", tr("jobs so far")), (f"{running:,}", tr("running")))
        self._list(series.jobs[max(0, begun - LISTED) : begun], at)

    def bar_texts(self, job: Job) -> list[str]:
        """A job in a few words, the shorter the later."""
        done, every = tasks(job.told[-1][1])
        counted = f"{done}/{every}"
        return [f"{job.number} {self.label_of(job.unit)} {counted}", f"{job.number}  {counted}", str(job.number)]

    def _list(self, jobs: list[Job], at: float) -> None:
        """The jobs of late with their stages, as they stood at the moment; the newest first."""
        known = [(job, job.at(at)) for job in reversed(jobs)]
        listed = tuple((job.number, id(event)) for job, event in known)
        if listed == self._listed:
            return
        self._listed = listed
        self.list.setUpdatesEnabled(False)
        self.list.clear()
        for job, event in known:
            item = self._row(job, event)
            self.list.addTopLevelItem(item)
            item.setExpanded(True)
        self.columns.fit()
        self.list.setUpdatesEnabled(True)

    def _widths(self) -> list[int]:
        """What each column of the list needs for its head and what it holds; a long name of a unit may be cut."""
        head = self.list.headerItem()
        widths = [
            max(head_width(self.list.header(), head.text(column)), self.list.sizeHintForColumn(column))
            for column in range(head.columnCount())
        ]
        least = head_width(self.list.header(), head.text(UNIT))
        widths[UNIT] = min(widths[UNIT], max(least, round(UNIT_WIDTH * self.scale)))
        return widths

    def _row(self, job: Job, event: SparkJob | None) -> QTreeWidgetItem:
        done, every = tasks(event) if event is not None else (0, 0)
        status = event.status if event is not None else "running"
        took = f"{job.end - job.begin:,.2f}" if event is not None and event.ended and job.end is not None else ""
        counted = f"{done:,}/{every:,}" if event is not None else ""
        item = QTreeWidgetItem(
            [tr("Job {0}", job.number), self.label_of(job.unit), counted, took, tr(STATES.get(status, status))]
        )
        item.setForeground(UNIT, self.colours.unit(job.unit))
        if status == "failed":
            for column in (TASKS, STATE):
                item.setForeground(column, theme().error)
        stages = [QTreeWidgetItem(self._stage(stage)) for stage in (event.stages if event is not None else ())]
        item.addChildren(stages)
        for row in (item, *stages):
            row.setTextAlignment(TASKS, RIGHT)
            row.setTextAlignment(TIME, RIGHT)
        return item

    def _stage(self, stage: dict[str, Any]) -> list[str]:
        started, ended = stage.get("started"), stage.get("ended")
        took = f"{max(0.0, ended - started):,.2f}" if started is not None and ended is not None else ""
        counted = f"{stage.get('tasks_done', 0):,}/{stage.get('tasks', 0):,}"
        name = str(stage.get("name", ""))
        name = "" if name.startswith("$") else name  # of a lambda of Spark's own
        status, running = str(stage.get("status", "")), stage.get("tasks_running")
        state = tr("{0} running", running) if running else tr(STATES.get(status, status))
        return [tr("Stage {0}", stage.get("stage")), name, counted, took, state]


PANEL = JobsPanel
