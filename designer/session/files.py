"""Opening, saving and closing workflow files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog, QMenu, QMessageBox

from designer.canvas.arrange import arrange, place_missing
from designer.canvas.view import CanvasView
from designer.document.document import Document
from designer.document.layout import positions
from designer.session.recovery import Lost
from designer.text import tr
from engine.errors import BadInput, PapilioError
from engine.model.comments import comments_of
from engine.model.file import read_text, workflow_from
from engine.model.secrets import refuse_secrets
from engine.model.workflow import FILE_ENDING, Workflow

if TYPE_CHECKING:
    from designer.window.window import MainWindow

MAX_NODES = 50_000  # more than the canvas can show; the engine itself has no such limit


def _refuse_too_many(path: Path, nodes: int) -> None:
    if nodes > MAX_NODES:
        raise BadInput(f"{path}: {nodes:,} nodes; the canvas shows up to {MAX_NODES:,}")


class Files:
    """What the File menu does."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window

    # -- opening

    def new(self) -> CanvasView:
        """An empty workflow."""
        return self.window.open_document(Document(Workflow(), self.window.catalogue))

    def new_from(self, workflow: Workflow) -> CanvasView:
        """A new workflow that begins as a copy of another."""
        return self.window.open_document(Document(workflow, self.window.catalogue), modified=True)

    def ask_open(self) -> None:
        """Let the person choose a file."""
        editor = self.window.editor
        folder = str(editor.path.parent) if editor and editor.path else ""
        names, _ = QFileDialog.getOpenFileNames(
            self.window, tr("Open a workflow"), folder, tr("Workflows (*.butterfly.yaml *.yaml *.yml);;All files (*)")
        )
        for name in names:
            self.open(Path(name))

    def open(self, path: Path) -> CanvasView | None:
        """Open a file; one that cannot be opened is a message, and nothing else changes."""
        for view in self.window.views():
            if view.editor.path and view.editor.path.resolve() == path.resolve():
                self.window.tabs.setCurrentWidget(view)
                return view
        document = self._read(path)
        if document is None:
            return None
        view = self.window.open_document(document)
        self.window.settings.remember(path)
        return view

    def _read(self, path: Path) -> Document | None:
        try:
            _refuse_too_many(path, read_text(path).count("operator:"))  # before minutes are spent on reading it
            document = Document.open(path, self.window.catalogue)
            _refuse_too_many(path, len(document.workflow.nodes))
        except PapilioError as error:
            self.window.complain(tr("This file cannot be opened"), str(error))
            return None
        except (RecursionError, MemoryError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            self.window.complain(tr("This file cannot be opened"), f"{path}: {reason}")
            return None
        return document

    def reload(self) -> None:
        """Read the file again, as one step that can be undone."""
        editor = self.window.editor
        if editor is None or editor.path is None:
            return
        document = self._read(editor.path)
        if document is not None:
            from designer.document.replacing import replaced

            if len(positions(document.workflow)) < len(document.workflow.nodes):
                place_missing(document, arrange(document))
            editor.push(replaced(editor.document, document, "Read again"))
            editor.document.on_disk = document.on_disk
            editor.stack.setClean()
            self.window.recovery.forget(editor)

    def recover(self, lost: list[Lost]) -> None:
        """Open what a crash left unsaved; it stays unsaved, and the files on disk as they are."""
        for one in lost:
            try:
                document = Document(one.workflow(), self.window.catalogue, one.path)
                if one.path is not None and one.path.is_file():
                    document.on_disk = read_text(one.path)
                    document.comments = comments_of(document.on_disk)
            except PapilioError as error:
                self.window.complain(tr("This cannot be recovered"), str(error))
                continue
            self.window.open_document(document, modified=True, recovered=one.file.name)

    def import_xml(self) -> None:
        """A workflow from the metadata store's XML."""
        name, _ = QFileDialog.getOpenFileName(self.window, tr("Import XML"), "", tr("XML (*.xml);;All files (*)"))
        if not name:
            return
        from engine.store.xml import workflow_from_xml

        try:
            data = workflow_from_xml(Path(name).read_bytes(), name=name)
            self.new_from(workflow_from(data, name))
        except (PapilioError, OSError) as error:
            self.window.complain(tr("This file cannot be imported"), str(error))

    # -- saving

    def save(self, view: CanvasView | None = None) -> bool:
        """Write the file; ask for its name where it has none. False where it was not written."""
        view = view or self.window.view
        if view is None:
            return False
        if view.editor.path is None:
            return self.save_as(view)
        return self.write(view, view.editor.path)

    def save_as(self, view: CanvasView | None = None) -> bool:
        """Write the file under a name that the person chooses."""
        view = view or self.window.view
        if view is None:
            return False
        name = view.editor.document.workflow.name or "workflow"
        start = str(view.editor.path or Path.cwd() / f"{name}{FILE_ENDING}")
        chosen, _ = QFileDialog.getSaveFileName(
            self.window, tr("Save the workflow"), start, tr("Workflows (*.butterfly.yaml)")
        )
        if not chosen:
            return False
        path = Path(chosen)
        if not path.name.endswith((".yaml", ".yml")):
            path = path.with_name(path.name + FILE_ENDING)
        return self.write(view, path)

    def write(self, view: CanvasView, path: Path) -> bool:
        """Write to a path; what stands in the way is told."""
        editor = view.editor
        try:
            refuse_secrets(editor.document.workflow, path.name, self.window.catalogue)
            if path == editor.path and self._changed_by_others(editor.document):
                return False
            editor.save(path)
        except (PapilioError, OSError) as error:
            self.window.complain(tr("Not saved"), str(error))
            return False
        self.window.recovery.forget(editor)
        self.window.settings.remember(path)
        self.window.say(tr("Saved {0}", path.name))
        return True

    def _changed_by_others(self, document: Document) -> bool:
        """Whether somebody else changed the file meanwhile and the person wants to keep that."""
        assert document.path is not None
        if not document.path.exists() or read_text(document.path) == document.on_disk:
            return False
        answer = QMessageBox.question(
            self.window,
            tr("Changed on disk"),
            tr("{0} was changed by another program since it was opened. Write over it?", document.path.name),
        )
        return answer != QMessageBox.StandardButton.Yes

    def may_close(self, view: CanvasView) -> bool:
        """Ask what becomes of unsaved changes; False where the person wants to stay."""
        box = QMessageBox.StandardButton
        name = view.editor.path.name if view.editor.path else tr("Untitled")
        answer = QMessageBox.question(
            self.window,
            tr("Unsaved changes"),
            tr("Save the changes of {0}?", name),
            box.Save | box.Discard | box.Cancel,
            box.Save,
        )
        if answer == box.Save:
            return self.save(view)
        return answer == box.Discard

    def fill_recent(self, menu: QMenu) -> None:
        """The files opened last."""
        menu.clear()
        for path in self.window.settings.recent():
            menu.addAction(f"{path.name}  —  {path.parent}").triggered.connect(
                lambda _=False, path=path: self.open(path)
            )
        if menu.isEmpty():
            menu.addAction(tr("None yet")).setEnabled(False)
        else:
            menu.addSeparator()
            menu.addAction(tr("Forget them")).triggered.connect(self.window.settings.forget_recent)
