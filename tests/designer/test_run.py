"""The run bar and what it drives: a real engine process, simulated runs, a run of another process, a killed engine."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from designer.document import changes
from designer.document.document import Document
from designer.run.packs import queue_of
from designer.run.presets import Presets
from designer.window.window import MainWindow
from engine.events import LogReader, RunFinished, RunPaused, UnitDecided
from engine.model.file import load
from engine.model.workflow import Workflow
from engine.store import MetadataStore
from tests.designer.conftest import opened
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


@pytest.mark.slow
def test_all_policies_run_one_after_the_other_and_are_compared(fig1: MainWindow) -> None:
    window = fig1
    compared: list[list[str]] = []
    window.runs.compare_asked.connect(compared.append)
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


def test_the_queue_of_an_edge_is_known_from_the_log() -> None:
    facts = {"queues": {"q": {"link": ["a", "out", "b", "in"]}}}
    assert queue_of(facts, ("a", "out", "b", "in")) == "q"
    assert queue_of(facts, ("a", "out", "c", "in")) is None
    assert queue_of({}, ("a", "out", "b", "in")) is None
