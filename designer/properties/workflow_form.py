"""The form of the workflow itself: name, description, parameters and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from designer.document import changes
from designer.document.edits import Edit
from designer.editor import Editor
from designer.properties.editors.simple import written
from designer.text import tr
from designer.theme.icons import give_icon
from designer.widgets import label
from engine.model.workflow import Parameter
from engine.model.yamldata import scalar


class WorkflowForm(QWidget):
    """What is edited when no node is selected."""

    def __init__(self, editor: Editor) -> None:
        super().__init__()
        self.editor = editor
        self._own = False
        layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 12, 14, 16)
        layout.setSpacing(6)
        layout.addWidget(label(tr("Workflow"), "heading"))
        self.shape = label("", "muted")
        self.shape.setWordWrap(True)
        layout.addWidget(self.shape)
        self.wrong = label("", "wrong", wrap=True)
        layout.addWidget(self.wrong)
        self.loose = QPushButton(tr("Remove the edges that lead nowhere"))  # the canvas cannot show them
        give_icon(self.loose, "remove")
        self.loose.clicked.connect(
            lambda: self._push(changes.disconnect(editor.document, changes.loose_edges(editor.document)))
        )
        layout.addWidget(self.loose)
        self.name = QLineEdit(placeholderText=tr("Name"))
        self.name.setAccessibleName(tr("Name"))
        self.name.textEdited.connect(lambda text: self._push(changes.set_field(editor.document, "name", text)))
        layout.addWidget(self.name)
        self.about = QPlainTextEdit(placeholderText=tr("What it does and for whom"))
        self.about.setAccessibleName(tr("Description"))
        self.about.setFixedHeight(96)
        self.about.setTabChangesFocus(True)
        self.about.textChanged.connect(self._described)
        layout.addWidget(self.about)
        self.parameters = self._table(
            layout,
            tr("Parameters"),
            tr("Values that a run may change; settings name them as ${name}."),
            self._parameter,
        )
        self.roots = self._table(
            layout, tr("Roots"), tr("Folders that paths must stay in; relative to the file."), self._root
        )
        layout.addStretch(1)
        self.take_over()
        self.refresh()

    def _table(
        self, layout: QVBoxLayout, title: str, about: str, keep: Callable[[str, str | None], None]
    ) -> QTableWidget:
        layout.addSpacing(8)
        layout.addWidget(label(title, "heading"))
        text = label(about, "muted")
        text.setWordWrap(True)
        layout.addWidget(text)
        table = QTableWidget(0, 2)
        table.setAccessibleName(title)
        table.setHorizontalHeaderLabels([tr("Name"), tr("Value")])
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setTabKeyNavigation(False)  # Tab goes on to the next field; arrows go from cell to cell
        table.setFixedHeight(128)
        table.cellChanged.connect(lambda row, _: self._kept(table, row, keep))
        layout.addWidget(table)
        buttons = QHBoxLayout()
        add, remove = QPushButton(tr("Add")), QPushButton(tr("Remove"))
        give_icon(add, "add")
        give_icon(remove, "remove")
        add.clicked.connect(lambda: self._add(title, keep))
        remove.clicked.connect(lambda: self._remove(table, keep))
        buttons.addWidget(add)
        buttons.addWidget(remove)
        buttons.addStretch(1)
        layout.addLayout(buttons)
        return table

    def _add(self, title: str, keep: Callable[[str, str | None], None]) -> None:
        name, good = QInputDialog.getText(self, title, tr("Name (letters, digits and _)"))
        name = name.strip()
        if good and name.isidentifier() and name.isascii():
            keep(name, "")

    def _remove(self, table: QTableWidget, keep: Callable[[str, str | None], None]) -> None:
        item = table.item(table.currentRow(), 0)
        if item is not None:
            keep(item.text(), None)

    def _kept(self, table: QTableWidget, row: int, keep: Callable[[str, str | None], None]) -> None:
        name, value = table.item(row, 0), table.item(row, 1)
        if not self._own and name is not None and value is not None:
            keep(name.text(), value.text())

    def _parameter(self, name: str, value: str | None) -> None:
        known = self.editor.document.workflow.parameters.get(name)
        if value is None:
            self._push(changes.set_parameter(self.editor.document, name, None))
        else:
            default = scalar(value) if value else None
            fresh = known.model_copy(update={"default": default}) if known else Parameter(default=default)
            self._push(changes.set_parameter(self.editor.document, name, fresh))
        self.take_over()

    def _root(self, name: str, value: str | None) -> None:
        self._push(changes.set_root(self.editor.document, name, value))
        self.take_over()

    def _push(self, edit: Edit) -> None:
        self._own = True
        try:
            self.editor.push(edit)
        finally:
            self._own = False

    def _described(self) -> None:
        if not self._own:
            self._push(changes.set_field(self.editor.document, "description", self.about.toPlainText()))

    def take_over(self) -> None:
        """Show the workflow as it is now."""
        workflow = self.editor.document.workflow
        if self.name.text() != (workflow.name or ""):
            self.name.setText(workflow.name or "")
        self._own = True
        try:
            if self.about.toPlainText() != (workflow.description or ""):
                self.about.setPlainText(workflow.description or "")
            self._fill(self.parameters, {name: one.default for name, one in workflow.parameters.items()})
            self._fill(self.roots, dict(workflow.roots))
        finally:
            self._own = False

    def _fill(self, table: QTableWidget, rows: dict[str, Any]) -> None:
        with QSignalBlocker(table):
            table.setRowCount(len(rows))
            for row, (name, value) in enumerate(sorted(rows.items())):
                key = QTableWidgetItem(name)
                key.setFlags(key.flags() & ~Qt.ItemFlag.ItemIsEditable)
                table.setItem(row, 0, key)
                table.setItem(row, 1, QTableWidgetItem(written(value)))

    def on_edit(self, edit: Edit) -> bool:
        """Follow an edit of the document."""
        if not self._own and any(cell.place[0] in ("field", "parameters", "roots") for cell in edit.cells):
            self.take_over()
        return True

    def refresh(self) -> None:
        """Take over the shape from the latest analysis."""
        analysis = self.editor.analysis
        count = len(self.editor.document.workflow.nodes)
        if not count:
            self.shape.setText(tr("Nothing is drawn yet. Drag an operator onto the canvas, or press Tab there."))
        else:
            self.shape.setText(tr("Nodes: {0}, {1}", count, analysis.shape.archetype.value))
        wrong = "\n".join(problem.message for problem in analysis.of_workflow) if count else ""
        self.wrong.setText(wrong)
        self.wrong.setVisible(bool(wrong))
        self.loose.setVisible(bool(changes.loose_edges(self.editor.document)))

    def go_to(self, place: str) -> None:
        """Put the cursor on the parameter or the root that a problem names, else into the first field."""
        section, _, name = place.partition(".")
        table = {"parameters": self.parameters, "roots": self.roots}.get(section)
        found = table.findItems(name, Qt.MatchFlag.MatchExactly) if table is not None else []
        row = next((item.row() for item in found if item.column() == 0), None)
        if table is None or row is None:
            self.name.setFocus()
        else:
            table.setCurrentCell(row, 1)
            table.setFocus()
