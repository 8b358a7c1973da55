"""The run on the canvas: the state and rows of every node, a bar for every queue, the bottleneck, what failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QGraphicsItem, QStyleOptionGraphicsItem, QWidget

from designer.canvas.edge import EdgeItem
from designer.canvas.node import FAR, NodeItem
from designer.canvas.scene import Hit
from designer.canvas.sheet import canvas_font
from designer.document.layout import NODE_WIDTH
from designer.monitor.colours import clear, level_colour
from designer.monitor.player import Player
from designer.monitor.units import bytes_text, count_text, short_text
from designer.text import tr
from designer.theme.theme import theme
from engine.recording import NodeState, QueueState, RunRecording, State
from engine.recording.bottleneck import bottleneck

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

BAR_WIDTH, BAR_HEIGHT = 58.0, 7.0
SHORT = 130.0  # a level edge on which words would cover the nodes at its ends
NEAR = 0.5  # from this zoom on there are words beside a bar
LEAST = 10.5  # pixels on the screen of the letters that tell rows and queues; more for the back row
LARGEST = 30  # and how large they may become on the canvas for that
NODE_ROOM, QUEUE_ROOM = NODE_WIDTH + 40, 210.0  # how wide those words may be
FOOT = 11.0  # below a node, the names of the ports at its foot come first


COUNTED = {
    "exact": "exact: every row was counted",
    "sampled": "sampled: reckoned from a sample of the rows",
    "fused": "fused: computed within its neighbours' Spark plan, its own rows are not all known",
    "simulated": "simulated: reckoned, no row was read or written",
}
WAITS = {
    State.WAITING: "waiting: no turn yet",
    State.RUNNING: "running",
    State.STALLED: "stalled: it had turns and waits for the next",
    State.FINISHED: "finished",
    State.FAILED: "failed",
}


def state_colour(state: State) -> QColor:
    """The colour of a state; each also has a sign."""
    colors = theme()
    return {
        State.WAITING: colors.faint,
        State.RUNNING: colors.accent,
        State.STALLED: colors.warning,
        State.FINISHED: colors.ok,
        State.FAILED: colors.error,
    }[state]


def rows_text(node: NodeState, write: Callable[[float], str] = count_text) -> str:
    """The rows of a node in a line: in, out."""
    if node.rows_in is None and node.rows_out is None:
        return ""
    came = write(node.rows_in) if node.rows_in is not None else "?"
    went = write(node.rows_out) if node.rows_out is not None else "?"
    return f"{came} → {went}" if node.rows_in else went


def node_texts(node: NodeState) -> list[str]:
    """What is told of a node's rows, in a line: how many, how they were counted, how fast; the shorter the later."""
    rows, short = rows_text(node), rows_text(node, short_text)
    if not rows:
        if node.count != "fused":
            return []
        if node.progress is None or node.state is not State.RUNNING:
            return [tr("fused")]
        done = f"{node.progress * 100:.0f} %"
        return [tr("fused · {0} of its tasks", done), f"{tr('fused')} · {done}", done]
    counted = f"  {node.count}" if node.count else ""
    texts = [f"{rows}{counted}", f"{short}{counted}", short]
    if node.rows_per_second and node.state in (State.RUNNING, State.STALLED):
        texts.insert(0, f"{rows}{counted} · {count_text(node.rows_per_second)}/s")
        texts.insert(2, f"{short}{counted} · {count_text(node.rows_per_second)}/s")
    if node.rows_out is not None:
        texts.append(short_text(node.rows_out))
    return texts


def legible(font: QFont, zoom: float, least: float) -> QFont:
    """A font that has at least so many pixels on the screen, as far as the canvas has room for it."""
    size = min(LARGEST, round(least / max(zoom, 0.01)))
    if size <= font.pixelSize():
        return font
    larger = QFont(font)
    larger.setPixelSize(size)
    return larger


def fitting(texts: Sequence[str], font: QFont, room: float) -> str:
    """The first text that there is room for, else the last."""
    metrics = QFontMetricsF(font)
    return next((text for text in texts if metrics.horizontalAdvance(text) <= room), texts[-1])


class QueueBar(QGraphicsItem):
    """What a queue holds, in the middle of its edge: green up to 60 % of its capacity, yellow to 85 %, red above."""

    def __init__(self, edge: EdgeItem, overlay: Overlay) -> None:
        super().__init__()
        self.edge = edge
        self.overlay = overlay
        self.queue = QueueState(0, 0, 0, None)
        self.short = False  # words go above the nodes, where there is room
        self.width = BAR_WIDTH
        self.setZValue(20)
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)
        self.place()

    def place(self) -> None:
        """Stand where the edge is now."""
        path = self.edge.path()
        self.setVisible(self.edge.isVisible() and not path.isEmpty())
        if path.isEmpty():
            return
        # An edge's path ends with the strokes of its arrow head: the middle of the line itself is a bit before.
        self.setPos(self.edge.pos() + path.pointAtPercent(0.46))
        self.prepareGeometryChange()
        level = abs(path.pointAtPercent(0.0).y() - path.pointAtPercent(0.46).y()) < 15
        self.short = level and path.length() < SHORT
        self.width = min(BAR_WIDTH, max(18.0, path.length() * 0.6))

    def show_queue(self, queue: QueueState) -> None:
        """Take over what it holds; from afar nothing but its level is seen."""
        before, self.queue = self.queue, queue
        if before is not queue and (before != queue if self.overlay.near else before.level != queue.level):
            self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(-QUEUE_ROOM / 2 - 4, -66, QUEUE_ROOM + 8, 104)

    def shape(self) -> QPainterPath:
        return QPainterPath()  # the hand goes through to the edge

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        queue, zoom = self.queue, painter.worldTransform().m11()
        colors = theme()
        fill = queue.fill
        color = level_colour(queue.level) if fill is not None else colors.left
        if zoom < FAR:
            if queue.level != "green":
                painter.fillRect(QRectF(-26, -26, 52, 52), color)
            return
        if not queue.packs:
            return
        frame = QRectF(-self.width / 2, -BAR_HEIGHT / 2, self.width, BAR_HEIGHT)
        painter.setPen(QPen(colors.canvas, 3))
        painter.setBrush(colors.grid)
        painter.drawRoundedRect(frame, 3.5, 3.5)
        part = min(fill if fill is not None else 1.0, 1.0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawRoundedRect(QRectF(frame.topLeft(), QSizeF(max(frame.width() * part, 3.0), BAR_HEIGHT)), 3.5, 3.5)
        if zoom >= NEAR:
            packs, size = tr("{0} packs", f"{queue.packs:,}"), bytes_text(queue.bytes)
            texts = (tr("{0} · {1} rows · {2}", packs, short_text(queue.rows), size), f"{packs} · {size}", size)
            font = legible(canvas_font("tiny"), zoom, self.overlay.least)
            height = font.pixelSize() / 2
            at = QPointF(0, -41 - height if self.short else 11 + height)
            write(painter, at, fitting(texts, font, QUEUE_ROOM), colors.text, font)


class NodeMark(QGraphicsItem):
    """How a node stands, over the node: that one's own picture stays as it is while the run goes on."""

    def __init__(self, item: NodeItem, overlay: Overlay) -> None:
        super().__init__(item)
        self.item = item
        self.overlay = overlay
        self._frame = item.boundingRect()
        self.setAcceptedMouseButtons(Qt.MouseButton.NoButton)

    def place(self) -> None:
        """Be as large as the node is now."""
        if self._frame != self.item.boundingRect():
            self.prepareGeometryChange()
            self._frame = self.item.boundingRect()

    def boundingRect(self) -> QRectF:
        return self._frame

    def shape(self) -> QPainterPath:
        return QPainterPath()  # the hand goes through to the node

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        if painter.worldTransform().m11() >= FAR:  # from afar the node itself has the colour
            self.overlay.paint_node(painter, self.item)


def write(painter: QPainter, middle: QPointF, text: str, color: QColor, font: QFont) -> None:
    """Words on a ground of their own, so that an edge does not run through them."""
    width = QFontMetricsF(font).horizontalAdvance(text)
    height = QFontMetricsF(font).height()
    frame = QRectF(middle.x() - width / 2 - 4, middle.y() - height / 2, width + 8, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(clear(theme().canvas, 225))
    painter.drawRoundedRect(frame, 4, 4)
    painter.setPen(color)
    painter.setFont(font)
    painter.drawText(frame, int(Qt.AlignmentFlag.AlignCenter), text)


class Overlay:
    """Shows the player's moment on a canvas, and repaints only what has changed."""

    def __init__(self, view: CanvasView, player: Player) -> None:
        self.view = view
        self.player = player
        self.least = LEAST
        self.nodes: dict[str, NodeState] = {}
        self.narrow: str | None = None  # a node of the unit that holds the run up
        self.bars: dict[str, QueueBar] = {}
        self.marks: dict[str, NodeMark] = {}
        self.held = 0  # bytes, in all queues
        self._recording: RunRecording | None = None
        self.near = view.zoom >= FAR  # or from afar
        canvas = view.canvas
        canvas.far_decorations.append(self.paint_far)
        canvas.tellers.append(self.tell)
        canvas.laid_out.connect(self._place)
        view.zoomed.connect(self._zoomed)
        player.ticked.connect(self.show)
        self._mark()
        self.show()

    def close(self) -> None:
        """Leave the canvas as it was."""
        canvas = self.view.canvas
        self.player.ticked.disconnect(self.show)
        canvas.laid_out.disconnect(self._place)
        self.view.zoomed.disconnect(self._zoomed)
        canvas.far_decorations.remove(self.paint_far)
        canvas.tellers.remove(self.tell)
        self._explain(())
        for bar in self.bars.values():
            canvas.removeItem(bar)
        for id_, mark in self.marks.items():
            if canvas.nodes.get(id_) is mark.item:
                canvas.removeItem(mark)
        self.bars, self.marks = {}, {}
        canvas.update()

    def set_scale(self, scale: float) -> None:
        """Letters for a desk, or for the back row."""
        self.least = LEAST * scale
        self.view.canvas.update()

    def show(self) -> None:
        """The player's moment."""
        recording = self.player.recording
        if recording is None or recording.started is None:
            return
        if recording is not self._recording:
            self._recording = recording
            self._make_bars(recording)
        state = recording.state(self.player.at)
        limiting = bottleneck(recording, state)
        nodes = recording.started.units.get(limiting, {}).get("nodes") if limiting else None
        narrow = nodes[-1] if nodes else None
        shown: Mapping[str, QGraphicsItem] = self.marks if self.near else self.view.canvas.nodes
        changed = {id_ for id_, node in state.nodes.items() if self._looks_other(self.nodes.get(id_), node)}
        changed |= self.nodes.keys() - state.nodes.keys()
        if narrow != self.narrow:
            changed |= {id_ for id_ in (narrow, self.narrow) if id_ is not None}
        for id_ in changed:
            item = shown.get(id_)
            if item is not None:
                item.update()
        self.nodes, self.narrow, self.held = state.nodes, narrow, state.bytes
        self._explain({node.count for node in state.nodes.values() if node.count})
        for id_, bar in self.bars.items():
            queue = state.queues.get(id_)
            if queue is not None:
                bar.show_queue(queue)

    def _looks_other(self, before: NodeState | None, node: NodeState) -> bool:
        """Whether a node is to be painted again; from afar nothing but its state is seen."""
        if before is node or before is None:
            return before is None
        return before.state is not node.state or (self.near and before != node)

    def _explain(self, labels: Collection[str]) -> None:
        """The labels of row counts that are in sight, in the legend."""
        more = [(tr(text), theme().muted.name()) for label, text in COUNTED.items() if label in labels]
        legend = self.view.legend
        if more != legend.more:
            legend.more = more
            legend.refresh()

    def tell(self, hit: Hit) -> str:
        """How the node or the queue below the pointer stands, for its tool tip."""
        if hit.kind == "edge":
            return self._tell_queue(hit.item)
        node = self.nodes.get(hit.item.id) if hit.kind == "node" else None
        if node is None:
            return ""
        lines = [tr(WAITS[node.state])]
        if node.rows_in:
            lines.append(tr("{0} rows in", f"{node.rows_in:,}"))
        if node.rows_out is not None:
            lines.append(tr("{0} rows out", f"{node.rows_out:,}"))
        if node.rows_per_second:
            lines.append(tr("{0} rows a second", count_text(node.rows_per_second)))
        if node.progress is not None:
            lines.append(tr("{0} of the Spark tasks of its unit are done", f"{node.progress * 100:.0f} %"))
        if node.count:
            lines.append(tr(COUNTED.get(node.count, node.count)))
        if hit.item.id == self.narrow:
            lines.append(tr("the bottleneck: rows pile up before it, or it is the busiest"))
        if node.message:
            lines.append(node.message)
        return "<hr>" + "<br>".join(escape(line) for line in lines)

    def _tell_queue(self, edge: EdgeItem) -> str:
        bar = next((bar for bar in self.bars.values() if bar.edge is edge), None)
        if bar is None:
            if self._recording is None or not self.nodes:
                return ""
            return "<hr>" + tr("no queue: both ends are in the same unit")
        queue = bar.queue
        if queue.capacity is None:
            held = tr("{0} packs, staged on disk", f"{queue.packs:,}")
        else:
            share = f"{(queue.fill or 0.0) * 100:.0f} %"
            held = tr("{0} of {1} packs: {2} full", f"{queue.packs:,}", f"{queue.capacity:,}", share)
        lines = [held, tr("{0} rows", f"{queue.rows:,}"), bytes_text(queue.bytes)]
        if self.held and queue.bytes:
            lines.append(tr("{0} of what all queues hold", f"{queue.bytes / self.held * 100:.0f} %"))
        return "<hr>" + "<br>".join(escape(line) for line in lines)

    def _make_bars(self, recording: RunRecording) -> None:
        canvas = self.view.canvas
        for bar in self.bars.values():
            canvas.removeItem(bar)
        edges = {
            (item.edge.source, item.source_port, item.edge.target, item.target_port): item
            for item in canvas.edges.values()
        }
        self.bars = {}
        assert recording.started is not None
        for id_, facts in recording.started.queues.items():
            edge = edges.get(tuple(facts.get("link", ())))
            if edge is not None:
                self.bars[id_] = QueueBar(edge, self)
                canvas.addItem(self.bars[id_])

    def _mark(self) -> None:
        """A mark on every node there is."""
        canvas = self.view.canvas
        for id_ in self.marks.keys() - canvas.nodes.keys():  # with its node it is gone
            del self.marks[id_]
        for id_, item in canvas.nodes.items():
            if id_ not in self.marks or self.marks[id_].item is not item:
                self.marks[id_] = NodeMark(item, self)
                self.marks[id_].setVisible(self.near)
            self.marks[id_].place()

    def _zoomed(self, zoom: float) -> None:
        if self.near != (zoom >= FAR):
            self.near = zoom >= FAR
            for mark in self.marks.values():
                mark.setVisible(self.near)

    def _place(self) -> None:
        self._mark()
        there = set(map(id, self.view.canvas.edges.values()))
        for id_, bar in list(self.bars.items()):
            if id(bar.edge) in there:
                bar.place()
            else:  # the edge was taken away while the run is shown
                self.view.canvas.removeItem(bar)
                del self.bars[id_]

    # -- painting

    def paint_node(self, painter: QPainter, item: NodeItem) -> None:
        """The state around a node, its rows below it."""
        node = self.nodes.get(item.id)
        if node is None:
            return
        colors, color = theme(), state_colour(node.state)
        shape = item.line()
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if item.id == self.narrow:
            painter.setPen(QPen(clear(colors.body, 90), 11))
            painter.drawPath(shape)
            painter.setPen(QPen(colors.body, 3, Qt.PenStyle.DashLine))
            painter.drawPath(shape)
        if node.state in (State.RUNNING, State.FAILED):
            painter.setPen(QPen(clear(color, 80), 8))
            painter.drawPath(shape)
        if node.state is not State.WAITING and item.id != self.narrow:
            painter.setPen(QPen(color, 2.4))
            painter.drawPath(shape)
        if node.state is State.FAILED:
            painter.fillPath(shape, clear(colors.error, 46))
        painter.setPen(QPen(colors.canvas, 2))
        painter.setBrush(color)
        badge = QPointF(NODE_WIDTH - 34, 1)  # beside the badge of problems
        painter.drawEllipse(badge, 7.5, 7.5)
        self._glyph(painter, node.state, badge)
        font = legible(canvas_font("small"), painter.worldTransform().m11(), self.least)
        below = QPointF(NODE_WIDTH / 2, item.height + FOOT + font.pixelSize() * 0.6)
        if node.state is State.FAILED and node.message:
            first = node.message.splitlines()[0]
            text = QFontMetricsF(font).elidedText(first, Qt.TextElideMode.ElideRight, NODE_WIDTH + 60)
            write(painter, below, text, colors.error, font)
            return
        texts = node_texts(node)
        if texts:
            write(painter, below, fitting(texts, font, NODE_ROOM), colors.text, font)

    def _glyph(self, painter: QPainter, state: State, at: QPointF) -> None:
        """A state is told by its shape as well as by its colour."""
        painter.setPen(QPen(theme().canvas, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        x, y = at.x(), at.y()
        if state is State.RUNNING:
            painter.setBrush(theme().canvas)
            painter.drawPolygon([QPointF(x - 2, y - 3), QPointF(x + 3, y), QPointF(x - 2, y + 3)])
        elif state is State.STALLED:
            painter.drawLine(QPointF(x - 1.8, y - 2.6), QPointF(x - 1.8, y + 2.6))
            painter.drawLine(QPointF(x + 1.8, y - 2.6), QPointF(x + 1.8, y + 2.6))
        elif state is State.FINISHED:
            painter.drawPolyline([QPointF(x - 3, y), QPointF(x - 0.8, y + 2.6), QPointF(x + 3.2, y - 2.4)])
        elif state is State.FAILED:
            painter.drawLine(QPointF(x - 2.4, y - 2.4), QPointF(x + 2.4, y + 2.4))
            painter.drawLine(QPointF(x + 2.4, y - 2.4), QPointF(x - 2.4, y + 2.4))

    def paint_far(self, painter: QPainter, item: NodeItem) -> None:
        """From afar: the whole node in the colour of its state."""
        node = self.nodes.get(item.id)
        if node is None or node.state is State.WAITING:
            return
        frame = QRectF(0, 0, NODE_WIDTH, item.height)
        painter.fillRect(frame.adjusted(8, 8, -8, -8), clear(state_colour(node.state), 190))
        if item.id == self.narrow:
            painter.setPen(QPen(theme().body, 12))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(frame)
