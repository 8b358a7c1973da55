"""One edit that turns a document into another."""

from __future__ import annotations

from designer.document.document import COMMENTS, Document
from designer.document.edits import ABSENT, Cell, Drafted, Edit
from engine.model.workflow import Workflow

KEYED = ("nodes", "parameters", "roots")  # sections whose entries are places of their own


def replaced(document: Document, other: Document, label: str) -> Edit:
    """Everything as `other` has it, its comments too, as one step."""
    own, new, draft = document.workflow, other.workflow, Drafted(document.workflow)
    for field in Workflow.model_fields:
        if field in KEYED:
            before, after = getattr(own, field), getattr(new, field)
            for key in [*before, *after]:
                draft.set((field, key), after.get(key, ABSENT))
        elif field == "edges":
            draft.set(("edges",), tuple(new.edges))
        elif field == "layout":
            _draft_layout(draft, new)
        else:
            draft.set(("field", field), getattr(new, field))
    unknown = new.model_extra or {}
    for name in [*(own.model_extra or {}), *unknown]:
        draft.set(("extra", name), unknown.get(name, ABSENT))
    edit = draft.edit(label)
    if document.comments == other.comments:
        return edit
    return Edit(edit.label, (*edit.cells, Cell(COMMENTS, document.comments, other.comments)))


def _draft_layout(draft: Drafted, new: Workflow) -> None:
    own = draft.workflow
    for section in {**own.layout, **new.layout}:
        before, after = own.layout.get(section, {}), new.layout.get(section, {})
        if isinstance(before, dict) and isinstance(after, dict):
            for key in [*before, *after]:
                draft.set(("layout", section, key), after.get(key, ABSENT))
        else:  # one that only a later version understands
            draft.set(("layout", section), new.layout.get(section, ABSENT))
