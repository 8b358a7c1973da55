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
from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.request import RunRequest
from engine.spark.peek import held_packs, peek
from engine.spark.session import lent

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


class Running:
    """A run of Fig. 1 in a thread of its own."""

    def __init__(self, tpch: Path, folder: Path, **settings: Any) -> None:
        parameters = {"data_folder": str(tpch), "warehouse_folder": str(folder.parent / "warehouse")}
        bound = bind(load(ROOT / "workflows" / "fig1.butterfly.yaml"), catalogue(), parameters=parameters)
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
    run = Running(tpch, tmp_path / "first", granularity="operator", policy="mc", pack_rows=1000, paused=True)
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
    again = Running(tpch, tmp_path / "again", granularity="fused", paused=True)
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
