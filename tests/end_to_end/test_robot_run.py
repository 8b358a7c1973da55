"""The robot runs the Fig. 1 butterfly in the real program under two policies, drives it, kills its engine, compares."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from engine.events import (
    Event,
    LogReader,
    QueueSnapshot,
    QueueSpilled,
    RunFinished,
    RunPaused,
    RunStarted,
    UnitActivated,
    UnitDecided,
)
from tests.end_to_end.robot import Robot

ROOT = Path(__file__).parent.parent.parent
PRESET = (80, 97)  # where the first box of the run bar stands on the screen
REPORT = (890, 20)  # and the button for the report, in the window that compares two


@pytest.fixture
def robot(tmp_path: Path, tpch: Path) -> Iterator[Robot]:
    folder = tmp_path / "work"
    (folder / "workflows").mkdir(parents=True)
    (folder / "data").mkdir()
    shutil.copy(ROOT / "workflows" / "fig1.butterfly.yaml", folder / "workflows")
    shutil.copytree(tpch, folder / "data" / "tpch")
    home = {"PAPILIO_HOME": str(tmp_path / "home"), "PAPILIO_STORE": str(tmp_path / "store.db")}
    made = Robot(folder, {**os.environ, **home}, "workflows/fig1.butterfly.yaml")
    yield made
    made.close()


def until(true: Callable[[], object], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"it took too long: {what}"
        time.sleep(0.05)


def logs(tmp_path: Path) -> list[Path]:
    """The logs of all runs, the oldest first."""
    return sorted((tmp_path / "home" / "runs").glob("*/events.jsonl"))


def told(log: Path, kind: type[Event]) -> list[Event]:
    return [event for event in LogReader(log) if isinstance(event, kind)]


def stopped(log: Path) -> int:
    """How often the run has come to a stop."""
    return sum(not event.running for event in told(log, RunPaused))  # type: ignore[attr-defined]


def choose(robot: Robot, policy: str) -> None:
    """The boxes of the run bar, by the keyboard: each finds what is typed."""
    robot.click(*PRESET)
    robot.keys("Escape", "Tab")
    robot.type(policy)
    robot.keys("Tab")
    robot.type("operator")
    robot.keys("Tab")
    robot.type("spark")
    robot.keys("F6")


def start(robot: Robot, tmp_path: Path, policy: str) -> Path:
    """Run, and give the log."""
    before = len(logs(tmp_path))
    choose(robot, policy)
    robot.tap("F9")
    until(lambda: len(logs(tmp_path)) > before, 120, "no run was started")
    log = logs(tmp_path)[-1]
    until(lambda: told(log, RunStarted), 60, "the log stays empty")
    first = told(log, RunStarted)[0]
    assert isinstance(first, RunStarted)
    assert (first.policy, first.granularity, first.backend) == (policy, "operator", "spark")
    return log


def finished(log: Path) -> RunFinished:
    until(lambda: told(log, RunFinished), 240, "the run does not end")
    (last,) = told(log, RunFinished)
    assert isinstance(last, RunFinished)
    assert last.status == "done", last.reason
    return last


@pytest.mark.slow
def test_two_policies_are_run_driven_and_compared_and_the_report_says_what_the_logs_say(
    robot: Robot, tmp_path: Path
) -> None:
    # Under mc: paused, stepped twice, resumed.
    first = start(robot, tmp_path, "mc")
    robot.tap("shift+F9")
    until(lambda: stopped(first) == 1, 60, "it is not paused")
    for step in (1, 2):
        decided = len(told(first, UnitDecided))
        robot.tap("F10")
        until(lambda step=step: stopped(first) == step + 1, 60, "the step does not end")
        assert len(told(first, UnitDecided)) == decided + 1
    time.sleep(1)
    assert len(told(first, UnitDecided)) == decided + 1, "nobody is picked while it is paused"
    robot.tap("F12")
    finished(first)

    # Under mm: the engine is killed, the designer lives on, Resume finishes the run.
    second = start(robot, tmp_path, "mm")
    until(lambda: len(told(second, UnitActivated)) > 3, 120, "no turns")
    engine = next(
        child for child in psutil.Process(robot.program.pid).children(recursive=True) if "serve" in child.cmdline()
    )
    os.kill(engine.pid, signal.SIGKILL)
    done = len(told(second, UnitActivated))
    time.sleep(3)
    assert robot.program.poll() is None
    assert not told(second, RunFinished)
    robot.tap("F12")
    finished(second)
    assert len(told(second, RunStarted)) == 2, "the same run went on"
    assert len(told(second, UnitActivated)) > done
    assert rows(first) == rows(second)

    # Both are compared, and the report is exported.
    robot.keys("ctrl+h")
    time.sleep(2)  # the store is read
    robot.keys("Home", "shift+Down", "ctrl+shift+h")
    window = robot.find("Compare runs")
    robot.do("windowfocus", window)
    robot.settle()
    robot.click(*REPORT)
    dialog = robot.find("Export the comparison")
    robot.do("windowfocus", dialog)
    robot.settle()
    report = tmp_path / "report.html"
    robot.keys("ctrl+a")
    robot.type(str(report))
    robot.keys("Return")
    until(lambda: report.exists() and "</html>" in report.read_text(), 30, "no report")
    check_report(report, [first, second])
    robot.do("windowfocus", robot.window)
    robot.keys("ctrl+q")
    assert robot.program.wait(30) == 0
    assert (robot.folder / "designer.log").read_text() == ""


def rows(log: Path) -> dict[str, int]:
    summary = json.loads((log.parent / "summary.json").read_text())
    return {node: target["rows"] for node, target in summary["targets"].items()}


def check_report(report: Path, runs: list[Path]) -> None:
    """The numbers in the report, reckoned again from the logs alone."""
    found = re.search(r'<script type="application/json" id="numbers">(.*?)</script>', report.read_text(), re.DOTALL)
    assert found is not None
    numbers = {one["run"]: one for one in json.loads(found.group(1))["runs"]}
    assert len(numbers) == len(runs)
    for log in runs:
        one = numbers[log.parent.name]
        assert one["activations"] == len(told(log, UnitActivated))
        assert one["spills"] == len(told(log, QueueSpilled))
        assert one["seconds"] == pytest.approx(told(log, RunFinished)[0].seconds, abs=0.01)  # type: ignore[attr-defined]
        shots = told(log, QueueSnapshot)
        held = [[sum(queue[at] for queue in shot.queues.values()) for shot in shots] for at in (0, 1, 2)]  # type: ignore[attr-defined]
        assert (one["max_packs"], one["max_rows"], one["max_bytes"]) == tuple(max(values) for values in held)
        assert one["policy"] in ("mc", "mm")
    assert {one["policy"] for one in numbers.values()} == {"mc", "mm"}
