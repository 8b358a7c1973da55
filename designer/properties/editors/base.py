"""What every editor of a setting can do."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from designer.document.edits import ABSENT
from designer.properties.context import Context
from designer.properties.fields import Value


class ValueEditor(QWidget):
    """Edits one value. `ABSENT` is no value: the operator's default holds."""

    changed = Signal()

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__()
        self.spec = value
        self.context = context
        self.place = place
        self.default = default

    def value(self) -> Any:
        """What stands in the editor, as the file has it."""
        return ABSENT

    def show_value(self, value: Any) -> None:
        """Show a value without telling of a change."""

    def refresh(self) -> None:
        """The columns around the node changed."""

    def focus_on(self, steps: list[str | int]) -> None:
        """Put the cursor where a problem is."""
        self.setFocus()


def mark_wrong(widget: QWidget, wrong: bool) -> None:
    """A red frame around an editor, or none."""
    if bool(widget.property("wrong")) != wrong:
        widget.setProperty("wrong", wrong)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
