"""Recovery: what is not saved yet is kept aside at each step, and offered after a crash."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QIODevice, QObject, QSaveFile, QTimer

from designer.document.document import Document
from designer.editor import Editor
from engine.errors import BadInput
from engine.model.file import read_text, workflow_from
from engine.model.secrets import without_secrets
from engine.model.workflow import Workflow
from engine.model.yamldata import read_yaml

HEAD = "# papilio recovery "
KEEP_MS = 250  # after an edit, however many follow it; a crash costs no more than this


@dataclass(frozen=True)
class Lost:
    """A workflow that a program which is gone left unsaved."""

    file: Path
    path: Path | None  # of the workflow, where it had one
    text: str

    @property
    def name(self) -> str:
        """What the person knows it as."""
        return self.path.name if self.path else "Untitled"

    def workflow(self) -> Workflow:
        """The workflow as it was at the last step."""
        data, lines = read_yaml(self.text, str(self.file))
        return workflow_from(data, str(self.file), lines)


class Recovery:
    """A file for each workflow with unsaved changes, in a folder that all Papilio windows share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "recovery"
        self._kept: dict[Editor, _Keeper] = {}

    def follow(self, editor: Editor, instead_of: str | None = None) -> None:
        """Keep an editor's steps from now on; `instead_of` names the file they were recovered from."""
        keeper = _Keeper(editor, self.folder / f"{uuid.uuid4().hex}.yaml")
        self._kept[editor] = keeper
        if instead_of is not None:
            keeper.write()
            with contextlib.suppress(OSError):
                (self.folder / instead_of).unlink()

    def forget(self, editor: Editor) -> None:
        """The editor's changes are saved, or the person does not want them."""
        keeper = self._kept.get(editor)
        if keeper is not None:
            keeper.clear()

    def lost(self) -> list[Lost]:
        """What programs that are gone left behind, the latest first."""
        found = []
        try:
            files = sorted(self.folder.glob("*.yaml"), key=lambda file: -file.stat().st_mtime)
        except OSError:
            return []
        own = {keeper.file for keeper in self._kept.values()}
        for file in files:
            if file in own:
                continue
            lost = _read(file)
            if lost is not None:
                found.append(lost)
        return found

    def discard(self, lost: list[Lost]) -> None:
        """The person does not want them back."""
        for one in lost:
            with contextlib.suppress(OSError):
                one.file.unlink()


def _read(file: Path) -> Lost | None:
    """What a recovery file holds; None while its program still runs, or where it is not one."""
    try:
        text = read_text(file)
        head, _, rest = text.partition("\n")
        data = json.loads(head.removeprefix(HEAD))
        if _alive(int(data["pid"]), float(data["started"])):
            return None
        return Lost(file, Path(data["path"]) if data.get("path") else None, rest)
    except (BadInput, ValueError, KeyError, TypeError):
        return None


def _alive(pid: int, started: float) -> bool:
    import psutil  # takes a tenth of a second, which the first window has no need of

    try:
        return abs(psutil.Process(pid).create_time() - started) < 2
    except psutil.Error:
        return False


class _Keeper(QObject):
    """Writes one editor's recovery file."""

    def __init__(self, editor: Editor, file: Path) -> None:
        super().__init__(editor)
        self.editor = editor
        self.file = file
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(KEEP_MS)
        self._timer.timeout.connect(self.write)
        editor.stack.indexChanged.connect(self._step)

    def _step(self) -> None:
        if self.editor.modified:
            if not self._timer.isActive():  # started anew at each step it would never end while somebody types
                self._timer.start()
        else:
            self.clear()

    def write(self) -> None:
        """Keep the workflow as it is now. Written beside and put in place at once, so that it is never half there."""
        import psutil

        document: Document = self.editor.document
        data = {
            "pid": os.getpid(),
            "started": psutil.Process().create_time(),
            "path": str(document.path.resolve()) if document.path else None,
        }
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return  # nothing can be kept here; saving will say why
        out = QSaveFile(str(self.file))
        if out.open(QIODevice.OpenModeFlag.WriteOnly):
            # JSON is YAML, and ten times as quick to write: a large workflow is kept without being felt.
            plain = without_secrets(document.workflow.document(), document.catalogue)
            text = json.dumps(plain, ensure_ascii=False, default=str)
            out.write(f"{HEAD}{json.dumps(data)}\n{text}\n".encode())
            out.commit()

    def clear(self) -> None:
        """Nothing is left to recover."""
        self._timer.stop()
        with contextlib.suppress(OSError):
            self.file.unlink()
