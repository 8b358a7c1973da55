"""Runs that are cancelled, killed, starved or disturbed.

Where a process is started, stopped or starved, the real program runs in one of its own; else the command line runs
here, on the Spark session that the tests share.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import duckdb
import psutil
import pytest

from engine.events import LogReader, RunFinished, SparkJob, UnitFinished, UnitStarted
from engine.spark.jobs import JobsTold
from tests.end_to_end.helpers import (
    ROOT,
    answer,
    environment_for,
    papilio,
    papilio_here,
    parquet_rows,
    snapshot,
    write,
)
from tests.spark.test_session import gone

SLOW = {  # a million rows, each compared with many others: runs for minutes
    "days": {"operator": "date_dimension", "first_day": "1900-01-01", "last_day": "2100-12-31"},
    "left": {"operator": "copy"},
    "right": {"operator": "copy"},
    "pairs": {"operator": "join", "kind": "cross", "keys": []},
    "again": {"operator": "join", "kind": "cross", "keys": [], "right_suffix": "_3"},
    "count": {"operator": "aggregate", "group": [], "aggregates": [{"name": "n", "expression": "count(*)"}]},
    "target": {"operator": "parquet_target", "path": "out/slow"},
    "quick": {"operator": "parquet_target", "path": "out/quick"},
}
SLOW_EDGES = [
    "days -> left.in", "days -> right.in", "left -> pairs.left", "right -> pairs.right", "pairs -> again.left",
    "right -> again.right", "again -> count.in", "count -> target.in", "left -> quick.in",
]  # fmt: skip


def start(*arguments, home, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "engine", *map(str, arguments)],
        cwd=ROOT, env=environment_for(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def wait_for(log, kind, process=None, seconds=120):
    """Wait until the run's log holds an event of a kind."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if log.exists() and any(isinstance(event, kind) for event in LogReader(log)):
            return
        assert process is None or process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    raise AssertionError(f"no {kind.__name__} in {seconds} s")


def old_target(folder):
    """A target that was loaded before, as Parquet."""
    target = folder / "out" / "quick"
    target.mkdir(parents=True)
    duckdb.sql("SELECT 1 AS old").write_parquet(str(target / "part-0.parquet"))
    return snapshot(folder / "out")


@pytest.fixture
def slow(tmp_path):
    return write(tmp_path, SLOW, SLOW_EDGES, name="slow")


def test_ctrl_c_cancels_within_two_seconds_and_leaves_the_old_targets(slow, tmp_path):
    before = old_target(tmp_path)
    process = start("run", slow, "--run-dir", tmp_path / "run", home=tmp_path / "home", start_new_session=True)
    wait_for(tmp_path / "run" / "events.jsonl", UnitFinished, process)
    begun = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()  # Spark ends with it
    assert process.returncode == 3, errors
    assert time.monotonic() - begun < 2
    assert snapshot(tmp_path / "out") == before, "nothing new, nothing gone"
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    (finished,) = [event for event in LogReader(tmp_path / "run" / "events.jsonl") if isinstance(event, RunFinished)]
    assert finished.status == "cancelled"
    assert answer(papilio_here("history", "--json", home=tmp_path / "home"))[0]["status"] == "cancelled"


def test_after_kill_9_spark_ends_the_targets_are_as_before_and_the_next_run_cleans_up(slow, tmp_path, spark):
    before = old_target(tmp_path)
    process = start("run", slow, "--run-dir", tmp_path / "run", home=tmp_path / "home")
    wait_for(tmp_path / "run" / "events.jsonl", UnitFinished, process)
    children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    process.communicate(timeout=30)
    assert children
    assert gone(children)
    visible = {name: data for name, data in snapshot(tmp_path / "out").items() if not name.startswith(".")}
    assert visible == before
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")], "something was staged"
    nodes = {"days": SLOW["days"], "left": SLOW["left"], "quick": SLOW["quick"]}
    again = write(tmp_path, nodes, ["days -> left.in", "left -> quick.in"], name="slow")
    done = papilio_here("run", again, "--json", home=tmp_path / "home", spark=spark)
    assert answer(done)["targets"]["quick"]["rows"] == 73414
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quick"]
    statuses = [run["status"] for run in answer(papilio_here("history", "--json", home=tmp_path / "home"))]
    assert statuses == ["done", "failed"]


def test_a_source_that_changes_while_it_is_read_fails_the_run_before_any_commit(tmp_path, spark):
    before = old_target(tmp_path)
    (tmp_path / "in.csv").write_text("n\n" + "\n".join(map(str, range(1000))))
    nodes = {
        "source": {"operator": "csv_source", "path": "in.csv", "columns": {"n": "int"}},
        "step": {"operator": "copy"},
        "quick": SLOW["quick"],
        "second": {"operator": "filter", "condition": "n > 10"},
        "other": {"operator": "parquet_target", "path": "out/other"},
        "third": {"operator": "filter", "condition": "n > 20"},
        "last": {"operator": "parquet_target", "path": "out/last"},
    }
    edges = [
        "source -> step.in", "step -> quick.in", "quick -> second.in", "second.match -> other.in", "other -> third.in",
        "third.match -> last.in",
    ]  # fmt: skip

    def change_the_source():  # after the first of three units that run one after the other
        wait_for(tmp_path / "run" / "events.jsonl", UnitFinished)
        (tmp_path / "in.csv").write_text("n\n5\n")

    changing = threading.Thread(target=change_the_source)
    changing.start()
    file = write(tmp_path, nodes, edges)
    done = papilio_here("run", file, "--run-dir", tmp_path / "run", home=tmp_path / "home", spark=spark)
    changing.join()
    assert done.returncode == 1, done.stderr
    assert "node `source`: the source changed while it was read" in done.stderr
    assert snapshot(tmp_path / "out") == before


def test_malformed_csv_rows_leave_by_the_reject_port_with_line_and_reason(tmp_path, spark):
    (tmp_path / "rows.csv").write_text("id,amount\n1,10\nx,20\n3,30,extra\n4\n5,50\n")
    nodes = {
        "source": {"operator": "csv_source", "path": "rows.csv", "columns": {"id": "int", "amount": "int"}},
        "good": {"operator": "copy"},
        "bad": {"operator": "copy"},
        "rows": {"operator": "parquet_target", "path": "out/rows"},
        "rejects": {"operator": "parquet_target", "path": "out/rejects"},
    }
    edges = ["source.out -> good.in", "source.reject -> bad.in", "good -> rows.in", "bad -> rejects.in"]
    summary = answer(papilio_here("run", write(tmp_path, nodes, edges), "--json", home=tmp_path / "home", spark=spark))
    assert parquet_rows(tmp_path / "out" / "rows") == [(1, 10), (5, 50)]
    found = duckdb.sql(f"SELECT line, record, reason FROM '{tmp_path}/out/rejects/*.parquet' ORDER BY line").fetchall()
    assert [(line, record) for line, record, _ in found] == [(3, "x,20"), (4, "3,30,extra"), (5, "4")]
    assert "id" in found[0][2]
    assert "3" in found[1][2]
    assert "1" in found[2][2]
    assert summary["nodes"]["rejects"]["rows_in"] == 3


def test_malformed_rows_that_no_port_takes_stop_the_run(tmp_path, spark):
    before = old_target(tmp_path)
    (tmp_path / "rows.csv").write_text("id\n1\nx\n")
    nodes = {
        "source": {"operator": "csv_source", "path": "rows.csv", "columns": {"id": "int"}},
        "step": {"operator": "copy"},
        "quick": SLOW["quick"],
    }
    file = write(tmp_path, nodes, ["source -> step.in", "step -> quick.in"])
    done = papilio_here("run", file, home=tmp_path / "home", spark=spark)
    assert done.returncode == 1
    assert "test.butterfly.yaml: node `source`: 1 of 2 rows were refused, and nothing reads the port" in done.stderr
    assert snapshot(tmp_path / "out") == before
    allowed = papilio_here("run", file, "--json", "--set", "source.max_refused=1", home=tmp_path / "home", spark=spark)
    assert answer(allowed)["nodes"]["source"]["refused"] == {"reject": 1}


def test_refused_rows_are_counted_also_where_no_row_is_left_to_join(tmp_path, spark):
    (tmp_path / "rows.csv").write_text("id,v\nx,1\ny,2\n")
    (tmp_path / "more.csv").write_text("key,w\n1,1\n2,2\n")
    nodes = {
        "rows": {"operator": "csv_source", "path": "rows.csv", "columns": {"id": "int", "v": "int"}},
        "more": {"operator": "csv_source", "path": "more.csv", "columns": {"key": "int", "w": "int"}},
        "join": {"operator": "join", "keys": [{"left": "id", "right": "key"}], "form": "merge"},
        "target": {"operator": "parquet_target", "path": "out/joined"},
    }
    file = write(tmp_path, nodes, ["rows -> join.left", "more -> join.right", "join -> target.in"])
    done = papilio_here("run", file, home=tmp_path / "home", spark=spark)
    assert done.returncode == 1
    assert "node `rows`: 2 of 2 rows were refused" in done.stderr


def test_refused_rows_are_counted_also_where_no_row_is_needed_behind_them(tmp_path, spark):
    (tmp_path / "rows.csv").write_text("id\n1\nx\n2\n")
    nodes = {
        "source": {"operator": "csv_source", "path": "rows.csv", "columns": {"id": "int"}},
        "none": {"operator": "filter", "condition": "id > 1 AND false"},
        "target": {"operator": "parquet_target", "path": "out/rows"},
    }
    file = write(tmp_path, nodes, ["source -> none.in", "none -> target.in"])
    done = papilio_here("run", file, home=tmp_path / "home", spark=spark)
    assert done.returncode == 1, done.stdout
    assert "node `source`: 1 of 3 rows were refused" in done.stderr


def test_a_result_that_several_read_is_computed_once_and_all_ports_in_one_job(tmp_path, tpch, spark):
    nodes = {
        "lines": {"operator": "parquet_source", "path": str(tpch / "lineitem.parquet")},
        "sort": {"operator": "deduplicate", "keys": ["l_orderkey"], "order": [{"column": "l_linenumber"}]},
        "sizes": {"operator": "router", "routes": [
            {"port": "large", "condition": "l_quantity > 40"}, {"port": "small", "condition": "l_quantity < 10"}]},
        "a": {"operator": "aggregate", "group": [], "aggregates": [{"name": "n", "expression": "count(*)"}]},
        "b": {"operator": "aggregate", "group": [], "aggregates": [{"name": "n", "expression": "sum(l_quantity)"}]},
        "c": {"operator": "copy"}, "d": {"operator": "copy"},
        "ta": {"operator": "parquet_target", "path": "out/a"}, "tb": {"operator": "parquet_target", "path": "out/b"},
        "tc": {"operator": "parquet_target", "path": "out/c"}, "td": {"operator": "parquet_target", "path": "out/d"},
    }  # fmt: skip
    edges = [
        "lines -> sort.in", "sort.unique -> sizes.in", "sizes.large -> a.in", "sizes.large -> b.in", "sizes.small -> c.in",
        "sizes.rest -> d.in", "a -> ta.in", "b -> tb.in", "c -> tc.in", "d -> td.in",
    ]  # fmt: skip
    file = write(tmp_path, nodes, edges, roots={"here": ".", "data": str(tpch)})
    summary = answer(papilio_here("run", file, "--json", home=tmp_path / "home", spark=spark))
    assert [id_ for id_, unit in summary["units"].items() if unit["held"] == "staged"] == ["sizes"]
    first = f"SELECT * FROM '{tpch}/lineitem.parquet' WHERE l_linenumber = 1"
    counts = duckdb.sql(
        f"SELECT count(*) FILTER (l_quantity > 40), sum(l_quantity) FILTER (l_quantity > 40), "
        f"count(*) FILTER (l_quantity < 10), count(*) FILTER (l_quantity BETWEEN 10 AND 40) FROM ({first})"
    ).fetchall()[0]
    assert parquet_rows(tmp_path / "out" / "a") == [(counts[0],)]
    assert parquet_rows(tmp_path / "out" / "b") == [(counts[1],)]
    assert summary["targets"]["tc"]["rows"] == counts[2]
    assert summary["targets"]["td"]["rows"] == counts[3]
    assert summary["nodes"]["sizes"]["rows_out"] == counts[0] + counts[2] + counts[3]


def test_independent_parts_run_at_the_same_time_each_in_a_fair_pool_of_its_own(tmp_path, spark):
    (tmp_path / "rows.csv").write_text("id\n1\n2\n")
    nodes = {}
    for name in ("one", "other"):
        nodes[f"{name}_source"] = {"operator": "csv_source", "path": "rows.csv", "columns": {"id": "int"}}
        nodes[f"{name}_step"] = {"operator": "copy"}
        nodes[f"{name}_target"] = {"operator": "parquet_target", "path": f"out/{name}"}
    edges = [edge for name in ("one", "other")
             for edge in (f"{name}_source -> {name}_step.in", f"{name}_step -> {name}_target.in")]  # fmt: skip
    file = write(tmp_path, nodes, edges)
    folder = tmp_path / "run"
    summary = answer(papilio_here("run", file, "--json", "--run-dir", folder, home=tmp_path / "home", spark=spark))
    kinds = [type(event) for event in LogReader(folder / "events.jsonl")]
    assert kinds[: kinds.index(UnitFinished)].count(UnitStarted) == len(summary["units"]) == 2
    context = spark.sparkContext
    assert context.getConf().get("spark.scheduler.mode") == "FAIR"
    pools = context._jsc.sc().getAllPools()
    assert summary["units"].keys() <= {pools.apply(at).name() for at in range(pools.length())}


def test_append_and_upsert_keep_what_they_should(tmp_path, spark):
    (tmp_path / "rows.csv").write_text("id,v\n1,a\n2,b\n")
    nodes = {
        "source": {"operator": "csv_source", "path": "rows.csv", "columns": {"id": "int", "v": "string"}},
        "step": {"operator": "copy"},
        "log": {"operator": "parquet_target", "path": "out/log", "mode": "append"},
        "state": {"operator": "parquet_target", "path": "out/state", "mode": "upsert", "key": ["id"]},
    }
    file = write(tmp_path, nodes, ["source -> step.in", "step -> log.in", "step -> state.in"])
    assert papilio_here("run", file, home=tmp_path / "home", spark=spark).returncode == 0
    (tmp_path / "rows.csv").write_text("id,v\n2,B\n3,c\n")
    assert papilio_here("run", file, home=tmp_path / "home", spark=spark).returncode == 0
    assert parquet_rows(tmp_path / "out" / "log") == [(1, "a"), (2, "B"), (2, "b"), (3, "c")]
    assert parquet_rows(tmp_path / "out" / "state") == [(1, "a"), (2, "B"), (3, "c")]


def test_a_full_disk_fails_the_run_and_leaves_the_old_target(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a small disk can be mounted by root only")
    try:
        before = old_target(disk)
        nodes = {
            "days": SLOW["days"], "left": SLOW["left"],
            "noise": {"operator": "derive", "columns": [{"name": "x", "expression": "sha2(cast(date as string), 512)"}]},
            "quick": {"operator": "parquet_target", "path": str(disk / "out" / "quick")},
        }  # fmt: skip
        file = write(
            tmp_path, nodes, ["days -> left.in", "left -> noise.in", "noise -> quick.in"], roots={"disk": str(disk)}
        )
        done = papilio("run", file, home=tmp_path / "home")
        assert done.returncode == 4, done.stderr
        assert "test.butterfly.yaml: node `quick`: the disk is full" in done.stderr
        assert "ERROR" not in done.stderr, "Spark's own lines are in the run's log"
        assert snapshot(disk / "out") == before
    finally:
        subprocess.run(["umount", disk], check=True)


def test_filters_and_projections_reach_the_parquet_scan(spark, tpch, tmp_path):
    from engine.model.binding import bind
    from engine.model.file import load
    from engine.operators import catalogue
    from engine.partition.fused import fuse
    from engine.spark.compile import Compiler

    nodes = {
        "lines": {"operator": "parquet_source", "path": str(tpch / "lineitem.parquet")},
        "some": {"operator": "filter", "condition": "l_quantity > 49"},
        "less": {"operator": "select", "columns": [{"column": "l_orderkey"}, {"column": "l_quantity"}]},
        "target": {"operator": "parquet_target", "path": "out/x"},
    }
    file = write(
        tmp_path, nodes, ["lines -> some.in", "some -> less.in", "less -> target.in"], roots={"h": ".", "d": str(tpch)}
    )
    bound = bind(load(file), catalogue())
    plan = fuse(bound)

    def nothing_held(*_):
        raise AssertionError("the unit reads its source only")

    frame = Compiler(bound, plan, spark, bound.place(), nothing_held).compile(plan.units[0]).frames["out"]
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [IsNotNull(l_quantity), GreaterThan(l_quantity" in text
    assert "ReadSchema: struct<l_orderkey:bigint,l_quantity:decimal(15,2)>" in text


def test_events_on_standard_output_are_json_lines_and_nothing_else(tmp_path, spark):
    nodes = {"days": {**SLOW["days"], "last_day": "1900-01-31"}, "left": SLOW["left"], "quick": SLOW["quick"]}
    file = write(tmp_path, nodes, ["days -> left.in", "left -> quick.in"])
    done = papilio_here("run", file, "--events", "-", home=tmp_path / "home", spark=spark)
    kinds = [json.loads(text)["event"] for text in done.stdout.splitlines()]
    assert kinds[0] == "run-started"
    assert kinds[-1] == "run-finished"


@pytest.mark.parametrize("granularity", ["fused", "operator"])
def test_nothing_stands_behind_the_line_that_says_how_a_run_ended(spark, tmp_path, monkeypatch, granularity):
    class Late(JobsTold):
        """Spark's last word comes late, and again and again."""

        def _follow(self, spark, run, first):
            self._stop.wait()
            for _ in range(20):
                self._tell(SparkJob(job=0, unit="u", status="running", started=1.0, ended=None, stages=[]))
                time.sleep(0.01)

    monkeypatch.setattr("engine.spark.runner.JobsTold", Late)
    duckdb.sql(f"COPY (SELECT range AS n FROM range(10)) TO '{tmp_path}/rows.parquet'")
    nodes = {
        "rows": {"operator": "parquet_source", "path": "rows.parquet"},
        "bad": {"operator": "filter", "condition": "assert_true(n < 5) IS NULL"},
        "out": {"operator": "parquet_target", "path": "out"},
    }
    file = write(tmp_path, nodes, ["rows -> bad", "bad.match -> out"])
    options = ("--granularity", granularity, "--policy", "rr", "--run-dir", tmp_path / "run")
    done = papilio_here("run", file, *options, home=tmp_path / "home", spark=spark)
    assert done.returncode == 1
    time.sleep(0.3)
    kinds = [json.loads(line)["event"] for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert kinds[-1] == "run-finished"
    assert "spark-job" in kinds


def test_rows_that_two_units_compute_are_counted_once(spark, tmp_path):
    duckdb.sql(f"COPY (SELECT nullif(range % 4, 0) AS n FROM range(100)) TO '{tmp_path}/rows.parquet'")
    nodes = {
        "rows": {"operator": "parquet_source", "path": "rows.parquet"},
        "good": {"operator": "not_null", "columns": ["n"]},
        "kept": {"operator": "parquet_target", "path": "out/kept"},
        "count": {"operator": "aggregate", "group": ["n"], "aggregates": [{"name": "rows", "expression": "count(*)"}]},
        "counted": {"operator": "parquet_target", "path": "out/counted"},
    }
    file = write(tmp_path, nodes, ["rows -> good", "good.out -> kept", "good.out -> count", "count -> counted"])
    done = papilio_here("run", file, "--json", home=tmp_path / "home", spark=spark)
    summary = answer(done)
    assert {unit for unit, told in summary["units"].items() if "good" in told["nodes"]} == {"kept", "counted"}
    assert summary["nodes"]["good"]["refused"] == {"quarantine": 25}
    assert summary["targets"]["kept"]["rows"] == 75
    assert parquet_rows(tmp_path / "out/counted") == [(1, 25), (2, 25), (3, 25)]


def test_too_large_a_share_of_refused_rows_stops_the_run_and_leaves_the_old_target(spark, tmp_path):
    before = old_target(tmp_path)
    (tmp_path / "rows.csv").write_text("n\n" + "".join(f"{number}\n" for number in (1, 2, 3, -1, -2)))
    nodes = {
        "rows": {"operator": "csv_source", "path": "rows.csv", "columns": {"n": "int"}},
        "good": {
            "operator": "validate",
            "rules": [{"name": "positive", "condition": "n > 0"}],
            "max_refused_percent": 39.9,
        },
        "quick": {"operator": "parquet_target", "path": "out/quick"},
    }
    file = write(tmp_path, nodes, ["rows -> good", "good.out -> quick"])
    done = papilio_here("run", file, home=tmp_path / "home", spark=spark)
    assert done.returncode == 1
    assert "node `good`" in done.stderr
    assert "40.00 % of the rows (2 of 5) were refused, and 39.9 % are allowed" in done.stderr
    assert snapshot(tmp_path / "out") == before


def test_what_a_run_saw_of_its_sources_is_known_to_check_when_they_are_gone(spark, tmp_path):
    source = tmp_path / "rows.parquet"
    duckdb.sql("SELECT 1::INT AS n, DATE '2026-01-01' AS day").write_parquet(str(source))
    nodes = {
        "rows": {"operator": "parquet_source", "path": "rows.parquet"},
        "named": {"operator": "derive", "columns": [{"name": "next", "expression": "n + 1"}]},
        "target": {"operator": "parquet_target", "path": "out"},
    }
    file = write(tmp_path, nodes, ["rows -> named", "named -> target"])

    def schemas(home):
        return json.loads(papilio_here("check", file, "--json", home=home).stdout)["schemas"]

    expected = {"rows.out": {"n": "int", "day": "date"}, "named.out": {"n": "int", "day": "date", "next": "int"}}
    assert (
        answer(papilio_here("run", file, "--json", home=tmp_path / "home", spark=spark))["targets"]["target"]["rows"]
        == 1
    )
    source.unlink()
    assert expected.items() <= schemas(tmp_path / "home").items()
    assert "rows.out" not in schemas(tmp_path / "another"), "a home that saw no run does not know"
