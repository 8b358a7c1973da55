"""The columns of ports, with their types."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from designer.text import tr
from designer.widgets import head_width, label
from engine.model.types import Schema


class ColumnsTable(QWidget):
    """What leaves by each port. A double click or Enter asks where a column comes from."""

    asked = Signal(str, str)  # port, column

    def __init__(self) -> None:
        super().__init__()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 0)
        self.heading = label(tr("Columns that leave"), "heading")
        self.tree = QTreeWidget()
        self.tree.setHeaderLabels([tr("Column"), tr("Type")])
        self.tree.setAccessibleName(tr("Columns that leave"))
        self.tree.setRootIsDecorated(False)
        self.tree.setIndentation(12)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setMinimumSectionSize(head_width(self.tree.header(), tr("Column")))  # or the table scrolls
        self.tree.setMinimumHeight(150)
        self.tree.itemActivated.connect(self._asked)
        self.tree.setToolTip(tr("A double click or Enter shows where a column comes from and where it goes"))
        layout.addWidget(self.heading)
        layout.addWidget(self.tree)

    def show_columns(self, ports: Sequence[tuple[str, Schema | None]]) -> None:
        """Take over the ports' schemas."""
        self.setVisible(bool(ports))
        self.tree.clear()
        for port, schema in ports:
            parent = QTreeWidgetItem([port, "" if schema is not None else tr("not known yet")])
            font = parent.font(0)
            font.setBold(True)
            parent.setFont(0, font)
            self.tree.addTopLevelItem(parent)
            for name, kind in (schema or {}).items():
                parent.addChild(QTreeWidgetItem([name, kind]))
            parent.setExpanded(True)
            if len(ports) > 1 and port != ports[0][0]:
                parent.setExpanded(False)

    def _asked(self, item: QTreeWidgetItem) -> None:
        parent = item.parent()
        if parent is not None:
            self.asked.emit(parent.text(0), item.text(0))
