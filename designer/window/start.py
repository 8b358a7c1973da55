"""What is shown while no workflow is open: recent files and templates with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from designer.text import tr
from designer.theme.icons import action_icon, give_icon, program_icon
from designer.widgets import label

if TYPE_CHECKING:
    from designer.window.window import MainWindow


class StartPage(QWidget):
    """The first thing a person sees."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self.window_ = window
        outer = QHBoxLayout(self)
        outer.addStretch(1)
        inner = QVBoxLayout()
        outer.addLayout(inner, 4)
        outer.addStretch(1)
        inner.addStretch(1)
        head = QHBoxLayout()
        logo = QLabel()
        logo.setPixmap(program_icon().pixmap(64, 64))
        head.addWidget(logo)
        words = QVBoxLayout()
        title = QLabel("Papilio")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 2.2)
        font.setBold(True)
        title.setFont(font)
        words.addWidget(title)
        words.addWidget(label(tr("Draw a butterfly, see at once whether it holds."), "muted"))
        head.addLayout(words, 1)
        inner.addLayout(head)
        inner.addSpacing(16)
        buttons = QHBoxLayout()
        for id_, icon, text in (
            ("file.new", "new", tr("New workflow")),
            ("file.template", "template", tr("From a template…")),
            ("file.open", "open", tr("Open…")),
        ):
            button = QPushButton(text)
            give_icon(button, icon)
            button.setMinimumHeight(38)
            button.clicked.connect(lambda _=False, id_=id_: window.run(id_))
            buttons.addWidget(button)
        buttons.addStretch(1)
        inner.addLayout(buttons)
        inner.addSpacing(16)
        inner.addWidget(label(tr("Recent files"), "heading"))
        self.recent = QListWidget()
        self.recent.setAccessibleName(tr("Recent files"))
        self.recent.setIconSize(QSize(18, 18))
        self.recent.setMaximumHeight(230)
        self.recent.itemActivated.connect(self._open)
        self.recent.itemClicked.connect(self._open)
        inner.addWidget(self.recent)
        inner.addStretch(2)

    def refresh(self) -> None:
        """Show the recent files as they are now."""
        self.recent.clear()
        for path in self.window_.settings.recent():
            item = QListWidgetItem(action_icon("new"), f"{path.name}     {path.parent}")
            item.setData(Qt.ItemDataRole.UserRole, str(path))
            self.recent.addItem(item)
        if not self.recent.count():
            item = QListWidgetItem(tr("None yet"))
            item.setFlags(Qt.ItemFlag.NoItemFlags)
            self.recent.addItem(item)

    def _open(self, item: QListWidgetItem) -> None:
        path = item.data(Qt.ItemDataRole.UserRole)
        if path:
            self.window_.files.open(Path(path))
