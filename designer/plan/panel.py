"""The plan explorer: the cheapest plans of the workflow in front, one of them drawn, explained and asked for."""

from __future__ import annotations

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, QTimer, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QSplitter,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from designer.canvas.view import CanvasView
from designer.editor import Editor
from designer.plan import changes
from designer.plan.costs import RIGHT, CostsTab
from designer.plan.drawing import PlanDrawing
from designer.plan.explore import Explored, explore, snapshot
from designer.plan.views import ViewsTab
from designer.plan.wishes import WishesTab
from designer.text import tr
from designer.theme.theme import themes
from designer.widgets import label, take_role
from engine.model.binding import Bound
from engine.plan.costs import units
from engine.plan.planner import Search
from engine.plan.rows import Rows
from engine.plan.space import Plan

PLAN_MS = 120  # after the last analysis
COST, SORTERS, SORTING, RUN, SIGNATURE = range(5)


class _Told(QObject):
    done = Signal(int, object)


class _PlanJob(QRunnable):
    """Plans a workflow beside the window's own thread."""

    def __init__(self, bound: Bound, costs: str, number: int, told: _Told) -> None:
        super().__init__()
        self.bound, self.costs, self.number, self.told = snapshot(bound), costs, number, told

    def run(self) -> None:
        """Plan, and say so."""
        found = explore(self.bound, self.costs)
        try:
            self.told.done.emit(self.number, found)
        except RuntimeError:
            return  # the window is gone


class PlanPanel(QWidget):
    """Plans on the left; on the right the chosen one's costs, what is asked of plans, and offers for views."""

    def __init__(self) -> None:
        super().__init__()
        self.view: CanvasView | None = None
        self.found = Explored("")
        self.drawing: PlanDrawing | None = None
        self._number = 0
        self._told = _Told()
        self._told.done.connect(self._take)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(PLAN_MS)
        self._timer.timeout.connect(self.plan_now)
        self._build()
        themes().changed.connect(self._restyle)

    def _build(self) -> None:
        self.model = QComboBox()
        self.model.addItem(tr("Paper: rows"), "paper")
        self.model.addItem(tr("Measured: µs"), "measured")
        self.model.setToolTip(tr("What a step costs: rows as the paper counts them, or microseconds as measured"))
        self.model.setAccessibleName(tr("Cost model"))
        self.model.currentIndexChanged.connect(lambda _: self.plan_soon())
        self.drawn = QCheckBox(tr("Draw on the canvas"))
        self.drawn.setChecked(True)
        self.drawn.toggled.connect(lambda _: self._draw())
        self.said = label("", "muted")
        self.said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.said.setMinimumWidth(60)
        top = QHBoxLayout()
        top.setContentsMargins(8, 6, 8, 0)
        top.addWidget(self.model)
        top.addWidget(self.drawn)
        top.addWidget(self.said, 1)
        self.list = QTreeWidget()
        self.list.setHeaderLabels([tr("Cost"), tr("Sorters"), tr("Their cost"), tr("Run"), tr("Signature")])
        self.list.setAccessibleName(tr("Plans"))
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        for column in (COST, SORTERS, SORTING, RUN):
            self.list.header().setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
            if column != RUN:
                self.list.headerItem().setTextAlignment(column, RIGHT)
        self.list.currentItemChanged.connect(lambda *_: self._show_plan())
        self.costs = CostsTab()
        self.costs.asked.connect(self._select)
        self.wishes = WishesTab()
        self.views = ViewsTab()
        self.views.looked_at.connect(self._look_at)
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        self.tabs.addTab(self.costs, tr("Costs"))
        self.tabs.addTab(self.wishes, tr("Wishes"))
        self.tabs.addTab(self.views, tr("Views"))
        self.tabs.currentChanged.connect(lambda _: self._draw())
        self.whole = label("", "muted", wrap=True)
        self.whole.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.whole.setContentsMargins(8, 2, 8, 6)
        left = QWidget()
        beside = QVBoxLayout(left)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(0)
        beside.addWidget(self.list, 1)
        beside.addWidget(self.whole)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        split.addWidget(left)
        split.addWidget(self.tabs)
        split.setSizes([520, 620])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(top)
        layout.addWidget(split, 1)

    # -- whose plans

    @property
    def editor(self) -> Editor | None:
        """The workflow whose plans are shown."""
        return self.view.editor if self.view is not None else None

    def follow(self, view: CanvasView | None) -> None:
        """Show the plans of another workflow."""
        if view is self.view:
            return
        if self.view is not None:
            self.view.editor.analysed.disconnect(self._analysed)
        if self.drawing is not None:
            self.drawing.close()
            self.drawing = None
        self.view = view
        self._number += 1
        self.wishes.follow(self.editor)
        self._show(Explored(""))
        if view is not None:
            view.editor.analysed.connect(self._analysed)
            self.drawing = PlanDrawing(view.canvas)
            self.plan_soon()

    def forget(self, view: CanvasView) -> None:
        """A canvas is about to go."""
        if view is self.view:
            self.follow(None)

    def _analysed(self) -> None:
        self.wishes.refresh()
        self.plan_soon()

    def showEvent(self, event: object) -> None:
        """Plan what changed while nobody looked."""
        self.plan_soon()
        self._draw()

    def hideEvent(self, event: object) -> None:
        """A plan is drawn as long as somebody looks at plans."""
        self._draw()

    # -- planning

    def plan_soon(self) -> None:
        """Plan a moment after the last change, if somebody looks."""
        if self.isVisible():
            self._timer.start()

    def plan_now(self) -> None:
        """Plan in a thread; what a later change overtakes is not shown."""
        self._timer.stop()
        self._number += 1
        editor = self.editor
        if editor is None:
            return
        bound = editor.analysis.bound
        if bound.errors or not bound.operators:
            waits = tr("Nothing to plan yet.")
            if bound.operators:
                waits = tr("Plans come once the workflow has no problems.")
            self._show(Explored("", problem=waits))
            return
        self._say(tr("Planning…"), "muted")
        QThreadPool.globalInstance().start(_PlanJob(bound, self.model.currentData(), self._number, self._told))

    def _take(self, number: int, found: Explored) -> None:
        if number == self._number:  # not overtaken by a later change
            self._show(found)

    # -- showing

    def _show(self, found: Explored) -> None:
        before = self.signature
        self.found = found
        self.list.blockSignals(True)
        self.list.clear()
        ranking = found.ranking
        if ranking is not None:
            bold = QFont(self.font())
            bold.setBold(True)
            shown = [ranking.signature(plan) for plan in found.plans]
            for plan, signature in zip(found.plans, shown, strict=True):
                takes = signature == found.taken
                row = QTreeWidgetItem(
                    [
                        f"{units(plan.cost):,.0f}",
                        str(len(plan.sorters)),
                        f"{units(plan.sorter_cost):,.0f}",
                        tr("takes it") if takes else "",
                        signature,
                    ]
                )
                row.setToolTip(SIGNATURE, signature)
                for column in (COST, SORTERS, SORTING):
                    row.setTextAlignment(column, RIGHT)
                if plan is ranking.best:
                    row.setFont(COST, bold)
                self.list.addTopLevelItem(row)
                if signature == before or (plan is ranking.best and before not in shown):
                    self.list.setCurrentItem(row)
        self.list.blockSignals(False)
        self.views.show_found(self.editor, found)
        waiting = self.views.waiting()
        self.tabs.setTabText(2, tr("Views ({0})", waiting) if waiting else tr("Views"))
        self._verdict()
        self._show_plan()

    def _verdict(self) -> None:
        found = self.found
        if found.problem is not None:
            if self.editor is None or self.editor.analysis.bound.errors:
                self._say(found.problem, "muted")
            else:
                self._say(self._refusal(self.editor, found.problem), "wrong")
            return
        ranking = found.ranking
        if ranking is None:
            self._say("", "muted")
            return
        if ranking.search is Search.FAST:
            text = tr(
                "{0} signatures; fast search in {1} s, for {2} states are too many to look at",
                f"{ranking.signatures:,}", f"{found.seconds:.2f}", f"{found.states:,}",
            )  # fmt: skip
        else:
            text = tr("{0} signatures, all looked at in {1} s", f"{ranking.signatures:,}", f"{found.seconds:.2f}")
        parts = [text, *ranking.remarks, self._assumed(found.rows)]
        self._say(" · ".join(part for part in parts if part), "muted")

    def _refusal(self, editor: Editor, problem: str) -> str:
        """Why there is no plan, in the words of the canvas, and where to mend it."""
        text = changes.in_titles(editor.document, problem)
        asked = editor.document.workflow.plan is not None
        return tr("{0}. What is asked of plans is on the tab Wishes.", text) if asked else text

    def _assumed(self, rows: Rows | None) -> str:
        nodes = rows.assumed() if rows is not None else []
        if not nodes or self.editor is None:
            return ""
        names = ", ".join(changes.title(self.editor.document, node) for node in nodes[:3])
        return tr("rows assumed for {0}", names + (tr(" and {0} more", len(nodes) - 3) if len(nodes) > 3 else ""))

    def _say(self, text: str, role: str) -> None:
        self.said.setText(text)
        self.said.setToolTip(text)
        take_role(self.said, role)

    @property
    def plan(self) -> Plan | None:
        """The chosen plan."""
        item = self.list.currentItem()
        return self.found.plans[self.list.indexOfTopLevelItem(item)] if item is not None else None

    @property
    def signature(self) -> str:
        """The chosen plan's signature; empty where there is none."""
        item = self.list.currentItem()
        return item.text(SIGNATURE) if item is not None else ""

    def _show_plan(self) -> None:
        self.costs.show_plan(self.editor, self.found.ranking, self.plan)
        self.whole.setText(self._whole_text())
        self._draw()

    def _whole_text(self) -> str:
        """The chosen signature in full, to be read and copied; and what a run takes, if that is not listed."""
        taken, ranking = self.found.taken, self.found.ranking
        lines = [_breakable(self.signature)]
        if ranking is not None and taken and taken not in map(ranking.signature, self.found.plans):
            lines.append(tr("A run takes, by measured costs: {0}", _breakable(taken)))
        return "\n".join(line for line in lines if line)

    def _draw(self) -> None:
        if self.drawing is None:
            return
        ranking, plan = self.found.ranking, self.plan
        if ranking is not None and plan is not None and self.drawn.isChecked() and self.isVisible():
            asked = changes.planning_of(self.drawing.scene.document)
            self.drawing.show(ranking, plan, set(asked.pin))
            self.drawing.offer(self.views.offer if self.tabs.currentWidget() is self.views else None)
        else:
            self.drawing.hide()

    def _look_at(self, offer: object) -> None:
        self._draw()

    def _select(self, node: str) -> None:
        if self.view is not None and node in self.view.canvas.nodes:
            self.view.canvas.select([node])

    def _restyle(self) -> None:
        self._show(self.found)


def _breakable(signature: str) -> str:
    """A signature that a line can end in, behind its slashes and dots."""
    return signature.replace("//", "//\u200b").replace(".", ".\u200b")
