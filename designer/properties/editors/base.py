"""What every editor of a setting can do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from designer.document.edits import ABSENT
from designer.properties.context import Context
from designer.properties.fields import Value


class ValueEditor(QWidget):
    """Edits one value. `ABSENT` is no value: the operator's default holds."""

    changed = Signal()
    entered = Signal()  # Enter: the person is done with this value and wants the next

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


def in_reading_order(form: QWidget) -> None:
    """Let Tab go from field to field as one reads them: rows that came later are not visited last."""
    fields = [
        widget
        for widget in form.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None and widget.isVisibleTo(form)
    ]

    def place(widget: QWidget) -> tuple[int, int]:
        at = widget.mapTo(form, widget.rect().center())
        return at.y() // 12, at.x()

    fields.sort(key=place)
    for one, other in pairwise(fields):
        QWidget.setTabOrder(one, other)


def mark_wrong(widget: QWidget, wrong: bool) -> None:
    """A red frame around an editor, or none."""
    if bool(widget.property("wrong")) != wrong:
        widget.setProperty("wrong", wrong)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
