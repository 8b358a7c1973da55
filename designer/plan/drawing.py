"""A plan on the canvas: a badge for each node's implementation, a diamond for each sorter, a ghost for each offer."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QGraphicsPathItem, QStyleOptionGraphicsItem, QWidget

from designer.canvas.edge import EdgeItem, route
from designer.canvas.node import NodeItem
from designer.canvas.scene import CanvasScene
from designer.canvas.sheet import canvas_font
from designer.text import tr
from designer.theme.theme import theme
from engine.model.physical import Order, order_text
from engine.plan.planner import Ranking
from engine.plan.space import Plan
from engine.plan.views import Rewrite

HALF = 11.0  # of a diamond
NEAR = 0.45  # from this zoom on a diamond has its order beside it
BADGE = 20.0  # the height of a badge
LEFT = 8.0  # from a node's left side to its badge
WIDEST = 150.0


def diamond(center: QPointF, half: float) -> QPolygonF:
    """The four corners of a diamond."""
    x, y = center.x(), center.y()
    return QPolygonF([QPointF(x, y - half), QPointF(x + half, y), QPointF(x, y + half), QPointF(x - half, y)])


class EdgeSorter(QGraphicsItem):
    """A sorter between two activities, in the middle of their edge."""

    def __init__(self, edge: EdgeItem, order: Order) -> None:
        super().__init__(edge)
        self.edge = edge
        self.text = order_text(order)
        self.setToolTip(tr("Sorter: rows are sorted by {0} on their way", self.text))
        self.follow()

    def follow(self) -> None:
        """Stand in the middle of the edge as it goes now."""
        path = self.edge.path()
        middle = _half_way(path)
        if middle != self.pos():
            self.setPos(middle)

    def boundingRect(self) -> QRectF:
        width = QFontMetricsF(canvas_font("small")).horizontalAdvance(self.text)
        side = max(HALF, width / 2) + 4
        return QRectF(-side, -HALF - 24, 2 * side, 2 * HALF + 28)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        colors = theme()
        painter.setPen(QPen(colors.canvas, 2.5))
        painter.setBrush(colors.keyword)
        painter.drawPolygon(diamond(QPointF(0, 0), HALF))
        if painter.worldTransform().m11() >= NEAR:
            painter.setFont(canvas_font("small"))
            width = QFontMetricsF(canvas_font("small")).horizontalAdvance(self.text)
            painter.setPen(colors.keyword)
            painter.drawText(QPointF(-width / 2, -HALF - 5), self.text)


def _half_way(path: QPainterPath) -> QPointF:
    """The middle of an edge; the head of its arrow is drawn behind its end and does not count."""
    if path.isEmpty():
        return QPointF()
    return path.pointAtPercent(path.percentAtLength(max(path.length() - 17, 0) / 2))


class PlanDrawing:
    """What one canvas shows of a plan. `show` and `hide` are all there is to do."""

    def __init__(self, scene: CanvasScene) -> None:
        self.scene = scene
        self.ways: dict[str, str] = {}  # badges, by node
        self.pinned: set[str] = set()
        self.recordsets: dict[str, str] = {}  # orders of sorters, by node
        self._items: list[EdgeSorter] = []
        self._wanted: dict[tuple[str, str], list[Order]] = {}
        self._ghost: QGraphicsPathItem | None = None
        self._offer: Rewrite | None = None
        scene.decorations.append(self._decorate)
        scene.changed.connect(self._follow)
        scene.laid_out.connect(self._place)

    def close(self) -> None:
        """Leave the canvas as it was."""
        self.hide()
        self.scene.changed.disconnect(self._follow)
        self.scene.laid_out.disconnect(self._place)
        self.scene.decorations.remove(self._decorate)

    def show(self, ranking: Ranking, plan: Plan, pinned: set[str]) -> None:
        """Draw a plan."""
        self.ways = dict(plan.implementations)
        for node in plan.by_itself:
            activity = ranking.space.graph.activity(node)
            if activity is not None and len(activity.physical.implementations) == 1:
                self.ways.pop(node, None)  # row by row, as ever
        self.pinned = pinned
        self.recordsets = {
            position.node: order_text(order) for position, order in plan.sorters.items() if position.edge is None
        }
        self._wanted = {}
        for position, order in plan.sorters.items():
            if position.edge is not None:
                self._wanted.setdefault((position.edge.source, position.edge.target), []).append(order)
        self._place()

    def hide(self) -> None:
        """Draw no plan any more."""
        self.ways, self.recordsets, self._wanted, self.pinned = {}, {}, {}, set()
        self.offer(None)
        self._place()

    def offer(self, rewrite: Rewrite | None) -> None:
        """Show where an aggregate would read instead: a dashed line from there."""
        self._offer = rewrite
        self._place_ghost()

    # -- keeping in step with the canvas

    def _place(self) -> None:
        for item in self._items:
            if item.scene() is self.scene:
                self.scene.removeItem(item)
        self._items = []
        left = {ends: list(orders) for ends, orders in self._wanted.items()}
        for edge in self.scene.edges.values():
            orders = left.get((edge.edge.source, edge.edge.target))
            if orders:
                self._items.append(EdgeSorter(edge, orders.pop(0)))
        self._place_ghost()
        self.scene.update()

    def _follow(self) -> None:
        """Edges that are dragged take their diamonds along."""
        for item in self._items:
            if item.scene() is self.scene:
                item.follow()

    def _place_ghost(self) -> None:
        if self._ghost is not None and self._ghost.scene() is self.scene:
            self.scene.removeItem(self._ghost)
        self._ghost = None
        offer = self._offer
        nodes = self.scene.nodes
        if offer is None or offer.node not in nodes or offer.source[0] not in nodes:
            return
        source, target = nodes[offer.source[0]], nodes[offer.node]
        ports = target.ports.inputs
        if not ports or source.ports.output(offer.source[1]) is None:
            return
        path = route(source.port_at(True, offer.source[1]), target.port_at(False, ports[0].name))
        self._ghost = QGraphicsPathItem(path)
        self._ghost.setPen(QPen(theme().ok, 2.6, Qt.PenStyle.DashLine, Qt.PenCapStyle.RoundCap))
        self._ghost.setZValue(6)
        self.scene.addItem(self._ghost)

    # -- painting on nodes

    def _decorate(self, painter: QPainter, item: NodeItem) -> None:
        colors = theme()
        if item.id in self.recordsets:
            _badge(painter, self.recordsets[item.id], colors.keyword, sorter=True)
        elif item.id in self.ways:
            _badge(painter, self.ways[item.id], colors.accent, pinned=item.id in self.pinned)


def _badge(painter: QPainter, text: str, color: QColor, *, sorter: bool = False, pinned: bool = False) -> None:
    """A pill on the upper left of a node: the short name of an implementation, or a diamond and an order."""
    colors = theme()
    metrics = QFontMetricsF(canvas_font("title"))
    text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, WIDEST)
    mark = 15.0 if sorter or pinned else 0.0
    frame = QRectF(LEFT, -BADGE / 2 - 2, metrics.horizontalAdvance(text) + 14 + mark, BADGE)
    painter.setPen(QPen(colors.canvas, 2))
    painter.setBrush(color)
    painter.drawRoundedRect(frame, 5, 5)
    painter.setPen(colors.accent_text)
    painter.setFont(canvas_font("title"))
    at = frame.left() + 7
    middle = frame.center().y()
    painter.setBrush(colors.accent_text)
    if sorter:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPolygon(diamond(QPointF(at + 4.5, middle), 5))
    elif pinned:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(QPointF(at + 4, middle - 2.5), 3.6, 3.6)
        painter.drawRect(QRectF(at + 3.2, middle + 1, 1.6, 5))
    painter.setPen(colors.accent_text)
    painter.drawText(QPointF(at + mark, middle + metrics.capHeight() / 2), text)
