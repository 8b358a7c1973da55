"""New from a template: the archetypes and the workflows that come with Papilio, with pictures."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QListWidget, QListWidgetItem, QVBoxLayout

from designer.canvas.arrange import arrange, place_missing
from designer.canvas.picture import thumbnail
from designer.document.analysis import analyse
from designer.document.document import Document
from designer.document.layout import positions
from designer.session.archetypes import archetype, archetypes
from designer.text import tr
from designer.widgets import label
from engine.errors import PapilioError
from engine.model.file import workflow_from
from engine.model.workflow import FILE_ENDING, Workflow
from engine.model.yamldata import read_yaml

if TYPE_CHECKING:
    from designer.window.window import MainWindow

PICTURE = QSize(300, 130)
MAX_NODES = 400


def shipped() -> list[tuple[str, Workflow]]:
    """The workflows that come with Papilio."""
    found = []
    for file in sorted(resources.files("workflows").iterdir(), key=lambda file: file.name):
        if file.name.endswith(FILE_ENDING):
            try:
                data, lines = read_yaml(file.read_text(encoding="utf-8"), file.name)
                found.append((file.name.removesuffix(FILE_ENDING), workflow_from(data, file.name, lines)))
            except PapilioError:
                continue
    return found


class TemplatesDialog(QDialog):
    """Pictures to choose from."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window_ = window
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("New from a template"))
        self.resize(1040, 680)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Templates"))
        self.list.setViewMode(QListWidget.ViewMode.IconMode)
        self.list.setIconSize(PICTURE)
        self.list.setGridSize(QSize(PICTURE.width() + 24, PICTURE.height() + 56))
        self.list.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.list.setMovement(QListWidget.Movement.Static)
        self.list.setWordWrap(True)
        self.about = label("", "muted")
        self.about.setWordWrap(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(self.list)
        layout.addWidget(self.about)
        layout.addWidget(buttons)
        self._workflows: list[Workflow] = []
        for id_, name, about in archetypes():
            self._add(name, about, archetype(id_))
        for name, workflow in shipped():
            about = " ".join((workflow.description or "").split())
            self._add(workflow.name or name, about, workflow)
        self.list.currentRowChanged.connect(self._show)
        self.list.itemDoubleClicked.connect(lambda _: self.accept())
        self.list.setCurrentRow(0)

    def _add(self, name: str, about: str, workflow: Workflow) -> None:
        document = Document(workflow.model_copy(deep=True), self.window_.catalogue)
        if len(workflow.nodes) <= MAX_NODES:
            if not positions(document.workflow):
                place_missing(document, arrange(document, analyse(document).wings))
            icon = QIcon(thumbnail(document, PICTURE))
        else:
            icon = QIcon()
        item = QListWidgetItem(icon, name)
        item.setToolTip(about)
        self.list.addItem(item)
        self._workflows.append(workflow)

    def _show(self, row: int) -> None:
        if row >= 0:
            self.about.setText(self._workflows[row].description or "")

    def accept(self) -> None:
        """Open a copy of the chosen one."""
        row = self.list.currentRow()
        super().accept()
        if row >= 0:
            self.window_.files.new_from(self._workflows[row].model_copy(deep=True))
