"""Driving a run from outside: by the engine process, by a file in its folder, on a virtual clock."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.control import FILE, RunControl, VirtualPace, driven, is_alive, send_to
from engine.errors import BadInput, RunCancelled
from engine.events import (
    Event,
    LogReader,
    LogTail,
    QueueSnapshot,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    RunStepped,
    UnitDecided,
)
from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.request import RunRequest
from engine.store import MetadataStore

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "store.db"))


def until(true: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


class Running:
    """A simulated run of Fig. 1 in a thread of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        bound = bind(load(ROOT / "workflows" / "fig1.butterfly.yaml"), catalogue())
        self.folder = folder
        self.events: list[Event] = []
        request = RunRequest.from_plain({"backend": "simulated", "policy": "mm", **settings})
        self.control = request.control()
        self.summary: dict[str, Any] = {}
        self.error: Exception | None = None

        def work() -> None:
            try:
                self.summary = request.start(bound, folder=folder, control=self.control, listener=self.events.append)
            except Exception as error:
                self.error = error

        self.thread = threading.Thread(target=work)
        self.thread.start()

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in self.events)

    def end(self) -> dict[str, Any]:
        self.thread.join(60)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.summary


def test_a_paused_run_decides_nothing_each_step_one_and_ends_as_if_nobody_had_touched_it(tmp_path: Path) -> None:
    untouched = Running(tmp_path / "one")
    expected = untouched.end()
    run = Running(tmp_path / "two", paused=True)
    until(lambda: run.count(RunPaused))
    assert run.count(UnitDecided) == 0
    for step in range(1, 4):
        run.control.send("step")
        until(lambda step=step: run.count(RunPaused) == step + 1)
        assert run.count(UnitDecided) == step == run.count(RunStepped)
    assert is_alive(tmp_path / "two")
    send_to(tmp_path / "two", "resume")
    summary = run.end()
    assert not is_alive(tmp_path / "two")
    own = ("run", "folder")
    assert {key: summary[key] for key in summary if key not in own} == {
        key: expected[key] for key in expected if key not in own
    }

    def told(path: Path) -> list[dict[str, Any]]:
        events = list(LogReader(path / "events.jsonl"))
        start = events[0].time
        driving = (RunPaused, RunResumed, RunStepped, RunStarted)
        plain = [event.as_dict() for event in events if not isinstance(event, driving)]
        return [{**event, "time": round(event["time"] - start, 5)} for event in plain]

    assert told(tmp_path / "one") == told(tmp_path / "two")


def test_a_simulated_run_is_paced_by_our_clock_and_its_log_grows_as_it_goes(tmp_path: Path) -> None:
    seconds = Running(tmp_path / "one").end()["seconds"]
    begun = time.monotonic()
    run = Running(tmp_path / "two", speed=seconds / 1.5)
    until(lambda: run.count(UnitDecided))
    log = tmp_path / "two" / "events.jsonl"
    size = log.stat().st_size
    until(lambda: log.stat().st_size > size)
    assert run.count(RunFinished) == 0
    summary = run.end()
    assert time.monotonic() - begun >= 1.4
    assert summary["seconds"] == seconds, "the virtual clock does not know about it"

    shots = [event.time for event in run.events if isinstance(event, QueueSnapshot)]
    assert len(shots) > 10, "about ten a second for whoever watches, however short the run"

    hurried = Running(tmp_path / "three", speed=seconds / 1000)
    until(lambda: hurried.count(UnitDecided))
    hurried.control.send("speed", None)
    assert hurried.end()["seconds"] == seconds


def test_a_cancelled_run_says_so_in_its_log_and_in_the_store(tmp_path: Path) -> None:
    run = Running(tmp_path / "one", paused=True)
    until(lambda: run.count(RunPaused))
    with MetadataStore() as store:
        assert store.list_runs()[0].status == "running"
    send_to(tmp_path / "one", "cancel")
    with pytest.raises(RunCancelled):
        run.end()
    last = list(LogReader(tmp_path / "one" / "events.jsonl"))[-1]
    assert isinstance(last, RunFinished)
    assert last.status == "cancelled"
    with MetadataStore() as store:
        assert store.list_runs()[0].status == "cancelled"


def test_what_no_run_understands_is_refused_and_a_dead_run_cannot_be_driven(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not understand `dance`"):
        RunControl().send("dance")
    with pytest.raises(BadInput, match="speed -1"):
        RunControl().send("speed", -1)
    with pytest.raises(BadInput, match="no run is under way"):
        send_to(tmp_path, "pause")
    (tmp_path / FILE).write_text(json.dumps({"action": "pause"}) + "\n")
    with pytest.raises(BadInput, match="no run is under way"):
        send_to(tmp_path, "pause")


def test_damaged_lines_in_the_control_file_are_passed_over(tmp_path: Path) -> None:
    control = RunControl()
    (tmp_path / FILE).write_text(json.dumps({"action": "cancel"}) + "\n")  # asked of a run that was killed
    with driven(tmp_path, control):
        with (tmp_path / FILE).open("a") as file:
            file.write('{"action": "pau\nnull\n[1]\n{"action": "dance"}\n{"action": "speed", "value": "x"}\n')
        send_to(tmp_path, "pause")
        until(lambda: control.asked)
        told: list[Event] = []
        control.drive(control.pace, told.append)
        control.take()
        assert control.pace.held
        assert not control.cancelled.is_set()


def test_time_that_a_run_stands_still_is_not_its_own() -> None:
    control = RunControl(paused=True)
    control.take(["join"])
    begun, ours = control.clock(), time.monotonic()
    assert control.still()
    assert not control.still(), "told once"
    control.hold()
    assert time.monotonic() - ours > 0.15
    assert control.clock() - begun < 0.05


def test_a_virtual_clock_that_is_paused_goes_on_from_where_it_stood() -> None:
    control = RunControl(speed=10)
    virtual = VirtualPace(control)
    told: list[Event] = []
    control.drive(control.pace, told.append, lambda: virtual.moment)
    threading.Timer(0.05, control.send, ["pause"]).start()
    threading.Timer(0.35, control.send, ["resume"]).start()
    begun = time.monotonic()
    virtual.to(2.0)  # 0.2 s of ours, and 0.3 s of standing still
    assert 0.45 < time.monotonic() - begun < 2
    assert [type(event) for event in told] == [RunPaused, RunResumed]
    assert 0.3 < told[0].time < 1.9
    assert virtual.moment == 2.0


def test_a_log_is_read_in_parts_of_whole_lines(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    tail = LogTail(log)
    assert tail.lines() == []
    log.write_bytes(b"one\ntwo\nthree is long\nfo")
    assert tail.lines(6) == [b"one"]
    assert tail.lines(2) == [b"two", b"three is long"], "one line at least, however long"
    assert tail.lines(6) == []
    with log.open("ab") as file:
        file.write(b"ur\n")
    assert tail.lines() == [b"four"]
