"""What a person asks of plans: what is pinned, forbidden and limited, each to be taken back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QDoubleValidator, QIntValidator
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from designer.document.edits import Edit
from designer.editor import Editor
from designer.plan import changes
from designer.text import tr
from designer.widgets import label

Undoing = Callable[[], Edit]


class WishesTab(QWidget):
    """Pins, bans and limits in a list; memory and resumption as fields. All of it is saved with the file."""

    def __init__(self) -> None:
        super().__init__()
        self.editor: Editor | None = None
        self.list = QListWidget()
        self.list.setAccessibleName(tr("What is asked of plans"))
        self.list.itemSelectionChanged.connect(self._enable)
        self.remove = QPushButton(tr("Take back"))
        self.remove.clicked.connect(self.take_back)
        self.memory = QLineEdit()
        self.memory.setValidator(QIntValidator(0, 2_000_000_000))
        self.memory.setPlaceholderText(tr("rows, as many as there are"))
        self.memory.editingFinished.connect(self._set_memory)
        self.resumption = QLineEdit()
        validator = QDoubleValidator(0, 1e15, 3)
        validator.setNotation(QDoubleValidator.Notation.StandardNotation)
        self.resumption.setValidator(validator)
        self.resumption.setPlaceholderText(tr("cost, whatever it is"))
        self.resumption.editingFinished.connect(self._set_resumption)
        fields = QFormLayout()
        fields.setContentsMargins(0, 0, 0, 0)
        fields.addRow(tr("Rows in memory at most"), self.memory)
        fields.addRow(tr("To be done again at most"), self.resumption)
        row = QHBoxLayout()
        row.addWidget(label(tr("Pin, forbid and limit on the tab Costs."), "muted"), 1)
        row.addWidget(self.remove)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addLayout(fields)
        layout.addWidget(self.list, 1)
        layout.addLayout(row)
        self._enable()

    def follow(self, editor: Editor | None) -> None:
        """Show what a workflow asks for."""
        self.editor = editor
        self.refresh()

    def refresh(self) -> None:
        """Show what the file asks for now."""
        self.list.clear()
        editor = self.editor
        self.setEnabled(editor is not None)
        if editor is None:
            return
        document = editor.document
        asked = changes.planning_of(document)
        title = partial(changes.told_apart, document)
        for node, way in asked.pin.items():
            self._add(tr("{0} is pinned to {1}", title(node), way), partial(changes.unpin, document, node))
        for node, ways in asked.forbid.items():
            for way in ways:
                text = tr("{0} must not be {1}", title(node), way)
                self._add(text, partial(changes.allow, document, node, way))
        for number, limit in enumerate(asked.limits):
            names = ", ".join(map(title, limit.nodes))
            text = tr("{0} may cost {1} at most", names, f"{limit.cost:,.0f}")
            self._add(text, partial(changes.remove_limit, document, number))
        if not self.list.count():
            nothing = QListWidgetItem(tr("Nothing is pinned, forbidden or limited."))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(nothing)
        self.memory.setText("" if asked.memory_rows is None else str(asked.memory_rows))
        self.resumption.setText("" if asked.resumption is None else f"{asked.resumption:.15g}")
        self._enable()

    def _add(self, text: str, undo: Undoing) -> None:
        item = QListWidgetItem(text)
        item.setData(Qt.ItemDataRole.UserRole, undo)
        self.list.addItem(item)

    def take_back(self) -> None:
        """Take the selected wish back."""
        item = self.list.currentItem()
        undo = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        if self.editor is not None and undo is not None:
            self.editor.push(undo())

    def _enable(self) -> None:
        item = self.list.currentItem()
        self.remove.setEnabled(item is not None and item.data(Qt.ItemDataRole.UserRole) is not None)

    def _set_memory(self) -> None:
        if self.editor is not None:
            text = self.memory.text()
            self.editor.push(changes.set_memory(self.editor.document, int(text) if text else None))

    def _set_resumption(self) -> None:
        if self.editor is not None:
            text = self.resumption.text().replace(",", ".")
            self.editor.push(changes.set_resumption(self.editor.document, float(text) if text else None))
