"""Moving what is selected, with snap and alignment guides; a node that stands alone can be put on an edge."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt

from designer.canvas.edge import EdgeItem
from designer.canvas.gestures.base import Gesture, Modifiers
from designer.canvas.guides import Guides
from designer.document import arranging, changes

REACH = 7.0  # pixels of the screen within which a guide pulls
ON_EDGE = 14.0  # pixels of the screen around a node's middle within which an edge takes it


class Move(Gesture):
    """Nodes and notes follow the pointer; on release they have moved in one step. Alt moves freely."""

    cursor = Qt.CursorShape.SizeAllCursor

    def start(self) -> None:
        scene = self.scene
        self.nodes = set(scene.selected_nodes())
        for id_ in scene.selected_groups():
            self.nodes |= set(scene.groups[id_].held.nodes)
        self.notes = {id_: scene.notes[id_] for id_ in scene.selected_notes()}
        self.moved = QPointF(0, 0)
        self.alone = None  # the node that an edge would take
        if len(self.nodes) == 1 and not self.notes and not scene.selected_groups():
            (id_,) = self.nodes
            self.alone = id_ if changes.insertable(self.editor.document, id_) else None
        self.edge: EdgeItem | None = None
        self.frame = None
        for id_ in self.nodes:
            one = scene.nodes[id_].frame()
            self.frame = one if self.frame is None else self.frame.united(one)
        for note in self.notes.values():
            self.frame = note.frame() if self.frame is None else self.frame.united(note.frame())
        seen = self.view.visible_frame()
        self.guides = Guides(
            (frame.left(), frame.top(), frame.right(), frame.bottom())
            for id_, item in scene.nodes.items()
            if id_ not in self.nodes and item.isVisible() and (frame := item.frame()).intersects(seen)
        )

    def move(self, at: QPointF, modifiers: Modifiers) -> None:
        if self.frame is None:
            return
        wanted = at - self.began
        if modifiers & Qt.KeyboardModifier.ShiftModifier:  # straight along one axis
            if abs(wanted.x()) >= abs(wanted.y()):
                wanted.setY(0)
            else:
                wanted.setX(0)
        lines: tuple[tuple[float, float, float, float], ...] = ()
        if not modifiers & Qt.KeyboardModifier.AltModifier:
            frame = self.frame.translated(wanted)
            reach = REACH / self.view.zoom
            snapped = self.guides.snap((frame.left(), frame.top(), frame.right(), frame.bottom()), reach)
            wanted += QPointF(snapped.dx, snapped.dy)
            lines = snapped.lines
        self._shift(wanted - self.moved)
        self.moved = wanted
        self.view.show_guides(lines)
        self._look(freely=bool(modifiers & Qt.KeyboardModifier.AltModifier))

    def _look(self, freely: bool = False) -> None:
        """Light up the edge that would take the node."""
        found = None
        if self.alone is not None and not freely:
            found = self.scene.edge_at(self.scene.nodes[self.alone].frame().center(), ON_EDGE / self.view.zoom)
        if found is not self.edge:
            self._let_go()
            self.edge = found
            if found is not None:
                found.heat(True)

    def _let_go(self) -> None:
        if self.edge is not None:
            self.edge.heat(False)
        self.edge = None

    def _shift(self, by: QPointF) -> None:
        if by.isNull():
            return
        self.scene.shift(self.nodes, by.x(), by.y())
        for note in self.notes.values():
            note.moveBy(by.x(), by.y())
        for group in self.scene.groups.values():
            if group.held.nodes and self.nodes.issuperset(group.held.nodes):
                group.moveBy(by.x(), by.y())

    def end(self, at: QPointF, modifiers: Modifiers) -> None:
        self.view.show_guides(())
        edge = self.edge.edge if self.edge is not None else None
        self._let_go()
        if self.moved.isNull():
            return
        nodes = {id_: self.scene.nodes[id_].pos().toTuple() for id_ in self.nodes}
        notes = {id_: note.pos().toTuple() for id_, note in self.notes.items()}
        if self.alone is not None and edge is not None:
            self.editor.push(changes.insert(self.editor.document, self.alone, nodes[self.alone], edge))
        else:
            self.editor.push(arranging.move(self.editor.document, nodes, notes))
        self.scene.touch(self.nodes)

    def cancel(self) -> None:
        self.view.show_guides(())
        self._let_go()
        self._shift(-self.moved)
        self.scene.touch(self.nodes)
