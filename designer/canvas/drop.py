"""Dropping an operator of the palette on the canvas: on an edge, near a port, or where there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF
from PySide6.QtGui import QDragMoveEvent, QDropEvent

from designer.canvas.edge import EdgeItem, route
from designer.canvas.node import NodeItem
from designer.document import changes
from designer.document.layout import NODE_WIDTH
from engine.model.operator import Carries

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

MIME = "application/x-papilio-operator"
NEAR = 150.0  # how far a port looks for something to be dropped beside it
REACH = 14.0  # pixels of the screen around an edge
CLOSE = 5.0  # the same where a port is as near


class Drop:
    """What would happen if the operator were let go here, shown while it is dragged."""

    def __init__(self, view: CanvasView) -> None:
        self.view = view
        self.edge: EdgeItem | None = None
        self.port: tuple[NodeItem, bool, str] | None = None

    def enter(self, event: QDragMoveEvent) -> None:
        """Take operators of the palette; files are the window's."""
        if event.mimeData().hasFormat(MIME):
            event.acceptProposedAction()
        else:
            event.ignore()

    def move(self, event: QDragMoveEvent) -> None:
        """Light up the edge or the port that the operator would be connected to."""
        if not event.mimeData().hasFormat(MIME):
            event.ignore()
            return
        operator = bytes(event.mimeData().data(MIME).data()).decode()
        self._look(operator, self.view.mapToScene(event.position().toPoint()))
        event.acceptProposedAction()

    def drop(self, event: QDropEvent) -> None:
        """Add it."""
        if not event.mimeData().hasFormat(MIME):
            event.ignore()
            return
        operator = bytes(event.mimeData().data(MIME).data()).decode()
        at = self.view.mapToScene(event.position().toPoint())
        self._look(operator, at)
        edge = self.edge.edge if self.edge else None
        port = (self.port[0].id, self.port[1], self.port[2]) if self.port else None
        self.leave()
        event.acceptProposedAction()
        self.view.add_operator(operator, at, port, edge)

    def leave(self) -> None:
        """Nothing is dragged here any more."""
        if self.edge is not None:
            self.edge.heat(False)
        if self.port is not None:
            self.port[0].hot_port = None
            self.port[0].update()
        self.edge, self.port = None, None
        self.view.show_wire(None, True)

    def _edge(self, at: QPointF) -> EdgeItem | None:
        """The edge under the pointer; a short one also where its ports are within reach."""
        canvas, zoom = self.view.canvas, self.view.zoom
        hit = canvas.hit(at, REACH / zoom)
        if hit.kind == "port":
            return canvas.edge_at(at, CLOSE / zoom)
        return hit.item if hit.kind == "edge" else None

    def _look(self, operator: str, at: QPointF) -> None:
        self.leave()
        document = self.view.editor.document
        kind = document.catalogue.get(operator)
        if kind is None:
            return
        if kind.inputs and kind.outputs:
            self.edge = self._edge(at)
            if self.edge is not None:
                self.edge.heat(True)
                return
        best, nearest = None, NEAR
        for item in self.view.canvas.nodes_near(at, NEAR + NODE_WIDTH):
            for output, ports in ((True, item.ports.outputs), (False, item.ports.inputs)):
                own = QPointF(at.x() + (-NODE_WIDTH / 2 if output else NODE_WIDTH / 2), at.y())
                for port in ports:
                    there = item.port_at(output, port.name)
                    distance = (there - own).manhattanLength()
                    taken = not output and (False, port.name) in item.connected and not port.many
                    fits = changes.first_fit(document, operator, port, output) is not None
                    if distance < nearest and fits and not taken and port.carries is Carries.ROWS:
                        best, nearest = (item, output, port.name), distance
        if best is not None:
            self.port = best
            item, output, name = best
            item.hot_port = (output, name)
            item.update()
            there = item.port_at(output, name)
            own = QPointF(at.x() + (-NODE_WIDTH / 2 if output else NODE_WIDTH / 2), at.y())
            self.view.show_wire(route(there, own) if output else route(own, there), True)
