"""TPC-H to SSB in other tools: the same rows as Papilio's own derivation, and reasons where a tool cannot run here."""

from __future__ import annotations

import csv
import sys
from importlib import metadata

import psutil
import pytest

from engine.experiments import environments
from engine.experiments.data import generate_tpch
from engine.experiments.environments import NotThere, environment, run_job, version_in
from engine.experiments.etl_jobs import ssb_rows
from engine.experiments.ssb import derive_ssb

SCALE = 0.001


@pytest.fixture(scope="module")
def tpch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    generate_tpch(folder / "parquet", SCALE)
    generate_tpch(folder / "csv", SCALE, format="csv")
    return folder


def read(folder, table):
    with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_steps_on_single_rows_give_the_star_that_papilio_derives(tpch, tmp_path):
    from pyarrow import parquet

    derive_ssb(tpch / "parquet", tmp_path, 1)
    data = tpch / "csv"
    regions = {row["r_regionkey"]: row["r_name"] for row in read(data, "region")}
    nations = {row["n_nationkey"]: (row["n_name"], regions[row["n_regionkey"]]) for row in read(data, "nation")}
    orders = {row["o_orderkey"]: row for row in read(data, "orders")}
    costs: dict = {}
    for row in read(data, "partsupp"):
        offer = row["ps_partkey"], row["ps_suppkey"]
        costs[offer] = min(costs.get(offer, 10**9), ssb_rows.cents(row["ps_supplycost"]))
    made = {
        "customer": [
            ssb_rows.person(row, "c", nations) for row in read(data, "customer") if ssb_rows.is_kept(row["c_custkey"])
        ],
        "supplier": [
            ssb_rows.person(row, "s", nations) for row in read(data, "supplier") if ssb_rows.is_kept(row["s_suppkey"])
        ],
        "part": [ssb_rows.part(row) for row in read(data, "part")],
        "date": list(ssb_rows.days()),
        "lineorder": [
            ssb_rows.lineorder(row, orders[row["l_orderkey"]], costs[row["l_partkey"], row["l_suppkey"]], 200_000)
            for row in read(data, "lineitem")
        ],
    }
    for table, rows in made.items():
        expected = parquet.read_table(tmp_path / f"{table}.parquet").to_pylist()
        assert sorted(map(repr, rows)) == sorted(map(repr, expected)), table


@pytest.mark.parametrize(("amount", "cents"), [("12.34", 1234), ("0.07", 7), ("5", 500), ("17.5", 1750)])
def test_amounts_become_whole_cents(amount, cents):
    assert ssb_rows.cents(amount) == cents


def test_a_job_tells_its_figures_on_its_last_line_or_why_it_failed(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text("import sys\nprint('noise')\nprint('{\"seconds\": 1.5}')")
    bad.write_text("raise MemoryError('the machine is full')")
    assert run_job(sys.executable, good, "a", 1) == {"seconds": 1.5}
    with pytest.raises(NotThere, match=r"bad.py failed: MemoryError: the machine is full"):
        run_job(sys.executable, bad)


def test_a_job_that_takes_too_long_is_ended_and_says_so(tmp_path, monkeypatch):
    slow, note = tmp_path / "slow.py", tmp_path / "note"
    slow.write_text("import os, sys, time\nopen(sys.argv[1], 'w').write(str(os.getpid()))\ntime.sleep(60)")
    monkeypatch.setattr(environments, "RUN_SECONDS", 2)
    with pytest.raises(NotThere, match=r"slow.py failed: it was not done after 2 s and was ended"):
        run_job(sys.executable, slow, note)
    assert not psutil.pid_exists(int(note.read_text()))


def test_the_version_of_a_tool_is_that_of_its_environment():
    assert version_in(sys.executable, "duckdb") == metadata.version("duckdb")
    with pytest.raises(NotThere, match=r"no_such_tool tells no version: .*PackageNotFoundError"):
        version_in(sys.executable, "no_such_tool")


def test_a_tool_that_cannot_be_installed_or_imported_says_so(tmp_path, monkeypatch):
    said: list[str] = []
    home = tmp_path / "json"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(sys.executable)
    (home / "ready").touch()
    assert environment(tmp_path, "json", (), said.append) == home / "bin" / "python"
    (tmp_path / "json").rename(tmp_path / "no_such_tool")
    with pytest.raises(NotThere, match="no_such_tool cannot be imported: ModuleNotFoundError"):
        environment(tmp_path, "no_such_tool", (), said.append)
    monkeypatch.setattr(environments.sys, "executable", "/nowhere/python")
    with pytest.raises(NotThere, match="no virtual environment can be made"):
        environment(tmp_path, "other", (), said.append)
    assert said == [f"installing other into {tmp_path / 'other'}"]
