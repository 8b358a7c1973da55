"""Translation: every text a person reads goes through `tr`."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from designer.document.edits import Edit

CONTEXT = "Papilio"


def tr(text: str, *words: object) -> str:
    """A text in the person's language; `{0}`, `{1}`… are filled with `words`."""
    translated = QCoreApplication.translate(CONTEXT, text)
    return translated.format(*words) if words else translated


def edit_text(edit: Edit) -> str:
    """What an edit is called in the history."""
    return tr(edit.label, *edit.words)
