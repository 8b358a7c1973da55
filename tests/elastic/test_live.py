"""Elastic runs on real Spark: every row exactly once, whatever happens to the nodes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest
import yaml

from engine.elastic.live import in_batches
from engine.events import (
    Event,
    LoadFinished,
    LogReader,
    NodeChanged,
    QueryAnswered,
    Rebalanced,
    Remark,
    ScalingDecided,
    StagesSampled,
)
from engine.experiments.data import generate_tpch
from engine.schedule.queues import Pack
from tests.end_to_end.helpers import ROOT, WORKFLOWS, answer, environment_for, papilio, papilio_here

PATIENCE_S = 400


def workflow(folder: Path, data: Path, **elastic: Any) -> Path:
    """The shipped live workflow with other limits."""
    text = (WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml").read_text()
    document = yaml.safe_load(text)
    document["elastic"] |= elastic
    document["parameters"]["data_folder"]["default"] = str(data)
    document["parameters"]["warehouse_folder"]["default"] = str(folder / "warehouse")
    file = folder / "live.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def heavier(file: Path) -> Path:
    """The same facts by much more work, so that it is Workers and nothing else that a row's time depends on."""
    document = yaml.safe_load(file.read_text())
    columns = document["nodes"]["measures"]["settings"]["columns"]
    (ship,) = [column for column in columns if column["name"] == "lo_shipmode"]
    ship["expression"] = f"CASE WHEN length(sha2(repeat(l_comment, 2000), 512)) > 0 THEN {ship['expression']} END"
    file.write_text(yaml.safe_dump(document))
    return file


def steps(seconds: float, *rates: tuple[float, float]) -> dict[str, Any]:
    return {"kind": "steps", "steps": [{"at_s": at, "rows_s": rows} for at, rows in rates], "seconds": seconds}


def warehouse_rows(run: Path) -> tuple[int, int]:
    """Facts in the warehouse and their quantities, by DuckDB from the manifest's files."""
    manifest = json.loads((run / "warehouse" / "manifest.json").read_text())
    files = [file["path"] for part in manifest["facts"] for file in part]
    ((rows, quantity),) = duckdb.sql(f"SELECT count(*), sum(lo_quantity) FROM read_parquet({files})").fetchall()
    return int(rows), int(quantity)


def expected_rows(data: Path, rows: int) -> tuple[int, int]:
    """The same of the rows that were replayed: the file's first ones, over and over."""
    file = f"read_parquet('{data}/lineitem.parquet', file_row_number = true)"
    ((total, quantity),) = duckdb.sql(f"SELECT count(*), sum(l_quantity) FROM {file}").fetchall()
    whole, rest = divmod(rows, total)
    ((first,),) = duckdb.sql(
        f"SELECT coalesce(sum(l_quantity), 0) FROM {file} WHERE file_row_number < {rest}"
    ).fetchall()
    return rows, whole * int(quantity) + int(first)


@pytest.mark.slow
def test_a_run_on_local_spark_loads_every_generated_row_once(spark, tpch, tmp_path):
    file = workflow(
        tmp_path,
        tpch,
        rate=steps(5, (0, 6000)),
        live={"pack_rows": 5000},
        warehouse={"every_s": 1, "nodes": {"min": 2, "max": 2}, "sessions": 1, "queries": ["Q1.1"]},
    )
    done = papilio_here("scale", "run", file, "--json", "--run-dir", tmp_path / "run", home=tmp_path, spark=spark)
    summary = answer(done)
    rows = summary["rows"]
    assert rows["generated"] == rows["transformed"] == rows["warehouse"] == 30_000
    assert warehouse_rows(tmp_path / "run") == expected_rows(tpch, 30_000)
    events = list(LogReader(tmp_path / "run" / "events.jsonl"))
    loads = [event for event in events if isinstance(event, LoadFinished)]
    assert sum(load.rows for load in loads) == loads[-1].total_rows == 30_000
    assert any(isinstance(event, QueryAnswered) for event in events)
    assert {stage for event in events if isinstance(event, StagesSampled) for stage in event.nodes} == {
        "extraction", "transformation", "buffer", "switch", "warehouse",
    }  # fmt: skip
    assert list((tmp_path / "run").glob("raw/*")) == []


@pytest.mark.slow
def test_with_an_empty_pool_the_limit_is_reported_as_unreachable_and_the_run_goes_on(spark, tpch, tmp_path):
    file = workflow(
        tmp_path,
        tpch,
        pool=5,  # one node of each stage, and none is ready
        rate=steps(6, (0, 5000)),
        sample_s=1,
        extraction={"every_s": 1},
        transformation={"queue_mb": 0.2},  # one pack is too much
        warehouse={"every_s": 1, "nodes": {"max": 3}, "sessions": 0, "batch_mb": 0.5},
        live={"pack_rows": 5000},
    )
    done = papilio_here("scale", "run", file, "--json", "--run-dir", tmp_path / "run", home=tmp_path, spark=spark)
    summary = answer(done)
    assert "transformation" in summary["unreachable"]
    events = list(LogReader(tmp_path / "run" / "events.jsonl"))
    told = of_kind(events, ScalingDecided, stage="transformation")
    assert {event.action for event in told} == {"unreachable"}
    assert all("no node is ready: all 5 of the pool are at work" in event.reason for event in told)
    loads = of_kind(events, LoadFinished)
    assert loads[-1].time > told[0].time
    assert summary["rows"]["generated"] == 30_000
    exact(summary, tmp_path / "run", tpch)


def test_a_load_is_made_in_batches_of_the_size_that_is_allowed():
    packs = [Pack(1, size, str(size)) for size in (40, 50, 20, 120, 10, 90)]
    assert [[pack.bytes for pack in batch] for batch in in_batches(packs, 100)] == [[40, 50], [20], [120], [10, 90]]
    assert in_batches([], 100) == []


@pytest.mark.slow
def test_a_workflow_whose_source_does_not_reach_its_facts_is_refused(spark, tpch, tmp_path):
    file = workflow(tmp_path, tpch, live={"source": "part"})
    done = papilio_here("scale", "run", file, "--run-dir", tmp_path / "run", home=tmp_path, spark=spark)
    assert done.returncode == 2
    assert "no rows of `part` reach `ssb_lineorder`" in done.stderr


# ---------------------------------------------------------------- on Workers of its own


class Live:
    """`papilio scale run` as a process, and its log as it grows."""

    def __init__(self, file: Path, folder: Path, *options: str) -> None:
        self.run = folder / "run"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine", "scale", "run", str(file), "--json", "--run-dir", str(self.run), *options],
            cwd=ROOT,
            env=environment_for(folder / "home"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def events(self) -> list[Event]:
        log = self.run / "events.jsonl"
        return list(LogReader(log)) if log.exists() else []

    def await_(self, holds: Callable[[list[Event]], bool]) -> list[Event]:
        deadline = time.monotonic() + PATIENCE_S
        while not holds(events := self.events()):
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.2)
        return events

    def workers(self) -> list[psutil.Process]:
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it ended
                if "org.apache.spark.deploy.worker.Worker" in child.cmdline():
                    found.append(child)
        return found

    def summary(self) -> dict[str, Any]:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, err
        return json.loads(out)


@pytest.fixture
def live(tmp_path) -> Iterator[Callable[..., Live]]:
    started: list[Live] = []

    def start(file: Path, *options: str, folder: Path = tmp_path) -> Live:
        started.append(Live(file, folder, *options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.send_signal(signal.SIGINT)
            one.process.wait(60)
        one.process.communicate()


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lines") / "tpch"
    generate_tpch(folder, 0.05)
    return folder


def exact(summary: dict[str, Any], run: Path, data: Path) -> None:
    rows = summary["rows"]
    assert rows["generated"] == rows["warehouse"] > 0
    assert warehouse_rows(run) == expected_rows(data, rows["generated"])


def of_kind(events: list[Event], kind: type, **wanted: Any) -> list[Any]:
    return [
        event
        for event in events
        if isinstance(event, kind) and all(getattr(event, name) == value for name, value in wanted.items())
    ]


@pytest.mark.slow
def test_a_higher_rate_adds_a_worker_and_a_lower_one_removes_it(live, lines, tmp_path):
    # What one extraction brings at the high rate is too much for the queue of one node, and not for those of two.
    file = workflow(
        tmp_path,
        lines,
        rate=steps(150, (0, 150), (10, 1500), (85, 150)),
        extraction={"every_s": 15, "limit_s": 10},
        transformation={"queue_mb": 4.5, "nodes": {"max": 2}, "distribution": "on_demand"},
        warehouse={"every_s": 5, "nodes": {"max": 1}, "sessions": 0},
        live={"pack_rows": 2500, "worker_mb": 768},
        settle_s=10,
        hold_s=20,
    )
    run = live(file)
    summary = run.summary()
    events = run.events()
    exact(summary, run.run, lines)
    (out, *_) = of_kind(events, ScalingDecided, action="scale out", stage="transformation")
    assert "above its limit of 2.25 MB" in out.reason
    came = of_kind(events, NodeChanged, change="started", stage="transformation")[0]
    assert came.node == "worker-2"
    # With the second Worker the queue is within its limit again, at the rate that was too much for one.
    high = [event for event in of_kind(events, StagesSampled) if event.time > came.time and event.rows_s == 1500]
    assert high
    assert high[-1].measures["transformation"] <= 2.25
    gone = of_kind(events, NodeChanged, change="stopped", stage="transformation")[0]
    assert gone.node == "worker-2"
    assert gone.time > came.time
    assert summary["most_workers"] == 2
    assert summary["nodes"]["transformation"] == 1


@pytest.mark.slow
def test_with_a_second_worker_the_measured_time_returns_under_its_limit(live, lines, tmp_path):
    calm = {"every_s": 2, "nodes": {"max": 1}, "sessions": 0}
    size = {"pack_rows": 1000, "worker_mb": 768}
    # First, how many rows a second one Worker of this machine can do at this hour.
    alone = tmp_path / "alone"
    alone.mkdir()
    one = {"queue_mb": 1000, "nodes": {"max": 1}}
    file = heavier(workflow(alone, lines, rate=steps(12, (0, 15_000)), warehouse=calm, transformation=one, live=size))
    run = live(file, folder=alone)
    exact(run.summary(), run.run, lines)
    first, *others = of_kind(run.events(), LoadFinished)
    able = sum(load.rows for load in others) / (others[-1].time - first.time)

    # Then more than one can do, and less than two can; two cores must be free for that.
    high, limit_s = 1.4 * able, 8.0
    file = heavier(
        workflow(
            tmp_path,
            lines,
            rate=steps(130, (0, 0.3 * able), (10, high)),
            limit_s=limit_s,
            extraction={"every_s": 2, "limit_s": 2},
            transformation={
                "queue_mb": 2 * limit_s * able * 134e-6,  # so its limit is what one Worker does in that time
                "nodes": {"max": 2},
                "distribution": "on_demand",
            },
            warehouse=calm,
            live=size,
            settle_s=10,
            hold_s=1000,
        )
    )
    run = live(file)
    exact(run.summary(), run.run, lines)
    events = run.events()
    (came,) = of_kind(events, NodeChanged, change="started", stage="transformation")
    assert came.node == "worker-2"
    (out,) = of_kind(events, ScalingDecided, stage="transformation", action="scale out")
    assert "s to be transformed, more than their limit of 3 s" in out.reason  # what the others leave of eight
    rows_s = pytest.approx(high, rel=0.01)
    samples = [event for event in of_kind(events, StagesSampled) if event.rows_s == rows_s]
    assert max(event.etl_seconds for event in samples[-5:]) <= limit_s


@pytest.mark.slow
def test_a_worker_killed_while_rows_are_loaded_is_replaced_and_no_row_is_lost(live, lines, tmp_path):
    quiet = {"every_s": 2, "nodes": {"max": 1}, "sessions": 0}
    file = workflow(tmp_path, lines, rate=steps(20, (0, 5000)), warehouse=quiet, transformation={"queue_mb": 400})
    run = live(file)
    run.await_(lambda events: len(of_kind(events, LoadFinished)) >= 2)
    (worker,) = run.workers()
    os.kill(worker.pid, signal.SIGKILL)
    events = run.await_(lambda events: bool(of_kind(events, NodeChanged, change="started")))
    assert of_kind(events, NodeChanged, change="lost", node="worker-1")
    summary = run.summary()
    assert any("worker-1 died: it is replaced" in event.reason for event in of_kind(run.events(), ScalingDecided))
    exact(summary, run.run, lines)
    assert summary["rows"]["generated"] == 100_000


@pytest.mark.slow
def test_a_worker_that_does_not_start_is_told_and_tried_again(live, lines, tmp_path):
    low = {"queue_mb": 0.2, "nodes": {"max": 2}}  # one pack is too much
    quiet = {"every_s": 2, "nodes": {"max": 1}, "sessions": 0}
    file = workflow(tmp_path, lines, rate=steps(75, (0, 1000)), transformation=low, warehouse=quiet, settle_s=5,
                    hold_s=1000)  # fmt: skip
    run = live(file)
    run.await_(lambda events: bool(events) and bool(run.workers()))
    (worker,) = run.workers()
    home = Path(worker.cmdline()[worker.cmdline().index("--work-dir") + 1]).parent
    (home / "worker-2").write_text("no folder")  # in the way of its work folder
    summary = run.summary()
    changes = of_kind(run.events(), NodeChanged)
    (failed,) = [event for event in changes if event.change == "failed"]
    assert "worker-2" in (failed.reason or "")
    assert any(event.change == "started" and event.node == "worker-3" for event in changes)
    exact(summary, run.run, lines)


@pytest.mark.slow
def test_queries_go_on_while_the_live_warehouse_is_rebalanced_and_their_answers_are_the_same(live, lines, tmp_path):
    # The scaler looks when all rows of the first seconds are loaded, so nothing but the rebalancing happens after it.
    # So many facts take several times as long to move as a query takes.
    rate = steps(135, (0, 18_000), (40, 0), (100, 3000))
    limits = {"every_s": 2, "query_limit_s": 0.05, "nodes": {"max": 2}, "sessions": 2, "queries": ["Q1.1"]}
    run = live(workflow(tmp_path, lines, rate=rate, warehouse=limits, sample_s=65, settle_s=5, hold_s=100,
                        transformation={"queue_mb": 1000}))  # fmt: skip
    summary = run.summary()
    events = run.events()
    (moved,) = of_kind(events, Rebalanced)
    assert (moved.nodes_before, moved.nodes_after) == (1, 2)
    assert moved.bytes > 0 < moved.seconds
    (told,) = summary["rebalancings"]
    assert (told["nodes_before"], told["nodes_after"], told["seconds"]) == (1, 2, moved.seconds)
    assert told["moved_mb"] == pytest.approx(moved.bytes / 1e6, abs=0.05)
    asked = of_kind(events, QueryAnswered)
    # A rebalancing moves facts and changes none: the last version before it and its own answer the same.
    before = {event.digest for event in asked if event.version == moved.version - 1}
    after = {event.digest for event in asked if event.version == moved.version}
    assert len(before) == 1
    assert before == after
    assert len({event.digest for event in asked}) > 1  # loads do change the answer
    # And those that were asked and answered while facts moved are of the distribution that was.
    begun = moved.time - moved.seconds
    during = [event for event in asked if begun < event.time - event.seconds and event.time < moved.time]
    assert during
    assert {(event.version, event.digest) for event in during} == {(moved.version - 1, *before)}
    assert of_kind(events, ScalingDecided, stage="warehouse", action="unreachable")  # two nodes cannot do it either
    assert summary["unreachable"] == ["warehouse"]
    exact(summary, run.run, lines)


@pytest.mark.slow
def test_on_an_existing_cluster_spark_itself_allocates(live, lines, tmp_path):
    from engine.spark.cluster import StandaloneCluster

    file = workflow(
        tmp_path,
        lines,
        rate=steps(75, (0, 20_000), (20, 0)),
        extraction={"every_s": 5, "limit_s": 5},
        transformation={"queue_mb": 0.5},  # which would ask for Workers, were they ours to start
        warehouse={"every_s": 2, "nodes": {"max": 1}, "sessions": 0},
        live={"pack_rows": 10_000, "worker_mb": 768},
        sample_s=1,
        settle_s=2,
        hold_s=8,
    )
    with StandaloneCluster(workers=2, cores=1, memory_mb=768) as cluster:
        extra = cluster.settings().extra
        confs = [f"--spark-conf={key}={extra[key]}" for key in ("spark.authenticate", "spark.authenticate.secret")]
        run = live(file, "--master", cluster.url, *confs)
        run.await_(lambda events: bool(of_kind(events, LoadFinished)))
        again = papilio("scale", "run", file, "--run-dir", run.run, home=tmp_path)
        summary = run.summary()
        assert [worker.id for worker in cluster.workers()] == ["worker-1", "worker-2"]  # nobody touched them
    assert again.returncode == 2
    assert "a run is under way there, and a warehouse has one controller at a time" in again.stderr
    events = run.events()
    assert any("dynamic allocation" in event.message for event in of_kind(events, Remark))
    assert of_kind(events, ScalingDecided, stage="transformation") == []
    changes = of_kind(events, NodeChanged, stage="transformation")
    assert [(event.change, event.node) for event in changes[:2]] == [
        ("started", "executor-0"),
        ("started", "executor-1"),
    ]
    assert [event.nodes for event in changes[:2]] == [1, 2]
    gone = [event for event in changes if event.change == "stopped"]
    assert gone
    assert gone[-1].nodes == summary["nodes"]["transformation"] == 1
    assert summary["most_workers"] == 2
    exact(summary, run.run, lines)
