"""View rewrites: aggregates that a finer one could answer, to be accepted or refused."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from designer.editor import Editor
from designer.plan import changes
from designer.plan.explore import Explored
from designer.text import tr
from designer.widgets import label
from engine.plan.views import Rewrite


class ViewsTab(QWidget):
    """One row for each offer. The chosen one is drawn on the canvas; accepting or refusing it is one step."""

    looked_at = Signal(object)  # the offer in front, or None

    def __init__(self) -> None:
        super().__init__()
        self.editor: Editor | None = None
        self.found = Explored("")
        self.list = QListWidget()
        self.list.setWordWrap(True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAccessibleName(tr("Views that a finer one can answer"))
        self.list.currentItemChanged.connect(lambda *_: self._look())
        self.accept = QPushButton(tr("Accept"))
        self.accept.clicked.connect(self.take)
        self.refuse = QPushButton(tr("Refuse"))
        self.refuse.clicked.connect(self.leave)
        row = QHBoxLayout()
        row.addWidget(label(tr("The dashed line shows where it would read."), "muted"), 1)
        row.addWidget(self.accept)
        row.addWidget(self.refuse)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.addWidget(self.list, 1)
        layout.addLayout(row)
        self._look()

    def show_found(self, editor: Editor | None, found: Explored) -> None:
        """Take over what was found."""
        before = self.offer
        self.editor, self.found = editor, found
        self.list.clear()
        refused = changes.planning_of(editor.document).as_drawn if editor is not None else ()
        for offer in found.views:
            node = offer.node
            said = offer.text(partial(changes.told_apart, editor.document)) if editor is not None else offer.text()
            item = QListWidgetItem(tr("Refused: {0}", said) if node in refused else said)
            item.setData(Qt.ItemDataRole.UserRole, offer)
            self.list.addItem(item)
            if before is not None and before.node == node:
                self.list.setCurrentItem(item)
        if not found.views:
            nothing = QListWidgetItem(tr("No aggregate can be answered from a finer one."))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self.list.addItem(nothing)
        self._look()

    def waiting(self) -> int:
        """How many offers are neither accepted nor refused."""
        refused = changes.planning_of(self.editor.document).as_drawn if self.editor is not None else ()
        return sum(offer.node not in refused for offer in self.found.views)

    @property
    def offer(self) -> Rewrite | None:
        """The offer in front."""
        item = self.list.currentItem()
        found = item.data(Qt.ItemDataRole.UserRole) if item is not None else None
        return found if isinstance(found, Rewrite) else None

    def _refused(self) -> bool:
        offer = self.offer
        return bool(self.editor and offer and offer.node in changes.planning_of(self.editor.document).as_drawn)

    def _look(self) -> None:
        offer = self.offer
        self.accept.setEnabled(offer is not None)
        self.refuse.setEnabled(offer is not None)
        self.refuse.setText(tr("Offer again") if self._refused() else tr("Refuse"))
        self.looked_at.emit(offer)

    def take(self) -> None:
        """Let the view read the finer one's rows."""
        if self.editor is not None and self.offer is not None:
            self.editor.push(changes.accept_view(self.editor.document, self.offer, self.found.rows))

    def leave(self) -> None:
        """Keep the view as it is drawn, or offer it again."""
        if self.editor is None or self.offer is None:
            return
        change = changes.offer_view if self._refused() else changes.refuse_view
        self.editor.push(change(self.editor.document, self.offer.node))
