"""The problems panel."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem

from designer.document.analysis import Analysis
from designer.document.document import Document
from designer.text import tr
from designer.theme.icons import action_icon
from designer.theme.theme import theme
from designer.widgets import Hint, head_width
from engine.model.problems import Level

SHOWN = 500


class ProblemsPanel(QTreeWidget):
    """One row for each problem. A click goes to the node and the field, or to the workflow's own."""

    asked = Signal(str, str)  # node, setting; without a node the workflow's own

    def __init__(self) -> None:
        super().__init__()
        self.setHeaderLabels([tr("Node"), tr("Problem"), tr("Setting")])
        self.setAccessibleName(tr("Problems"))
        self.setRootIsDecorated(False)
        self.setAlternatingRowColors(False)
        self.setUniformRowHeights(True)
        self.setIconSize(QSize(16, 16))
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        self.header().setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        self.header().setSectionResizeMode(2, QHeaderView.ResizeMode.ResizeToContents)
        self.header().setStretchLastSection(False)
        self.header().setMinimumSectionSize(head_width(self.header(), tr("Problem")))  # or the table scrolls
        self.setColumnWidth(0, 190)
        self.hint = Hint(self)
        self.itemActivated.connect(self._go)
        self.itemClicked.connect(self._go)

    def show_problems(self, analysis: Analysis, document: Document) -> None:
        """Take over what the latest analysis found."""
        self.clear()
        colors = theme()
        icons = {
            Level.ERROR: action_icon("error", colors.error),
            Level.WARNING: action_icon("warning", colors.warning),
        }
        for problem in analysis.problems[:SHOWN]:
            known = problem.node in document.workflow.nodes if problem.node else False
            title = document.title_of(str(problem.node)) if known else problem.node or tr("Workflow")
            row = QTreeWidgetItem([title, problem.message, problem.setting or problem.port or ""])
            row.setIcon(0, icons[problem.level])
            row.setToolTip(1, problem.message)
            row.setData(0, Qt.ItemDataRole.UserRole, (problem.node or "", problem.setting or ""))
            self.addTopLevelItem(row)
        if len(analysis.problems) > SHOWN:
            self.addTopLevelItem(QTreeWidgetItem(["", tr("and {0} more", len(analysis.problems) - SHOWN), ""]))
        if document.workflow.nodes:
            self.hint.tell(tr("No problems: the workflow can run (F9)"))
        else:
            self.hint.tell(tr("An empty canvas. Drag an operator onto it, or press Tab and type its name."))

    def go_to_row(self, number: int) -> None:
        """Go to a problem as a click would."""
        row = self.topLevelItem(number)
        if row is not None:
            self.setCurrentItem(row)
            self._go(row)

    def _go(self, row: QTreeWidgetItem) -> None:
        data = row.data(0, Qt.ItemDataRole.UserRole)
        if data:
            self.asked.emit(*data)
