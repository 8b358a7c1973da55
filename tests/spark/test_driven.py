"""A run on Spark that is driven from outside: paused, looked into, stepped, resumed, cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.control import send_to
from engine.errors import BadInput, RunCancelled
from engine.events import Event, LogReader, RunPaused, RunStarted, SparkJob, UnitDecided, UnitStarted
from engine.model.binding import Bound, bind
from engine.model.file import load
from engine.operators import catalogue
from engine.request import RunRequest
from engine.schedule.turn import Step
from engine.spark.backend import Classic
from engine.spark.jobs import WAIT_SECONDS, JobsTold
from engine.spark.pack_turns import PackTurns, Turn
from engine.spark.peek import held_packs, peek
from engine.spark.runner import CANCEL_SECONDS
from engine.spark.session import lent
from engine.spark.targets import FileDelivery
from tests.end_to_end.helpers import write

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PAPILIO_STORE", str(tmp_path / "store.db"))


@pytest.fixture
def borrowed(spark: SparkSession) -> Iterator[None]:
    with lent(spark):
        yield


def until(true: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def fig1(tpch: Path, warehouse: Path) -> Bound:
    parameters = {"data_folder": str(tpch), "warehouse_folder": str(warehouse)}
    return bind(load(ROOT / "workflows" / "fig1.butterfly.yaml"), catalogue(), parameters=parameters)


class Running:
    """A run in a thread of its own."""

    def __init__(self, bound: Bound, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.error: Exception | None = None
        self.summary: dict[str, Any] = {}
        request = RunRequest.from_plain({"master": "local[2]", **settings})

        def work() -> None:
            try:
                self.summary = request.start(bound, folder=self.folder, listener=self.events.append)
            except Exception as error:
                self.error = error

        self.thread = threading.Thread(target=work)
        self.thread.start()

    def count(self, kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in list(self.events))

    def still(self) -> int:
        """How often the run has come to a stop."""
        return sum(isinstance(event, RunPaused) and not event.running for event in list(self.events))

    def end(self) -> dict[str, Any]:
        self.thread.join(120)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.summary


@pytest.mark.usefixtures("borrowed")
def test_a_scheduled_run_is_stepped_and_its_packs_are_looked_into(tpch: Path, tmp_path: Path) -> None:
    run = Running(
        fig1(tpch, tmp_path / "warehouse"),
        tmp_path / "first",
        granularity="operator",
        policy="mc",
        pack_rows=1000,
        paused=True,
    )
    until(lambda: run.still() or run.error)
    assert run.error is None
    assert run.count(UnitDecided) == 0
    found = None
    for step in range(1, 12):
        send_to(run.folder, "step")
        until(lambda step=step: run.still() == step + 1)
        assert run.count(UnitDecided) == step
        full = {queue: packs for queue, packs in held_packs(run.folder).items() if packs}
        if full:
            queue = next(iter(full))
            found = peek(run.folder, queue)
            assert [pack["rows"] for pack in found["packs"]] == [pack["rows"] for pack in full[queue]][:40]
            assert found["total_rows"] == sum(pack["rows"] for pack in full[queue])
            first = found["packs"][0]
            assert len(first["first"]) == min(50, first["rows"])
            assert all(len(row) == len(found["columns"]) for row in first["first"])
            break
    assert found is not None
    assert found["columns"][0]["type"] in ("bigint", "int")
    assert peek(run.folder, queue.partition("> ")[2])["packs"], "a queue can be named by its end"
    with pytest.raises(BadInput, match="there is no queue `nowhere`"):
        peek(run.folder, "nowhere")
    time.sleep(0.3)  # it stands still meanwhile
    send_to(run.folder, "resume")
    summary = run.end()
    assert summary["status"] == "done"
    assert summary["paused_seconds"] >= 0.3
    assert sum(target["rows"] for target in summary["targets"].values()) > 0
    with pytest.raises(BadInput, match="nothing to look into"):
        peek(run.folder, queue)
    events = list(LogReader(run.folder / "events.jsonl"))
    jobs = [event for event in events if isinstance(event, SparkJob)]
    units = {event.unit for event in events if isinstance(event, UnitStarted)}
    assert jobs
    assert {job.unit for job in jobs} <= units
    assert {job.status for job in jobs if job.ended} == {"succeeded"}
    assert all(stage["tasks_done"] == stage["tasks"] for job in jobs if job.ended for stage in job.stages
               if stage["status"] == "complete")  # fmt: skip

    # What it loaded is fresh as of its beginning; the next run begins with that.
    again = Running(fig1(tpch, tmp_path / "warehouse"), tmp_path / "again", granularity="fused", paused=True)
    until(lambda: again.still() or again.error)
    assert again.error is None
    started = next(event for event in again.events if isinstance(event, RunStarted))
    begun = next(event.time for event in events if isinstance(event, RunStarted))
    assert started.refreshed.keys() == summary["targets"].keys()
    assert all(fresh is not None and abs(fresh - begun) < 5 for fresh in started.refreshed.values())
    assert set(next(event for event in events if isinstance(event, RunStarted)).refreshed.values()) == {None}
    send_to(again.folder, "step")
    until(lambda: again.still() == 2)
    assert again.count(UnitStarted) == 1, "a fused run decides a unit at a time"
    send_to(again.folder, "cancel")
    with pytest.raises(RunCancelled):
        again.end()


@pytest.mark.usefixtures("borrowed")
def test_who_cancels_waits_for_units_and_for_sparks_last_word_together_no_longer_than_for_either(
    tpch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Silent(JobsTold):
        """Spark never says its last word."""

        def wait(self, seconds: float = WAIT_SECONDS) -> None:
            waited.append(seconds)

    monkeypatch.setattr("engine.spark.runner.JobsTold", Silent)
    run = Running(fig1(tpch, tmp_path / "warehouse"), tmp_path / "run", granularity="fused", paused=True)
    until(lambda: run.still() or run.error)
    send_to(run.folder, "cancel")
    with pytest.raises(RunCancelled):
        run.end()
    (seconds,) = waited
    assert 0 < seconds <= CANCEL_SECONDS


@pytest.mark.usefixtures("borrowed")
@pytest.mark.parametrize("granularity", ["fused", "operator"])
def test_a_job_that_a_unit_asks_for_after_all_were_dropped_is_dropped_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, granularity: str
) -> None:
    planning, dropped = threading.Event(), threading.Event()
    times: list[float] = []
    cancel, deliver, carry_out = Classic.cancel, FileDelivery.write, PackTurns.carry_out

    def dropping(backend: Classic) -> None:
        cancel(backend)
        times.append(time.monotonic())
        if len(times) > 1:  # the control drops all jobs, and so does the run when it hears of it
            dropped.set()

    def late() -> None:
        planning.set()
        assert dropped.wait(60)

    def delivering(delivery: FileDelivery, frame: Any) -> None:
        late()
        deliver(delivery, frame)

    def turning(turns: PackTurns, turn: Turn) -> None:
        if turn.activation.unit.id == "pairs" and turn.activation.step is Step.WHOLE:
            late()
        carry_out(turns, turn)

    monkeypatch.setattr(Classic, "cancel", dropping)
    monkeypatch.setattr(FileDelivery, "write", delivering)
    monkeypatch.setattr(PackTurns, "carry_out", turning)
    monkeypatch.setattr("engine.spark.runner.CANCEL_SECONDS", 30)  # where the job went on, it would for minutes
    nodes = {
        "days": {"operator": "date_dimension", "first_day": "1900-01-01", "last_day": "2100-12-31"},
        "left": {"operator": "copy"},
        "right": {"operator": "copy"},
        "pairs": {"operator": "join", "kind": "cross", "keys": []},
        "again": {"operator": "join", "kind": "cross", "keys": [], "right_suffix": "_3"},
        "count": {"operator": "aggregate", "group": [], "aggregates": [{"name": "n", "expression": "count(*)"}]},
        "target": {"operator": "parquet_target", "path": "out"},
    }
    edges = [
        "days -> left.in", "days -> right.in", "left -> pairs.left", "right -> pairs.right", "pairs -> again.left",
        "right -> again.right", "again -> count.in", "count -> target.in",
    ]  # fmt: skip
    bound = bind(load(write(tmp_path, nodes, edges)), catalogue())
    run = Running(bound, tmp_path / "run", granularity=granularity, policy="rr")
    assert planning.wait(60)
    send_to(run.folder, "cancel")
    with pytest.raises(RunCancelled):
        run.end()
    left = [thread.name for thread in threading.enumerate() if thread.name.startswith(("unit-", "worker-"))]
    assert not left
