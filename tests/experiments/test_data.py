"""`papilio data tpch`: the tables are TPC-H's, and a folder holds all of them or none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from engine.errors import BadInput, EnvironmentProblem
from engine.experiments import data
from engine.experiments.data import TPCH_TABLES, DataSet, generate_tpch
from tests.end_to_end.helpers import papilio_here

SCALE = 0.01  # of the data that tests share

PROGRAM = "from engine.cli import main; main()"

#: Rows at scale 1, from section 4.2.5 of the TPC-H specification; lineitem is not fixed by the scale.
ROWS_AT_SCALE_1 = {
    "supplier": 10_000,
    "part": 200_000,
    "partsupp": 800_000,
    "customer": 150_000,
    "orders": 1_500_000,
}

#: Every foreign key of the TPC-H schema.
REFERENCES = [
    ("nation", "n_regionkey", "region", "r_regionkey"),
    ("supplier", "s_nationkey", "nation", "n_nationkey"),
    ("customer", "c_nationkey", "nation", "n_nationkey"),
    ("partsupp", "ps_partkey", "part", "p_partkey"),
    ("partsupp", "ps_suppkey", "supplier", "s_suppkey"),
    ("orders", "o_custkey", "customer", "c_custkey"),
    ("lineitem", "l_orderkey", "orders", "o_orderkey"),
    ("lineitem", "(l_partkey, l_suppkey)", "partsupp", "(ps_partkey, ps_suppkey)"),
]


@pytest.fixture
def quick_generator(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A generator that takes no time: each table is one row that holds the scale."""
    script = tmp_path_factory.mktemp("bin") / "tpchgen-cli"
    script.write_text(
        """#!/bin/sh
if [ "$1" = --version ]; then echo quick 1.0; exit; fi
format=$1 scale=$3 folder=$5 tables=$7
for table in $(echo "$tables" | tr , ' '); do echo "$scale|" > "$folder/$table.$format"; done
"""
    )
    script.chmod(0o755)
    monkeypatch.setattr(data, "find_generator", lambda: script)
    return script


@pytest.fixture(scope="module")
def database(tpch: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in TPCH_TABLES:
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{tpch / table}.parquet'")
    return connection


def single(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def papilio(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return papilio_here("data", "tpch", *arguments, home=Path("/nowhere"))


def test_row_counts_are_those_of_the_specification(database: duckdb.DuckDBPyConnection) -> None:
    counts = {table: single(database, f"SELECT count(*) FROM {table}") for table in TPCH_TABLES}
    lines = counts.pop("lineitem")
    scaled = {table: round(rows * SCALE) for table, rows in ROWS_AT_SCALE_1.items()}
    assert counts == {"region": 5, "nation": 25, **scaled}
    assert counts["orders"] <= lines <= 7 * counts["orders"]


@pytest.mark.parametrize(("table", "key", "parent", "parent_key"), REFERENCES)
def test_every_foreign_key_has_its_row(
    database: duckdb.DuckDBPyConnection, table: str, key: str, parent: str, parent_key: str
) -> None:
    orphans = f"SELECT count(*) FROM {table} WHERE {key} NOT IN (SELECT {parent_key} FROM {parent})"
    assert single(database, orphans) == 0
    assert single(database, f"SELECT count(*) - count(DISTINCT {parent_key}) FROM {parent}") == 0


def test_every_part_has_the_four_suppliers_of_the_specification(database: duckdb.DuckDBPyConnection) -> None:
    suppliers, parts = round(10_000 * SCALE), round(200_000 * SCALE)
    expected = sorted(
        (part, (part + i * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1)
        for part in range(1, parts + 1)
        for i in range(4)
    )
    assert database.execute("SELECT ps_partkey, ps_suppkey FROM partsupp ORDER BY ALL").fetchall() == expected


def test_the_marker_tells_the_rows_and_bytes_of_each_file(tpch: Path, database: duckdb.DuckDBPyConnection) -> None:
    marker = DataSet.read_marker(tpch, "tpch")
    assert marker is not None
    assert (marker.scale, marker.format) == (SCALE, "parquet")
    assert list(marker.tables) == list(TPCH_TABLES)
    for name, table in marker.tables.items():
        assert table.rows == single(database, f"SELECT count(*) FROM {name}")
        assert table.bytes == (tpch / table.file).stat().st_size


@pytest.mark.parametrize("format", ["tbl", "csv"])
def test_text_holds_the_same_rows_as_parquet(tmp_path: Path, database: duckdb.DuckDBPyConnection, format: str) -> None:
    answer = papilio("--scale", str(SCALE), "--to", tmp_path / "text", "--format", format, "--json")
    assert answer.returncode == 0, answer.stderr
    report = json.loads(answer.stdout)
    assert report["rows"] == sum(table["rows"] for table in report["tables"].values())
    for name, table in report["tables"].items():
        assert table["rows"] == single(database, f"SELECT count(*) FROM {name}"), name
        assert table["bytes"] == Path(table["path"]).stat().st_size
    orders = tmp_path / "text" / f"orders.{format}"
    columns = len(database.execute("SELECT * FROM orders LIMIT 0").description)
    first = orders.read_text(encoding="utf-8").splitlines()[0]
    assert first.count("|" if format == "tbl" else ",") == (columns if format == "tbl" else columns - 1)


def test_data_that_is_there_is_kept_and_said(tpch: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in tpch.iterdir()}
    answer = papilio("--scale", str(SCALE), "--to", tpch)
    assert answer.returncode == 0, answer.stderr
    assert "kept" in answer.stdout
    assert {path.name: path.stat().st_mtime_ns for path in tpch.iterdir()} == before


@pytest.mark.usefixtures("quick_generator")
def test_a_table_that_went_missing_is_generated_again(tmp_path: Path) -> None:
    folder = tmp_path / "tpch"
    generate_tpch(folder, 1, format="tbl", tables=["region", "nation"])
    (folder / "nation.tbl").unlink()
    again = generate_tpch(folder, 1, format="tbl", tables=["region"])
    assert not again.kept
    assert sorted(path.name for path in folder.iterdir()) == ["nation.tbl", "region.tbl", "tpch.json"]


@pytest.mark.usefixtures("quick_generator")
def test_more_tables_join_those_that_are_there(tmp_path: Path) -> None:
    generate_tpch(tmp_path / "tpch", 1, format="tbl", tables=["region"])
    more = generate_tpch(tmp_path / "tpch", 1, format="tbl", tables=["nation"])
    assert list(more.data.tables) == ["region", "nation"]
    assert more.data.is_complete_in(tmp_path / "tpch")


@pytest.mark.usefixtures("quick_generator")
def test_data_of_another_scale_is_replaced_only_when_asked(tmp_path: Path) -> None:
    folder = tmp_path / "tpch"
    generate_tpch(folder, 0.5, format="tbl", tables=["region"])
    with pytest.raises(BadInput, match=r"holds TPC-H at scale 0\.5 as tbl"):
        generate_tpch(folder, 0.25, format="tbl", tables=["region"])
    assert (folder / "region.tbl").read_text() == "0.5|\n"
    generate_tpch(folder, 0.25, format="tbl", tables=["region"], replace=True)
    assert (folder / "region.tbl").read_text() == "0.25|\n"
    assert [path.name for path in tmp_path.iterdir()] == ["tpch"]


@pytest.mark.usefixtures("quick_generator")
def test_files_of_others_are_never_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not lose")
    with pytest.raises(BadInput, match=r"thesis\.txt"):
        generate_tpch(tmp_path, SCALE, replace=True)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_generation_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "data", "tpch", "--scale", "5", "--to", tmp_path / "tpch"],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: any(tmp_path.glob(".tpch.*/*")))
    process.send_signal(number)
    _, message = process.communicate(timeout=30)
    assert process.returncode == 3, message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick_generator")
def test_what_a_killed_generation_left_is_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    abandoned = tmp_path / f".tpch.{ended.pid}.abc"
    running = tmp_path / f".tpch.{os.getpid()}.abc"
    abandoned.mkdir()
    running.mkdir()
    generate_tpch(tmp_path / "tpch", 1, format="tbl", tables=["region"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [running.name, "tpch"]


def test_a_generator_that_fails_leaves_the_old_data_and_tells_why(tmp_path: Path, quick_generator: Path) -> None:
    folder = tmp_path / "tpch"
    generate_tpch(folder, 0.5, format="tbl")
    quick_generator.write_text(
        "#!/bin/sh\necho half > $5/region.tbl\necho 'Error: No space left on device' >&2\nexit 1\n"
    )
    with pytest.raises(EnvironmentProblem, match="no room left in"):
        generate_tpch(folder, 0.25, format="tbl", replace=True)
    assert generate_tpch(folder, 0.5, format="tbl").kept
    assert [path.name for path in tmp_path.iterdir()] == ["tpch"]


def test_a_disk_that_is_too_small_is_noticed_before_it_is_full(tmp_path: Path) -> None:
    answer = papilio("--scale", "1e6", "--to", tmp_path / "tpch")
    assert answer.returncode == 4
    assert "take about 330,000,000 MB" in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf", "0.0001", "big"])
def test_a_scale_that_makes_no_sense_is_refused(tmp_path: Path, scale: str) -> None:
    answer = papilio("--scale", scale, "--to", tmp_path / "tpch")
    assert answer.returncode == 2
    assert scale in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_table_is_refused_with_the_near_match(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no table 'line_item'; did you mean 'lineitem'"):
        generate_tpch(tmp_path / "tpch", SCALE, tables=["line_item"])


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="is a file"):
        generate_tpch(tmp_path / "file", SCALE)
    with pytest.raises(EnvironmentProblem, match="cannot be written to"):
        generate_tpch(Path("/proc/papilio/tpch"), SCALE)


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)
