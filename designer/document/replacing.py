"""One edit that turns a document into another workflow."""

from __future__ import annotations

from designer.document.document import Document
from designer.document.edits import ABSENT, Drafted, Edit
from engine.model.workflow import Workflow


def replaced(document: Document, other: Workflow, label: str) -> Edit:
    """Everything as `other` has it, as one step."""
    own, draft = document.workflow, Drafted(document.workflow)
    for section in ("nodes", "parameters", "roots"):
        before, after = getattr(own, section), getattr(other, section)
        for key in [*before, *after]:
            draft.set((section, key), after.get(key, ABSENT))
    for field in ("name", "description"):
        draft.set(("field", field), getattr(other, field))
    draft.set(("edges",), tuple(other.edges))
    for section in {**own.layout, **other.layout}:
        before, after = own.layout.get(section, {}), other.layout.get(section, {})
        if isinstance(before, dict) and isinstance(after, dict):
            for key in [*before, *after]:
                draft.set(("layout", section, key), after.get(key, ABSENT))
    return draft.edit(label)
