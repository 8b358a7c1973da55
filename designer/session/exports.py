"""Exports: the canvas as a picture, the workflow as a script or as XML."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QProcess
from PySide6.QtWidgets import QFileDialog

from designer.text import tr
from engine.errors import PapilioError
from engine.model.file import write_text

if TYPE_CHECKING:
    from designer.window.window import MainWindow


class Exports:
    """What the export commands do."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window
        self.process: QProcess | None = None

    def _ask(self, ending: str, kinds: str) -> Path | None:
        editor = self.window.editor
        if editor is None:
            return None
        name = editor.path.name.removesuffix(".butterfly.yaml") if editor.path else "workflow"
        folder = editor.path.parent if editor.path else Path.cwd()
        chosen, _ = QFileDialog.getSaveFileName(self.window, tr("Export"), str(folder / f"{name}.{ending}"), kinds)
        return Path(chosen) if chosen else None

    def picture(self, form: str) -> None:
        """The whole canvas as SVG or PNG."""
        path = self._ask(form, f"{form.upper()} (*.{form})")
        if path is not None and self.window.view is not None:
            from designer.canvas.picture import save_picture

            try:
                save_picture(self.window.view.canvas, path)
            except OSError as error:
                self.window.complain(tr("Not exported"), str(error))
            else:
                self.window.say(tr("Exported {0}", path.name))

    def xml(self) -> None:
        """The metadata store's XML."""
        path = self._ask("xml", "XML (*.xml)")
        if path is not None and self.window.editor is not None:
            from engine.store.xml import workflow_to_xml

            try:
                write_text(path, workflow_to_xml(self.window.editor.document.workflow.document()))
            except PapilioError as error:
                self.window.complain(tr("Not exported"), str(error))
            else:
                self.window.say(tr("Exported {0}", path.name))

    def pyspark(self) -> None:
        """A script that runs on its own, written by the engine in a process of its own."""
        view = self.window.view
        if view is None:
            return
        if (view.editor.modified or view.editor.path is None) and not self.window.files.save(view):
            return
        path = self._ask("py", "Python (*.py)")
        if path is not None:
            self.write_script(path)

    def write_script(self, path: Path) -> None:
        """Let the engine write the script of the saved file."""
        assert self.window.editor is not None
        process = QProcess(self.window)
        process.setProgram(sys.executable)
        process.setArguments(
            ["-m", "engine", "export", str(self.window.editor.path), "--to", "pyspark", "--output", str(path)]
        )
        process.finished.connect(lambda code, _: self._written(process, code, path))
        self.process = process
        process.start()
        self.window.say(tr("Writing {0}…", path.name))

    def _written(self, process: QProcess, code: int, path: Path) -> None:
        self.process = None
        if code == 0:
            self.window.say(tr("Exported {0}", path.name))
        else:
            reason = bytes(process.readAllStandardError().data()).decode(errors="replace")
            self.window.complain(tr("Not exported"), reason.strip())
        process.deleteLater()
