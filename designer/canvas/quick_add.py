"""Quick-add: choose an operator by typing a few letters, right where it will stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPointF, QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout

from designer.document import changes
from designer.palette.matching import best, operator_texts
from designer.text import tr
from designer.theme.icons import operator_icon
from designer.widgets import label
from engine.model.operator import Operator
from engine.model.workflow import Edge

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

WIDTH, HEIGHT = 300, 330


class QuickAdd(QFrame):
    """A box to type into with the operators that fit; Enter takes the first, Escape leaves."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__(view)
        self.view = view
        self.setObjectName("popup")
        self.line = QLineEdit(placeholderText=tr("Add an operator…"))
        self.line.setAccessibleName(tr("Add an operator"))
        self.line.setClearButtonEnabled(True)
        self.list = QListWidget()
        self.list.setIconSize(QSize(20, 20))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName(tr("Operators that fit"))
        self.hint = label("", "muted")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 10, 10, 8)
        layout.setSpacing(6)
        for widget in (self.line, self.list, self.hint):
            layout.addWidget(widget)
        self.resize(WIDTH, HEIGHT)
        self.hide()
        self._at = QPointF()
        self._port: tuple[str, bool, str] | None = None
        self._edge: Edge | None = None
        self._kinds: list[type[Operator]] = []
        self.line.textChanged.connect(self._search)
        self.line.installEventFilter(self)
        self.list.installEventFilter(self)
        self.list.itemClicked.connect(self._take)

    def ask(self, at: QPointF, port: tuple[str, bool, str] | None, edge: Edge | None = None) -> None:
        """Open at a point of the scene; `port` and `edge` say what the new node is connected to."""
        document = self.view.editor.document
        catalogue = document.catalogue
        self._at, self._port, self._edge = at, port, edge
        if port is not None:
            ports = document.ports.of(port[0])
            known = ports.output(port[2]) if port[1] else ports.input(port[2])
            names = changes.fitting_operators(document, port[0], known, port[1]) if known else []
            self.hint.setText(tr("What fits {0} of {1}", port[2], document.title_of(port[0])))
        elif edge is not None:
            names = [name for name, kind in catalogue.items() if kind.inputs and kind.outputs]
            self.hint.setText(tr("Between {0} and {1}", document.title_of(edge.source), document.title_of(edge.target)))
        else:
            names = list(catalogue)
            self.hint.setText(tr("Enter adds, Esc leaves"))
        order = ["sources", "cleansing", "shaping", "combining", "flow", "warehouse", "targets", "code"]
        rank = {family: number for number, family in enumerate(order)}
        self._kinds = sorted(
            (catalogue[name] for name in names), key=lambda kind: (rank.get(kind.family, 99), kind.title)
        )
        self.line.clear()
        self._search("")
        corner = self.view.mapFromScene(at)
        x = min(max(corner.x() - 40, 8), max(self.view.width() - WIDTH - 8, 8))
        y = min(max(corner.y() - 24, 8), max(self.view.height() - HEIGHT - 8, 8))
        self.move(x, y)
        self.show()
        self.raise_()
        self.line.setFocus()

    def _search(self, query: str) -> None:
        self.list.clear()
        for kind in best(query, self._kinds, operator_texts):
            suffix = {"sources": tr("source"), "targets": tr("target")}.get(kind.family, kind.family)
            item = QListWidgetItem(operator_icon(kind.name, kind.family), f"{kind.title}   ·  {suffix}")
            item.setData(Qt.ItemDataRole.UserRole, kind.name)
            item.setToolTip((kind.__doc__ or "").strip().splitlines()[0])
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _take(self, item: QListWidgetItem | None) -> None:
        if item is None:
            return
        self.hide()
        self.view.add_operator(item.data(Qt.ItemDataRole.UserRole), self._at, self._port, self._edge)

    def leave(self) -> None:
        """Close without adding."""
        self.hide()
        self.view.setFocus()

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
        elif event.type() == QEvent.Type.FocusOut and not self.isAncestorOf(self.view.window().focusWidget() or self):
            self.hide()
        return super().eventFilter(watched, event)
