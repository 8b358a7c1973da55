"""A window of the designer, with a Papilio home of its own."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")  # before Qt is asked for a window

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox

from designer.canvas.sheet import use_font
from designer.canvas.view import CanvasView
from designer.document.document import Document
from designer.session.settings import Settings
from designer.theme.theme import themes
from designer.window.window import MainWindow
from engine.experiments.scheduling import archetype
from engine.schedule.costs import SimulationSettings
from engine.simulation import launch_simulated


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every other warning of Qt fails a test."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            # The offscreen platform says of what only a window manager can do that it does not support it.
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))


@pytest.fixture(scope="session", autouse=True)
def _style(qapp: QApplication) -> None:
    qapp.setStyle("Fusion")
    use_font(qapp.font())
    themes().start("light")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "store.db"))


@pytest.fixture(autouse=True)
def _no_question_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    def question(*words: object) -> None:
        pytest.fail(f"nobody is there to answer: {words[1:]}")

    monkeypatch.setattr(QMessageBox, "question", question)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    left = [thread.name for thread in set(threading.enumerate()) - before if thread.name == "schemas"]
    assert left == []


@pytest.fixture
def window(qapp: QApplication, tmp_path: Path) -> Iterator[MainWindow]:
    made = MainWindow(Settings(tmp_path / "home" / "designer"))
    made.resize(1400, 900)
    made.show()
    QTest.qWaitForWindowExposed(made)
    yield made
    for view in made.views():
        view.editor.stack.setClean()
    made.close()
    made.deleteLater()
    for _ in range(3):  # what is deleted may delete others
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Logs of Fig. 1 under three policies, simulated."""
    folder = tmp_path_factory.mktemp("runs")
    bound = archetype("butterfly", 0.1)
    for policy in ("rr", "mc", "mm"):
        store = f"sqlite:///{folder}/store.db"
        launch_simulated(bound, SimulationSettings(policy=policy), folder=folder / policy, store=store)
    return {policy: folder / policy / "events.jsonl" for policy in ("rr", "mc", "mm")}


def logged(log: Path, kind: str) -> list[dict[str, Any]]:
    """The events of a kind, read plainly."""
    return [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == kind]


class Hand:
    """A person's mouse and keyboard on one canvas. Points are the scene's."""

    def __init__(self, view: CanvasView) -> None:
        self.view = view

    def at(self, x: float, y: float) -> QPoint:
        return self.view.mapFromScene(QPointF(x, y))

    def middle(self, node_: str) -> tuple[float, float]:
        center = self.view.canvas.nodes[node_].frame().center()
        return center.x(), center.y()

    def port(self, node_: str, output: bool, name: str) -> tuple[float, float]:
        at = self.view.canvas.nodes[node_].port_at(output, name)
        return at.x(), at.y()

    def press(self, x: float, y: float, button: Qt.MouseButton = Qt.MouseButton.LeftButton) -> None:
        QTest.mousePress(self.view.viewport(), button, Qt.KeyboardModifier.NoModifier, self.at(x, y))

    def move(self, x: float, y: float) -> None:
        QTest.mouseMove(self.view.viewport(), self.at(x, y))
        QApplication.processEvents()

    def release(
        self,
        x: float,
        y: float,
        button: Qt.MouseButton = Qt.MouseButton.LeftButton,
        modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
    ) -> None:
        QTest.mouseRelease(self.view.viewport(), button, modifiers, self.at(x, y))
        QApplication.processEvents()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.press(*start)
        for share in (0.3, 0.7, 1.0):
            self.move(start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)
        self.release(*end)

    def click(self, x: float, y: float, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        QTest.mouseClick(self.view.viewport(), Qt.MouseButton.LeftButton, modifiers, self.at(x, y))
        QApplication.processEvents()

    def double_click(self, x: float, y: float) -> None:
        QTest.mouseDClick(
            self.view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, self.at(x, y)
        )
        QApplication.processEvents()

    def key(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        target = QApplication.focusWidget() or self.view
        QTest.keyClick(target, key, modifiers)
        QApplication.processEvents()

    def type(self, text: str) -> None:
        target = QApplication.focusWidget() or self.view
        QTest.keyClicks(target, text)
        QApplication.processEvents()


def opened(window: MainWindow, document: Document) -> Hand:
    """A document in a tab at its natural size, and a hand on it."""
    view = window.open_document(document)
    view.zoom_to(0.8)
    view.setFocus()
    QApplication.processEvents()
    return Hand(view)


def edges(hand: Hand) -> set[str]:
    """The edges of a canvas, as its file has them."""
    return {f"{edge.from_} {edge.to}" for edge in hand.view.editor.document.workflow.edges}


def steps(hand: Hand) -> int:
    """How many steps can be undone."""
    return hand.view.editor.stack.index()


def undo_gives_back(hand: Hand, before: dict[str, object]) -> None:
    """Undo once; everything is as it was."""
    hand.view.editor.stack.undo()
    assert hand.view.editor.document.workflow.document() == before


def state(hand: Hand) -> dict[str, object]:
    """The workflow as it would be saved."""
    return hand.view.editor.document.workflow.document()
