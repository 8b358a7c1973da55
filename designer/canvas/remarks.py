"""Notes and groups on the canvas."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPalette, QPen, QTextDocument
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from designer.canvas import node as look
from designer.document.layout import MIN_NOTE, NODE_WIDTH, Group, Note
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
        self._text.setDefaultFont(look.SMALL)
        # Markdown without HTML: a note can show text, never load anything.
        self._text.setMarkdown(note.text, QTextDocument.MarkdownFeature.MarkdownNoHTML)
        self._text.setTextWidth(note.size[0] - 20)
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
        colors = theme()
        frame = QRectF(0, 0, *self.note.size)
        painter.setPen(QPen(colors.accent if self.isSelected() else colors.note_border, 2 if self.isSelected() else 1))
        painter.setBrush(colors.note)
        painter.drawRoundedRect(frame, 6, 6)
        if painter.worldTransform().m11() < look.FAR:
            return
        painter.save()
        painter.setClipRect(frame.adjusted(4, 4, -4, -4))
        painter.translate(10, 6)
        from PySide6.QtGui import QAbstractTextDocumentLayout

        context = QAbstractTextDocumentLayout.PaintContext()
        palette = QPalette()
        palette.setColor(QPalette.ColorRole.Text, colors.note_text)
        context.palette = palette
        self._text.documentLayout().draw(painter, context)
        painter.restore()
        painter.setPen(QPen(colors.note_border, 1.4))
        for step in (4, 8):
            painter.drawLine(QPointF(frame.right() - step - 3, frame.bottom() - 3),
                             QPointF(frame.right() - 3, frame.bottom() - step - 3))  # fmt: skip


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
            left, top, width, height = frame
            if group.collapsed:  # in the middle of where its nodes stand
                self.size = (NODE_WIDTH + 36, 84.0)
                self.setPos(left, top + 10 + (height - self.size[1]) / 2)
            else:
                self.size = (width, height)
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
        frame = self.frame()
        return QPointF(frame.right() if output else frame.left(), frame.center().y())

    def boundingRect(self) -> QRectF:
        return QRectF(-4, -4, self.size[0] + 8, self.size[1] + 8)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        colors = theme()
        frame = QRectF(0, 0, *self.size)
        fill = QColor(colors.group)
        if not self.held.collapsed:
            fill.setAlpha(150)
        painter.setBrush(fill)
        pen = QPen(colors.accent if self.isSelected() else colors.faint, 1.4)
        if not self.held.collapsed:
            pen.setStyle(Qt.PenStyle.DashLine)
        painter.setPen(pen)
        if self.held.collapsed:  # a second sheet behind, as a stack has
            painter.drawRoundedRect(frame.translated(4, 4), 10, 10)
        painter.drawRoundedRect(frame, 10, 10)
        if painter.worldTransform().m11() < look.FAR:
            return
        painter.setPen(QPen(colors.muted, 2.0, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        middle = QPointF(17, 17)
        if self.held.collapsed:
            points = [QPointF(-3, -5), QPointF(3, 0), QPointF(-3, 5)]
        else:
            points = [QPointF(-5, -3), QPointF(0, 3), QPointF(5, -3)]
        painter.drawPolyline([middle + point for point in points])
        painter.setPen(colors.text)
        painter.setFont(look.TITLE)
        width = self.size[0] - 44
        title = QFontMetricsF(look.TITLE).elidedText(self.held.title, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QPointF(32, 22), title)
        if self.held.collapsed:
            painter.setPen(colors.muted)
            painter.setFont(look.SMALL)
            painter.drawText(QPointF(32, 46), tr("{0} nodes", len(self.held.nodes)))
