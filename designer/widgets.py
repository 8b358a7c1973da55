"""Small widgets that several panels use."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QWidget


def label(text: str, role: str, *, wrap: bool = False) -> QLabel:
    """A label that the style sheet knows by its role: `heading`, `muted`, `wrong` or `good`."""
    made = QLabel(text)
    made.setObjectName(role)
    made.setWordWrap(wrap)
    return made


def take_role(widget: QWidget, role: str) -> None:
    """Let a widget look like another role from now on."""
    if widget.objectName() != role:
        widget.setObjectName(role)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
