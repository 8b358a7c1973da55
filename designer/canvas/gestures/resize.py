"""Dragging a note larger or smaller."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt

from designer.canvas.gestures.base import Gesture, Modifiers
from designer.canvas.remarks import NoteItem
from designer.document import arranging


class Resize(Gesture):
    """By its lower right corner."""

    cursor = Qt.CursorShape.SizeFDiagCursor

    def __init__(self, view, at: QPointF, item: NoteItem) -> None:  # type: ignore[no-untyped-def]
        super().__init__(view, at)
        self.item = item
        self.note = item.note

    def move(self, at: QPointF, modifiers: Modifiers) -> None:
        size = self.note.size
        self.item.resize(
            round((size[0] + at.x() - self.began.x()) / 10) * 10.0,
            round((size[1] + at.y() - self.began.y()) / 10) * 10.0,
        )

    def end(self, at: QPointF, modifiers: Modifiers) -> None:
        size = self.item.note.size
        self.item.show_note(self.note)
        self.editor.push(arranging.resize_note(self.editor.document, self.item.id, size))

    def cancel(self) -> None:
        self.item.show_note(self.note)
