"""The lines of a plan: what each does, over how many rows, what it costs and why; to be pinned, forbidden, limited."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from designer.editor import Editor
from designer.plan import changes
from designer.text import tr
from designer.theme.theme import theme
from designer.widgets import label
from engine.plan.explain import explain
from engine.plan.planner import Ranking
from engine.plan.space import Plan

WHAT, HOW, ROWS, COST, WHY = range(5)
MOST_LINES = 3  # explained below the list
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class CostsTab(QWidget):
    """One row for each line of the chosen plan."""

    asked = Signal(str)  # the node of the line in front

    def __init__(self) -> None:
        super().__init__()
        self.editor: Editor | None = None
        self.ranking: Ranking | None = None
        self.tree = QTreeWidget()
        self.tree.setHeaderLabels([tr("Line"), tr("How"), tr("Rows"), tr("Cost"), tr("Why")])
        self.tree.setAccessibleName(tr("What the plan's lines cost"))
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setSelectionMode(QTreeWidget.SelectionMode.ExtendedSelection)
        header = self.tree.header()
        for column in (WHAT, HOW, ROWS, COST):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        for column in (ROWS, COST):
            self.tree.headerItem().setTextAlignment(column, RIGHT)
        self.tree.itemSelectionChanged.connect(self._choose)
        self.why = label("", "muted", wrap=True)  # the column is rarely wide enough
        self.why.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.name = label("", "muted")
        self.ways = QComboBox()
        self.ways.setAccessibleName(tr("Implementation"))
        self.ways.setMinimumWidth(190)
        self.pin = QPushButton(tr("Pin"))
        self.pin.clicked.connect(self.pin_way)
        self.forbid = QPushButton(tr("Forbid"))
        self.forbid.clicked.connect(self.forbid_way)
        self.limit = QPushButton(tr("Limit…"))
        self.limit.setToolTip(tr("What the selected lines may cost together at most"))
        self.limit.clicked.connect(self._ask_limit)
        row = QHBoxLayout()
        row.addWidget(self.name, 1)
        for widget in (self.ways, self.pin, self.forbid, self.limit):
            row.addWidget(widget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addWidget(self.tree, 1)
        layout.addWidget(self.why)
        layout.addLayout(row)
        self._choose()

    def show_plan(self, editor: Editor | None, ranking: Ranking | None, plan: Plan | None) -> None:
        """Take over a plan; the line in front stays in front."""
        before = self.nodes()
        self.editor, self.ranking = editor, ranking
        self.tree.blockSignals(True)
        self.tree.clear()
        if ranking is not None and plan is not None:
            colors, bold = theme(), QFont(self.font())
            bold.setBold(True)
            dearest = max((line.cost for line in plan.lines), default=0)
            for line, shown in zip(plan.lines, explain(ranking, plan), strict=True):
                row = QTreeWidgetItem(
                    [self._called(shown.what), shown.title, shown.rows, f"{shown.cost:,.0f}", shown.why]
                )
                row.setData(WHAT, Qt.ItemDataRole.UserRole, line.node)
                row.setToolTip(WHY, shown.why)
                for column in (ROWS, COST):
                    row.setTextAlignment(column, RIGHT)
                if shown.is_sorter:
                    row.setForeground(WHAT, colors.keyword)
                if dearest and line.cost == dearest:
                    row.setFont(COST, bold)
                self.tree.addTopLevelItem(row)
                if line.node in before and not shown.is_sorter:
                    row.setSelected(True)
                    self.tree.scrollToItem(row)
        self.tree.blockSignals(False)
        self._choose()

    def _called(self, what: str) -> str:
        """A line by its node's title as well, where that says more than its id."""
        if self.editor is None:
            return what
        node = what.split("@")[0]
        known = self.editor.document.workflow.nodes.get(node)
        return f"{what}  {known.title}" if known is not None and known.title and known.title != node else what

    def nodes(self) -> list[str]:
        """The nodes of the selected lines, each once."""
        selected = (row.data(WHAT, Qt.ItemDataRole.UserRole) for row in self.tree.selectedItems())
        return list(dict.fromkeys(selected))

    def _choose(self) -> None:
        nodes = self.nodes()
        node = nodes[0] if len(nodes) == 1 else None
        activity = self.ranking.space.graph.activity(node) if self.ranking is not None and node is not None else None
        self.ways.clear()
        for way in activity.physical.implementations if activity is not None else ():
            self.ways.addItem(f"{way.name}  {way.title}", way.name)
        if activity is not None and self.editor is not None and node is not None:
            self.name.setText(changes.title(self.editor.document, node))
            row = self.tree.selectedItems()[0]
            at = next((i for i in range(self.ways.count()) if f"@{self.ways.itemData(i)}" in row.text(WHAT)), 0)
            self.ways.setCurrentIndex(at)
        else:
            self.name.setText("")
        self._explain()
        choice = self.ways.count() > 1
        for widget in (self.ways, self.pin, self.forbid):
            widget.setEnabled(choice)
        self.limit.setEnabled(bool(nodes))
        if node is not None:
            self.asked.emit(node)

    def _explain(self) -> None:
        """Why the chosen lines cost what they cost, in full."""
        rows = self.tree.selectedItems()
        lines = [f"{row.text(WHAT)}: {row.text(WHY)}" for row in rows]
        self.why.setText("\n".join(lines[:MOST_LINES]) or tr("Choose a line to see why, to pin or to forbid."))

    def pin_way(self) -> None:
        """The chosen node must have the implementation in the box."""
        if self.editor is not None and self.ways.count():
            self.editor.push(changes.pin(self.editor.document, self.nodes()[0], self.ways.currentData()))

    def forbid_way(self) -> None:
        """The chosen node must not have it."""
        if self.editor is not None and self.ways.count():
            self.editor.push(changes.forbid(self.editor.document, self.nodes()[0], self.ways.currentData()))

    def _ask_limit(self) -> None:
        cost, given = QInputDialog.getDouble(
            self, tr("Limit"), tr("What the selected lines may cost together at most"), 0, 0, 1e15, 0
        )
        if given:
            self.set_limit(cost)

    def set_limit(self, cost: float) -> None:
        """The selected lines may cost so much together."""
        if self.editor is not None and self.nodes():
            self.editor.push(changes.add_limit(self.editor.document, self.nodes(), cost))
