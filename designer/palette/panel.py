"""The palette: operators by family, searched by typing, dragged onto the canvas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QByteArray, QMimeData, QModelIndex, QPersistentModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QDrag, QIcon, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

from designer.canvas.drop import MIME
from designer.palette.matching import best, operator_texts
from designer.text import tr
from designer.theme.icons import operator_pixmap
from designer.theme.theme import theme, themes
from engine.model.operator import Operator

FAMILIES = ("sources", "cleansing", "shaping", "combining", "flow", "warehouse", "streams", "targets", "code")
NAME = Qt.ItemDataRole.UserRole
FAMILY = Qt.ItemDataRole.UserRole + 1
ICON = 64  # pixels of the picture it is painted from


class _Rows(QStyledItemDelegate):
    """Paints the operators with their icons, which are made for the rows that are seen."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        super().initStyleOption(option, index)
        name = index.data(NAME)
        if name:
            look: Any = option  # whose fields PySide's types do not tell
            selected = bool(look.state & QStyle.StateFlag.State_Selected)
            color = theme().accent_text if selected else theme().text
            mode = QIcon.Mode.Selected if selected else QIcon.Mode.Normal
            icon = QIcon()
            icon.addPixmap(operator_pixmap(name, index.data(FAMILY), color, ICON), mode)
            look.icon = icon
            look.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration


class _Tree(QTreeView):
    """The list itself; it knows how an operator is dragged."""

    def startDrag(self, actions: Qt.DropAction) -> None:
        index = self.currentIndex()
        name = index.data(NAME)
        if not name:
            return
        data = QMimeData()
        data.setData(MIME, QByteArray(str(name).encode()))
        drag = QDrag(self)
        drag.setMimeData(data)
        drag.setPixmap(operator_pixmap(name, "", theme().accent, 40))
        drag.exec(Qt.DropAction.CopyAction)


class PalettePanel(QWidget):
    """Every operator there is, plugins' included."""

    chosen = Signal(str)  # double-clicked, or Enter

    def __init__(self, catalogue: Mapping[str, type[Operator]]) -> None:
        super().__init__()
        self.catalogue = catalogue
        self.search = QLineEdit(placeholderText=tr("Search operators"))
        self.search.setAccessibleName(tr("Search operators"))
        self.search.setClearButtonEnabled(True)
        self.tree = _Tree()
        self.tree.setHeaderHidden(True)
        self.tree.setAccessibleName(tr("Operators"))
        self.tree.setIconSize(QSize(20, 20))
        self.tree.setItemDelegate(_Rows(self.tree))
        self.tree.setIndentation(14)
        self.tree.setDragEnabled(True)
        self.tree.setEditTriggers(QTreeView.EditTrigger.NoEditTriggers)
        self.model = QStandardItemModel(self)
        self.tree.setModel(self.model)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 10, 6, 6)
        layout.addWidget(self.search)
        layout.addWidget(self.tree)
        self.search.textChanged.connect(self.fill)
        self.search.returnPressed.connect(self._first)
        self.tree.activated.connect(self._activated)
        themes().changed.connect(self._restyle)
        self.fill("")

    def fill(self, query: str) -> None:
        """Show the operators that fit a typed text, by family while nothing is typed."""
        self.model.clear()
        kinds = list(self.catalogue.values())
        if query.strip():
            for kind in best(query, kinds, operator_texts):
                self.model.appendRow(self._item(kind, f"{kind.title}  ·  {kind.family}"))
            self.tree.setCurrentIndex(self.model.index(0, 0))
            return
        names = {
            "sources": tr("Sources"), "cleansing": tr("Cleansing"), "shaping": tr("Shaping"),
            "combining": tr("Combining"), "flow": tr("Flow"), "warehouse": tr("Warehouse"),
            "streams": tr("Streams"), "targets": tr("Targets"), "code": tr("Code"),
        }  # fmt: skip
        families = [*FAMILIES, *sorted({kind.family for kind in kinds} - set(FAMILIES))]
        for family in families:
            parent = QStandardItem(names.get(family, family.capitalize()))
            font = parent.font()
            font.setBold(True)
            parent.setFont(font)
            parent.setSizeHint(QSize(0, 30))
            parent.setSelectable(False)
            parent.setDragEnabled(False)
            for kind in sorted((kind for kind in kinds if kind.family == family), key=lambda kind: kind.title):
                parent.appendRow(self._item(kind, kind.title))
            if parent.rowCount():
                self.model.appendRow(parent)
        self.tree.expandAll()

    def _item(self, kind: type[Operator], text: str) -> QStandardItem:
        item = QStandardItem(text)
        item.setData(kind.name, NAME)
        item.setData(kind.family, FAMILY)
        item.setSizeHint(QSize(0, 28))
        item.setToolTip(f"{(kind.__doc__ or '').strip().splitlines()[0]}\n{kind.category.value}")
        return item

    def _restyle(self) -> None:
        self.fill(self.search.text())

    def _first(self) -> None:
        self._activated(self.model.index(0, 0))

    def _activated(self, index: QModelIndex) -> None:
        name = index.data(NAME)
        if name:
            self.chosen.emit(str(name))
