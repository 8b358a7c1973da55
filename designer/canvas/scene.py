"""The scene: one item for each node, edge, note and group of a document, kept in step with its edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QPointF, QRectF, QTimer, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QGraphicsItem, QGraphicsScene

from designer.canvas.backdrop import Backdrop
from designer.canvas.edge import EdgeItem, route
from designer.canvas.node import NodeItem
from designer.canvas.remarks import GroupItem, NoteItem
from designer.document.analysis import Analysis
from designer.document.arranging import group_frame
from designer.document.document import Document
from designer.document.edits import Edit
from designer.document.layout import bends, edge_key, groups, notes, positions
from designer.theme.theme import themes
from engine.model.operator import Carries
from engine.model.workflow import Edge

MARGIN = 1200.0  # how far the canvas goes beyond what stands on it
DEFAULT = QRectF(-400, -300, 1600, 1000)


@dataclass(frozen=True)
class Hit:
    """What is under the pointer."""

    kind: str  # port, node, badge, edge, note, corner, toggle, header, empty
    item: Any = None
    output: bool = False
    port: str = ""


class CanvasScene(QGraphicsScene):
    """What the canvas shows of a document."""

    laid_out = Signal()  # something moved, came or went
    chosen = Signal()  # the selection changed, also of edges

    def __init__(self, document: Document) -> None:
        super().__init__()
        self.document = document
        self.nodes: dict[str, NodeItem] = {}
        self.edges: dict[int, EdgeItem] = {}
        self.notes: dict[str, NoteItem] = {}
        self.groups: dict[str, GroupItem] = {}
        self.around: dict[str, set[EdgeItem]] = {}
        self.hidden: dict[str, GroupItem] = {}  # nodes inside a collapsed group
        self.analysis: Analysis | None = None
        self.backdrop = Backdrop(self)
        # Whoever watches a run paints on the nodes from here: each is called with the painter and the node's item.
        self.decorations: list[Callable[[QPainter, NodeItem], None]] = []
        self.tellers: list[Callable[[Hit], str]] = []  # add to a tool tip, as rich text
        self.far_decorations: list[Callable[[QPainter, NodeItem], None]] = []  # the same, for nodes seen from afar
        self._pictures = True
        self._content: QRectF | None = None
        self._dirty: set[str] = set()
        self._bends = bends(document.workflow)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self.flush)
        self.selectionChanged.connect(self.chosen)
        themes().changed.connect(self.restyle)
        document.observers.append(self.on_edit)
        self.build()

    def close(self) -> None:
        """Let go of the document and the theme."""
        self._timer.stop()
        self.document.observers.remove(self.on_edit)
        themes().changed.disconnect(self.restyle)

    # ---------------------------------------------------------------- keeping in step

    def build(self) -> None:
        """Make every item."""
        workflow = self.document.workflow
        there = positions(workflow)
        for id_ in workflow.nodes:
            self._add_node(id_, there.get(id_, (0.0, 0.0)), shown=False)
        self._set_edges(workflow.edges)
        for id_, item in self.nodes.items():
            if not item.operator:  # no edge has shown it yet
                self._show_node(id_)
        for id_, note in notes(workflow).items():
            self._add_note(id_, note)
        self._set_groups()
        self.flush()
        self.fit_rect()

    def on_edit(self, edit: Edit) -> None:
        """Draw anew what an edit touched."""
        workflow = self.document.workflow
        there = None
        in_place = all(cell.place[0] == "nodes" for cell in edit.cells)  # nothing else stands where it did not
        for id_ in edit.keys("nodes"):
            if id_ not in workflow.nodes:
                self._remove_node(id_)
                in_place = False
            elif id_ in self.nodes:
                height = self.nodes[id_].height
                self._show_node(id_)
                in_place = in_place and self.nodes[id_].height == height
            else:
                in_place = False
                there = there or positions(workflow)
                self._add_node(id_, there.get(id_, (0.0, 0.0)))
        moved = [id_ for id_ in edit.keys("layout", "nodes") if id_ in self.nodes]
        if moved:
            there = there or positions(workflow)
            for id_ in moved:
                self.nodes[id_].setPos(*there.get(id_, (0.0, 0.0)))
                self._dirty.add(id_)
        if any(cell.place == ("edges",) for cell in edit.cells):
            self._set_edges(workflow.edges)
        if any(True for _ in edit.keys("layout", "bends")):
            self._bends = bends(workflow)
            self._dirty.update(self.nodes)
        changed_notes = list(edit.keys("layout", "notes"))
        if changed_notes:
            known = notes(workflow)
            for id_ in changed_notes:
                if id_ not in known:
                    self.removeItem(self.notes.pop(id_))
                elif id_ in self.notes:
                    self.notes[id_].show_note(known[id_])
                else:
                    self._add_note(id_, known[id_])
        if self.groups or any(True for _ in edit.keys("layout", "groups")):
            self._set_groups()
        self.flush()
        if not in_place:
            self.fit_rect()
            self.backdrop.forget()
            self.update()
            self.laid_out.emit()

    def _add_node(self, id_: str, at: tuple[float, float], shown: bool = True) -> None:
        item = NodeItem(id_)
        item.keep_picture(self._pictures)
        item.setPos(*at)
        self.nodes[id_] = item
        self.around.setdefault(id_, set())
        if shown:
            self._show_node(id_)
        self.addItem(item)

    def _remove_node(self, id_: str) -> None:
        item = self.nodes.pop(id_, None)
        if item is not None:
            self.removeItem(item)
        for edge in list(self.around.pop(id_, ())):
            self._drop_edge(edge)

    def _show_node(self, id_: str) -> None:
        node = self.document.workflow.nodes[id_]
        kind = self.document.catalogue.get(node.operator)
        self.nodes[id_].show_node(node.operator, kind, self.document.title_of(id_), self.document.ports.of(id_))
        self._dirty.add(id_)

    def _add_note(self, id_: str, note: Any) -> None:
        self.notes[id_] = NoteItem(id_, note)
        self.addItem(self.notes[id_])

    def _set_edges(self, edges: Iterable[Edge]) -> None:
        wanted = {id(edge): edge for edge in edges if edge.source in self.nodes and edge.target in self.nodes}
        touched: set[str] = set()
        for key in [key for key in self.edges if key not in wanted]:
            edge = self.edges[key].edge
            touched |= {edge.source, edge.target}
            self._drop_edge(self.edges[key])
        for key, edge in wanted.items():
            if key not in self.edges:
                source, source_port, target, target_port = self.document.ports.ends(edge)
                out = self.document.ports.of(source).output(source_port)
                refused = out is not None and out.carries is Carries.REFUSED
                item = EdgeItem(edge, source_port, target_port, refused)
                self.edges[key] = item
                self.around[source].add(item)
                self.around[target].add(item)
                self.addItem(item)
                touched |= {source, target}
        for id_ in touched & self.nodes.keys():
            self.nodes[id_].connected = {
                (edge.edge.source == id_, edge.source_port if edge.edge.source == id_ else edge.target_port)
                for edge in self.around[id_]
            }
            self._show_node(id_)

    def _drop_edge(self, item: EdgeItem) -> None:
        self.edges.pop(id(item.edge), None)
        for end in (item.edge.source, item.edge.target):
            self.around.get(end, set()).discard(item)
        self.removeItem(item)
        if item.chosen:
            self.chosen.emit()

    def _set_groups(self) -> None:
        known, there = groups(self.document.workflow), positions(self.document.workflow)
        for id_ in [id_ for id_ in self.groups if id_ not in known]:
            self.removeItem(self.groups.pop(id_))
        before = set(self.hidden)
        self.hidden = {}
        for id_, group in known.items():
            if id_ not in self.groups:
                self.groups[id_] = GroupItem(id_, group)
                self.addItem(self.groups[id_])
            self.groups[id_].show_group(group, group_frame(there, group.nodes))
            if group.collapsed:
                self.hidden.update(dict.fromkeys(group.nodes, self.groups[id_]))
        for id_ in before ^ self.hidden.keys():
            if id_ in self.nodes:
                self.nodes[id_].setVisible(id_ not in self.hidden)
        self._dirty |= before | self.hidden.keys()

    # ---------------------------------------------------------------- edges

    def touch(self, ids: Iterable[str]) -> None:
        """Route the edges of these nodes anew, once, before the next frame."""
        self._dirty.update(ids)
        if not self._timer.isActive():
            self._timer.start()

    def flush(self) -> None:
        """Route all edges that wait for it."""
        dirty, self._dirty = self._dirty, set()
        items = {edge for id_ in dirty for edge in self.around.get(id_, ())}
        for item in items:
            self._route(item)

    def _route(self, item: EdgeItem) -> None:
        source, target = item.edge.source, item.edge.target
        inside, other = self.hidden.get(source), self.hidden.get(target)
        item.setVisible(inside is None or inside is not other)
        start = inside.gate(True) if inside else self.nodes[source].port_at(True, item.source_port)
        end = other.gate(False) if other else self.nodes[target].port_at(False, item.target_port)
        item.setPos(0, 0)
        bent = self._bends.get(edge_key(item.edge), ()) if not (inside or other) else ()
        item.setPath(route(start, end, bent))

    def shift(self, ids: set[str], dx: float, dy: float) -> None:
        """Move nodes while they are dragged: edges between them move along, the others are routed anew."""
        for id_ in ids:
            self.nodes[id_].moveBy(dx, dy)
        for item in {edge for id_ in ids for edge in self.around.get(id_, ())}:
            if item.edge.source in ids and item.edge.target in ids:
                item.moveBy(dx, dy)
            else:
                if item.pos() != QPointF(0, 0):
                    item.setPos(0, 0)
                self._route_dragged(item)

    def _route_dragged(self, item: EdgeItem) -> None:
        source, target = item.edge.source, item.edge.target
        inside, other = self.hidden.get(source), self.hidden.get(target)
        start = inside.gate(True) if inside else self.nodes[source].port_at(True, item.source_port)
        end = other.gate(False) if other else self.nodes[target].port_at(False, item.target_port)
        item.setPath(route(start, end))

    # ---------------------------------------------------------------- what is known

    def show_analysis(self, analysis: Analysis) -> None:
        """Take over wings and problems, drawing only the nodes for which they changed."""
        first, self.analysis = self.analysis is None, analysis
        wings, levels = analysis.wings, {id_: analysis.level(id_) for id_ in analysis.by_node}
        moved = changed = False
        for id_, item in self.nodes.items():
            wing, level = wings.get(id_), levels.get(id_)
            if wing != item.wing or level is not item.level:
                moved, changed = moved or wing != item.wing, True
                item.wing, item.level = wing, level
                item.update()
        if first or moved or self.backdrop.overlay is not None:
            self.backdrop.forget()
            self.update()
        if first or changed:
            self.laid_out.emit()

    def stress(self, nodes: set[str] | None) -> None:
        """Let some nodes stand out and the others step back; None: all as usual."""
        for id_, item in self.nodes.items():
            dimmed = nodes is not None and id_ not in nodes
            if dimmed != item.dimmed:
                item.dimmed = dimmed
                item.update()
        for edge in self.edges.values():
            faded = nodes is not None and not {edge.edge.source, edge.edge.target} <= nodes
            if faded != edge.faded:
                edge.faded = faded
                edge.restyle()

    def keep_pictures(self, kept: bool) -> None:
        """Whether each node is painted once and its picture used again, until it changes."""
        if kept != self._pictures:
            self._pictures = kept
            for item in self.nodes.values():
                item.keep_picture(kept)

    def update(self, *area: Any) -> None:
        """Paint a part again, or everything: then the nodes' pictures as well."""
        if not area:
            for item in self.nodes.values():
                item.update()
        super().update(*area)

    def render(self, *given: Any) -> None:
        """Paint it elsewhere, into a file of any resolution: not from the pictures, which are the screen's."""
        kept = self._pictures
        self.keep_pictures(False)
        try:
            super().render(*given)
        finally:
            self.keep_pictures(kept)

    def restyle(self) -> None:
        """Draw everything in the theme in use."""
        for edge in self.edges.values():
            edge.restyle()
        for note in self.notes.values():
            note.show_note(note.note)
        self.backdrop.restyle()
        self.update()

    def drawBackground(self, painter: QPainter, rect: QRectF | Any) -> None:
        self.backdrop.paint(painter, QRectF(rect))

    # ---------------------------------------------------------------- selection

    def selected_nodes(self) -> list[str]:
        """The selected nodes, in the order the workflow has them."""
        chosen = {item.id for item in self.selectedItems() if isinstance(item, NodeItem)}
        return [id_ for id_ in self.nodes if id_ in chosen] if len(chosen) > 1 else list(chosen)

    def selected_edges(self) -> list[Edge]:
        """The selected edges."""
        return [item.edge for item in self.edges.values() if item.chosen]

    def selected_notes(self) -> list[str]:
        """The selected notes."""
        return [id_ for id_, item in self.notes.items() if item.isSelected()]

    def selected_groups(self) -> list[str]:
        """The selected groups."""
        return [id_ for id_, item in self.groups.items() if item.isSelected()]

    def select(self, ids: Iterable[str] = (), edges: Iterable[Edge] = (), keep: bool = False) -> None:
        """Select nodes and edges, and nothing else unless `keep`."""
        wanted, chosen = set(ids), {id(edge) for edge in edges}
        self.blockSignals(True)
        try:
            if not keep:
                for item in self.selectedItems():
                    item.setSelected(False)
            for id_ in wanted:
                if id_ in self.nodes:
                    self.nodes[id_].setSelected(True)
            for key, edge in self.edges.items():
                edge.choose(key in chosen or (keep and edge.chosen))
        finally:
            self.blockSignals(False)
        self.chosen.emit()

    def select_item(self, item: QGraphicsItem, keep: bool) -> None:
        """Select a note or a group."""
        if not keep:
            self.select()
        item.setSelected(True)
        self.chosen.emit()

    # ---------------------------------------------------------------- finding

    def hit(self, at: QPointF, reach: float) -> Hit:
        """What is at a point: ports before nodes before edges before notes before groups."""
        around = QRectF(at.x() - reach, at.y() - reach, 2 * reach, 2 * reach)
        found = self.items(around.adjusted(-8, 0, 8, 0))
        nodes = [item for item in found if isinstance(item, NodeItem)]
        for item in nodes:
            near = item.port_near(at, reach + 3)
            if near is not None:
                return Hit("port", item, near[0], near[1].name)
        for item in nodes:
            if item.level is not None and item.badge_frame().contains(at):
                return Hit("badge", item)
            if item.frame().contains(at):
                return Hit("node", item)
        edge = next((item for item in found if isinstance(item, EdgeItem)), None)
        for group in (item for item in found if isinstance(item, GroupItem)):
            if group.toggle().contains(at):
                return Hit("toggle", group)
            if group.header().contains(at):
                return Hit("header", group)
        if edge is not None:
            return Hit("edge", edge)
        for note in (item for item in found if isinstance(item, NoteItem)):
            if note.corner().contains(at):
                return Hit("corner", note)
            if note.frame().contains(at):
                return Hit("note", note)
        return Hit("empty")

    def edge_at(self, at: QPointF, reach: float) -> EdgeItem | None:
        """The edge at a point, whatever stands on it."""
        around = QRectF(at.x() - reach, at.y() - reach, 2 * reach, 2 * reach)
        return next((item for item in self.items(around) if isinstance(item, EdgeItem)), None)

    def nodes_near(self, at: QPointF, reach: float) -> list[NodeItem]:
        """The nodes within reach of a point, the nearest first."""
        around = QRectF(at.x() - reach, at.y() - reach, 2 * reach, 2 * reach)
        found = [item for item in self.nodes.values() if item.isVisible() and item.frame().intersects(around)]
        return sorted(found, key=lambda item: (item.frame().center() - at).manhattanLength())

    def content(self) -> QRectF:
        """The frame around everything there is."""
        if self._content is None:
            self._content = self._measure()
        return self._content

    def _measure(self) -> QRectF:
        result = QRectF()
        for item in self.nodes.values():
            if item.isVisible():
                result = result.united(item.frame())
        for note in self.notes.values():
            result = result.united(note.frame())
        for group in self.groups.values():
            result = result.united(group.frame())
        return result

    def fit_rect(self) -> None:
        """Let the canvas reach far enough around what stands on it."""
        self._content = None
        content = self.content()
        wanted = DEFAULT if content.isEmpty() else content.adjusted(-MARGIN, -MARGIN, MARGIN, MARGIN)
        if not self.sceneRect().contains(wanted) or self.sceneRect().width() > wanted.width() + 4 * MARGIN:
            self.setSceneRect(wanted)
