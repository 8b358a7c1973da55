"""Notes and groups on the canvas."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter, QPalette, QTextDocument
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from designer.canvas.node import FAR
from designer.canvas.sheet import QtSheet, advance, canvas_font
from designer.document.layout import MIN_NOTE, Group, Note
from designer.drawing.remarks import (
    NOTE_INSET,
    draw_group,
    draw_group_words,
    draw_note,
    draw_note_corner,
    gate,
    group_box,
)
from designer.text import tr
from designer.theme.theme import theme

CORNER = 14.0


class NoteItem(QGraphicsItem):
    """A Markdown note."""

    def __init__(self, id_: str, note: Note) -> None:
        super().__init__()
        self.id = id_
        self.note = note
        self._text = QTextDocument()
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable)
        self.setZValue(2)
        self.show_note(note)

    def show_note(self, note: Note) -> None:
        """Take over a note's text, place and size."""
        self.prepareGeometryChange()
        self.note = note
        self.setPos(*note.at)
        self._text.setDefaultFont(canvas_font("small"))
        # Markdown without HTML: a note can show text, never load anything.
        self._text.setMarkdown(note.text, QTextDocument.MarkdownFeature.MarkdownNoHTML)
        self._text.setTextWidth(note.size[0] - 2 * NOTE_INSET[0])
        self.update()

    def resize(self, width: float, height: float) -> None:
        """Show another size while it is dragged."""
        self.show_note(
            Note(self.note.text, (self.pos().x(), self.pos().y()), (max(width, MIN_NOTE[0]), max(height, MIN_NOTE[1])))
        )

    def frame(self) -> QRectF:
        """The note in the scene."""
        return QRectF(self.pos().x(), self.pos().y(), *self.note.size)

    def corner(self) -> QRectF:
        """Where it is dragged larger, in the scene."""
        frame = self.frame()
        return QRectF(frame.right() - CORNER, frame.bottom() - CORNER, CORNER + 4, CORNER + 4)

    def boundingRect(self) -> QRectF:
        return QRectF(-3, -3, self.note.size[0] + 6, self.note.size[1] + 6)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        sheet = QtSheet(painter)
        draw_note(sheet, self.note.size, self.isSelected())
        if painter.worldTransform().m11() < FAR:
            return
        frame = QRectF(0, 0, *self.note.size)
        painter.save()
        painter.setClipRect(frame.adjusted(4, 4, -4, -4))
        painter.translate(*NOTE_INSET)
        from PySide6.QtGui import QAbstractTextDocumentLayout

        context = QAbstractTextDocumentLayout.PaintContext()
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Text, theme().note_text)
        context.palette = palette
        self._text.documentLayout().draw(painter, context)
        painter.restore()
        draw_note_corner(sheet, self.note.size)


class GroupItem(QGraphicsItem):
    """The frame of a group; while it is collapsed, a box that stands for its nodes."""

    def __init__(self, id_: str, group: Group) -> None:
        super().__init__()
        self.id = id_
        self.held = group
        self.size = (100.0, 60.0)
        self.setFlag(QGraphicsItem.GraphicsItemFlag.ItemIsSelectable)

    def show_group(self, group: Group, frame: tuple[float, float, float, float] | None) -> None:
        """Take over a group and the frame around its nodes."""
        self.prepareGeometryChange()
        self.held = group
        self.setVisible(frame is not None)
        if frame is not None:
            left, top, *size = group_box(group, frame)
            self.size = (size[0], size[1])
            self.setPos(left, top)
        self.setZValue(11 if group.collapsed else 1)
        self.update()

    def frame(self) -> QRectF:
        """The frame in the scene."""
        return QRectF(self.pos().x(), self.pos().y(), *self.size)

    def toggle(self) -> QRectF:
        """Where it is collapsed or expanded, in the scene."""
        return QRectF(self.pos().x() + 4, self.pos().y() + 4, 26, 26)

    def header(self) -> QRectF:
        """The line with the title, by which it is moved, in the scene."""
        return QRectF(self.pos().x(), self.pos().y(), self.size[0], self.size[1] if self.held.collapsed else 30.0)

    def gate(self, output: bool) -> QPointF:
        """Where edges of the hidden nodes meet the box."""
        return QPointF(*gate((self.pos().x(), self.pos().y(), *self.size), output))

    def boundingRect(self) -> QRectF:
        return QRectF(-4, -4, self.size[0] + 8, self.size[1] + 8)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        sheet = QtSheet(painter)
        draw_group(sheet, self.size, self.held.collapsed, self.isSelected())
        if painter.worldTransform().m11() >= FAR:
            count = tr("{0} nodes", len(self.held.nodes))
            draw_group_words(sheet, self.held, self.size[0], advance("title"), count)
