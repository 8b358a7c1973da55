"""The outline panel."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from designer.document.analysis import Analysis
from designer.document.document import Document
from designer.palette.matching import best
from designer.text import tr
from designer.theme.icons import operator_icon
from designer.theme.theme import theme
from engine.model.problems import Level

SHOWN = 2_000


class OutlinePanel(QWidget):
    """Nodes in the order rows pass them, found by title, id or operator."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.search = QLineEdit(placeholderText=tr("Find a node"))
        self.search.setAccessibleName(tr("Find a node"))
        self.search.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setAccessibleName(tr("Nodes"))
        self.list.setIconSize(QSize(18, 18))
        self.list.setUniformItemSizes(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 10, 6, 6)
        layout.addWidget(self.search)
        layout.addWidget(self.list)
        self._document: Document | None = None
        self._analysis: Analysis | None = None
        self.search.textChanged.connect(lambda _: self._fill())
        self.search.returnPressed.connect(lambda: self._go(self.list.item(0)))
        self.list.itemClicked.connect(self._go)
        self.list.itemActivated.connect(self._go)

    def show_nodes(self, document: Document | None, analysis: Analysis | None) -> None:
        """Take over the nodes of a document."""
        self._document, self._analysis = document, analysis
        if self.isVisible():
            self._fill()

    def showEvent(self, event) -> None:  # type: ignore[no-untyped-def]
        super().showEvent(event)
        self._fill()

    def _fill(self) -> None:
        self.list.clear()
        document, analysis = self._document, self._analysis
        if document is None or analysis is None:
            return
        order = list(dict.fromkeys([*analysis.drawn.order, *document.workflow.nodes]))
        order = [id_ for id_ in order if id_ in document.workflow.nodes]
        nodes = document.workflow.nodes
        found = best(self.search.text(), order, lambda id_: (document.title_of(id_), f"{id_} {nodes[id_].operator}"))
        for id_ in found[:SHOWN]:
            kind = document.catalogue.get(nodes[id_].operator)
            title = document.title_of(id_)
            item = QListWidgetItem(operator_icon(nodes[id_].operator, kind.family if kind else ""), title)
            item.setData(Qt.ItemDataRole.UserRole, id_)
            item.setToolTip(f"{id_} · {kind.title if kind else nodes[id_].operator}")
            if analysis.level(id_) is Level.ERROR:
                item.setForeground(theme().error)
            self.list.addItem(item)

    def _go(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.asked.emit(item.data(Qt.ItemDataRole.UserRole))
