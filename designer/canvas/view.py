"""The canvas a person works on: it turns the mouse and the keyboard into gestures and commands."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QGraphicsView, QToolTip, QWidget

from designer.canvas import adding, tips
from designer.canvas.drop import Drop
from designer.canvas.edge import EdgeItem
from designer.canvas.gestures import Band, Connect, Gesture, Move, Pan, Resize
from designer.canvas.inline import InlineEditor
from designer.canvas.legend import Legend
from designer.canvas.minimap import Minimap
from designer.canvas.node import FAR
from designer.canvas.quick_add import QuickAdd
from designer.canvas.scene import CanvasScene, Hit
from designer.canvas.walk import next_item, step
from designer.document import arranging, changes
from designer.document.layout import FARTHEST as FARTHEST_PLACE
from designer.document.layout import MIN_NOTE, NODE_HEIGHT, NODE_WIDTH, Point, notes, positions
from designer.document.lineage import lineage
from designer.editor import Editor
from designer.text import tr
from designer.theme.theme import theme
from engine.model.workflow import Edge

CLOSEST, FARTHEST = 3.0, 0.05
REACHED = FARTHEST_PLACE + 10_000  # by looking around
REACH = 7.0  # pixels of the screen around a port or an edge

_ARROWS = {
    Qt.Key.Key_Left: "left",
    Qt.Key.Key_Right: "right",
    Qt.Key.Key_Up: "up",
    Qt.Key.Key_Down: "down",
}


class CanvasView(QGraphicsView):
    """One document's canvas."""

    zoomed = Signal(float)
    said = Signal(str)  # something for the status bar
    asked_problem = Signal(str)  # a node's badge was clicked
    asked_menu = Signal(QPoint)
    _corners: tuple[Minimap | Legend, ...] = ()

    def __init__(self, editor: Editor, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editor = editor
        self.canvas = CanvasScene(editor.document)
        self.setScene(self.canvas)
        self.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        self.setOptimizationFlag(QGraphicsView.OptimizationFlag.DontSavePainterState)
        self.setViewportUpdateMode(QGraphicsView.ViewportUpdateMode.MinimalViewportUpdate)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setResizeAnchor(QGraphicsView.ViewportAnchor.NoAnchor)
        self.setDragMode(QGraphicsView.DragMode.NoDrag)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # the minimap tells where one is
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # The canvas has no end: what is seen stays where it is, whatever comes or goes at the edges.
        self.setSceneRect(QRectF(-REACHED, -REACHED, 2 * REACHED, 2 * REACHED))
        self.setAcceptDrops(True)
        self.setMouseTracking(True)
        self.setFrameShape(QGraphicsView.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(tr("Canvas"))
        self.gesture: Gesture | None = None
        self.pointer = QPoint()
        self._space = False
        self._band: QRectF | None = None
        self._lines: tuple[tuple[float, float, float, float], ...] = ()
        self._wire: tuple[QPainterPath, bool] | None = None
        self._hot: Hit = Hit("empty")
        self._drop = Drop(self)
        self._stressed = False
        self._fitted = False  # all is shown, until the person looks elsewhere
        self.minimap = Minimap(self)
        self.legend = Legend(self)
        self._corners = (self.minimap, self.legend)
        self.inline = InlineEditor(self)
        self.adder = QuickAdd(self)
        editor.analysed.connect(self.canvas.show_analysis)
        editor.analysed.connect(lambda _: self.legend.refresh())
        editor.before_close.append(self.canvas.close)
        self.canvas.chosen.connect(self._end_lineage)
        self.zoomed.connect(lambda zoom: self.canvas.keep_pictures(zoom >= FAR))

    # ---------------------------------------------------------------- looking around

    @property
    def zoom(self) -> float:
        """How many pixels of the screen a unit of the scene is."""
        return self.transform().m11()

    def zoom_by(self, factor: float, at: QPoint | None = None) -> None:
        """Zoom; what is at a point of the viewport stays there."""
        self._fitted = False
        factor = min(max(self.zoom * factor, FARTHEST), CLOSEST) / self.zoom
        if abs(factor - 1) < 1e-9:
            return
        at = at if at is not None else self.viewport().rect().center()
        before = self.mapToScene(at)
        self.scale(factor, factor)
        moved = self.mapFromScene(before) - at
        self.horizontalScrollBar().setValue(self.horizontalScrollBar().value() + moved.x())
        self.verticalScrollBar().setValue(self.verticalScrollBar().value() + moved.y())
        self.zoomed.emit(self.zoom)

    def zoom_to(self, zoom: float) -> None:
        """A zoom of one's own, around the middle."""
        self.zoom_by(zoom / self.zoom)

    def fit(self, ids: Iterable[str] | None = None) -> None:
        """Show everything, or these nodes, no larger than life."""
        content = self.canvas.content()
        chosen = [self.canvas.nodes[id_].frame() for id_ in ids or () if id_ in self.canvas.nodes]
        if chosen:
            content = chosen[0]
            for frame in chosen[1:]:
                content = content.united(frame)
        if content.isEmpty():
            self.resetTransform()
            self.centerOn(0, 0)
        else:
            content = content.adjusted(-70, -80, 70, 70)
            self._fit_above(content, 0)
            if self.mapFromScene(content).boundingRect().intersects(self.legend.frame()):
                self._fit_above(content, self.legend.frame().height())
        self._fitted = ids is None
        self.zoomed.emit(self.zoom)

    def _fit_above(self, content: QRectF, below: int) -> None:
        """Show a part of the scene, with so many pixels left free at the canvas's foot."""
        size = self.viewport().size()
        zoom = min(size.width() / content.width(), (size.height() - below) / content.height(), 1.25)
        zoom = max(zoom, FARTHEST)
        self.resetTransform()
        self.scale(zoom, zoom)
        self.centerOn(content.center() + QPointF(0, below / 2 / zoom))

    def fit_again(self) -> None:
        """Show everything in the room that there is now, unless somebody looks at a part."""
        if self._fitted:
            self.fit()

    def show_node(self, id_: str) -> None:
        """Bring a node into the middle and select it."""
        self._fitted = False
        if id_ in self.canvas.nodes:
            around = self.canvas.hidden.get(id_)
            if around is not None:
                self.editor.push(arranging.collapse(self.editor.document, around.id, False))
            self.canvas.select([id_])
            if self.zoom < 0.5:
                self.zoom_to(0.8)
            self.centerOn(self.canvas.nodes[id_].frame().center())

    def show_lineage(self, node: str, port: str, column: str) -> None:
        """Let the nodes that a column passes stand out, until something else is selected."""
        way = lineage(self.editor.analysis, node, port, column)
        self.canvas.stress(way.nodes)
        colors, title = theme(), self.editor.document.title_of
        rows = [(f"{title(spot[0])} · {spot[2]}", colors.left) for spot in reversed(way.before)]
        rows.append((f"{title(node)} · {column}", colors.accent))
        rows += [(f"{title(spot[0])} · {spot[2]}", colors.right) for spot in way.behind]
        self.legend.show_rows(list(dict.fromkeys((text, color.name()) for text, color in rows)))
        self._stressed = True

    def _end_lineage(self) -> None:
        if self._stressed:
            self._stressed = False
            self.canvas.stress(None)
            self.legend.refresh()

    def visible_frame(self) -> QRectF:
        """The part of the scene that is seen."""
        return self.mapToScene(self.viewport().rect()).boundingRect()

    def cursor_point(self) -> Point:
        """Where something new comes to stand: at the pointer, or in the middle where it is elsewhere."""
        at = self.viewport().mapFromGlobal(self.cursor().pos())
        if not self.viewport().rect().contains(at):
            at = self.viewport().rect().center()
        point = self.mapToScene(at)
        return point.x() - NODE_WIDTH / 2, point.y() - NODE_HEIGHT / 2

    # ---------------------------------------------------------------- what gestures show

    def show_band(self, frame: QRectF | None) -> None:
        """The rubber band."""
        self._redraw(self._band)
        self._band = frame
        self._redraw(frame)

    def show_guides(self, lines: tuple[tuple[float, float, float, float], ...]) -> None:
        """The lines along which something is aligned."""
        for line in (*self._lines, *lines):
            self._redraw(QRectF(QPointF(line[0], line[1]), QPointF(line[2], line[3])))
        self._lines = lines

    def show_wire(self, path: QPainterPath | None, fits: bool) -> None:
        """The edge that is being drawn."""
        if self._wire:
            self._redraw(self._wire[0].boundingRect())
        self._wire = (path, fits) if path is not None else None
        if path is not None:
            self._redraw(path.boundingRect())

    def _redraw(self, frame: QRectF | None) -> None:
        if frame is not None:
            margin = 8 / self.zoom
            self.canvas.invalidate(frame.normalized().adjusted(-margin, -margin, margin, margin),
                                   CanvasScene.SceneLayer.ForegroundLayer)  # fmt: skip

    def say(self, text: str) -> None:
        """Tell something in the status bar."""
        self.said.emit(text)

    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:  # type: ignore[override]
        colors = theme()
        if self._wire is not None:
            painter.setPen(QPen(colors.accent if self._wire[1] else colors.error, 2.4 / max(self.zoom, 0.4)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPath(self._wire[0])
        if self._band is not None:
            fill = colors.accent.lighter(100)
            fill.setAlpha(36)
            pen = QPen(colors.accent, 1)
            pen.setCosmetic(True)
            painter.setPen(pen)
            painter.setBrush(fill)
            painter.drawRect(self._band)
        if self._lines:
            pen = QPen(colors.guide, 1)
            pen.setCosmetic(True)
            painter.setPen(pen)
            for x1, y1, x2, y2 in self._lines:
                painter.drawLine(QPointF(x1, y1), QPointF(x2, y2))

    # ---------------------------------------------------------------- the mouse

    def begin(self, gesture: Gesture) -> None:
        """Let a gesture take the mouse."""
        self._fitted = False
        self.gesture = gesture
        if gesture.cursor is not None:
            self.viewport().setCursor(gesture.cursor)
        gesture.start()

    def cancel_gesture(self) -> None:
        """As if the gesture under way had not begun."""
        if self.gesture is not None:
            gesture, self.gesture = self.gesture, None
            gesture.cancel()
            self.viewport().unsetCursor()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.pointer = event.position().toPoint()
        at = self.mapToScene(self.pointer)
        if self.gesture is not None:
            self.cancel_gesture()
            return
        if event.button() == Qt.MouseButton.MiddleButton or self._space:
            self.begin(Pan(self, at))
        elif event.button() == Qt.MouseButton.LeftButton:
            self._press(at, event.modifiers())
        elif event.button() == Qt.MouseButton.RightButton:
            hit = self.canvas.hit(at, REACH / self.zoom)
            if hit.kind in ("node", "badge") and not hit.item.isSelected():
                self.canvas.select([hit.item.id])
            elif hit.kind == "edge":
                self.canvas.select((), [hit.item.edge])
            elif hit.kind in ("note", "header") and not hit.item.isSelected():
                self.canvas.select_item(hit.item, False)
            self.asked_menu.emit(event.globalPosition().toPoint())

    def _press(self, at: QPointF, modifiers: Qt.KeyboardModifier) -> None:
        hit = self.canvas.hit(at, REACH / self.zoom)
        more = bool(modifiers & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier))
        match hit.kind:
            case "port":
                self.begin(Connect(self, at, hit.item, hit.output, hit.port))
            case "badge":
                self.canvas.select([hit.item.id])
                self.asked_problem.emit(hit.item.id)
            case "node":
                if more and hit.item.isSelected():
                    hit.item.setSelected(False)
                    return
                if not hit.item.isSelected():
                    self.canvas.select([hit.item.id], keep=more)
                self.begin(Move(self, at))
            case "edge":
                self.canvas.select((), [hit.item.edge], keep=more)
            case "corner":
                self.begin(Resize(self, at, hit.item))
            case "toggle":
                edit = arranging.collapse(self.editor.document, hit.item.id, not hit.item.held.collapsed)
                self.editor.push(edit)
            case "note" | "header":
                if not hit.item.isSelected():
                    self.canvas.select_item(hit.item, more)
                self.begin(Move(self, at))
            case _:
                self.begin(Band(self, at, more))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.pointer = event.position().toPoint()
        at = self.mapToScene(self.pointer)
        if self.gesture is not None:
            self.gesture.move(at, event.modifiers())
        else:
            self._hover(self.canvas.hit(at, REACH / self.zoom))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.gesture is None:
            return
        self.pointer = event.position().toPoint()
        gesture, self.gesture = self.gesture, None
        self.viewport().unsetCursor()
        gesture.end(self.mapToScene(self.pointer), event.modifiers())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.cancel_gesture()
        at = self.mapToScene(event.position().toPoint())
        hit = self.canvas.hit(at, REACH / self.zoom)
        if hit.kind in ("node", "note", "header"):
            self.rename(hit)
        elif hit.kind in ("empty", "edge"):
            self.quick_add(at, None, hit.item.edge if hit.kind == "edge" else None)

    def _hover(self, hit: Hit) -> None:
        if hit == self._hot:
            return
        old, self._hot = self._hot, hit
        if old.kind == "edge":
            old.item.heat(False)
        if old.kind == "port":
            old.item.hot_port = None
            old.item.update()
        if hit.kind == "edge":
            hit.item.heat(True)
        if hit.kind == "port":
            hit.item.hot_port = (hit.output, hit.port)
            hit.item.update()
        shapes = {
            "port": Qt.CursorShape.CrossCursor,
            "corner": Qt.CursorShape.SizeFDiagCursor,
            "badge": Qt.CursorShape.PointingHandCursor,
            "toggle": Qt.CursorShape.PointingHandCursor,
        }
        if self._space:
            self.viewport().setCursor(Qt.CursorShape.OpenHandCursor)
        elif hit.kind in shapes:
            self.viewport().setCursor(shapes[hit.kind])
        else:
            self.viewport().unsetCursor()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.gesture is not None and not isinstance(self.gesture, Pan):
            return
        pixels = event.pixelDelta()
        if not pixels.isNull() and not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.horizontalScrollBar().setValue(self.horizontalScrollBar().value() - pixels.x())
            self.verticalScrollBar().setValue(self.verticalScrollBar().value() - pixels.y())
        else:
            self.zoom_by(1.0015 ** event.angleDelta().y(), event.position().toPoint())
        event.accept()

    # ---------------------------------------------------------------- the keyboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = True
            self.viewport().setCursor(Qt.CursorShape.OpenHandCursor)
        elif key == Qt.Key.Key_Escape:
            if self.gesture is not None:
                self.cancel_gesture()
            else:
                self.canvas.select()
        elif key == Qt.Key.Key_Tab:
            adding.quick_add_here(self)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_F2):
            self.rename_selected()
        elif key in _ARROWS:
            self._arrow(_ARROWS[Qt.Key(key)], event.modifiers())
        else:
            super().keyPressEvent(event)

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space and not event.isAutoRepeat():
            self._space = False
            if self.gesture is None:
                self.viewport().unsetCursor()
        super().keyReleaseEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        return False  # Tab is quick-add here; Ctrl+Tab and F6 leave the canvas

    def _arrow(self, direction: str, modifiers: Qt.KeyboardModifier) -> None:
        chosen = self.canvas.selected_nodes()
        everywhere = positions(self.editor.document.workflow)
        places = {id_: at for id_, at in everywhere.items() if id_ not in self.canvas.hidden}
        remarks = notes(self.editor.document.workflow)
        written = [id_ for id_ in self.canvas.selected_notes() if id_ in remarks]
        held = {id_ for group in self.canvas.selected_groups() for id_ in self.canvas.groups[group].held.nodes}
        movable = [id_ for id_ in everywhere if id_ in held.union(chosen)]
        if modifiers & (Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier) and (movable or written):
            by = 10.0
            dx = {"left": -by, "right": by}.get(direction, 0.0)
            dy = {"up": -by, "down": by}.get(direction, 0.0)
            if modifiers & Qt.KeyboardModifier.ShiftModifier:
                for id_ in written:
                    width, height = remarks[id_].size
                    size = (max(width + 2 * dx, MIN_NOTE[0]), max(height + 2 * dy, MIN_NOTE[1]))
                    self.editor.push(arranging.resize_note(self.editor.document, id_, size))
                return
            moved = {id_: (everywhere[id_][0] + dx, everywhere[id_][1] + dy) for id_ in movable}
            shifted = {id_: (remarks[id_].at[0] + dx, remarks[id_].at[1] + dy) for id_ in written}
            self.editor.push(arranging.move(self.editor.document, moved, shifted))
            return
        edges = self.canvas.selected_edges()
        if not chosen and len(edges) == 1:
            if direction in ("up", "down"):
                self.select_next("edge", backwards=direction == "up")
                return
            end = edges[0].source if direction == "left" else edges[0].target
            first = end if end in places else None
        elif not chosen:
            first = min(places, key=lambda id_: places[id_], default=None)
        else:
            first = step(self.editor.document, places, chosen[-1], direction)
        if first is not None:
            keep = bool(modifiers & Qt.KeyboardModifier.ShiftModifier)
            self.canvas.select([first], keep=keep)
            self._bring_into_view(self.canvas.nodes[first].frame())

    def _bring_into_view(self, frame: QRectF) -> None:
        if not self.visible_frame().contains(frame):
            self._fitted = False
            self.centerOn(frame.center())

    def select_next(self, kind: str, backwards: bool = False) -> None:
        """Select the next edge, note or group, as one reads them; of a selected node, its own edges first."""
        item = next_item(self.canvas, kind, backwards)
        if item is None:
            self.say(tr("There is none."))
        elif isinstance(item, EdgeItem):
            self.canvas.select((), [item.edge])
            self._bring_into_view(item.sceneBoundingRect())
            self.say(f"{item.edge.from_} → {item.edge.to}")
        else:
            self.canvas.select_item(item, False)
            self._bring_into_view(item.frame())

    # ---------------------------------------------------------------- adding and renaming

    def quick_add(self, at: QPointF, port: tuple[str, bool, str] | None, edge: Edge | None = None) -> None:
        """Choose an operator by typing; it comes to stand at a point, connected to a port or put on an edge."""
        self.adder.ask(at, port, edge)

    def add_operator(
        self,
        operator: str,
        at: QPointF,
        port: tuple[str, bool, str] | None = None,
        edge: Edge | None = None,
    ) -> str:
        """Add a node with its middle at a point, as one step; it is selected."""
        left, top = at.x() - NODE_WIDTH / 2, at.y() - NODE_HEIGHT / 2
        place = round(left / 10) * 10.0, round(top / 10) * 10.0
        behind = (port[0], port[2]) if port and port[1] else None
        before = (port[0], port[2]) if port and not port[1] else None
        edit, id_ = changes.add_node(self.editor.document, operator, place, behind=behind, before=before, on_edge=edge)
        self.editor.push(edit)
        self.canvas.select([id_])
        self.setFocus()
        return id_

    def rename_selected(self) -> None:
        """Rename the selected node, note or group in place."""
        for kind, ids, items in (
            ("node", self.canvas.selected_nodes(), self.canvas.nodes),
            ("note", self.canvas.selected_notes(), self.canvas.notes),
            ("header", self.canvas.selected_groups(), self.canvas.groups),
        ):
            if len(ids) == 1:
                self.rename(Hit(kind, items[ids[0]]))
                return

    def rename(self, hit: Hit) -> None:
        """Open an editor over a node's title, a group's title or a note's text."""
        self.inline.open(hit)

    # ---------------------------------------------------------------- dropping, tips, size

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        self._drop.enter(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        self._drop.move(event)

    def dragLeaveEvent(self, event) -> None:  # type: ignore[no-untyped-def]
        self._drop.leave()

    def dropEvent(self, event: QDropEvent) -> None:
        self._drop.drop(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            hit = self.canvas.hit(self.mapToScene(event.pos()), REACH / self.zoom)
            told = tips.text(hit, self.editor.analysis, self.editor.document)
            text = "<br>".join(filter(None, [told, *(tell(hit) for tell in self.canvas.tellers)]))
            if text:
                QToolTip.showText(event.globalPos(), text, self.viewport())
            else:
                QToolTip.hideText()
            return True
        return super().viewportEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """What is seen already moves as it is; what stands in the corners stays there."""
        super().scrollContentsBy(dx, dy)
        for corner in self._corners:
            corner.move(corner.home)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.minimap.place()
        self.legend.place()
        self.fit_again()

    def focusOutEvent(self, event) -> None:  # type: ignore[no-untyped-def]
        self._space = False
        super().focusOutEvent(event)
