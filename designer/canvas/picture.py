"""The canvas as a picture: SVG and PNG files, and small pictures of workflows that are not open."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen, QPixmap
from PySide6.QtSvg import QSvgGenerator

from designer.canvas.edge import route
from designer.canvas.scene import CanvasScene
from designer.canvas.sheet import traced
from designer.document.analysis import analyse
from designer.document.document import Document
from designer.document.layout import NODE_HEIGHT, NODE_WIDTH, positions
from designer.drawing.node import form_of, outline
from designer.drawing.workflow import MARGIN
from designer.png import MAX_PIXELS, write_png
from designer.theme.theme import theme


def picture_frame(scene: CanvasScene) -> QRectF:
    """What a picture shows: everything, with a margin."""
    content = scene.content()
    if content.isEmpty():
        content = QRectF(0, 0, 400, 200)
    return content.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)


def save_picture(scene: CanvasScene, path: Path) -> None:
    """Write the canvas as the ending of the path says, `.svg` or `.png`."""
    frame = picture_frame(scene)
    chosen, edges = scene.selected_nodes(), scene.selected_edges()
    scene.select()
    try:
        if path.suffix.lower() != ".svg":
            write_png(render_image(scene, frame), path)
        elif not _save_svg(scene, frame, path):
            raise OSError(f"{path}: cannot be written")
    finally:
        scene.select(chosen, edges)


def _save_svg(scene: CanvasScene, frame: QRectF, path: Path) -> bool:
    """Write it with all that a run or an overlay paints on it; return whether that was possible."""
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(frame.size().toSize())
    generator.setViewBox(QRectF(0, 0, frame.width(), frame.height()))
    generator.setTitle(scene.document.workflow.name or "Papilio")
    painter = QPainter(generator)
    good = painter.isActive()
    scene.render(painter, QRectF(0, 0, frame.width(), frame.height()), frame)
    painter.end()
    return good


def render_image(scene: CanvasScene, frame: QRectF, scale: float = 2.0) -> QImage:
    """The canvas as an image, as large as is sensible."""
    scale = min(scale, MAX_PIXELS / max(frame.width(), frame.height()))
    image = QImage((frame.size() * scale).toSize(), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(theme().canvas)
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
    scene.render(painter, QRectF(image.rect()), frame)
    painter.end()
    return image


def thumbnail(document: Document, size: QSize) -> QPixmap:
    """A small picture of a workflow: shapes in the colours of their wings, and lines."""
    picture = QPixmap(size)
    colors = theme()
    picture.fill(colors.canvas)
    there = positions(document.workflow)
    if not there:
        return picture
    wings = analyse(document).wings
    left, top = min(x for x, _ in there.values()), min(y for _, y in there.values())
    right = max(x for x, _ in there.values()) + NODE_WIDTH
    bottom = max(y for _, y in there.values()) + NODE_HEIGHT
    scale = min((size.width() - 24) / (right - left), (size.height() - 24) / (bottom - top), 0.6)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(size.width() / 2, size.height() / 2)
    painter.scale(scale, scale)
    painter.translate(-(left + right) / 2, -(top + bottom) / 2)
    pen = QPen(colors.edge, 2.4 / max(scale, 0.2))
    painter.setPen(pen)
    for edge in document.workflow.edges:
        if edge.source in there and edge.target in there:
            start = QRectF(*there[edge.source], NODE_WIDTH, NODE_HEIGHT)
            end = QRectF(*there[edge.target], NODE_WIDTH, NODE_HEIGHT)
            path = QPainterPath(route(_side(start, True), _side(end, False)))
            painter.drawPath(path)
    for id_, (x, y) in there.items():
        kind = document.catalogue.get(document.workflow.nodes[id_].operator)
        fill = QColor(colors.wing(wings.get(id_)))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        painter.drawPath(traced(outline, form_of(kind), NODE_HEIGHT).translated(x, y))
    painter.end()
    return picture


def _side(frame: QRectF, output: bool):  # type: ignore[no-untyped-def]
    from PySide6.QtCore import QPointF

    return QPointF(frame.right() if output else frame.left(), frame.center().y())
