"""The help pages of `resources/help`, inside the program."""

from __future__ import annotations

from importlib import resources

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QListWidget, QTextBrowser, QWidget

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
        self.list.setFixedWidth(190)
        self.text = QTextBrowser()
        self.text.setOpenLinks(False)
        self.text.anchorClicked.connect(lambda url: self.show_page(url.toString().removesuffix(".md")))
        layout = QHBoxLayout(self)
        layout.addWidget(self.list)
        layout.addWidget(self.text, 1)
        names = sorted(file.name.removesuffix(".md") for file in self.folder.iterdir() if file.name.endswith(".md"))
        self.list.addItems(names)
        self.list.currentTextChanged.connect(self.show_page)
        self.show_page(page if page in names else names[0])

    def show_page(self, name: str) -> None:
        """Turn to a page."""
        file = self.folder / f"{name}.md"
        if "/" not in name and file.is_file():
            self.text.setMarkdown(file.read_text(encoding="utf-8"))
            found = self.list.findItems(name, Qt.MatchFlag.MatchExactly)
            if found:
                self.list.setCurrentItem(found[0])
