"""Renaming in place: an editor over a node's or a group's title, or over a note."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from designer.canvas.scene import Hit
from designer.document import arranging, changes

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView


class InlineEditor(QObject):
    """At most one editor at a time. Enter or a click elsewhere keeps the text, Escape does not."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__(view)
        self.view = view
        self.widget: QWidget | None = None
        self._hit: Hit | None = None

    def open(self, hit: Hit) -> None:
        """Begin to rename."""
        self.close(keep=True)
        self._hit = hit
        item = hit.item
        frame = item.frame()
        if hit.kind == "note":
            text = QPlainTextEdit(item.note.text, self.view.viewport())
            text.selectAll()
            self.widget = text
        else:
            title = item.title if hit.kind == "node" else item.held.title
            line = QLineEdit(title, self.view.viewport())
            line.selectAll()
            self.widget = line
            frame = (
                QRectF(frame.left() + 46, frame.center().y() - 17, frame.width() - 50, 34)
                if hit.kind == "node"
                else QRectF(frame.left() + 28, frame.top() + 2, frame.width() - 32, 28)
            )
        top_left = self.view.mapFromScene(frame.topLeft())
        bottom_right = self.view.mapFromScene(QPointF(frame.right(), frame.bottom()))
        width, height = max(bottom_right.x() - top_left.x(), 140), max(bottom_right.y() - top_left.y(), 30)
        self.widget.setGeometry(top_left.x(), top_left.y(), width, height)
        self.widget.installEventFilter(self)
        self.widget.show()
        self.widget.setFocus()

    def close(self, keep: bool) -> None:
        """End renaming, with the new text or without."""
        if self.widget is None or self._hit is None:
            return
        widget, hit = self.widget, self._hit
        self.widget, self._hit = None, None
        text = widget.toPlainText() if isinstance(widget, QPlainTextEdit) else widget.text()  # type: ignore[attr-defined]
        widget.removeEventFilter(self)
        widget.hide()
        widget.deleteLater()
        self.view.setFocus()
        if keep:
            self._keep(hit, text)

    def _keep(self, hit: Hit, text: str) -> None:
        document, id_ = self.view.editor.document, hit.item.id
        if hit.kind == "node" and id_ in document.workflow.nodes and text.strip() != hit.item.title:
            self.view.editor.push(changes.set_title(document, id_, text))
        elif hit.kind == "note" and id_ in self.view.canvas.notes:
            self.view.editor.push(arranging.write_note(document, id_, text))
        elif hit.kind == "header" and id_ in self.view.canvas.groups:
            self.view.editor.push(arranging.title_group(document, id_, text))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            plain = not event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            if event.key() == Qt.Key.Key_Escape:
                self.close(keep=False)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                is_line = isinstance(self.widget, QLineEdit)
                if is_line or (not plain or event.modifiers() & Qt.KeyboardModifier.ControlModifier):
                    self.close(keep=True)
                    return True
        elif event.type() == QEvent.Type.FocusOut:
            self.close(keep=True)
        return False
