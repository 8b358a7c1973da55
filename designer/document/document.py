"""A workflow that is open: the model, the file it came from, and who wants to know of its changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from designer.document.edits import Edit, Place, apply
from designer.document.layout import check_layout
from designer.document.ports import Catalogue, PortTable
from engine.model.comments import Comments, comments_of, with_comments
from engine.model.file import WorkflowFile, load, to_yaml, write_text
from engine.model.secrets import refuse_secrets
from engine.model.workflow import Workflow

Observer = Callable[[Edit], None]

COMMENTS: Place = ("comments",)  # the one place that is the file's and not the workflow's


class Document:
    """One open workflow. `apply` is the only way it changes."""

    def __init__(self, workflow: Workflow, catalogue: Catalogue, path: Path | None = None) -> None:
        check_layout(workflow, str(path) if path else "the workflow")
        self.workflow = workflow
        self.catalogue = catalogue
        self.path = path
        self.comments = Comments()  # of the file, which are written back
        self.ports = PortTable(workflow, catalogue)
        self.on_disk = ""  # the file's text when it was last read or written
        self.observers: list[Observer] = []

    @classmethod
    def open(cls, path: Path, catalogue: Catalogue) -> Document:
        """Read a file; what is wrong with its form is a `BadInput` that says where."""
        file = load(path)
        document = cls(file.workflow, catalogue, path)
        document.comments = comments_of(file.text)
        document.on_disk = file.text
        return document

    def apply(self, edit: Edit) -> None:
        """Make an edit and tell the observers."""
        apply(self.workflow, (cell for cell in edit.cells if cell.place != COMMENTS))
        for cell in edit.cells:
            if cell.place == COMMENTS:
                self.comments = cell.after
        for observer in list(self.observers):
            observer(edit)

    def text(self) -> str:
        """The file's text as it would be saved now."""
        return with_comments(to_yaml(self.workflow), self.comments)

    def save(self, path: Path) -> None:
        """Write the file in one step; from now on the document belongs to it."""
        refuse_secrets(self.workflow, path.name, self.catalogue)
        text = self.text()
        write_text(path, text)
        self.path, self.on_disk = path, text

    def as_file(self) -> WorkflowFile | Workflow:
        """What binding takes: paths are relative to the file where there is one."""
        return WorkflowFile(self.workflow, self.path) if self.path else self.workflow

    def title_of(self, id_: str) -> str:
        """What the canvas calls a node."""
        return self.workflow.nodes[id_].title or id_
