"""Reading a workflow file as a plain document."""

from __future__ import annotations

from pathlib import Path

from engine.model.file import read_text, workflow_from
from engine.model.yamldata import read_yaml
from engine.store.plain import Document, check_plain


def read_document(path: Path) -> tuple[Document, str]:
    """The plain document in a workflow file, checked for form, and the exact text of the file."""
    text = read_text(path)
    document, lines = read_yaml(text, str(path))
    workflow_from(document, str(path), lines)
    check_plain(document, str(path))
    return document, text
