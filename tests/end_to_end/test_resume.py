"""A run is killed at any moment, and finished from where it was."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import duckdb
import pytest

from engine.spark.packs import memory_folder
from tests.end_to_end.helpers import ROOT, answer, environment_for, papilio_here, parquet_rows, write
from tests.end_to_end.test_scheduled import EDGES, NODES, data, fused, prepared, targets  # noqa: F401 - fixtures


def kill_after(steps, file, folder, *options):
    """Run until so many steps are written down, and a moment longer, then kill the program and its Spark."""
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", "run", str(file), "--run-dir", str(folder / "run"), *map(str, options)],
        cwd=ROOT, env=environment_for(folder / "home"), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    progress = folder / "run" / "progress.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if progress.exists() and progress.read_bytes().count(b"\n") > steps:
            break
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.3))
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, f"it ended before it was killed: {errors}"


def rows_read(steps, unit):
    """The rows that a unit read of its source, in all of these steps."""
    return sum(step["rows_read"] for step in steps if step.get("unit") == unit and step.get("step") == "read")


def the_run(folder):
    first = (folder / "run" / "events.jsonl").read_text().splitlines()[0]
    return json.loads(first)["run"]


@pytest.mark.parametrize(
    ("granularity", "policy", "steps"),
    [
        pytest.param("operator", "rr", 25, marks=pytest.mark.slow),
        pytest.param("operator", "rr", 0, marks=pytest.mark.slow),
        pytest.param("fused", "mixed", 3, marks=pytest.mark.slow),
        pytest.param("operator", "mm", 60, marks=pytest.mark.slow),
        pytest.param("tree", "mixed", 8, marks=pytest.mark.slow),
        pytest.param("subflow", "mc", 15, marks=pytest.mark.slow),
        pytest.param("operator", "mixed", 1, marks=pytest.mark.slow),
        pytest.param("operator", "mc", 40, marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_is_finished_from_its_packs(spark, data, fused, tmp_path, granularity, policy, steps):  # noqa: F811
    file = prepared(data, tmp_path)
    options = [
        "--granularity",
        granularity,
        "--policy",
        policy,
        "--queue-packs",
        3,
        "--pack-rows",
        500,
        "--slot-ms",
        100,
    ]
    kill_after(steps, file, tmp_path, *options)
    run = the_run(tmp_path)
    before = [json.loads(line) for line in (tmp_path / "run" / "progress.jsonl").read_text().splitlines()]
    home = tmp_path / "home"
    # Which granularity and policy it had is known; they need not be said again.
    summary = answer(papilio_here("run", file, "--resume", run, "--json", home=home, spark=spark))
    assert (summary["run"], summary["resumed"], summary["status"]) == (run, True, "done")
    assert (summary["granularity"], summary["policy"]) == (granularity, policy)
    expected, fused_summary = fused
    found = targets(tmp_path)
    for name, rows in expected.items():
        assert found[name] == rows, f"{name} differs"
    for node, target in fused_summary["targets"].items():
        assert summary["targets"][node]["rows"] == target["rows"]
    after = [json.loads(line) for line in (tmp_path / "run" / "progress.jsonl").read_text().splitlines()]
    assert after[: len(before) - 1] == before[:-1], "what was done stays done"
    done = [step["unit"] for step in before[1:-1] if step.get("exhausted")]
    again = [step["unit"] for step in after[len(before) :] if step.get("step") == "read"]
    assert not set(done) & set(again), "a source that was read to its end is not read again"
    if granularity != "fused":
        assert rows_read(after, "partsupp") == 8000, "nor is what was read of one that was not"
    assert not (tmp_path / "run" / "packs").exists()
    assert not memory_folder(run).exists()


def test_a_run_that_ended_or_changed_is_not_resumed(spark, data, tmp_path):  # noqa: F811
    file = prepared(data, tmp_path)
    home = tmp_path / "home"
    summary = answer(papilio_here("run", file, "--json", home=home, spark=spark))
    ended = papilio_here("run", file, "--resume", summary["run"], home=home)
    assert ended.returncode == 2
    assert "has ended (done)" in ended.stderr
    unknown = papilio_here("run", file, "--resume", "20200101-000000-abcdef", home=home)
    assert unknown.returncode == 2
    assert "there is no such run" in unknown.stderr


def test_a_run_killed_before_it_had_written_anything_down_begins_again(spark, data, fused, tmp_path, monkeypatch):  # noqa: F811
    file = prepared(data, tmp_path)
    home = tmp_path / "home"
    with monkeypatch.context() as patch:
        patch.setattr("engine.spark.progress.Progress.begin", Killed.now)
        for name in ("_give_up", "_finish"):
            patch.setattr("engine.spark.runner.Run." + name, lambda self, *told: None)
        patch.setattr("engine.spark.launch._keep", keep_first(patch))
        with pytest.raises(Killed):
            papilio_here("run", file, "--granularity", "tree", "--policy", "mc", "--run-dir", tmp_path / "run",
                         home=home, spark=spark)  # fmt: skip
    run = the_run(tmp_path)
    summary = answer(papilio_here("run", file, "--resume", run, "--json", home=home, spark=spark))
    assert (summary["run"], summary["status"]) == (run, "done")
    assert (summary["granularity"], summary["policy"]) == ("tree", "mc")
    assert targets(tmp_path) == fused[0]


class Killed(BaseException):
    """In place of a kill: nothing is cleaned up behind it."""

    @staticmethod
    def now(*given):
        """Somebody does something, and is killed over it."""
        raise Killed


@contextlib.contextmanager
def killed_in_the_commit(monkeypatch):
    """A run is killed when one of its targets has changed and the others have not."""
    from engine.spark.targets import FileDelivery

    committed = []

    def commit_one(self):
        if committed:
            raise Killed
        committed.append(self.node)
        real(self)

    real = FileDelivery.commit
    with monkeypatch.context() as patch:
        patch.setattr(FileDelivery, "commit", commit_one)
        patch.setattr("engine.spark.launch._keep", keep_first(patch))
        with pytest.raises(Killed):
            yield


@contextlib.contextmanager
def killed_as_spark_starts(monkeypatch, gives_up=False):
    """A run is killed while Spark starts; `gives_up`: it had failed there, and was killed before the store heard."""
    from engine.spark.runner import Run

    def killed(self):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Run, "_open_spark", killed)
        patch.setattr(Run, "_finish", lambda self, *told: None)
        if not gives_up:
            patch.setattr(Run, "_give_up", lambda self: None)
        with pytest.raises(Killed):
            yield


@contextlib.contextmanager
def killed_in_the_middle_of_a_source(monkeypatch, unit):
    """A run is killed when two turns of a source are written down, and it has more to read."""
    from engine.spark.pack_run import PackRun
    from engine.spark.runner import Run

    def end_turn(self, turn):
        real(self, turn)
        if turn.activation.unit.id == unit and turn.activation.step.value == "read":
            read.append(turn.outcome.exhausted)
            if len(read) == 2:
                raise Killed

    read = []
    real = PackRun._end_turn
    with monkeypatch.context() as patch:
        patch.setattr(PackRun, "_end_turn", end_turn)
        patch.setattr(PackRun, "_clean_up", lambda self: None)
        for name in ("_give_up", "_finish"):
            patch.setattr(Run, name, lambda self, *told: None)
        with pytest.raises(Killed):
            yield
    assert not any(read), "there was more to read"


def read_in_two_goes(spark, monkeypatch, folder, file, *options):
    """A run is killed in the middle of `rows` and resumed: the rows read before and in all, and the summary."""
    home, progress = folder / "home", folder / "run" / "progress.jsonl"
    with killed_in_the_middle_of_a_source(monkeypatch, "rows"):
        papilio_here("run", file, "--run-dir", folder / "run", *options, home=home, spark=spark)
    before = [json.loads(line) for line in progress.read_text().splitlines()]
    run = the_run(folder)
    summary = answer(papilio_here("run", file, "--resume", run, "--json", home=home, spark=spark))
    after = [json.loads(line) for line in progress.read_text().splitlines()]
    assert after[: len(before)] == before
    assert not memory_folder(run).exists()
    return rows_read(before, "rows"), rows_read(after, "rows"), summary


def test_a_source_that_was_half_read_when_its_run_was_killed_goes_on_where_it_was(spark, tmp_path, monkeypatch):
    with duckdb.connect() as connection:
        rows = "SELECT range AS n FROM range(12288)"
        connection.execute(f"COPY ({rows}) TO '{tmp_path}/rows.parquet' (ROW_GROUP_SIZE 2048)")
    nodes = {
        "rows": {"operator": "parquet_source", "path": "${data}/rows.parquet"},
        "even": {"operator": "filter", "condition": "n % 2 = 0"},
        "out": {"operator": "parquet_target", "path": "${out}/out"},
    }
    roots = {"data": str(tmp_path), "out": str(tmp_path / "out")}
    file = write(tmp_path, nodes, ["rows -> even.in", "even.match -> out.in"], roots=roots)
    options = ("--granularity", "operator", "--policy", "rr", "--pack-rows", 2048, "--queue-packs", 2)
    half, read, summary = read_in_two_goes(spark, monkeypatch, tmp_path, file, *options)
    assert 0 < half < 12288
    assert read == summary["nodes"]["rows"]["rows_out"] == 12288
    assert parquet_rows(tmp_path / "out" / "out") == sorted([(n,) for n in range(0, 12288, 2)], key=repr)


def test_lines_that_were_half_read_when_their_run_was_killed_go_on_where_they_were(spark, tmp_path, monkeypatch):
    """Several files of lines, one of them cut; refused lines keep the numbers that they have in their files."""
    monkeypatch.setattr("engine.spark.line_slices.LEAST_BYTES", 4000)
    monkeypatch.setattr("engine.spark.line_slices.RUN_PACKS", 0)
    (tmp_path / "in").mkdir()
    bad = []
    for name, rows in (("a file+%41.csv", range(100)), ("b.csv", range(100, 6000)), ("c.csv", range(6000, 6100))):
        lines = ["n", *("x" if n % 7 == 0 else str(n) for n in rows)]
        bad += [(at, str(tmp_path / "in" / name), "x") for at, line in enumerate(lines, 1) if line == "x"]
        (tmp_path / "in" / name).write_text("\n".join(lines) + "\n")
    nodes = {
        "rows": {"operator": "csv_source", "path": "${data}/in", "columns": {"n": "bigint"}},
        "even": {"operator": "filter", "condition": "n % 2 = 0"},
        "out": {"operator": "parquet_target", "path": "${out}/out"},
        "few": {"operator": "select", "columns": [{"column": name} for name in ("line", "file", "record")]},
        "bad": {"operator": "parquet_target", "path": "${out}/bad"},
    }
    roots = {"data": str(tmp_path), "out": str(tmp_path / "out")}
    edges = ["rows.out -> even.in", "even.match -> out.in", "rows.reject -> few.in", "few -> bad.in"]
    file = write(tmp_path, nodes, edges, roots=roots)
    options = ("--granularity", "operator", "--policy", "rr", "--pack-rows", 500, "--queue-packs", 4)
    half, read, summary = read_in_two_goes(spark, monkeypatch, tmp_path, file, *options)
    good = [n for n in range(6100) if n % 7]
    assert 0 < half < len(good)
    assert (read, summary["nodes"]["rows"]["rows_out"]) == (len(good), 6100)
    assert parquet_rows(tmp_path / "out" / "out") == sorted([(n,) for n in good if n % 2 == 0], key=repr)
    assert parquet_rows(tmp_path / "out" / "bad") == sorted(bad, key=repr)


def test_a_run_killed_twice_the_second_time_in_its_commit_is_brought_forward(spark, data, fused, tmp_path, monkeypatch):  # noqa: F811
    file, home = prepared(data, tmp_path), tmp_path / "home"
    with killed_as_spark_starts(monkeypatch):
        papilio_here("run", file, "--run-dir", tmp_path / "run", home=home, spark=spark)
    with killed_in_the_commit(monkeypatch):
        papilio_here("run", file, "--resume", the_run(tmp_path), home=home, spark=spark)
    assert not (tmp_path / "out" / "sums").exists() or not (tmp_path / "out" / "large.csv").exists(), "half of them"
    summary = answer(papilio_here("run", file, "--resume", the_run(tmp_path), "--json", home=home))
    assert (summary["status"], summary["resumed"]) == ("done", True)
    assert targets(tmp_path) == fused[0]
    assert not [found for found in (tmp_path / "out").iterdir() if found.name.startswith(".")], "nothing staged is left"


def test_a_run_that_had_given_up_before_it_was_killed_is_not_resumed(spark, data, tmp_path, monkeypatch):  # noqa: F811
    file, home = prepared(data, tmp_path), tmp_path / "home"
    with killed_as_spark_starts(monkeypatch, gives_up=True):
        papilio_here("run", file, "--run-dir", tmp_path / "run", home=home, spark=spark)
    again = papilio_here("run", file, "--resume", the_run(tmp_path), home=home, spark=spark)
    assert again.returncode == 2
    assert "had failed or was cancelled before it was killed; run it anew" in again.stderr


def test_a_run_killed_while_its_targets_changed_is_brought_forward(spark, data, fused, tmp_path, monkeypatch):  # noqa: F811
    file, home = prepared(data, tmp_path), tmp_path / "home"
    with killed_in_the_commit(monkeypatch):
        papilio_here("run", file, "--run-dir", tmp_path / "run", home=home, spark=spark)
    summary = answer(papilio_here("run", file, "--resume", the_run(tmp_path), "--json", home=home))
    assert (summary["status"], summary["resumed"]) == ("done", True)
    expected, fused_summary = fused
    assert summary["targets"].keys() == fused_summary["targets"].keys()
    found = targets(tmp_path)
    for name, rows in expected.items():
        assert found[name] == rows, f"{name} differs"


def keep_first(patch):
    """The store hears that the run began, and nothing more: as after a kill."""
    from engine.spark import launch

    kept = launch._keep

    def keep(run, *rest):
        if run.summary.status == "running":
            kept(run, *rest)

    return keep
