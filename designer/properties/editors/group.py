"""Several settings that belong together."""

from __future__ import annotations

from typing import Any

from PySide6.QtWidgets import QGridLayout

from designer.document.edits import ABSENT
from designer.properties.context import Context
from designer.properties.editors import editor_for
from designer.properties.editors.base import ValueEditor
from designer.properties.fields import Value
from designer.widgets import label


class GroupEditor(ValueEditor):
    """A small form inside the form. Fields it does not know stay as they are."""

    def __init__(self, value: Value, context: Context, place: str, default: Any = None) -> None:
        super().__init__(value, context, place, default)
        self._rest: dict[str, Any] = {}
        self.editors: dict[str, ValueEditor] = {}
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setHorizontalSpacing(8)
        layout.setVerticalSpacing(4)
        layout.setColumnStretch(1, 1)
        for row, spec in enumerate(value.fields):
            caption = label(spec.label, "muted")
            caption.setToolTip(spec.description)
            editor = editor_for(spec.value, context, f"{place}.{spec.name}", spec.default)
            editor.setToolTip(spec.description)
            editor.changed.connect(self.changed)
            editor.entered.connect(self.entered)
            self.editors[spec.name] = editor
            layout.addWidget(caption, row, 0)
            layout.addWidget(editor, row, 1)

    def value(self) -> Any:
        found = {name: editor.value() for name, editor in self.editors.items()}
        result = {**self._rest, **{name: value for name, value in found.items() if value is not ABSENT}}
        return result or ABSENT

    def show_value(self, value: Any) -> None:
        data = value if isinstance(value, dict) else {}
        self._rest = {key: item for key, item in data.items() if key not in self.editors}
        for name, editor in self.editors.items():
            editor.show_value(data.get(name, ABSENT))

    def refresh(self) -> None:
        for editor in self.editors.values():
            editor.refresh()

    def focus_on(self, steps: list[str | int]) -> None:
        name = str(steps[0]) if steps else next(iter(self.editors), "")
        if name in self.editors:
            self.editors[name].focus_on(steps[1:])
