"""The command palette: every command by typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout

from designer.commands.registry import Command, commands
from designer.palette.matching import best
from designer.text import tr
from designer.theme.icons import action_icon

if TYPE_CHECKING:
    from designer.window.window import MainWindow

WIDTH, HEIGHT = 560, 400


class CommandPalette(QFrame):
    """Commands that make sense now, with their shortcuts; Enter runs the first."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window_ = window
        self.setObjectName("popup")
        self.line = QLineEdit(placeholderText=tr("What do you want to do?"))
        self.line.setAccessibleName(tr("Search commands"))
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Commands"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 12, 12)
        layout.addWidget(self.line)
        layout.addWidget(self.list)
        self.resize(WIDTH, HEIGHT)
        self.hide()
        self.line.textChanged.connect(self._search)
        self.line.installEventFilter(self)
        self.list.itemClicked.connect(self._take)

    def ask(self) -> None:
        """Open in the upper middle of the window."""
        self.move((self.window_.width() - WIDTH) // 2, 90)
        self.line.clear()
        self._search("")
        self.show()
        self.raise_()
        self.line.setFocus()

    def _search(self, query: str) -> None:
        self.list.clear()
        window = self.window_
        possible = [one for one in commands().values() if one.enabled is None or one.enabled(window)]

        def texts(one: Command) -> tuple[str, str]:
            return tr(one.text), f"{tr(one.menu)} {one.id}"

        for one in best(query, possible, texts):
            shortcut = f"     {one.shortcut}" if one.shortcut else ""
            item = QListWidgetItem(f"{tr(one.menu)}:  {tr(one.text)}{shortcut}")
            if one.icon:
                item.setIcon(action_icon(one.icon))
            item.setData(Qt.ItemDataRole.UserRole, one.id)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        self.leave()
        if item is not None:
            self.window_.run(item.data(Qt.ItemDataRole.UserRole))

    def leave(self) -> None:
        """Close without doing anything."""
        self.hide()
        if self.window_.view is not None:
            self.window_.view.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            key = event.key()
            if key == Qt.Key.Key_Escape:
                self.leave()
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take(self.list.currentItem())
                return True
            if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
                step = 1 if key == Qt.Key.Key_Down else -1
                self.list.setCurrentRow(max(0, min(self.list.count() - 1, self.list.currentRow() + step)))
                return True
        elif event.type() == QEvent.Type.FocusOut and not self.list.hasFocus():
            self.hide()
        return super().eventFilter(watched, event)
