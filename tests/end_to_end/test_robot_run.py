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


def start(robot: Robot, tmp_path: Path, policy: str, backend: str) -> Path:
    """Run, and give the log."""
    before = len(logs(tmp_path))
    robot.tap("F9")
    until(lambda: len(logs(tmp_path)) > before, 120, "no run was started")
    log = logs(tmp_path)[-1]
    until(lambda: told(log, RunStarted), 60, "the log stays empty")
    first = told(log, RunStarted)[0]
    assert isinstance(first, RunStarted)
    assert (first.policy, first.granularity, first.backend) == (policy, "operator", backend)
    return log


def drive(robot: Robot, log: Path) -> None:
    """Pause, step twice, resume, and wait for the end."""
    robot.tap("shift+F9")
    until(lambda: stopped(log) == 1, 60, "it is not paused")
    decided = 0
    for step in (1, 2):
        decided = len(told(log, UnitDecided))
        robot.tap("F10")
        until(lambda step=step: stopped(log) == step + 1, 60, "the step does not end")
        assert len(told(log, UnitDecided)) == decided + 1
    time.sleep(1)
    assert len(told(log, UnitDecided)) == decided + 1, "nobody is picked while it is paused"
    robot.tap("F12")
    finished(log)


def kill_engine(robot: Robot, log: Path) -> None:
    """The designer lives on, and the run has no end."""
    until(lambda: len(told(log, UnitActivated)) > 3, 120, "no turns")
    family = psutil.Process(robot.program.pid).children(recursive=True)
    engine = next(child for child in family if "serve" in child.cmdline())
    os.kill(engine.pid, signal.SIGKILL)
    time.sleep(3)
    assert robot.program.poll() is None
    assert not told(log, RunFinished)


def compare(robot: Robot, report: Path) -> None:
    """Select the two newest runs, compare them, export the report."""
    robot.keys("ctrl+h")
    time.sleep(2)  # the store is read
    robot.keys("Home", "shift+Down", "ctrl+shift+h")
    robot.do("windowfocus", robot.find("Compare runs"))
    robot.settle()
    robot.click(*REPORT)
    robot.do("windowfocus", robot.find("Export the comparison"))
    robot.settle()
    robot.keys("ctrl+a")
    robot.type(str(report))
    robot.keys("Return")
    until(lambda: report.exists() and "</html>" in report.read_text(), 30, "no report")
    robot.do("windowfocus", robot.window)
    robot.settle()


def leave(robot: Robot) -> None:
    """Close the program; it had nothing to complain about."""
    robot.settle()  # the log tells the end of a run a moment before the window knows, which would ask whether to leave
    robot.keys("ctrl+q")
    assert robot.program.wait(30) == 0
    assert (robot.folder / "designer.log").read_text() == ""


def finished(log: Path) -> RunFinished:
    until(lambda: told(log, RunFinished), 240, "the run does not end")
    (last,) = told(log, RunFinished)
    assert isinstance(last, RunFinished)
    assert last.status == "done", last.reason
    return last


@pytest.mark.slow
def test_two_policies_on_spark_are_driven_and_compared_and_a_killed_engine_does_no_harm(
    robot: Robot, tmp_path: Path
) -> None:
    choose(robot, "mc")
    first = start(robot, tmp_path, "mc", "spark")
    drive(robot, first)
    choose(robot, "mm")
    second = start(robot, tmp_path, "mm", "spark")
    kill_engine(robot, second)
    done = len(told(second, UnitActivated))
    robot.tap("F12")
    finished(second)
    assert len(told(second, RunStarted)) == 2, "the same run went on"
    assert len(told(second, UnitActivated)) > done
    assert rows(first) == rows(second)
    compare(robot, tmp_path / "report.html")
    check_report(tmp_path / "report.html", [first, second])
    leave(robot)


@pytest.mark.slow
def test_in_class_two_policies_are_simulated_driven_and_compared(robot: Robot, tmp_path: Path) -> None:
    runs = []
    for policy in ("mc", "mm"):
        robot.click(*PRESET)
        robot.type(f"Classroom {policy.upper()}")
        robot.keys("Return", "F6")
        runs.append(start(robot, tmp_path, policy, "simulated"))
        drive(robot, runs[-1])
    compare(robot, tmp_path / "report.html")
    check_report(tmp_path / "report.html", runs)
    killed = start(robot, tmp_path, "mm", "simulated")
    kill_engine(robot, killed)
    again = start(robot, tmp_path, "mm", "simulated")
    assert again != killed
    finished(again)
    leave(robot)


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
        held = [[shot.held[at] for shot in shots] for at in (0, 1, 2)]  # type: ignore[attr-defined]
        peaks = tuple(max(values) for values in held)
        last = told(log, RunFinished)[-1]
        if len(told(log, RunStarted)) > 1:  # it was killed: its end tells of the last part only
            assert one["queues_from"] == "snapshots"
            assert (one["max_packs"], one["max_rows"], one["max_bytes"]) == peaks
        else:
            assert one["queues_from"] == "exact"
            assert {name: one[name] for name in last.queue} == last.queue  # type: ignore[attr-defined]
            found = (one["max_packs"], one["max_rows"], one["max_bytes"])
            assert all(exact >= seen for exact, seen in zip(found, peaks, strict=True))
        assert one["policy"] in ("mc", "mm")
    assert {one["policy"] for one in numbers.values()} == {"mc", "mm"}
