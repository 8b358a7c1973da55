"""Every shipped workflow opens in the designer's window."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox

from designer.window.window import MainWindow
from engine.model.file import load
from engine.model.problems import Level
from tests.end_to_end.helpers import WORKFLOWS

SHIPPED = sorted(WORKFLOWS.glob("*.butterfly.yaml"))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name.partition(".")[0])
def test_it_opens_whole_and_without_errors(window: MainWindow, file: Path) -> None:
    view = window.files.open(file)
    assert [box.text() for box in window.findChildren(QMessageBox) if box.isVisible()] == []
    assert view is not None
    workflow = load(file).workflow
    assert view.canvas.nodes.keys() == workflow.nodes.keys()
    assert len(view.canvas.edges) == len(workflow.edges)
    problems = view.editor.analysis.problems
    assert [str(problem) for problem in problems if problem.level is Level.ERROR] == []
    assert not view.editor.modified, "it has a place for every node"
