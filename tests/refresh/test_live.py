"""The warehouse live on Spark: what arrives is loaded once, views follow, and stops, kills and changes lose nothing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from engine.control import send_to
from engine.errors import BadInput
from engine.events import Event, EventLog, LogReader, Remark, RunPaused, TableStaleness, UpdateFinished, UpdateStarted
from engine.model.binding import bind
from engine.model.file import load
from engine.operators import catalogue
from engine.operators._database import DatabaseProblem
from engine.refresh.live.launch import StreamSettings, launch_stream, learnt_of
from engine.refresh.live.warehouse import LiveSettings, LiveWarehouse
from engine.refresh.scheduler import Settings
from engine.spark.session import SparkSettings, lent
from engine.spark.stream_update import Updater
from engine.spark.stream_versions import LATE, published, published_files
from tests.end_to_end.helpers import ROOT, WORKFLOWS, answer, environment_for, papilio_here
from tests.spark.streaming import FILE, SCRATCH, TOGETHER, TOGETHER_SCRATCH, sorted_rows

FOLDER = """
papilio: 1
name: arriving
nodes:
  files: {operator: folder_stream, settings: {path: in, columns: {ts: timestamp, n: bigint}, check_s: 0.05, settle_s: 0}}
  whole: {operator: not_null, settings: {columns: [n]}}
  sale: {operator: stream_table, settings: {path: out/sale, time_column: ts, partition_s: 60, lateness_bound_s: 10}}
  second: {operator: time_bucket, settings: {column: ts, every_s: 1}}
  sum: {operator: materialized_view, settings: {group: [bucket], aggregates: [{name: n, expression: sum(n)}]}}
  total: {operator: stream_table, settings: {path: out/total, time_column: bucket, partition_s: 60}}
edges:
- {from: files, to: whole}
- {from: whole, to: sale}
- {from: sale, to: second}
- {from: second, to: sum}
- {from: sum, to: total}
"""
MORE = {
    "  total:": "  large: {operator: filter, settings: {condition: n > 2}}\n"
    "  large_sale: {operator: stream_table, settings: {path: out/large_sale, time_column: ts, partition_s: 60}}\n  total:",
    "- {from: sale, to: second}": "- {from: sale, to: large}\n- {from: large.match, to: large_sale}\n- {from: sale, to: second}",
}


def rows(folder: Path, columns: str = "*") -> list[tuple]:
    files = published_files(folder)
    if not files:
        return []
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        return sorted_rows(database.execute(f"SELECT {columns} FROM read_parquet({files})").fetchall())


@contextlib.contextmanager
def running(file: Path, spark, tracks: int = 2) -> Iterator[LiveWarehouse]:
    """A warehouse that runs in a thread; stopped at the end, and its failure is the test's."""
    log = EventLog(file.parent / "events.jsonl")
    made = LiveWarehouse(
        bind(load(file), catalogue()), LiveSettings(Settings(tracks=tracks)), spark, log,
        reopen=lambda: bind(load(file), catalogue()),
    )  # fmt: skip
    failed: list[BaseException] = []

    def work() -> None:
        try:
            made.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(60)
        log.close()
    if failed:
        raise failed[0]


def until(true: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def remarks(folder: Path) -> str:
    return "\n".join(event.message for event in LogReader(folder / "events.jsonl") if isinstance(event, Remark))


@pytest.mark.slow
def test_files_arrive_and_tables_come_and_go_while_it_runs(spark, tmp_path):
    file, incoming = tmp_path / "arriving.butterfly.yaml", tmp_path / "in"
    file.write_text(FOLDER)
    incoming.mkdir()

    def put(name: str, *lines: str) -> None:
        (incoming / f".{name}").write_text("\n".join(["ts,n", *lines]) + "\n")
        os.rename(incoming / f".{name}", incoming / name)

    def holds(table: str, *numbers: int) -> bool:
        return rows(tmp_path / "out" / table, "n") == sorted_rows((number,) for number in numbers)

    (incoming / "broken.csv").write_text("ts,n\nno time,1\n")
    os.utime(incoming / "broken.csv", (1, 1))
    with running(file, spark) as warehouse:
        put("a.csv", "2026-01-01T00:00:30Z,1", "2026-01-01T00:00:31Z,2", "2026-01-01T00:00:31Z,")
        until(lambda: holds("sale", 1, 2))
        assert "node `total`" not in remarks(tmp_path)
        # Safe is what lies ten seconds back, and nothing does yet.
        assert published(tmp_path / "out" / "total").rows == 0
        put("again.csv", "2026-01-01T00:00:30Z,1", "2026-01-01T00:00:31Z,2", "2026-01-01T00:00:31Z,")
        put("b.csv", "2026-01-01T00:01:00Z,3", "2026-01-01T00:00:19Z,4", "2026-01-01T00:00:22Z,5")
        until(lambda: holds("sale", 1, 2, 3, 5))
        until(lambda: holds("total", 1, 2, 5))
        text = FOLDER
        for old, new in MORE.items():
            text = text.replace(old, new)
        file.write_text(text)
        until(lambda: "table `large_sale` joined" in remarks(tmp_path))
        put("c.csv", "2026-01-01T00:02:00Z,6")
        until(lambda: holds("large_sale", 3, 5))
        file.write_text(text.replace("time_column: bucket", "time_column: buckett"))
        until(lambda: "the file changed and does not hold" in remarks(tmp_path))
        file.write_text(FOLDER)
        until(lambda: "table `large_sale` is no longer kept" in remarks(tmp_path))
        assert list(warehouse.scheduler.tables) == ["sale", "total"]
    said = remarks(tmp_path)
    assert "broken.csv cannot be read and was put aside" in said
    assert "again.csv was delivered before; it has no effect" in said
    assert published(tmp_path / "out" / "sale").late_rows == 1
    (late,) = (tmp_path / "out" / "sale" / LATE).iterdir()
    assert duckdb.sql(f"SELECT n FROM read_parquet('{late}')").fetchall() == [(4,)]
    assert not [
        event for event in LogReader(tmp_path / "events.jsonl") if isinstance(event, UpdateFinished) and event.failed
    ]
    # Opened again, it goes on where it was.
    with running(file, spark):
        put("d.csv", "2026-01-01T00:03:00Z,7")
        until(lambda: holds("sale", 1, 2, 3, 5, 6, 7))
        until(lambda: holds("total", 1, 2, 3, 5, 6))


def test_the_command_tells_staleness_and_keeps_what_it_learnt(spark, tmp_path, monkeypatch):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    told = answer(papilio_here("stream", "run", file, "--for", "6", "--json", home=tmp_path, spark=spark))
    events = list(LogReader(Path(told["folder"]) / "events.jsonl"))
    assert {event.table for event in events if isinstance(event, TableStaleness)} == {"click", "sale", *SCRATCH}
    began = {event.job: event for event in events if isinstance(event, UpdateStarted)}
    ended = {event.job: event for event in events if isinstance(event, UpdateFinished)}
    assert began.keys() == ended.keys()
    assert told["status"] == "done"
    assert 0 < told["utilization"] <= 1
    for track in (0, 1):  # one job at a time on each
        jobs = sorted((began[job].time, ended[job].time) for job in began if began[job].track == track)
        assert all(end <= begin for (_, end), (begin, _) in pairwise(jobs))
    position = published(tmp_path / "out" / "click").position
    ids = sorted_rows((n,) for n in range(40 * (position[0] + 1)) if n % 5 < 4)
    assert rows(tmp_path / "out" / "click", "id") == ids
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)
    assert learnt_of("small", None)["click"].alpha_s == pytest.approx(told["learnt"]["click"]["alpha_s"]) != 0
    shown = answer(papilio_here("stream", "show", file, "--json", home=tmp_path))
    assert shown["tables"]["click"]["rows"] == published(tmp_path / "out" / "click").rows


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("from: click, to: second}", "from: pair, to: second}", "circle"),
        ("from: click, to: second}", "from: clik, to: second}", "names a node `clik` that does not exist"),
        ("period_s: 1, rows_per_s: 40", "period_s: -1, rows_per_s: 40", "node `clicks`, setting `period_s`"),
        (
            "group: [bucket, page], aggregates: [{name: amount",
            "group: [page], aggregates: [{name: bucket, expression: max(bucket)}, {name: amount",
            "node `per_sale`: table `sale_second`",
        ),
        ("path: out/pair", "path: out/click", "table `click` is kept in the same place"),
    ],
)
def test_what_cannot_be_run_ends_with_2_and_is_told(tmp_path, old, new, told):
    file = tmp_path / "small.butterfly.yaml"
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    done = papilio_here("stream", "run", file, "--for", "1", home=tmp_path)
    assert (done.returncode, told in done.stderr, str(file) in done.stderr) == (2, True, True), done.stderr


def test_a_table_that_has_no_place_is_told_before_spark_is_started(tmp_path):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE.replace("nodes:", "roots: {here: ., far: /proc}\nnodes:").replace("out/pair", '"${far}/pair"'))
    done = papilio_here("stream", "run", file, "--for", "1", home=tmp_path)
    assert done.returncode == 2
    assert f"{file}: node `pair`: the folder `/proc/pair` cannot be used: /proc: " in done.stderr


@pytest.mark.parametrize("option", ["--policy", "--sharing"])
def test_an_unknown_policy_is_told_before_spark_is_started(tmp_path, option):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    done = papilio_here("stream", "run", file, option, "max-benefits", "--for", "1", home=tmp_path)
    assert done.returncode == 2
    assert f"{option} max-benefits: there is no such" in done.stderr
    assert "Spark" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_table_of_a_warehouse_is_not_run_or_exported_as_a_batch(tmp_path, spark):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    done = papilio_here("run", file, home=tmp_path, spark=spark)
    assert done.returncode == 2
    assert "node `click`: a table of a streaming warehouse is kept by `papilio stream run`" in done.stderr
    assert papilio_here("export", file, "--to", "pyspark", home=tmp_path).returncode == 2


def put(folder: Path, name: str, *lines: str) -> None:
    """A file arrives as a whole."""
    incoming = folder / "in"
    incoming.mkdir(exist_ok=True)
    (incoming / f".{name}").write_text("\n".join(["ts,n", *lines]) + "\n")
    os.rename(incoming / f".{name}", incoming / name)


def per_second(folder: Path, aggregate: str = "sum(n)") -> list[tuple]:
    """The view `total` from scratch, over the rows of `sale` up to where it goes."""
    edge, files = published(folder / "out" / "total").fresh_us, published_files(folder / "out" / "sale")
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        text = f"SELECT date_trunc('second', ts), {aggregate} FROM read_parquet({files}) WHERE epoch_us(ts) <= {edge} GROUP BY 1"
        return sorted_rows(database.execute(text).fetchall())


# What somebody does to the file while it runs: a node gets another name, a view another meaning, and tables come that
# are as they should be, that lack their reference, that Spark does not take, and that lie where another one lies.
EDITED = {
    "  whole:": "  entire:",
    "to: whole}": "to: entire}",
    "from: whole,": "from: entire,",
    "expression: sum(n)": "expression: max(n)",
    "every_s: 1}": "every_s: 2}",
    "edges:": "  days: {operator: csv_source, settings: {path: nowhere.csv, columns: {n: bigint, day: string}}}\n"
    "  named: {operator: lookup, settings: {keys: [{main: n}], take: [{column: day}]}}\n"
    "  lost: {operator: stream_table, settings: {path: out/lost, time_column: ts}}\n"
    "  over_lost: {operator: stream_table, settings: {path: out/over_lost, time_column: ts}}\n"
    "  to_lost: {operator: copy}\n"
    "  all: {operator: copy}\n"
    "  twin: {operator: stream_table, settings: {path: out/sale, time_column: ts}}\n"
    "  minute: {operator: time_bucket, settings: {column: bucket, every_s: 60, into: minute}}\n"
    "  over: {operator: materialized_view, settings: {group: [minute], aggregates: [{name: n, expression: sum(n)}]}}\n"
    "  minutes: {operator: stream_table, settings: {path: out/minutes, time_column: minute}}\n"
    "edges:\n- {from: sale, to: named.main}\n- {from: days, to: named.reference}\n- {from: named, to: lost}\n"
    "- {from: lost, to: to_lost}\n- {from: to_lost, to: over_lost}\n- {from: sale, to: all}\n- {from: all, to: twin}\n"
    "- {from: total, to: minute}\n- {from: minute, to: over}\n- {from: over, to: minutes}",
}


def test_what_changes_in_the_file_leaves_the_tables_that_run_as_they_were(spark, tmp_path):
    file = tmp_path / "arriving.butterfly.yaml"
    file.write_text(FOLDER)
    put(tmp_path, "a.csv", "2026-01-01T00:00:30Z,1", "2026-01-01T00:00:30Z,2", "2026-01-01T00:01:00Z,3")
    with running(file, spark) as warehouse:
        until(lambda: rows(tmp_path / "out" / "total", "n") == [("3",)])
        text = FOLDER
        for old, new in EDITED.items():
            assert old in text
            text = text.replace(old, new)
        file.write_text(
            text.replace(
                "- {from: sale, to: second}",
                "- {from: sale, to: second}\n- {from: sale, to: large}\n- {from: large.match, to: large_sale}",
            ).replace("  total:", next(iter(MORE.values())))
        )
        until(lambda: "table `large_sale` joined" in remarks(tmp_path))
        until(lambda: "table `minutes` cannot join" in remarks(tmp_path))
        put(tmp_path, "b.csv", "2026-01-01T00:01:01Z,4", "2026-01-01T00:01:01Z,5", "2026-01-01T00:02:00Z,6")
        until(lambda: rows(tmp_path / "out" / "total", "n") == [("3",), ("3",), ("9",)])
        until(lambda: rows(tmp_path / "out" / "large_sale", "n") == [("3",), ("4",), ("5",)])
        assert sorted(warehouse.scheduler.tables) == ["large_sale", "sale", "total"]
        file.write_text(
            FOLDER.replace("  sale:", "  sale_:")
            .replace("to: sale}", "to: sale_}")
            .replace("from: sale,", "from: sale_,")
            .replace("out/sale,", "out/sale_,")
            .replace("bucket, p", "bucket, priority: 2, p")
        )
        until(lambda: "table `sale` is kept until the next start" in remarks(tmp_path))
        put(tmp_path, "c.csv", "2026-01-01T00:03:00Z,7")
        until(lambda: rows(tmp_path / "out" / "total", "n") == [("3",), ("3",), ("6",), ("9",)])
    said = remarks(tmp_path)
    assert f"{file}: node `days`: table `lost` cannot join" in said
    assert f"{file}: node `over_lost`: table `over_lost` cannot join: its source `lost` could not join" in said
    assert f"{file}: node `twin`: table `twin` cannot join: table `sale` is kept in the same place" in said
    assert "table `minutes` cannot join: the times of its source `total` changed in the file" in said
    assert "table `total` changed in the file; that holds from the next start on" in said
    assert "it is tried again" not in said


def test_a_view_that_is_described_otherwise_is_made_anew_at_the_next_start(spark, tmp_path):
    file, total = tmp_path / "arriving.butterfly.yaml", tmp_path / "out" / "total"
    file.write_text(FOLDER)
    put(tmp_path, "a.csv", *(f"2026-01-01T00:00:{second:02}Z,{second}" for second in range(10, 50)))
    with running(file, spark):
        until(lambda: len(rows(total)) == 29)
    for number, (old, new, aggregate) in enumerate(
        [
            ("bucket, partition_s: 60", "bucket, partition_s: 7", "sum(n)"),
            ("bucket, partition_s: 60", "bucket, partition_s: 5", "sum(n)"),
            ("expression: sum(n)", "expression: max(n) - 1", "max(n) - 1"),
            ("condition", "condition", "sum(n)"),
        ]
    ):
        file.write_text(FOLDER.replace(old, new))
        put(tmp_path, f"b{number}.csv", *(f"2026-01-01T00:0{number + 1}:{s:02}Z,{s}" for s in range(10, 50)))
        with running(file, spark):
            until(lambda number=number: published(tmp_path / "out" / "sale").rows == 40 * (number + 2))
            until(lambda: len(rows(total)) == published(tmp_path / "out" / "sale").rows - 11)
            assert rows(total) == per_second(tmp_path, aggregate)
        assert "table `total` is described otherwise than before: it is made anew from its sources" in remarks(tmp_path)
    file.write_text(FOLDER.replace("columns: [n]", "columns: [n, ts]"))
    with running(file, spark):
        assert rows(total) == per_second(tmp_path)
    assert "table `sale` is described otherwise than before: it goes on, and the rows that it has stay" in remarks(
        tmp_path
    )
    before = published(tmp_path / "out" / "sale")
    file.write_text(FOLDER.replace("n: bigint", "n: bigint, m: bigint"))
    told = r"node `sale`: its rows have other columns than it has now \(m: none → int64\)"
    with pytest.raises(BadInput, match=told), running(file, spark):
        pass
    assert published(tmp_path / "out" / "sale") == before


def test_trouble_from_outside_holds_up_its_own_table_alone_and_passes(spark, tmp_path, monkeypatch):
    file, tries = tmp_path / "small.butterfly.yaml", []
    file.write_text(FILE)
    whole = Updater.load

    def load_table(self, plan, *given):
        if plan.name == "sale" and len(tries) < 6:
            tries.append(time.monotonic())
            raise DatabaseProblem("the database is shutting down")
        return whole(self, plan, *given)

    monkeypatch.setattr(Updater, "load", load_table)
    monkeypatch.setattr("engine.refresh.live.warehouse.RETRY_S", 0.1)
    with running(file, spark):
        until(lambda: "table `sale` works again, at try 7" in remarks(tmp_path))
        assert version(tmp_path, "click") > 2
        until(lambda: version(tmp_path, "sale") > 2)
    waits = [after - before for before, after in pairwise(tries)]
    assert all(wait > 0.1 * 2**number for number, wait in enumerate(waits))
    assert remarks(tmp_path).count("the database is shutting down; it is tried again until it works") == 1
    nothing_lost_or_repeated(tmp_path)


def test_an_update_that_always_fails_holds_up_its_own_table_alone_and_is_told(spark, tmp_path):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE.replace("condition: cost > 3", "condition: 1 / (cost - cost) > 3"))
    done = papilio_here("stream", "run", file, "--for", "10", "--json", home=tmp_path, spark=spark)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["status"] == "failed"
    assert list(told["held"]) == ["dear_click"]
    assert "DIVIDE_BY_ZERO" in told["held"]["dear_click"]
    assert "tables were held back" in done.stderr
    assert "table `dear_click`" in done.stderr
    assert told["tables"]["click_second"]["updates"] > 2
    assert version(tmp_path, "joined") > 0


def test_a_file_whose_record_fails_in_spark_is_put_aside_and_the_table_goes_on(spark, tmp_path):
    file = tmp_path / "arriving.butterfly.yaml"
    file.write_text(FOLDER.replace("whole: {operator: not_null, settings: {columns: [n]}}",
                                   "whole: {operator: filter, settings: {condition: 12 / n > 0}}")
                    .replace("from: whole,", "from: whole.match,"))  # fmt: skip
    put(tmp_path, "a.csv", "2026-01-01T00:00:30Z,1")
    put(tmp_path, "b.csv", "2026-01-01T00:00:40Z,2", "2026-01-01T00:00:41Z,0")
    put(tmp_path, "c.csv", "2026-01-01T00:01:30Z,3")
    with running(file, spark) as warehouse:
        until(lambda: rows(tmp_path / "out" / "sale", "n") == [("1",), ("3",)])
        until(lambda: "b.csv cannot be loaded and was put aside" in remarks(tmp_path))
    assert warehouse.summary()["held"] == {}
    assert "node `sale`: [DIVIDE_BY_ZERO]" in remarks(tmp_path)


FAST = """
papilio: 1
name: quick
nodes:
  ticks: {operator: generator_stream, settings: {period_s: 0.1, rows_per_s: 10, columns: {n: id % 5}}}
  all: {operator: copy}
  tick: {operator: stream_table, settings: {path: out/tick, time_column: ts, partition_s: 60}}
edges:
- {from: ticks, to: all}
- {from: all, to: tick}
"""


def told_status(run: Path) -> tuple[str, str]:
    """What `papilio watch` and `papilio history` say of the run of a folder."""
    watched = answer(papilio_here("watch", run, "--json", home=run.parent))["status"]
    listed = answer(papilio_here("history", "--json", home=run.parent))
    return watched, next(one["status"] for one in listed if one["folder"] == str(run.resolve()))


@pytest.mark.slow
def test_a_live_run_holds_its_folder_and_is_paused_stepped_resumed_and_stopped_from_outside(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.setenv("PAPILIO_STORE", "")
    file, run = tmp_path / "quick.butterfly.yaml", tmp_path / "run"
    file.write_text(FAST)
    settings = StreamSettings(
        LiveSettings(Settings(tracks=1), 60.0), SparkSettings(spark.sparkContext.master), folder=run
    )
    events: list[Event] = []
    summary: dict[str, Any] = {}
    bound = bind(load(file), catalogue())

    def count(kind: type[Event]) -> int:
        return sum(isinstance(event, kind) for event in events)

    with lent(spark):
        thread = threading.Thread(target=lambda: summary.update(launch_stream(bound, settings, listener=events.append)))
        thread.start()
        try:
            until(lambda: count(UpdateFinished) > 1)
            assert told_status(run) == ("running", "running")
            send_to(run, "pause")
            until(lambda: count(RunPaused) and not count(UpdateStarted) - count(UpdateFinished))
            before = count(UpdateStarted)
            time.sleep(0.3)
            assert count(UpdateStarted) == before, "data arrive, and wait"
            assert told_status(run) == ("paused", "running")
            send_to(run, "step")
            until(lambda: count(UpdateFinished) == before + 1)
            send_to(run, "resume")
            until(lambda: count(UpdateFinished) > before + 2)
        finally:
            if thread.is_alive():
                send_to(run, "cancel")
            thread.join(60)
    assert summary["status"] == "done"
    assert summary["seconds"] < 50
    assert told_status(run) == ("done", "done")


# ---------------------------------------------------------------- in a process of its own


@pytest.mark.slow
def test_a_killed_run_is_interrupted_and_what_it_learnt_is_kept(tmp_path, monkeypatch):
    file, run = tmp_path / "quick.butterfly.yaml", tmp_path / "run"
    file.write_text(FAST)
    monkeypatch.setenv("PAPILIO_HOME", str(tmp_path))
    monkeypatch.delenv("PAPILIO_STORE", raising=False)
    process = started(file, tmp_path, "--run-dir", str(run))
    try:
        until(lambda: version(tmp_path, "tick") > 2, 120)
        assert told_status(run) == ("running", "running")
        until(lambda: learnt_of("quick", None), 60)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert told_status(run) == ("interrupted", "interrupted")
    learnt = learnt_of("quick", None)["tick"]
    assert learnt.observed
    assert 0 < learnt.alpha_s + learnt.beta < 60
    assert learnt.period_s is not None
    listed = papilio_here("history", "--status", "interrupted", "--json", home=tmp_path)
    assert [one["folder"] for one in answer(listed)] == [str(run)]
    assert answer(papilio_here("history", "--status", "running", "--json", home=tmp_path)) == []


def started(file: Path, home: Path, *options: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "engine", "stream", "run", str(file), "--driver-memory", "1024", *options],
        cwd=ROOT, env=environment_for(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def version(home: Path, table: str) -> int:
    folder = home / "out" / table
    return published(folder).number if folder.exists() else 0


def nothing_lost_or_repeated(home: Path) -> None:
    """Every record of the batches that were taken is in its table once, or was refused or late; views agree."""
    click, sale = published(home / "out" / "click"), published(home / "out" / "sale")
    assert rows(home / "out" / "click", "id") == sorted_rows(
        (n,) for n in range(40 * (click.position[0] + 1)) if n % 5 < 4
    )
    assert sale.rows + sale.late_rows == 20 * (sale.position[0] + 1)
    for name, scratch in TOGETHER_SCRATCH.items():
        edge = published(home / "out" / name).fresh_us
        if edge is None:
            continue
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for base in ("click", "sale"):
                files = published_files(home / "out" / base)
                database.execute(
                    f"CREATE VIEW {base} AS SELECT * FROM read_parquet({files}) WHERE epoch_us(ts) <= {edge}"
                )
            assert rows(home / "out" / name) == sorted_rows(database.execute(scratch).fetchall()), name


@pytest.mark.slow
def test_ctrl_c_stops_after_the_running_jobs_and_a_second_one_at_once(tmp_path):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    process = started(file, tmp_path, "--json")
    until(lambda: version(tmp_path, "click") > 2, 120)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert json.loads(output)["status"] == "done"
    nothing_lost_or_repeated(tmp_path)
    process = started(file, tmp_path)
    until(lambda: version(tmp_path, "click") > 6, 120)
    process.send_signal(signal.SIGINT)
    time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (0, 3)  # the jobs may have ended before the second one
    nothing_lost_or_repeated(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("text", [FILE, TOGETHER], ids=["one by one", "together"])
def test_a_kill_at_any_time_loses_nothing_and_repeats_nothing(tmp_path, text):
    file = tmp_path / "small.butterfly.yaml"
    file.write_text(text)
    chance = random.Random(5)
    for _ in range(4):
        before = version(tmp_path, "click")
        process = started(file, tmp_path)
        until(lambda before=before: version(tmp_path, "click") > before, 120)
        time.sleep(chance.uniform(0, 4))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        nothing_lost_or_repeated(tmp_path)
    done = started(file, tmp_path, "--for", "8", "--json")
    output, errors = done.communicate(timeout=180)
    assert done.returncode == 0, errors
    told = json.loads(output)
    assert told["jobs"] > 0
    nothing_lost_or_repeated(tmp_path)
    jobs = [event for event in LogReader(Path(told["folder"]) / "events.jsonl") if isinstance(event, UpdateFinished)]
    if text is TOGETHER:
        assert any(len(job.tables) > 1 for job in jobs)


@pytest.mark.slow
def test_a_kill_at_any_time_takes_each_file_once(tmp_path):
    file, chance = tmp_path / "arriving.butterfly.yaml", random.Random(7)
    file.write_text(FOLDER)
    sent: list[int] = []
    enough = threading.Event()

    def deliver() -> None:
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        while not enough.wait(0.05):
            numbers = range(5 * len(sent), 5 * len(sent) + 5)
            lines = [f"{(begin + timedelta(seconds=n / 5 - chance.uniform(0, 9))).isoformat()},{n}" for n in numbers]
            put(tmp_path, f"{len(sent)}.csv", *lines)
            if chance.random() < 0.2:
                put(tmp_path, f"{len(sent)}.again.csv", *lines)
            sent.append(len(sent))

    (tmp_path / "in").mkdir()
    sender = threading.Thread(target=deliver)
    sender.start()
    try:
        for _ in range(3):
            before = version(tmp_path, "sale")
            process = started(file, tmp_path)
            until(lambda before=before: version(tmp_path, "sale") > before + 2, 120)
            time.sleep(chance.uniform(0, 3))
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            found = [int(n) for (n,) in rows(tmp_path / "out" / "sale", "n")]
            assert len(set(found)) == len(found)
            if published(tmp_path / "out" / "total").fresh_us is not None:
                assert rows(tmp_path / "out" / "total") == per_second(tmp_path)
    finally:
        enough.set()
        sender.join()
    process = started(file, tmp_path, "--for", "20")
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    sale = published(tmp_path / "out" / "sale")
    assert {int(n) for (n,) in rows(tmp_path / "out" / "sale", "n")} <= set(range(5 * len(sent)))
    assert sale.rows + sale.late_rows == 5 * len(sent)
    assert not sale.late_rows, "none is older than the bound"
    assert rows(tmp_path / "out" / "total") == per_second(tmp_path)


@pytest.mark.slow
def test_the_shipped_folder_of_files_is_loaded_live(spark, tmp_path):
    incoming, out = tmp_path / "incoming", tmp_path / "warehouse"
    incoming.mkdir()
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    begin = now - timedelta(minutes=10)
    sales = [(begin + timedelta(seconds=second), f"s{second % 2}", 100 * second) for second in range(60)]
    sales += [(now, "", 5), (now, "s1", 7)]  # the first is incomplete; both let the minute of the others be over
    lines = [f"{time_.isoformat()},{shop},{amount}" for time_, shop, amount in sales]
    (incoming / "a.csv").write_text("\n".join(["ts,shop,amount", *lines]) + "\n")
    (incoming / "broken.csv").write_text("ts,shop,amount\nno time,s1,1\n")
    for file in incoming.iterdir():
        os.utime(file, (1, 1))
    folders = ("--param", f"incoming_folder={incoming}", "--param", f"warehouse_folder={out}")
    told = answer(
        papilio_here(
            "stream", "run", WORKFLOWS / "stream_folder.butterfly.yaml", *folders, "--for", "8", "--json",
            "--run-dir", tmp_path / "run", home=tmp_path / "home", spark=spark,
        )
    )  # fmt: skip
    assert set(told["tables"]) == {"sale", "sale_large", "sale_minute"}
    assert len(rows(out / "sale")) == 61
    assert len(rows(out / "sale_large")) == 50
    assert rows(out / "sale_minute", "sales, amount") == [("30", "87000.00"), ("30", "90000.00")]
    assert "broken.csv cannot be read and was put aside" in remarks(tmp_path / "run")
