"""The metadata store's workflows: open a version, save one, compare two."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QInputDialog,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
)

from designer.document.document import Document
from designer.session.compare import CompareDialog
from designer.text import tr
from designer.widgets import Hint, label
from engine.errors import PapilioError
from engine.model.file import workflow_from
from engine.model.workflow import Workflow
from engine.store import MetadataStore, WorkflowInfo

if TYPE_CHECKING:
    from designer.window.window import MainWindow

KEY = Qt.ItemDataRole.UserRole


class StoreDialog(QDialog):
    """Workflows with their versions, the latest first."""

    def __init__(self, window: MainWindow, url: str | None = None) -> None:
        super().__init__(window)
        self.window_ = window
        self.url = url
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Metadata store"))
        self.resize(820, 520)
        self.place = label("", "muted")
        self.tree = QTreeWidget()
        self.tree.setHeaderLabels([tr("Workflow"), tr("Version"), tr("Saved"), tr("Author"), tr("Comment")])
        self.tree.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        Hint(self.tree, tr("Nothing is stored yet. Save the open workflow here, or run papilio store put FILE."))
        self.tree.itemSelectionChanged.connect(self._selected)
        self.tree.itemDoubleClicked.connect(lambda _: self.open_version())
        self.open_button = QPushButton(tr("Open"))
        self.put_button = QPushButton(tr("Save the open workflow here…"))
        self.compare_button = QPushButton(tr("Compare"))
        self.compare_button.setToolTip(tr("Two versions, or one with the open workflow"))
        self.open_button.clicked.connect(self.open_version)
        self.put_button.clicked.connect(self.ask_put)
        self.compare_button.clicked.connect(self.compare)
        layout = QVBoxLayout(self)
        layout.addWidget(self.place)
        layout.addWidget(self.tree)
        row = QHBoxLayout()
        for button in (self.open_button, self.compare_button, self.put_button):
            row.addWidget(button)
        row.addStretch(1)
        layout.addLayout(row)
        self.refresh()

    def _ask(self, question: Any) -> Any:
        """An answer of the store; a store that fails is told, not fatal."""
        try:
            with MetadataStore(self.url) as store:
                self.place.setText(str(store.place))
                return question(store)
        except PapilioError as error:
            self.window_.complain(tr("The metadata store"), str(error))
            return None

    def refresh(self) -> None:
        """Read the store."""
        self.tree.clear()
        found = self._ask(lambda store: [(info, store.list_versions(info.name)) for info in store.list_workflows()])
        for info, versions in found or ():
            parent = self._row(info, [info.name])
            self.tree.addTopLevelItem(parent)
            for version in sorted(versions, key=lambda one: -one.version):
                parent.addChild(self._row(version, [""]))
        self._selected()

    def _row(self, info: WorkflowInfo, first: list[str]) -> QTreeWidgetItem:
        saved = info.saved.astimezone().strftime("%Y-%m-%d %H:%M")
        row = QTreeWidgetItem([*first, str(info.version), saved, info.author, info.comment])
        row.setData(0, KEY, (info.name, info.version))
        return row

    def chosen(self) -> list[tuple[str, int]]:
        """The selected versions."""
        return [tuple(item.data(0, KEY)) for item in self.tree.selectedItems()]

    def _selected(self) -> None:
        count = len(self.chosen())
        self.open_button.setEnabled(count == 1)
        self.compare_button.setEnabled(count == 2 or (count == 1 and self.window_.editor is not None))
        self.put_button.setEnabled(self.window_.editor is not None)

    def version(self, name: str, version: int) -> Workflow | None:
        """A version as a workflow."""
        record = self._ask(lambda store: store.get_workflow(name, version))
        return workflow_from(record.document, f"{name} {version}") if record is not None else None

    def open_version(self) -> None:
        """Open the selected version as a workflow of its own."""
        chosen = self.chosen()
        if len(chosen) == 1:
            workflow = self.version(*chosen[0])
            if workflow is not None:
                self.accept()
                self.window_.open_document(Document(workflow, self.window_.catalogue), modified=True)

    def ask_put(self) -> None:
        """Save the open workflow under a name and a comment."""
        editor = self.window_.editor
        if editor is None:
            return
        known = editor.document.workflow.name or (editor.path.name.split(".")[0] if editor.path else "workflow")
        name, good = QInputDialog.getText(self, tr("Save into the store"), tr("Name"), text=known)
        if good and name.strip():
            comment, good = QInputDialog.getText(self, tr("Save into the store"), tr("What changed?"))
            if good:
                self.put(name.strip(), comment)

    def put(self, name: str, comment: str) -> None:
        """Save the open workflow as the next version."""
        editor = self.window_.editor
        if editor is not None:
            document, text = editor.document.workflow.document(), editor.document.text()
            self._ask(lambda store: store.put_workflow(name, document, text, author=getpass.getuser(), comment=comment))
            self.refresh()

    def compare(self) -> None:
        """Two selected versions, or one with what is open."""
        chosen = sorted(self.chosen(), key=lambda one: one[1])
        found = [self.version(*one) for one in chosen]
        if len(found) == 1 and self.window_.editor is not None:
            found.append(self.window_.editor.document.workflow)
            title = tr("{0}, version {1}, and the open workflow", *chosen[0])
        else:
            title = tr("{0}, versions {1} and {2}", chosen[0][0], chosen[0][1], chosen[-1][1])
        if len(found) == 2 and found[0] is not None and found[1] is not None:
            CompareDialog(self.window_, found[0], found[1], title).open()
