"""Drawing a frame around what is to be selected."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF

from designer.canvas.gestures.base import Gesture, Modifiers


class Band(Gesture):
    """The rubber band. With Shift or Ctrl what was selected stays so."""

    def __init__(self, view, at: QPointF, keep: bool) -> None:  # type: ignore[no-untyped-def]
        super().__init__(view, at)
        self.kept = set(self.scene.selected_nodes()) if keep else set()
        self.before = self.scene.selected_nodes()

    def move(self, at: QPointF, modifiers: Modifiers) -> None:
        frame = QRectF(self.began, at).normalized()
        self.view.show_band(frame)
        inside = {id_ for id_, item in self.scene.nodes.items() if item.isVisible() and frame.intersects(item.frame())}
        wanted = inside | self.kept
        if wanted != set(self.scene.selected_nodes()):
            edges = [
                item.edge
                for item in self.scene.edges.values()
                if item.edge.source in wanted and item.edge.target in wanted
            ]
            self.scene.select(wanted, edges)
        for note in self.scene.notes.values():
            note.setSelected(frame.intersects(note.frame()))

    def end(self, at: QPointF, modifiers: Modifiers) -> None:
        self.view.show_band(None)
        if (at - self.began).manhattanLength() < 3 and not self.kept:
            self.scene.select()

    def cancel(self) -> None:
        self.view.show_band(None)
        self.scene.select(self.before)
