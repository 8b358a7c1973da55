"""What the live warehouse does with tables that cannot move, fail, or begin late; without Spark."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JNetworkError

from engine.errors import RunFailed
from engine.events import LogReader, RunFinished, UpdateFinished
from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.refresh.live import launch
from engine.spark.stream_store import REASON
from engine.spark.stream_versions import QUARANTINE
from engine.store.runs import kept_runs
from tests.end_to_end.helpers import papilio_here
from tests.refresh.without_spark import (
    BAD,
    TWO,
    ArrowUpdater,
    held,
    promise,
    put,
    remarks,
    running,
    until,
    without_spark,
)

DAY = [(f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z", minute + 100) for minute in range(600)]


def test_a_view_of_a_table_that_is_still_empty_waits_for_it(tmp_path, monkeypatch):
    with running(tmp_path, monkeypatch) as warehouse:
        put(tmp_path, "left/a.csv", DAY[0])
        until(lambda: held(tmp_path, "left").rows == 1)
        put(tmp_path, "left/b.csv", *DAY[1:])
        until(lambda: held(tmp_path, "alone").rows == 599)
        before = warehouse.jobs
        time.sleep(0.5)
        assert warehouse.jobs == before, "there is nothing to do"
        assert held(tmp_path, "both").fresh_us is None
        put(tmp_path, "right/a.csv", ("2026-01-01T09:58:00Z", 1), ("2026-01-01T09:59:30Z", 2))
        until(lambda: held(tmp_path, "both").rows == 599 + 1)


def test_a_file_that_is_gone_when_it_is_to_be_loaded_moves_nothing(tmp_path, monkeypatch):
    with running(tmp_path, monkeypatch) as warehouse:
        put(tmp_path, "left/a.csv", *DAY)
        put(tmp_path, "right/a.csv", ("2026-01-01T00:00:00Z", 1))
        until(lambda: held(tmp_path, "right").rows == 1)
        put(tmp_path, "right/b.csv", ("2026-01-01T00:00:30Z", 2))
        until(lambda: held(tmp_path, "right").rows == 2)
        whole = warehouse.feeds["right"].read

        def read(arrivals):
            for arrival in arrivals:
                arrival.kept = None
            (tmp_path / "right" / "c.csv").unlink(missing_ok=True)
            return whole(arrivals)

        warehouse.feeds["right"].read = read
        put(tmp_path, "right/c.csv", ("2026-01-01T09:00:00Z", 3))
        until(lambda: "c.csv was removed before it was loaded" in remarks(tmp_path))
        before = warehouse.jobs + 5
        time.sleep(0.5)
        assert warehouse.jobs < before
        assert warehouse.scheduler.tables["right"].freshness == held(tmp_path, "right").fresh_us / 1e6


def test_a_promise_that_waits_with_older_files_does_not_make_them_look_fresh(tmp_path, monkeypatch):
    promise(tmp_path, "left/first", "2025-12-31T00:00:00Z")
    time.sleep(0.02)  # files are taken in the order in which they were written
    put(tmp_path, "left/a.csv", *DAY)
    with running(tmp_path, monkeypatch) as warehouse:
        until(lambda: held(tmp_path, "alone").rows == 599)
        assert warehouse.scheduler.tables["left"].freshness == held(tmp_path, "left").fresh_us / 1e6


@pytest.mark.parametrize("first", [50, 1000], ids=["much history", "little history"])
def test_a_new_view_takes_the_history_of_its_source_part_by_part(tmp_path, monkeypatch, first):
    monkeypatch.setattr("engine.refresh.live.warehouse.FIRST_ROWS", first)
    alone = [line for line in TWO.splitlines() if "alone" in line]
    old = "\n".join(line for line in TWO.splitlines() if line not in alone)
    put(tmp_path, "left/a.csv", *DAY)
    with running(tmp_path, monkeypatch, old):
        until(lambda: held(tmp_path, "left").rows == 600)
    with running(tmp_path, monkeypatch):
        until(lambda: held(tmp_path, "alone").rows == 599)
    events = [event for event in LogReader(tmp_path / "events.jsonl") if isinstance(event, UpdateFinished)]
    parts = [event.rows for event in events if event.tables == ["alone"]]
    assert sum(parts) == 599
    assert (len(parts) > 4 and max(parts) < 400) if first < 600 else parts == [599]
    assert parts[0] < 60 or first > 600


def aside(folder: Path, table: str) -> list[str]:
    return [path.name for path in (folder / "out" / table / QUARANTINE).iterdir() if path.suffix != REASON]


def test_the_file_whose_record_no_plan_takes_is_put_aside_and_its_table_goes_on(tmp_path, monkeypatch):
    put(tmp_path, "left/a.csv", ("2026-01-01T00:00:00Z", 1))
    put(tmp_path, "left/b.csv", ("2026-01-01T00:01:00Z", 2), ("2026-01-01T00:01:00Z", BAD))
    put(tmp_path, "left/c.csv", ("2026-01-01T00:02:00Z", 3))
    with running(tmp_path, monkeypatch, refuses=("left",)) as warehouse:
        until(lambda: held(tmp_path, "left").rows == 2)
        put(tmp_path, "left/d.csv", ("2026-01-01T00:03:00Z", BAD))
        until(lambda: len(aside(tmp_path, "left")) == 2)
        put(tmp_path, "left/e.csv", ("2026-01-01T00:04:00Z", 4))
        until(lambda: held(tmp_path, "alone").rows == 2)
        assert warehouse.scheduler.tables["left"].freshness == held(tmp_path, "left").fresh_us / 1e6
    assert warehouse.summary()["held"] == {}
    said = remarks(tmp_path)
    assert said.count("b.csv cannot be loaded and was put aside") == 1
    assert "node `left`: [DIVIDE_BY_ZERO] Division by zero" in said
    (reason,) = (tmp_path / "out" / "left" / QUARANTINE).glob(f"*-d.csv{REASON}")
    assert "DIVIDE_BY_ZERO" in reason.read_text()
    assert not (tmp_path / "left" / "b.csv").exists()


def test_a_plan_that_takes_no_file_at_all_puts_none_aside(tmp_path, monkeypatch):
    put(tmp_path, "left/a.csv", ("2026-01-01T00:00:00Z", BAD))
    with running(tmp_path, monkeypatch, refuses=("left",)) as warehouse:
        put(tmp_path, "right/a.csv", ("2026-01-01T00:00:00Z", 1))
        until(lambda: warehouse.failures.get("left", 0) > 2)
        assert aside(tmp_path, "left") == []
        put(tmp_path, "left/b.csv", ("2026-01-01T00:00:00Z", 2))
        until(lambda: aside(tmp_path, "left"))
        until(lambda: held(tmp_path, "left").rows == 1)


@pytest.mark.parametrize("again", [False, True], ids=["at first", "after a restart"])
def test_a_view_that_fails_is_held_and_all_other_tables_go_on(tmp_path, monkeypatch, again):
    monkeypatch.setattr("engine.refresh.live.warehouse.RETRY_S", 0.02)
    put(tmp_path, "left/a.csv", ("2026-01-01T00:00:00Z", BAD), ("2026-01-01T00:01:00Z", 1))
    put(tmp_path, "right/a.csv", ("2026-01-01T00:00:00Z", 2), ("2026-01-01T00:01:00Z", 2))
    for _ in range(1 + again):
        with running(tmp_path, monkeypatch, refuses=("alone",)) as warehouse:
            until(lambda warehouse=warehouse: warehouse.failures.get("alone", 0) > 5)
            until(lambda: held(tmp_path, "both").rows == 2)
    put(tmp_path, "left/b.csv", ("2026-01-01T00:02:00Z", 3))
    put(tmp_path, "right/b.csv", ("2026-01-01T00:02:00Z", 3))
    with running(tmp_path, monkeypatch, refuses=("alone",)) as warehouse:
        until(lambda: held(tmp_path, "both").rows == 4)
        until(lambda: warehouse.failures.get("alone", 0) > 1)
    told = warehouse.summary()["held"]
    assert list(told) == ["alone"]
    assert "table `alone`, node `alone`: [DIVIDE_BY_ZERO] Division by zero" in told["alone"]
    assert remarks(tmp_path).count("it is tried again until it works") == 2 + again, "once in each run"


def test_without_spark_no_table_works_again_and_the_warehouse_stops(tmp_path, monkeypatch):
    def dead(*given):
        raise Py4JNetworkError("Answer from Java side is empty")

    monkeypatch.setattr("engine.refresh.live.warehouse.RETRY_S", 0.02)
    monkeypatch.setattr(ArrowUpdater, "_collect", dead)
    put(tmp_path, "left/a.csv", ("2026-01-01T00:00:00Z", 1))
    with pytest.raises(RunFailed, match="Spark's Java process has died"), running(tmp_path, monkeypatch) as warehouse:
        until(lambda: warehouse.stopping)


def test_ctrl_c_while_spark_starts_is_a_run_that_was_cancelled(tmp_path, monkeypatch):
    def interrupted(settings):
        raise KeyboardInterrupt

    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)
    monkeypatch.setattr(launch, "open_session", interrupted)
    file, run = tmp_path / "two.butterfly.yaml", tmp_path / "run"
    file.write_text(TWO)
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
    with pytest.raises(KeyboardInterrupt):
        launch.launch_stream(bind(load(file), catalogue()), launch.StreamSettings(folder=run))
    assert [event.status for event in LogReader(run / "events.jsonl") if isinstance(event, RunFinished)] == [
        "cancelled"
    ]
    assert [record.status for record in kept_runs(None, workflow="two")] == ["cancelled"]


@pytest.mark.parametrize("refuses", [(), ("alone",)], ids=["all went well", "a table is held back"])
def test_a_run_with_tables_that_are_held_back_at_its_end_has_failed(tmp_path, monkeypatch, refuses):
    put(tmp_path, "left/a.csv", ("2026-01-01T00:00:00Z", BAD), ("2026-01-01T00:01:00Z", 1))
    put(tmp_path, "right/a.csv", ("2026-01-01T00:00:00Z", 2))
    (tmp_path / "two.butterfly.yaml").write_text(TWO)
    without_spark(monkeypatch, refuses)
    monkeypatch.setattr(launch, "open_session", lambda settings: SimpleNamespace(version="4"))
    monkeypatch.setattr(launch, "close_session", lambda session: None)
    done = papilio_here(
        "stream", "run", tmp_path / "two.butterfly.yaml", "--for", "3", "--json", "--run-dir", tmp_path / "run",
        home=tmp_path,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"], list(told["held"])) == (
        (1, "failed", ["alone"]) if refuses else (0, "done", [])
    )
    assert ("table `alone`, node `alone`: [DIVIDE_BY_ZERO]" in done.stderr) == bool(refuses)
    (last,) = (event for event in LogReader(tmp_path / "run" / "events.jsonl") if isinstance(event, RunFinished))
    assert last.status == told["status"]
    assert ("tables were held back" in (last.reason or "")) == bool(refuses)
