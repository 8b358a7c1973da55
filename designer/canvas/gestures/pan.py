"""Moving the canvas under the pointer."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, Qt

from designer.canvas.gestures.base import Gesture, Modifiers


class Pan(Gesture):
    """With the middle button, or with any while Space is held."""

    cursor = Qt.CursorShape.ClosedHandCursor

    def start(self) -> None:
        self._last = self.view.pointer
        self._began = self._bars()

    def _bars(self) -> tuple[int, int]:
        return self.view.horizontalScrollBar().value(), self.view.verticalScrollBar().value()

    def move(self, at: QPointF, modifiers: Modifiers) -> None:
        moved: QPoint = self.view.pointer - self._last
        self._last = self.view.pointer
        across, down = self.view.horizontalScrollBar(), self.view.verticalScrollBar()
        across.setValue(across.value() - moved.x())
        down.setValue(down.value() - moved.y())

    def cancel(self) -> None:
        self.view.horizontalScrollBar().setValue(self._began[0])
        self.view.verticalScrollBar().setValue(self._began[1])
