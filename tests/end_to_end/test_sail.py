"""The same files on Sail, over Spark Connect: the same targets, no JVM, and a clear word where it cannot be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import psutil
import pytest

from engine.operators import catalogue
from tests.end_to_end.helpers import ROOT, WORKFLOWS, answer, environment_for, papilio, papilio_here
from tests.end_to_end.test_workflows import SHIPPED, bound_as, compare, data_of, planned, ssb  # noqa: F401 - fixtures

RUNS = [
    name for name in SHIPPED if all(operator.on_sail for operator in bound_as(name, Path("nowhere")).operators.values())
]


def run_on_sail(name: str, data: Path, home: Path, *options: object) -> subprocess.CompletedProcess:
    return papilio(
        "run", WORKFLOWS / f"{name}.butterfly.yaml", "--master", "sail", "--json", "--param", f"data_folder={data}",
        "--param", f"warehouse_folder={home}/out", "--run-dir", home / "run", *options, home=home,
    )  # fmt: skip


@pytest.mark.slow
def test_fig1_on_sail_loads_what_duckdb_computes_and_a_second_run_replaces_it(tpch, dirty_tpch, tmp_path):
    dirty = answer(run_on_sail("fig1", dirty_tpch, tmp_path))
    with duckdb.connect() as oracle:
        empty = "ps_availqty IS NULL OR ps_supplycost IS NULL"
        counted = f"SELECT count(*), count(*) FILTER ({empty}) FROM '{dirty_tpch}/partsupp.parquet'"
        total, refused = oracle.execute(counted).fetchone()
    assert dirty["nodes"]["not_null_partsupp"]["refused"] == {"quarantine": refused}
    assert dirty["targets"]["dw_partsupp"]["rows"] == total - refused
    clean = answer(run_on_sail("fig1", tpch, tmp_path, "--run-dir", tmp_path / "again"))
    compare("fig1", clean["targets"], tpch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RUNS if name != "fig1"])
def test_the_targets_of_a_shipped_workflow_are_duckdb_s(name, data_of, tmp_path):  # noqa: F811
    data = data_of(name)
    compare(name, answer(run_on_sail(name, data, tmp_path))["targets"], data)


def test_most_shipped_workflows_run_on_sail():
    assert len(RUNS) > len(SHIPPED) / 2


@pytest.mark.slow
def test_every_operator_said_to_run_on_sail_gives_the_rows_of_its_tests_there():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/operators",
         "--ignore", "tests/operators/test_files.py", "--ignore", "tests/operators/test_databases.py",
         # what a join is asked for is seen in classic Spark's plan only
         "-k", "not a_form_changes_how_a_join_is_done",
         "-W", "ignore:WARN WindowExpression:UserWarning"],
        cwd=ROOT, check=False, env={**os.environ, "PAPILIO_TEST_MASTER": "sail"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout


def refused_on_sail(name: str, data: Path, home: Path, *options: object) -> str:
    """What is said before Sail is started."""
    done = papilio_here(
        "run", WORKFLOWS / f"{name}.butterfly.yaml", "--master", "sail", "--param", f"data_folder={data}",
        "--param", f"warehouse_folder={home}/out", "--run-dir", home / "run", *options, home=home,
    )  # fmt: skip
    assert done.returncode == 2
    return done.stderr


def test_an_operator_that_sail_does_not_run_as_spark_does_is_refused_by_name(tpch, tmp_path):
    assert not catalogue()["date_dimension"].on_sail
    said = refused_on_sail("tpch_to_ssb", tpch, tmp_path)
    assert "node `calendar`: `date_dimension` is not known to give on Sail what it gives on Spark" in said
    assert not (tmp_path / "out").exists()


def test_row_packs_are_refused_on_sail(tpch, tmp_path):
    assert "row packs take classic Spark" in refused_on_sail("fig1", tpch, tmp_path, "--granularity", "operator")


@pytest.mark.slow
def test_ctrl_c_on_sail_leaves_the_targets_as_they_were(tpch, tmp_path):
    answer(run_on_sail("mixed_extract" if "mixed_extract" in RUNS else "fork", tpch, tmp_path))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()}
    events = tmp_path / "second" / "events.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "engine", "run", WORKFLOWS / "fork.butterfly.yaml", "--master", "sail",
         "--param", f"data_folder={tpch}", "--param", f"warehouse_folder={tmp_path}/out", "--run-dir", events.parent],
        cwd=ROOT, env=environment_for(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not (events.exists() and "unit-started" in events.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 3, process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    assert psutil.Process().children(recursive=True) == []
