"""The run bar over real Spark: packs are looked into during a pause; the engine is killed mid-run, and Resume works."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from designer.document.document import Document
from designer.window.window import MainWindow
from engine.events import LogReader, RunFinished, RunStarted, UnitActivated, UnitDecided
from engine.model.file import load
from tests.designer.conftest import opened
from tests.designer.examples import FIG1
from tests.designer.test_preview import until

pytestmark = pytest.mark.slow


def count(window: MainWindow, kind: type) -> int:
    log = window.runs.log_path
    return sum(isinstance(event, kind) for event in LogReader(Path(log))) if log else 0


def targets(window: MainWindow) -> dict[str, int]:
    assert window.runs.log_path is not None
    summary = json.loads((Path(window.runs.log_path).parent / "summary.json").read_text())
    assert summary["status"] == "done"
    return {node: target["rows"] for node, target in summary["targets"].items()}


def test_packs_are_looked_into_and_a_killed_run_is_resumed(window: MainWindow, tpch: Path, tmp_path: Path) -> None:
    opened(window, Document(load(FIG1).workflow, window.catalogue))
    view, bar = window.view, window.driver.bar
    assert view is not None
    bar.show_settings({"backend": "spark", "granularity": "operator", "policy": "mc", "pack_rows": 1000})
    bar.more.parameters["data_folder"].setText(str(tpch))
    bar.more.parameters["warehouse_folder"].setText(str(tmp_path / "warehouse"))
    window.run("run.run")
    until(lambda: count(window, UnitActivated) > 0 or window.runs.state == "failed", 180)
    assert window.runs.state == "running", window.driver._message
    window.run("run.pause")
    folder = Path(str(window.runs.log_path)).parent
    until((folder / "paused.json").exists, 60)
    until(lambda: window.runs.state == "paused", 10)
    held = json.loads((folder / "paused.json").read_text())
    queue = next(id_ for id_, packs in held.items() if packs)
    link = window.runs.facts["queues"][queue]["link"]
    ports = window.editor.document.ports  # type: ignore[union-attr]
    item = next(item for item in view.canvas.edges.values() if list(ports.ends(item.edge)) == link)
    item.choose(True)
    view.canvas.chosen.emit()
    panel = window.driver.packs
    until(lambda: panel.pages.currentIndex() == 1, 30)
    shown = panel.table.rows
    assert f"{len(held[queue])} packs" in panel.told.text()
    assert len(shown.rows) == sum(min(50, pack["rows"]) for pack in held[queue][:40])
    decided = count(window, UnitDecided)
    window.run("run.step")
    until(lambda: count(window, UnitDecided) == decided + 1, 60)
    window.run("run.resume")
    until(lambda: window.runs.state not in ("running", "paused"), 180)
    assert window.runs.state == "done", window.driver._message
    expected = targets(window)

    bar.policy.setCurrentText("mm")
    window.run("run.run")
    until(lambda: window.runs.state == "running" and count(window, UnitActivated) > 3, 120)
    log = window.runs.log_path
    os.kill(window.engine.pid, signal.SIGKILL)
    until(lambda: window.runs.state == "interrupted", 30)
    assert window.isVisible()
    before = count(window, UnitActivated)
    until(lambda: window.engine.state == "idle", 60)  # another engine is there
    assert window.actions_["run.resume"].isEnabled()
    window.run("run.resume")
    until(lambda: window.runs.state in ("done", "failed"), 240)
    assert window.runs.state == "done", window.driver._message
    assert window.runs.log_path == log, "the same run goes on in the same log"
    assert count(window, RunStarted) == 2
    assert count(window, RunFinished) == 1
    assert count(window, UnitActivated) > before
    assert targets(window) == expected
