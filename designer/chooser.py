"""A box to type into with what fits below it: quick-add and the command palette are made from it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QIcon, QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from designer.widgets import label


@dataclass(frozen=True)
class Entry:
    """Something to choose."""

    key: str
    text: str
    icon: QIcon | None = None
    tip: str = ""


class Chooser(QFrame):
    """Enter takes the entry that is marked, the arrows mark another, Escape leaves."""

    def __init__(self, parent: QWidget, prompt: str, width: int, height: int) -> None:
        super().__init__(parent)
        self.holder = parent
        self.setObjectName("popup")
        self.line = QLineEdit()
        self.line.setPlaceholderText(prompt)
        self.line.setAccessibleName(prompt)
        self.line.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setIconSize(QSize(20, 20))
        self.list.setAccessibleName(prompt)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.hint = label("", "muted")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 10, 10, 8)
        layout.setSpacing(6)
        for widget in (self.line, self.list, self.hint):
            layout.addWidget(widget)
        self.resize(width, height)
        self.hide()
        self.line.textChanged.connect(self._search)
        self.line.installEventFilter(self)
        self.list.installEventFilter(self)
        self.list.itemClicked.connect(self._take)

    # -- what those made from it say

    def entries(self, query: str) -> list[Entry]:
        """What fits a typed text, the best first."""
        raise NotImplementedError

    def taken(self, key: str) -> None:
        """An entry was chosen."""
        raise NotImplementedError

    def left(self) -> None:
        """The chooser was left without a choice."""

    # -- working

    def open_at(self, x: int, y: int, hint: str = "") -> None:
        """Show at a place of the parent, inside it."""
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))
        self.line.clear()
        self._search("")
        self.move(
            min(max(x, 8), max(self.holder.width() - self.width() - 8, 8)),
            min(max(y, 8), max(self.holder.height() - self.height() - 8, 8)),
        )
        self.show()
        self.raise_()
        self.line.setFocus()

    def leave(self) -> None:
        """Close without choosing."""
        self.hide()
        self.left()

    def _search(self, query: str) -> None:
        self.list.clear()
        for entry in self.entries(query):
            item = QListWidgetItem(entry.text)
            if entry.icon is not None:
                item.setIcon(entry.icon)
            item.setData(Qt.ItemDataRole.UserRole, entry.key)
            item.setToolTip(entry.tip)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.hide()
            self.left()
            self.taken(item.data(Qt.ItemDataRole.UserRole))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            key = event.key()
            if key == Qt.Key.Key_Escape:
                self.leave()
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take(self.list.currentItem())
                return True
            if watched is self.line and key in (Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Tab):
                step = -1 if key == Qt.Key.Key_Up else 1
                self.list.setCurrentRow(max(0, min(self.list.count() - 1, self.list.currentRow() + step)))
                return True
        elif event.type() == QEvent.Type.FocusOut and not self.isAncestorOf(self.window().focusWidget() or self):
            self.hide()
        return super().eventFilter(watched, event)
