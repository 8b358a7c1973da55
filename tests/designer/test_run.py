"""The run bar and what it drives: a real engine process, simulated runs, a run of another process, a killed engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from designer.document import changes
from designer.document.document import Document
from designer.run.packs import queue_of
from designer.run.presets import Presets
from designer.window.window import MainWindow
from engine.control import is_alive
from engine.events import LogReader, RunFinished, RunPaused, UnitDecided
from engine.model.file import load
from engine.model.workflow import Workflow
from engine.request import RunRequest
from engine.store import MetadataStore
from tests.designer.conftest import logged, opened
from tests.designer.examples import FIG1, small
from tests.designer.test_preview import until
from tests.test_control import Running


@pytest.fixture
def fig1(window: MainWindow) -> MainWindow:
    opened(window, Document(load(FIG1).workflow, window.catalogue))
    return window


def count(window: MainWindow, kind: type) -> int:
    assert window.runs.log_path is not None
    return sum(isinstance(event, kind) for event in LogReader(Path(window.runs.log_path)))


def test_a_preset_fills_the_bar_and_what_the_bar_says_is_what_the_engine_takes(window: MainWindow) -> None:
    bar = window.driver.bar
    assert bar.settings() == {"backend": "spark", "granularity": "fused", "policy": "mixed"}
    assert bar.preset.currentText() == "Fast"
    bar.choose("Low memory")
    assert bar.settings() == {
        "backend": "spark", "granularity": "operator", "policy": "mm", "queue_packs": 20, "queue_memory_mb": 256
    }  # fmt: skip
    bar.more.fields["slot_ms"].setText("250")
    bar.more.fields["degree"].setText("auto")
    bar.more.changed.emit()
    assert bar.settings()["slot_ms"] == 250.0
    assert bar.settings()["degree"] == "auto"
    assert bar.preset.currentText() == ""
    bar.choose("Classroom RR")
    until(bar.slider.isVisible, 5)
    assert bar.settings()["lasts_seconds"] == 40.0
    bar.slider.setValue(50)
    assert "lasts_seconds" not in bar.settings(), "the slider was moved: now it says"
    assert bar.settings()["speed"] == bar.speed
    bar.granularity.setCurrentText("fused")
    assert bar.settings()["granularity"] == "operator", "fused units pass no packs"


def test_own_presets_are_kept_and_those_of_the_program_are_not_replaced(window: MainWindow) -> None:
    driver = window.driver
    driver.bar.choose("Low memory")
    driver.bar.policy.setCurrentText("rr")
    driver.save_preset("Mine")
    assert driver.own_preset() == "Mine"
    again = Presets(window.settings.folder)
    assert again.all["Mine"].settings == driver.bar.settings()
    with pytest.raises(ValueError, match="Fast"):
        again.keep("Fast", {})
    (window.settings.folder / "run-presets.json").write_text('{"Broken": {"policy": 1, "dance": true}}')
    assert "Broken" not in Presets(window.settings.folder).all
    driver.forget_preset()
    assert "Mine" not in driver.bar.presets.all


def test_a_workflow_with_problems_is_not_run_but_shown_where_it_fails(window: MainWindow) -> None:
    document = small()
    opened(window, document)
    assert window.editor is not None
    window.editor.push(changes.set_setting(document, "some", "condition", "nowhere > 1"))
    window.run("run.run")
    assert window.runs.state == "idle"
    assert "cannot run" in window.statusBar().currentMessage()
    assert window.problems.currentItem() is not None


def test_code_that_came_with_the_file_runs_only_if_the_person_says_so(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = {"code": "def transform(input):\n    return input\n", "columns": {"a": "int"}}
    nodes = {
        "rows": {"operator": "csv_source", "settings": {"path": "in.csv", "columns": {"a": "int"}}},
        "own": {"operator": "python", "settings": code},
        "table": {"operator": "parquet_target", "settings": {"path": "out"}},
    }
    edges = [{"from": "rows", "to": "own"}, {"from": "own", "to": "table"}]
    document = Document(Workflow.model_validate({"papilio": 1, "nodes": nodes, "edges": edges}), window.catalogue)
    opened(window, document)
    window.driver.bar.choose("Fast")
    window.run("run.run")
    assert window.runs.state == "idle", "nothing runs before the person has said so"
    assert "cannot run" not in window.statusBar().currentMessage(), window.statusBar().currentMessage()
    box = window.driver.question
    texts = {button.text(): button for button in box.buttons()}
    assert "own" in box.text()
    assert not texts["Trust this file"].isEnabled(), "it has no file yet"
    asked = []
    window.runs.run = lambda editor, settings, parameters: asked.append(settings)  # type: ignore[method-assign]
    texts["Run it this time"].click()
    assert [settings["trust"] for settings in asked] == [True]


def test_a_run_is_paused_stepped_resumed_and_is_in_the_list_of_runs(fig1: MainWindow) -> None:
    window = fig1
    heard: list[tuple[str, object]] = []
    ended: list[str] = []
    window.runs.started.connect(lambda path, editor: heard.append((path, editor)))
    window.runs.ended.connect(ended.append)
    window.driver.bar.choose("Classroom MC")
    window.driver.bar.more.fields["lasts_seconds"].setText("600")
    window.run("run.run")
    assert window.runs.state == "starting"
    until(lambda: window.runs.state == "running" and bool(window.runs.facts), 60)
    assert heard == [(window.runs.log_path, window.editor)]
    assert window.driver.bar.speed is not None, "the slider shows the speed that was found"
    window.run("run.pause")
    until(lambda: window.runs.state == "paused", 20)
    stops = count(window, RunPaused)
    decided = count(window, UnitDecided)
    window.run("run.step")
    until(lambda: count(window, RunPaused) > stops, 20)
    assert count(window, UnitDecided) == decided + 1
    assert window.view is not None
    next(iter(window.view.canvas.edges.values())).choose(True)
    window.view.canvas.chosen.emit()
    assert "hold no rows" in window.driver.packs.told.text()
    window.driver.bar.slider.setValue(50)
    window.driver.bar.slider.setValue(100)
    window.run("run.resume")
    until(lambda: window.runs.state == "done", 30)
    assert ended == ["done"]
    assert count(window, RunFinished) == 1
    window.show_dock("runs")
    until(lambda: bool(window.driver.history.records), 20)
    (record, status) = window.driver.history.records[str(window.runs.run_id)]
    assert (record.workflow, status) == ("fig1", "simulated")
    panel = window.driver.history
    panel.search.setText("no such workflow")
    assert panel.note.text() == "0 of 1 runs"
    panel.search.setText("fig1 simulated mc")
    assert panel.note.text() == "1 of 1 runs"
    assert panel.trend is not None
    assert [run.run for run in panel.trend.runs] == [record.run]
    first = panel.tree.topLevelItem(0)
    assert first is not None
    first.setSelected(True)
    panel.replay()
    assert window.runs.state == "replay"
    assert heard[-1] == (panel.log_of(record.run), window.editor)
    panel._selected()
    assert not panel.resume_button.isEnabled()


def test_any_two_past_runs_are_compared_and_the_trend_has_their_seconds(
    window: MainWindow, runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    window.resize(1600, 960)
    window.show_dock("runs")
    panel = window.driver.history
    until(lambda: panel.trend is not None and "No runs yet" in panel.hint.text(), 20)
    assert panel.trend is not None
    assert not panel.trend.isVisible(), "of no runs there is no trend"
    monkeypatch.setenv("PAPILIO_STORE", str(runs["rr"].parent.parent / "store.db"))
    panel.refresh()
    until(lambda: len(panel.records) == 3, 20)
    panel.show_workflow(next(iter(panel.records.values()))[0].workflow)
    QTest.qWait(50)
    ended = {policy: logged(log, "run-finished")[0]["seconds"] for policy, log in runs.items()}
    drawn = {curve.name().partition(",")[0]: curve.getData() for curve in panel.trend.getPlotItem().listDataItems()}
    assert {policy: ys.tolist() for policy, (_, ys) in drawn.items()} == {
        policy: [pytest.approx(seconds, abs=0.01)] for policy, seconds in ended.items()
    }
    assert [float(drawn[policy][0][0]) for policy in runs] == [1, 2, 3]
    key = panel.trend.getPlotItem().legend
    below = key.mapRectToScene(key.boundingRect()).bottom()
    for xs, ys in drawn.values():
        mark = panel.trend.getViewBox().mapViewToScene(QPointF(float(xs[0]), float(ys[0])))
        assert mark.y() - 4 >= below, "no mark stands behind the key"
    asked: list[list[str]] = []
    window.runs.compare_asked.disconnect()
    window.runs.compare_asked.connect(lambda logs, _: asked.append(logs))
    assert not panel.compare_button.isEnabled()
    for at in (0, 2):
        item = panel.tree.topLevelItem(at)
        assert item is not None
        item.setSelected(True)
    panel.compare_button.click()
    assert sorted(asked[0]) == sorted(str(runs[policy]) for policy in ("rr", "mm"))


@pytest.mark.slow
def test_all_policies_run_one_after_the_other_and_are_compared(fig1: MainWindow) -> None:
    window = fig1
    compared: list[list[str]] = []
    window.runs.compare_asked.connect(lambda logs, remark: compared.append(logs))
    window.driver.bar.backend.setCurrentText("simulated")
    window.run("run.policies")
    until(lambda: bool(compared), 90)
    policies = [json.loads(Path(log).read_text().splitlines()[0])["policy"] for log in compared[0]]
    assert policies == ["rr", "mc", "mm", "mixed"]


@pytest.mark.slow
def test_a_killed_engine_leaves_the_designer_alive_and_the_run_interrupted(fig1: MainWindow) -> None:
    window = fig1
    window.driver.bar.choose("Classroom MM")
    window.driver.bar.more.fields["lasts_seconds"].setText("600")
    window.run("run.run")
    until(lambda: window.runs.state == "running" and bool(window.runs.facts), 60)
    run = window.runs.run_id
    os.kill(window.engine.pid, signal.SIGKILL)
    until(lambda: window.runs.state == "interrupted", 20)
    assert window.isVisible()
    assert "The engine process died. Run simulates it anew." in window.statusBar().currentMessage()
    assert not window.actions_["run.resume"].isEnabled(), "a simulated run is simulated anew"
    assert window.actions_["run.run"].isEnabled()
    window.show_dock("runs")
    until(lambda: bool(window.driver.history.records), 20)
    assert window.driver.history.records[str(run)][1] == "interrupted"
    with MetadataStore() as store:
        assert store.list_runs()[0].status == "running", "the store does not know yet"


def test_a_run_of_another_process_is_followed_and_driven(fig1: MainWindow, tmp_path: Path) -> None:
    window = fig1
    run = Running(tmp_path / "run", paused=True)
    until(lambda: run.count(RunPaused) > 0, 20)
    window.driver.open_log(str(tmp_path / "run"), watch=True)
    until(lambda: window.runs.state == "paused", 20)
    assert window.runs.editor is window.editor, "the same workflow is open"
    window.run("run.step")
    until(lambda: run.count(UnitDecided) == 1, 60)
    window.run("run.resume")
    until(lambda: window.runs.state == "done", 60)
    run.end()


@pytest.mark.slow
def test_a_run_of_a_process_of_its_own_is_followed_driven_and_missed_when_it_is_killed(
    fig1: MainWindow, tmp_path: Path
) -> None:
    window, folder = fig1, tmp_path / "run"
    command = [sys.executable, "-m", "engine", "run", str(FIG1), "--backend", "simulated", "--policy", "mm",
               "--paused", "--run-dir", str(folder)]  # fmt: skip
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: (folder / "events.jsonl").exists() and is_alive(folder), 60)
        window.driver.open_log(str(folder), watch=True)
        until(lambda: window.runs.state == "paused", 20)
        window.run("run.step")
        until(lambda: count(window, UnitDecided) == 1, 60)
        assert not window.runs.is_ours
        run.kill()
        run.wait(20)
        until(lambda: window.runs.state == "interrupted", 20)
        player = window.monitor.player
        assert player is not None
        assert player.recording is not None
        until(lambda: player.recording is not None and player.recording.over, 5)
        assert "the log has no end" in str(player.recording.flaw)
    finally:
        run.kill()
        run.wait(20)


def test_a_run_is_cancelled_from_the_run_bar(fig1: MainWindow) -> None:
    window = fig1
    window.driver.bar.choose("Classroom RR")
    window.driver.bar.more.fields["lasts_seconds"].setText("600")
    window.run("run.run")
    until(lambda: window.runs.state == "running" and bool(window.runs.facts), 60)
    button = window.driver.bar.widgetForAction(window.actions_["run.cancel"])
    assert isinstance(button, QToolButton)
    assert button.isEnabled()
    button.click()
    until(lambda: window.runs.state == "cancelled", 20)
    last = list(LogReader(Path(str(window.runs.log_path))))[-1]
    assert isinstance(last, RunFinished)
    assert last.status == "cancelled"
    assert not window.actions_["run.cancel"].isEnabled()


def test_what_is_typed_into_the_settings_is_what_the_engine_takes(window: MainWindow) -> None:
    bar = window.driver.bar
    bar.choose("Low memory")
    bar.more.show()
    typed = {"master": "local[3]", "theta": "4", "queue_packs": "33", "pack_rows": "1234", "slot_ms": "12.5"}
    for name, text in typed.items():
        field = bar.more.fields[name]
        field.clear()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)
    QTest.keyClicks(bar.more.fields["theta"], "x")
    bar.more.hide()
    settings = bar.settings()
    assert {name: settings[name] for name in typed} == {
        "master": "local[3]", "theta": 4, "queue_packs": 33, "pack_rows": 1234, "slot_ms": 12.5,
    }  # fmt: skip
    request = RunRequest.from_plain(settings)
    assert (request.master, request.theta, request.queue_packs, request.pack_rows) == ("local[3]", 4, 33, 1234)
    assert bar.preset.currentText() == ""


def test_all_policies_are_those_of_the_bar_and_fused_runs_are_compared_with_queues(
    fig1: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, driver = fig1, fig1.driver
    asked: list[dict[str, Any]] = []
    compared: list[tuple[list[str], str]] = []

    def run(editor: object, settings: dict[str, Any], parameters: object) -> None:
        asked.append(settings)
        window.runs.log_path = f"{settings['policy']}.jsonl"
        driver._ended("done")

    monkeypatch.setattr(window.runs, "run", run)
    monkeypatch.setattr(window.monitor, "compare", lambda logs, remark: None)
    window.runs.compare_asked.disconnect()
    window.runs.compare_asked.connect(lambda logs, remark: compared.append((logs, remark)))
    driver.bar.policy.addItem("of_a_plugin")
    driver.bar.choose("Fast")
    window.run("run.policies")
    until(lambda: bool(compared), 5)
    assert [settings["policy"] for settings in asked] == ["rr", "mc", "mm", "mixed", "of_a_plugin"]
    assert {settings["granularity"] for settings in asked} == {"operator"}
    assert compared[0][0] == [f"{settings['policy']}.jsonl" for settings in asked]
    assert "granularity operator" in compared[0][1]
    driver.bar.granularity.setCurrentText("tree")
    window.run("run.policies")
    until(lambda: len(compared) == 2, 5)
    assert asked[-1]["granularity"] == "tree"
    assert compared[1][1] == ""


def test_a_damaged_line_in_a_log_that_is_followed_does_not_hide_what_comes_after_it(
    window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(window, "complain", lambda title, text: told.append(text))
    log = tmp_path / "events.jsonl"
    first = {
        "event": "run-started", "time": 1.0, "run": "r", "workflow": "w", "file": None, "content_hash": "",
        "policy": "rr", "granularity": "operator", "backend": "spark", "master": None, "nodes": {}, "edges": [],
        "units": {},
    }  # fmt: skip
    last = {"event": "run-finished", "time": 2.0, "status": "done", "seconds": 1.0}
    lines = [json.dumps(event, separators=(",", ":")) for event in (first, last)]
    log.write_text(f'{lines[0]}\n{{"event":"run-pau\n{lines[1]}\n')
    window.runs.attach(str(log))
    window.runs.look()
    assert window.runs.state == "done"
    assert window.runs.run_id == "r"
    assert "a line of the log is damaged" in window.statusBar().currentMessage()
    assert window.monitor.player is not None
    window.monitor.player.wait_until_loaded()
    assert told == [f"{log}: line 2 is damaged; the events before it are good"]


def test_the_queue_of_an_edge_is_known_from_the_log() -> None:
    facts = {"queues": {"q": {"link": ["a", "out", "b", "in"]}}}
    assert queue_of(facts, ("a", "out", "b", "in")) == "q"
    assert queue_of(facts, ("a", "out", "c", "in")) is None
    assert queue_of({}, ("a", "out", "b", "in")) is None
