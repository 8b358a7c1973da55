"""Noticing that a source's column got another name, so that the nodes behind it can follow."""

from __future__ import annotations

from dataclasses import dataclass

from designer.document.analysis import Analysis
from designer.document.edits import Edit
from designer.document.lineage import readers, rename_column
from designer.editor import Editor
from engine.model.operator import Source


@dataclass(frozen=True)
class Renamed:
    """A column that was renamed at its source, and who reads it by its old name."""

    node: str
    old: str
    new: str
    readers: tuple[str, ...]
    before: Analysis

    def edit(self, editor: Editor) -> Edit:
        """The edit that lets the readers follow."""
        return rename_column(editor.document, self.before, self.node, self.old, self.new)


class RenameWatch:
    """Compares a source's declared columns with what they were when its form was opened."""

    def __init__(self, editor: Editor, node: str) -> None:
        self.editor = editor
        self.node = node
        self.reset()

    def reset(self) -> None:
        """From here on."""
        self.before = self.editor.analysis
        self.columns = self._now()

    def _now(self) -> list[str]:
        node = self.editor.document.workflow.nodes.get(self.node)
        kind = self.editor.document.catalogue.get(node.operator) if node else None
        declared = node.settings.get("columns") if node else None
        if kind is None or not issubclass(kind, Source) or not isinstance(declared, dict):
            return []
        return list(declared)

    def found(self) -> Renamed | None:
        """The one column that has another name now, where others read it by its old one."""
        now = self._now()
        if len(now) != len(self.columns):
            return None
        changed = [(old, new) for old, new in zip(self.columns, now, strict=True) if old != new]
        if len(changed) != 1 or changed[0][0] in now:
            return None
        old, new = changed[0]
        behind = readers(self.before, self.node, old)
        return Renamed(self.node, old, new, tuple(behind), self.before) if behind else None
