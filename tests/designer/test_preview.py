"""The engine process beside the designer: started on first use, lost, started again; and a look at the data."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from PySide6.QtCore import QCoreApplication, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from designer.document import changes
from designer.link.client import EngineClient
from designer.window.window import MainWindow
from engine.model.file import save
from tests.designer.conftest import opened
from tests.designer.examples import small


def until(true: Callable[[], bool], seconds: float) -> None:
    """Let events come in until something holds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        loop = QEventLoop()
        QTimer.singleShot(20, loop.quit)
        loop.exec()


def test_the_engine_answers_and_a_killed_one_is_noticed_and_started_again(qapp: QApplication) -> None:
    client = EngineClient()
    events: list[dict[str, Any]] = []
    states: list[str] = []
    client.told.connect(events.append)
    client.state_changed.connect(states.append)
    number = client.send("dance")
    until(lambda: any(event.get("id") == number for event in events), 60)
    assert events[0]["event"] == "hello"
    assert events[0]["protocol"] == 1
    assert "no command `dance`" in next(event["message"] for event in events if event.get("id") == number)
    first = client.pid
    os.kill(first, signal.SIGKILL)
    until(lambda: client.pid != first and client.state == "idle", 60)
    assert "lost" in states
    second = client.pid
    client.stop()
    assert not psutil.pid_exists(second)
    assert client.state == "off"


def test_the_engine_ends_when_the_designer_does(qapp: QApplication) -> None:
    client = EngineClient()
    client.start()
    until(lambda: client.state == "idle", 60)
    pid = client.pid
    assert client._process is not None
    client._wanted = False
    client._process.closeWriteChannel()  # what the system does for a designer that was killed
    until(lambda: not psutil.pid_exists(pid), 30)
    client.stop()


def test_a_preview_that_cannot_be_computed_says_why_without_spark(window: MainWindow) -> None:
    hand = opened(window, small())
    hand.view.editor.push(changes.set_setting(hand.view.editor.document, "some", "condition", 1))
    hand.view.canvas.select(["some"])
    window.run("view.look")
    assert window.docks["preview"].isVisible()
    until(lambda: window.preview.told.objectName() == "wrong", 120)
    assert "setting `condition`" in window.preview.told.text()
    assert not any("java" in child.name() for child in psutil.Process(window.engine.pid).children(recursive=True))
    window.engine.stop()


@pytest.fixture
def sent(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the engine is asked, by nobody who answers."""
    commands: list[dict[str, Any]] = []

    def send(command: str, **fields: Any) -> int:
        commands.append({"command": command, "id": len(commands) + 1, **fields})
        return len(commands)

    monkeypatch.setattr(window.engine, "send", send)
    monkeypatch.setattr(window.engine, "start", lambda: None)
    monkeypatch.setattr(window.engine, "cancel", lambda number: commands.append({"command": "cancel", "id": number}))
    return commands


def answer(window: MainWindow, number: int, *values: str) -> None:
    column = {"name": "a", "type": "int", "nulls": 0.0, "distinct": 1, "bars": [], "labels": []}
    told = {"columns": [column], "rows": [[value] for value in values], "sampled_rows": 1, "source_rows": 20}
    window.engine.told.emit({"event": "previewed", "id": number, **told})


def test_rows_of_a_workflow_that_was_edited_meanwhile_come_greyed(
    window: MainWindow, sent: list[dict[str, Any]]
) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    window.run("view.look")
    hand.view.editor.push(changes.set_setting(hand.view.editor.document, "some", "condition", "a > 400"))
    answer(window, 1, "2")
    assert window.preview.model.rows == [["2"]]
    assert not window.preview.table.isEnabled()
    assert "changed since" in window.preview.told.text()
    window.run("view.look")
    answer(window, 2, "401")
    assert window.preview.table.isEnabled()


def test_the_answer_for_one_tab_is_not_shown_in_another(window: MainWindow, sent: list[dict[str, Any]]) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    window.run("view.look")
    opened(window, small())
    assert sent[-1] == {"command": "cancel", "id": 1}
    answer(window, 1, "2")
    assert window.preview.model.rows == []
    assert window.preview.title.text() == ""
    assert not window.preview.stop.isEnabled()


@pytest.mark.parametrize("how", ["failed", "cancelled", "the button"])
def test_rows_keep_their_own_title_until_others_come(window: MainWindow, sent: list[dict[str, Any]], how: str) -> None:
    hand = opened(window, small())
    hand.view.canvas.select(["some"])
    window.run("view.look")
    answer(window, 1, "2")
    assert window.preview.title.text() == "some · match"
    hand.view.canvas.select(["more"])
    window.run("view.look")
    assert window.preview.title.text() == "some · match"
    assert "more · out" in window.preview.told.text()
    assert not window.preview.table.isEnabled()
    if how == "the button":
        window.preview.stop.click()
    else:
        window.engine.told.emit({"event": how, "id": 2, "message": "no such file"})
    assert (window.preview.title.text(), window.preview.model.rows) == ("some · match", [["2"]])
    assert window.preview.table.isEnabled(), "they are as fresh as before"
    assert ("no such file" in window.preview.told.text()) is (how == "failed")


def test_an_engine_that_is_lost_again_and_again_waits_for_the_person_and_says_so(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted: list[bool] = []
    monkeypatch.setattr(window.engine, "restart", lambda: restarted.append(True))
    monkeypatch.setattr(window.engine, "_again", lambda: None)
    window.engine._wanted = True
    window.engine._starts.extend([time.monotonic()] * 3)
    window.engine._ended()
    assert not window.banner.isVisible(), "it is started again by itself"
    window.engine._starts.append(time.monotonic())
    window.engine._ended()
    assert "Restart the engine" in window.banner.text.text()
    assert "Restart the engine" in window.engine_label.toolTip()
    window.banner.buttons[0].click()
    assert restarted == [True]
    window.engine._ended()
    assert window.banner.isVisible()
    window.engine._say("starting")
    assert not window.banner.isVisible()
    assert window.engine_label.toolTip() == ""


def test_spark_warms_in_the_background_for_those_who_have_used_it(
    window: MainWindow, sent: list[dict[str, Any]]
) -> None:
    opened(window, small())
    window.start_engine()
    assert sent == [], "who only draws needs no Spark"
    window.engine.told.emit({"event": "state", "state": "ready"})
    window.start_engine()
    assert [one["command"] for one in sent] == ["warm"]


@pytest.mark.slow
def test_sample_rows_are_shown_greyed_when_stale_and_cancelled(window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n" + "\n".join(f"{number},x{number % 3}" for number in range(500)))
    save(small().workflow, tmp_path / "small.butterfly.yaml")
    view = window.files.open(tmp_path / "small.butterfly.yaml")
    assert view is not None
    view.canvas.select(["more"])
    window.run("view.look")
    until(lambda: window.preview.model.rowCount() > 0, 180)
    columns = {column["name"]: column for column in window.preview.model.columns}
    assert {name: column["type"] for name, column in columns.items()} == {"a": "int", "b": "string", "c": "int"}
    assert columns["b"]["labels"][0].startswith("x")
    assert window.preview.table.isEnabled()
    view.editor.push(changes.set_setting(view.editor.document, "some", "condition", "a > 400"))
    assert not window.preview.table.isEnabled()
    window.run("view.look")
    until(window.preview.table.isEnabled, 60)
    assert window.preview.model.rows[0][0] == "401"
    window.run("view.look")
    window.preview.cancel()
    until(lambda: window.engine.state == "ready", 60)
    assert window.preview.model.rows[0][0] == "401"
    QCoreApplication.processEvents()
    window.engine.stop()
