"""One open workflow in the program: its document, its undo stack and what is known about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QRunnable, QThreadPool, QTimer, Signal

from designer.document.analysis import Analysis, analyse
from designer.document.document import Document
from designer.document.edits import Edit
from designer.undo import UndoStack
from engine.model.binding import Bound, Discover, Known
from engine.model.workflow import Workflow

ANALYSE_MS = 30  # after the last edit
IN_BACKGROUND = 1_500  # nodes from which on checking would be felt


class _Analysed(QObject):
    done = Signal(int, object)


class _AnalyseJob(QRunnable):
    """Checks a copy of a large workflow beside the window's own thread."""

    def __init__(
        self, document: Document, discover: Discover | None, known: Known, number: int, told: _Analysed
    ) -> None:
        super().__init__()
        workflow = document.workflow
        copy = workflow.model_copy(
            update={
                "nodes": dict(workflow.nodes),
                "edges": list(workflow.edges),
                "parameters": dict(workflow.parameters),
                "roots": dict(workflow.roots),
                "layout": {},
            }
        )
        self.document = Document(copy, document.catalogue, document.path)
        self.discover, self.known, self.number, self.told = discover, known, number, told

    def run(self) -> None:
        """Check, and say so."""
        found = analyse(self.document, self.discover, self.known)
        found.wings  # noqa: B018 - the window asks for them at once
        self.told.done.emit(self.number, found)


class Editor(QObject):
    """A document with undo, saved state and its latest analysis."""

    analysed = Signal(object)
    edited = Signal(object)
    saved_state = Signal()  # the file, its name or whether it is saved changed

    def __init__(self, document: Document, discover: Discover | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.document = document
        self.discover = discover
        self.stack = UndoStack(document, self)
        self.stack.cleanChanged.connect(self.saved_state)
        self.analysis = Analysis(Bound(Workflow(), None), [])
        self._known = Known()
        self._number = 0
        self._told = _Analysed()
        self._told.done.connect(self._take)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(ANALYSE_MS)
        self._timer.timeout.connect(self.analyse_now)
        self.before_close: list[Callable[[], None]] = []
        document.observers.append(self._on_edit)

    @property
    def path(self) -> Path | None:
        """The file, where there is one."""
        return self.document.path

    @property
    def modified(self) -> bool:
        """Whether there is something to save."""
        return not self.stack.isClean()

    def push(self, edit: Edit) -> bool:
        """Make an edit as one step; False where it changes nothing."""
        if not edit:
            return False
        self.stack.push(edit)
        return True

    def save(self, path: Path) -> None:
        """Write the file."""
        self.document.save(path)
        self.stack.setClean()
        self.saved_state.emit()
        self.analyse_soon()

    def close(self) -> None:
        """Let go of everything that outlives a tab."""
        self._timer.stop()
        self._number += 1
        for each in self.before_close:
            each()
        self.document.observers.clear()
        self.stack.blockSignals(True)  # it would tell of its own end, to those who are gone by then

    # -- analysis

    def _on_edit(self, edit: Edit) -> None:
        if edit.touches_logic():
            self.analyse_soon()
        self.edited.emit(edit)

    def analyse_soon(self) -> None:
        """Check the workflow a moment after the last edit."""
        self._timer.start()

    def check(self) -> None:
        """Check the workflow here and now, however large."""
        self._timer.stop()
        self._number += 1
        self._take(self._number, analyse(self.document, self.discover, self._known))

    def analyse_now(self) -> None:
        """Check the workflow; a large one beside this thread."""
        self._timer.stop()
        self._number += 1
        if len(self.document.workflow.nodes) > IN_BACKGROUND:
            job = _AnalyseJob(self.document, self.discover, self._known, self._number, self._told)
            QThreadPool.globalInstance().start(job)
        else:
            self._take(self._number, analyse(self.document, self.discover, self._known))

    def _take(self, number: int, analysis: Analysis) -> None:
        if number == self._number:  # not overtaken by a later edit
            self.analysis = analysis
            self.analysed.emit(analysis)
