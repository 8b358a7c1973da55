"""The help pages of `resources/help`, inside the program."""

from __future__ import annotations

from importlib import resources

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QListWidget, QListWidgetItem, QTextBrowser, QWidget

from designer.text import tr


class HelpDialog(QDialog):
    """The pages on the left, the page on the right."""

    def __init__(self, parent: QWidget, page: str = "designer") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Help"))
        self.resize(940, 640)
        self.folder = resources.files("resources") / "help"
        self.list = QListWidget()
        self.list.setFixedWidth(250)
        self.text = QTextBrowser()
        self.text.setOpenLinks(False)
        self.text.anchorClicked.connect(lambda url: self.show_page(url.toString().removesuffix(".md")))
        layout = QHBoxLayout(self)
        layout.addWidget(self.list)
        layout.addWidget(self.text, 1)
        self.list.setAccessibleName(tr("Help pages"))
        self.rows: dict[str, QListWidgetItem] = {}
        for file in sorted(self.folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".md"):
                first = file.read_text(encoding="utf-8").partition("\n")[0]
                name = file.name.removesuffix(".md")
                item = self.rows[name] = QListWidgetItem(first.removeprefix("# ") or name)
                item.setData(Qt.ItemDataRole.UserRole, name)
                self.list.addItem(item)
        self.list.currentItemChanged.connect(lambda now, _: self.show_page(now.data(Qt.ItemDataRole.UserRole)))
        self.show_page(page if page in self.rows else next(iter(self.rows)))

    def show_page(self, name: str) -> None:
        """Turn to a page."""
        file = self.folder / f"{name}.md"
        if "/" not in name and file.is_file():
            self.text.setMarkdown(file.read_text(encoding="utf-8"))
            if name in self.rows:
                self.list.setCurrentItem(self.rows[name])
