"""Drawing an edge from a port to a port, or to empty canvas for a new node."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt

from designer.canvas.edge import route
from designer.canvas.gestures.base import Gesture, Modifiers
from designer.canvas.node import NodeItem
from designer.document import changes
from designer.text import tr

REACH = 26.0  # pixels of the screen within which a port takes the edge


class Connect(Gesture):
    """Ports that would take the edge light up when they are near; elsewhere the reason is told."""

    cursor = Qt.CursorShape.CrossCursor

    def __init__(self, view, at: QPointF, item: NodeItem, output: bool, port: str) -> None:  # type: ignore[no-untyped-def]
        super().__init__(view, at)
        self.item, self.output, self.port = item, output, port
        self.goal: tuple[NodeItem, str] | None = None

    def start(self) -> None:
        self.item.hot_port = (self.output, self.port)
        self.item.update()

    def move(self, at: QPointF, modifiers: Modifiers) -> None:
        goal, reason = self._goal(at)
        self._heat(goal)
        end = goal[0].port_at(not self.output, goal[1]) if goal else at
        start = self.item.port_at(self.output, self.port)
        self.view.show_wire(route(start, end) if self.output else route(end, start), bool(goal) or reason is None)
        self.view.say(tr("Not here: {0}", tr(reason)) if reason else "")

    def _goal(self, at: QPointF) -> tuple[tuple[NodeItem, str] | None, str | None]:
        """The port that would be connected, or the reason why the one here would not."""
        near = None
        reach = REACH / self.view.zoom
        for item in self.scene.nodes_near(at, reach):
            found = item.port_near(at, reach)
            if found is None and item.frame().contains(at):  # anywhere on a node: its first free port
                ports = item.ports.inputs if self.output else item.ports.outputs
                free = [port for port in ports if (not self.output, port.name) not in item.connected]
                found = (not self.output, (free or list(ports))[0]) if ports else None
            if found is not None and found[0] != self.output:
                near = (item, found[1].name)
                break
        if near is None:
            return None, None
        if self.output:
            ends = (self.item.id, self.port, near[0].id, near[1])
        else:
            ends = (near[0].id, near[1], self.item.id, self.port)
        reason = changes.why_not(self.editor.document, *ends)
        return (near, None) if reason is None else (None, reason)

    def _heat(self, goal: tuple[NodeItem, str] | None) -> None:
        if self.goal is not None and self.goal != goal:
            self.goal[0].hot_port = None
            self.goal[0].update()
        if goal is not None:
            goal[0].hot_port = (not self.output, goal[1])
            goal[0].update()
        self.goal = goal

    def end(self, at: QPointF, modifiers: Modifiers) -> None:
        goal, reason = self._goal(at)
        self._clear()
        if goal is not None:
            if self.output:
                edit = changes.connect(self.editor.document, self.item.id, self.port, goal[0].id, goal[1])
            else:
                edit = changes.connect(self.editor.document, goal[0].id, goal[1], self.item.id, self.port)
            self.editor.push(edit)
        elif reason is None and (at - self.began).manhattanLength() > 24:
            self.view.quick_add(at, (self.item.id, self.output, self.port))
        elif reason is None:
            self.scene.select([self.item.id])

    def cancel(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._heat(None)
        self.item.hot_port = None
        self.item.update()
        self.view.show_wire(None, True)
        self.view.say("")
