"""The undo stack and its list. Steps are plain Python objects.

Qt's own stack deletes a step that it merges while Python still holds it; PySide then crashes when it collects garbage.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, Signal
from PySide6.QtGui import QBrush
from PySide6.QtWidgets import QListWidget

from designer.document.document import Document
from designer.document.edits import Edit
from designer.text import edit_text, tr

MERGE_S = 2.0  # edits of one field that follow each other this closely are one step


@dataclass
class Step:
    """One step: an edit, or several under one name."""

    text: str
    edits: list[Edit]
    made: float = field(default_factory=time.monotonic)

    def merges(self, edit: Edit, now: float) -> bool:
        """Whether an edit goes on with the field that this step is about."""
        one = self.edits[0] if len(self.edits) == 1 else None
        return one is not None and one.merge is not None and one.merge == edit.merge and now - self.made <= MERGE_S


class UndoStack(QObject):
    """The steps of a document, those that are done before those that were undone."""

    indexChanged = Signal(int)
    cleanChanged = Signal(bool)

    def __init__(self, document: Document, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.document = document
        self.steps: list[Step] = []
        self._index = 0
        self._clean: int | None = 0  # the index at which the document is as its file; None where it never is
        self._macro: Step | None = None

    # -- looking

    def index(self) -> int:
        """How many steps are done."""
        return self._index

    def count(self) -> int:
        """How many steps there are."""
        return len(self.steps)

    def canUndo(self) -> bool:
        """Whether a step can be taken back."""
        return self._index > 0

    def canRedo(self) -> bool:
        """Whether a step can be made again."""
        return self._index < len(self.steps)

    def isClean(self) -> bool:
        """Whether the document is as its file."""
        return self._clean == self._index

    # -- going back and forth

    def push(self, edit: Edit) -> None:
        """Make an edit: a step of its own, or part of the one before where that is about the same field."""
        self.document.apply(edit)
        if self._macro is not None:
            self._macro.edits.append(edit)
            return
        was_clean, now = self.isClean(), time.monotonic()
        del self.steps[self._index :]
        if self._clean is not None and self._clean > self._index:
            self._clean = None
        last = self.steps[-1] if self.steps else None
        if last is not None and last.merges(edit, now) and not was_clean:
            merged = last.edits[0].then(edit)
            if merged:
                last.edits, last.made = [merged], now
            else:  # the two take each other back
                self.steps.pop()
                self._index -= 1
        else:
            self.steps.append(Step(edit_text(edit), [edit], now))
            self._index += 1
        self._tell(was_clean)

    def undo(self) -> None:
        """Take the last step back."""
        self.setIndex(self._index - 1)

    def redo(self) -> None:
        """Make the next step again."""
        self.setIndex(self._index + 1)

    def setIndex(self, index: int) -> None:
        """Undo or redo until so many steps are done."""
        index = max(0, min(index, len(self.steps)))
        if index == self._index:
            return
        was_clean = self.isClean()
        while self._index > index:
            self._index -= 1
            for edit in reversed(self.steps[self._index].edits):
                self.document.apply(edit.inverse())
        while self._index < index:
            for edit in self.steps[self._index].edits:
                self.document.apply(edit)
            self._index += 1
        self._tell(was_clean)

    # -- several edits as one step

    def beginMacro(self, text: str) -> None:
        """What is pushed from here on is one step."""
        self._macro = Step(text, [])

    def endMacro(self) -> None:
        """The step is whole."""
        macro, self._macro = self._macro, None
        if macro is None or not macro.edits:
            return
        was_clean = self.isClean()
        del self.steps[self._index :]
        if self._clean is not None and self._clean > self._index:
            self._clean = None
        self.steps.append(macro)
        self._index += 1
        self._tell(was_clean)

    # -- the file

    def setClean(self) -> None:
        """The document is saved."""
        was_clean = self.isClean()
        self._clean = self._index
        if not was_clean:
            self.cleanChanged.emit(True)

    def resetClean(self) -> None:
        """The document is not as its file, however much is undone."""
        was_clean = self.isClean()
        self._clean = None
        if was_clean:
            self.cleanChanged.emit(False)

    def _tell(self, was_clean: bool) -> None:
        if was_clean != self.isClean():
            self.cleanChanged.emit(not was_clean)
        self.indexChanged.emit(self._index)


class HistoryPanel(QListWidget):
    """The steps as a list; a click goes to the state after one."""

    def __init__(self) -> None:
        super().__init__()
        self._stack: UndoStack | None = None
        self._shown: list[tuple[str, bool]] = []  # each row's text, and whether its step is undone
        self.setUniformItemSizes(True)
        self.currentRowChanged.connect(self._go)

    def follow(self, stack: UndoStack | None) -> None:
        """Show the steps of another stack."""
        if self._stack is not None:
            self._stack.indexChanged.disconnect(self._show)
        self._stack = stack
        if stack is not None:
            stack.indexChanged.connect(self._show)
        self._show()

    def _show(self, _: int = 0) -> None:
        """Bring the rows up to date in place: the list may be in the middle of a click on one of them."""
        rows, done = self._rows()
        with QSignalBlocker(self):
            while self.count() > len(rows):
                self.takeItem(self.count() - 1)
            there = self.count()
            for number, row in enumerate(rows):
                if number >= there:
                    self.addItem(row[0])
                elif self._shown[number] == row:
                    continue
                item = self.item(number)
                item.setText(row[0])
                item.setForeground(self.palette().placeholderText() if row[1] else QBrush())
            self._shown = rows
            if self.currentRow() != done:  # else it was clicked, and must not scroll away from under the pointer
                self.setCurrentRow(done)
                self.scrollToItem(self.item(done))

    def _rows(self) -> tuple[list[tuple[str, bool]], int]:
        if self._stack is None:
            return [], -1
        done = self._stack.index()
        texts = (tr("As it was opened"), *(step.text for step in self._stack.steps))
        return [(text, number > done) for number, text in enumerate(texts)], done

    def _go(self, row: int) -> None:
        if self._stack is not None and row >= 0:
            self._stack.setIndex(row)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_shown"):
            self._shown = [("", False)] * len(self._shown)  # undone steps are grey in another grey now
            self._show()
