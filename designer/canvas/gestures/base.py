"""A gesture: from the press of a button to its release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, Qt

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

Modifiers = Qt.KeyboardModifier


class Gesture:
    """One gesture on a canvas. Points are the scene's; nothing is edited before `end`."""

    cursor: Qt.CursorShape | None = None

    def __init__(self, view: CanvasView, at: QPointF) -> None:
        self.view = view
        self.scene = view.canvas
        self.editor = view.editor
        self.began = at

    def start(self) -> None:
        """The button went down."""

    def move(self, at: QPointF, modifiers: Modifiers) -> None:
        """The pointer moved."""

    def end(self, at: QPointF, modifiers: Modifiers) -> None:
        """The button went up: make the edit."""

    def cancel(self) -> None:
        """Escape, or the window lost the pointer: as if nothing had begun."""
