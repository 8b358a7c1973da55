"""Deliveries to files: atomic, exact, and never at the cost of what is not theirs."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from engine.errors import BadInput, EnvironmentProblem, RunFailed
from engine.model.operator import Place
from engine.spark import targets
from engine.spark.journal import JOURNAL, Journal, recover
from engine.spark.script import Code, ScriptTools, frame, source
from engine.spark.targets import delivery, from_record
from tests.operators.harness import by_key, make

ROOT = Path(__file__).parent.parent.parent
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678901)  # noqa: DTZ001 - a timestamp without a zone


def place_of(folder: Path) -> Place:
    return Place(lambda text: folder / text, lambda text: os.environ[text])


def deliver(folder: Path, rows, name: str, run: str = "r1", **settings):
    """Stage rows for a target; nothing is committed yet."""
    made = delivery(make(name, **settings), "node", place_of(folder), run)
    made.write(rows)
    return made


def load(folder: Path, rows, name: str, run: str = "r1", **settings) -> int:
    """Load rows into a target, all the way."""
    made = deliver(folder, rows, name, run, **settings)
    made.check()
    made.commit()
    return made.rows()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*"))


def lines_of(folder: Path) -> list[str]:
    return [line for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]


def query(text: str) -> list[tuple]:
    return duckdb.sql(text).fetchall()


# ---------------------------------------------------------------- overwrite

ROWS = [(1, 'a "b", c', Decimal("1.50"), date(2024, 1, 2), MOMENT), (2, "two\nlines", None, None, None), (3, "", Decimal("2.00"), None, None), (4, " é ", None, None, None), (None, None, None, None, None)]  # fmt: skip
SCHEMA = "n int, `Odd `` name` string, d decimal(8,2), day date, at timestamp_ntz"


def test_spark_writes_no_mark_of_success(spark, tmp_path):
    for form in ("parquet", "csv"):
        spark.range(3).write.format(form).save(str(tmp_path / form))
        names = [path.name for path in (tmp_path / form).rglob("*") if path.suffix != ".crc"]
        assert names
        assert all(name.startswith("part-") for name in names), "no marks, which nobody reads"


@pytest.mark.parametrize("name", ["parquet", "orc", "csv", "json"])
def test_a_target_keeps_its_old_rows_until_the_commit(spark, tmp_path, name):
    schema = SCHEMA.replace("``", "") if name == "orc" else SCHEMA
    rows = spark.createDataFrame(ROWS, schema).repartition(2)
    assert load(tmp_path, rows.limit(1), f"{name}_target", path="t") == 1
    old = {file.name: file.read_bytes() for file in (tmp_path / "t").iterdir()}
    made = deliver(tmp_path, rows, f"{name}_target", run="r2", path="t")
    assert {file.name: file.read_bytes() for file in (tmp_path / "t").iterdir()} == old
    assert made.rows() == 5
    read = made.read(spark)
    assert read.dtypes == rows.dtypes
    assert by_key([tuple(row) for row in read.collect()]) == by_key(ROWS)
    made.commit()
    assert os.listdir(tmp_path) == ["t"]
    files = names_in(tmp_path / "t")
    assert all(file.startswith("part-") and file.endswith(f".{name}") for file in files)
    made.commit()
    made.discard()
    assert names_in(tmp_path / "t") == files
    if name in ("parquet", "csv", "json"):
        reader = {"parquet": "read_parquet", "csv": "read_csv", "json": "read_json"}[name]
        options = ", header=true, quote='\"', escape='\"', auto_detect=true, all_varchar=true" if name == "csv" else ""
        found = query(
            f'SELECT n::INT, d::DECIMAL(8,2), "day"::DATE, "at"::TIMESTAMP FROM {reader}(\'{tmp_path}/t/*\'{options})'
        )
        assert by_key(found) == by_key([(row[0], *row[2:]) for row in ROWS])
    else:
        assert by_key([tuple(row) for row in spark.read.orc(str(tmp_path / "t")).collect()]) == by_key(ROWS)


def test_what_was_staged_can_be_discarded(spark, tmp_path):
    load(tmp_path, spark.range(3), "parquet_target", path="deep/er/t")
    made = deliver(tmp_path, spark.range(5), "parquet_target", run="r2", path="deep/er/t")
    assert len(os.listdir(tmp_path / "deep" / "er")) == 2
    made.discard()
    made.discard()
    assert os.listdir(tmp_path / "deep" / "er") == ["t"]
    assert query(f"SELECT count(*) FROM '{tmp_path}/deep/er/t/*.parquet'") == [(3,)]


def test_an_empty_delivery_leaves_an_empty_table(spark, tmp_path):
    for name in ("parquet", "orc", "csv", "json", "tbl"):
        load(tmp_path, spark.range(3), f"{name}_target", path=name)
        made = deliver(tmp_path, spark.range(0), f"{name}_target", run="r2", path=name)
        assert made.rows() == 0
        assert made.read(spark).collect() == []
        made.commit()
    assert query(f"SELECT count(*) FROM '{tmp_path}/parquet/*.parquet'") == [(0,)]


def test_tbl_is_written_as_tpc_h_writes_it(spark, tmp_path):
    rows = spark.createDataFrame([(1, ' "a" ', Decimal("1.50"), date(2024, 1, 2)), (2, None, None, None), (3, "", None, None)], "k int, s string, d decimal(8,2), day date")  # fmt: skip
    made = deliver(tmp_path, rows.coalesce(1), "tbl_target", path="t")
    assert made.rows() == 3
    assert [row.s for row in made.read(spark).orderBy("k").collect()] == [' "a" ', None, None]
    made.commit()
    assert all(name.endswith(".tbl") for name in names_in(tmp_path / "t"))
    assert sorted(lines_of(tmp_path / "t")) == ['1| "a" |1.50|2024-01-02|', "2||||", "3||||"]
    with pytest.raises(Exception, match="cannot hold"):
        deliver(tmp_path, spark.createDataFrame([("a|b",)], "s string"), "tbl_target", run="r2", path="t")


# ---------------------------------------------------------------- append and upsert


@pytest.mark.parametrize("name", ["parquet", "orc", "csv", "json"])
def test_append_adds_to_what_is_there(spark, tmp_path, name):
    first = spark.createDataFrame([(1, "a"), (2, "b")], "k int, s string")
    more = spark.createDataFrame([("c", 3), (None, 4)], "s string, k int")  # in another order
    target = {"name": f"{name}_target", "path": "t", "mode": "append"}
    assert load(tmp_path, first, **target) == 2
    kept = {file.name: file.stat().st_ino for file in (tmp_path / "t").iterdir()}
    made = deliver(tmp_path, more, run="r2", **target)
    assert made.rows() == 2
    table = [(1, "a"), (2, "b"), (3, "c"), (4, None)]
    assert by_key([(row.k, row.s) for row in made.read(spark).collect()]) == by_key(table)
    assert made.read(spark).dtypes == more.dtypes
    assert set(names_in(tmp_path / "t")) == set(kept)
    made.commit()
    assert kept.items() <= {file.name: file.stat().st_ino for file in (tmp_path / "t").iterdir()}.items()
    only = deliver(tmp_path, more, run="r3", pass_on="delivered", **target)
    assert by_key([(row.k, row.s) for row in only.read(spark).collect()]) == by_key(table[2:])
    only.discard()


@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_upsert_replaces_rows_by_their_key(spark, tmp_path, name):
    schema = "`k 1` int, k2 string, v string"
    target = {"name": f"{name}_target", "path": "t", "mode": "upsert", "key": ["k 1", "k2"]}
    old = [(1, "a", "old"), (2, None, "old"), (None, "x", "old"), (3, "", "old")]
    new = [(2, None, "new"), (None, "x", "new"), (3, None, "new"), (9, "z", None)]
    assert load(tmp_path, spark.createDataFrame(old, schema), **target) == 4
    made = deliver(tmp_path, spark.createDataFrame(new, schema), run="r2", **target)
    assert made.rows() == 4
    made.check()
    made.commit()
    expected = by_key([(1, "a", "old"), (3, "", "old"), *new])
    again = deliver(tmp_path, spark.createDataFrame([], schema), run="r3", **target)
    assert by_key([tuple(row) for row in again.read(spark).collect()]) == expected
    again.discard()


def test_upsert_refuses_two_rows_of_one_key(spark, tmp_path):
    rows = spark.createDataFrame([(1, None, 1), (1, None, 2), (2, "x", 3)], "k int, l string, v int")
    with pytest.raises(RunFailed, match=r"2 delivered rows have the same key \(`k`, `l`\): k = 1, l = None"):
        deliver(tmp_path, rows, "parquet_target", path="t", mode="upsert", key=["k", "l"])
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_columns_that_differ_from_the_table_are_refused(spark, tmp_path, mode):
    settings = {"mode": mode, "key": ["k"] if mode == "upsert" else []}
    for name in ("parquet", "csv"):
        load(tmp_path, spark.createDataFrame([(1, "a")], "k int, s string"), f"{name}_target", path=name)
        for schema, message in [
            ("k int", "has a column `s`, which is not delivered"),
            ("k int, s string, t int", "has no column `t`"),
            ("k bigint, s string", "the column `k` of .* is of type `int`, and `bigint` is delivered"),
        ]:
            if name == "parquet" or "bigint" not in schema:
                rows = spark.createDataFrame([], schema)
                with pytest.raises(RunFailed, match=message):
                    deliver(tmp_path, rows, f"{name}_target", run="r2", path=name, **settings)
    load(tmp_path, spark.createDataFrame([(1, "a")], "k int, s string"), "tbl_target", path="tbl")
    with pytest.raises(RunFailed, match="has 2 columns, and 1 are delivered"):
        deliver(tmp_path, spark.createDataFrame([], "k int"), "tbl_target", run="r2", path="tbl", **settings)


def test_a_table_that_changed_meanwhile_is_not_added_to(spark, tmp_path):
    load(tmp_path, spark.range(1), "parquet_target", path="t")
    made = deliver(tmp_path, spark.range(2), "parquet_target", run="r2", path="t", mode="append")
    load(tmp_path, spark.range(5), "parquet_target", run="r3", path="t")
    with pytest.raises(RunFailed, match="changed while the run worked on it"):
        made.check()


# ---------------------------------------------------------------- single files


def test_a_single_file_is_the_path_itself(spark, tmp_path):
    rows = spark.range(0, 100, 1, 4).selectExpr("id", "concat('x,', id) AS `a,b`")
    assert load(tmp_path, rows, "csv_target", path="t.csv", single_file=True) == 100
    expected = ['id,"a,b"', *[f'{n},"x,{n}"' for n in range(100)]]
    assert (tmp_path / "t.csv").read_text().splitlines() == expected
    assert os.listdir(tmp_path) == ["t.csv"]
    more = deliver(tmp_path, spark.createDataFrame([(100, "y")], "id bigint, `a,b` string"), "csv_target", run="r2", path="t.csv", single_file=True, mode="append", pass_on="delivered")  # fmt: skip
    assert more.rows() == 1
    assert [tuple(row) for row in more.read(spark).collect()] == [(100, "y")]
    more.commit()
    assert (tmp_path / "t.csv").read_text().splitlines() == [*expected, "100,y"]
    upsert = deliver(tmp_path, spark.createDataFrame([(7, "z")], "id bigint, `a,b` string"), "csv_target", run="r3", path="t.csv", single_file=True, mode="upsert", key=["id"])  # fmt: skip
    assert upsert.read(spark).count() == 101
    upsert.commit()
    assert query(f"SELECT count(*), max(\"a,b\") FROM read_csv('{tmp_path}/t.csv', header=true) WHERE id = 7") == [
        (1, "z")
    ]
    assert (
        load(tmp_path, spark.range(2), "json_target", run="r4", path="j.json.gz", single_file=True, compression="gzip")
        == 2
    )
    load(tmp_path, spark.range(1), "json_target", run="r5", path="j.json.gz", single_file=True, compression="gzip", mode="append")  # fmt: skip
    assert sorted(gzip.decompress((tmp_path / "j.json.gz").read_bytes()).split()) == [
        b'{"id":0}',
        b'{"id":0}',
        b'{"id":1}',
    ]


def test_a_file_and_a_folder_take_each_others_place(spark, tmp_path):
    load(tmp_path, spark.range(2), "csv_target", path="t.csv", single_file=True)
    load(tmp_path, spark.range(3), "csv_target", run="r2", path="t.csv", mode="append")
    assert query(f"SELECT count(*) FROM read_csv('{tmp_path}/t.csv/*', header=true)") == [(5,)]
    load(tmp_path, spark.range(4), "csv_target", run="r3", path="t.csv", single_file=True)
    assert (tmp_path / "t.csv").read_text() == "id\n0\n1\n2\n3\n"
    load(tmp_path, spark.range(1), "csv_target", run="r4", path="t.csv")
    assert (tmp_path / "t.csv").is_dir()
    with pytest.raises(RunFailed, match="is a folder"):
        deliver(tmp_path, spark.range(1), "csv_target", run="r5", path="t.csv", single_file=True, mode="append")


# ---------------------------------------------------------------- what is not ours


def test_a_folder_with_other_files_is_never_replaced(tmp_path):
    home = tmp_path / "home"
    (home / "photos").mkdir(parents=True)
    (home / "part-1.parquet").write_bytes(b"PAR1")

    def refused(name: str = "parquet_target", path: str = "home", **settings) -> str:
        with pytest.raises(BadInput) as error:
            delivery(make(name, path=path, **settings), "node", place_of(tmp_path), "r1")
        return str(error.value)

    assert "holds `photos`, which no .parquet target wrote" in refused()
    (home / "photos").rmdir()
    assert delivery(make("parquet_target", path="home"), "node", place_of(tmp_path), "r1").node == "node"
    (home / "sales.parquet").write_bytes(b"PAR1")
    assert "holds `sales.parquet`" in refused()
    assert make("parquet_target", path="home", mode="append").missing(place_of(tmp_path)) is None
    assert "holds" in refused("csv_target")
    (tmp_path / "notes.txt").write_text("dear diary")
    assert "is a file, and no .parquet data" in refused(path="notes.txt")
    assert "is a file, and no .json data" in refused("json_target", path="notes.txt")
    (tmp_path / "program").write_bytes(b"\x7fELF\0\0")
    assert "is a file, and no .csv data" in refused("csv_target", path="program")
    assert "is no folder" in refused(path="program/t")
    assert sorted(os.listdir(home)) == ["part-1.parquet", "sales.parquet"]


def test_a_full_disk_leaves_the_old_target(spark, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        load(disk, spark.range(10), "csv_target", path="t")
        made = delivery(make("csv_target", path="t"), "node", place_of(disk), "r2")
        with pytest.raises(EnvironmentProblem, match="the disk is full: there is no room for"):
            made.write(spark.range(1_000_000))
        assert query(f"SELECT count(*) FROM read_csv('{disk}/t/*', header=true)") == [(10,)]
        made.discard()
        assert os.listdir(disk) == ["t"]
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # Spark may still hold the file it could not write


def staged_by_hand(folder: Path, run: str):
    made = delivery(make("parquet_target", path="t"), "node", place_of(folder), run)
    (made.staged / "rows").mkdir(parents=True)
    (made.staged / "rows" / "part-0.parquet").write_bytes(b"PAR1")
    made._mark_ready(made.staged / "rows", None)
    return made


def test_all_of_it_is_on_the_disk_before_the_commit_also_what_a_killed_run_had_staged(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(targets, "sync", lambda path: (time.sleep(0.02), synced.append(path.name)))
    made = staged_by_hand(tmp_path, "r1")
    made.check()
    assert synced == ["part-0.parquet", "rows", "ready", made.staged.name]


def test_a_disk_that_turns_out_full_when_rows_reach_it_stops_the_run_before_the_commit(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(targets, "sync", full)
    with pytest.raises(EnvironmentProblem, match="the disk is full: there is no room for"):
        staged_by_hand(tmp_path, "r1").check()
    assert not (tmp_path / "t").exists()


# ---------------------------------------------------------------- the journal


@pytest.fixture
def in_memory():
    """A folder in memory where there can be one: what dies here is a process, and a disk takes long over each sync."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("how", ["exchange", "rename"])
def test_a_kill_at_any_line_leaves_all_old_or_all_new(in_memory, how):
    killed = subprocess.run(
        [sys.executable, Path(__file__).with_name("killed.py"), in_memory, how],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (killed.stdout, killed.returncode) == ("", 0), killed.stderr
    lines = int(killed.stderr.split("killed at ")[1].split()[0])
    assert lines > 100


def test_a_living_run_is_left_alone(tmp_path):
    journal = Journal(tmp_path)
    journal.staging([])
    assert recover(tmp_path) is None
    with pytest.raises(RunFailed, match="another process"):
        Journal(tmp_path)
    journal.close()
    assert recover(tmp_path) == "failed"


def test_a_run_that_never_came_to_its_targets_has_failed(tmp_path):
    assert recover(tmp_path) == "failed"


def test_a_journal_survives_a_line_cut_off(tmp_path):
    made = delivery(make("csv_target", path="t"), "node", place_of(tmp_path), "r1")
    made.staged.mkdir()
    (tmp_path / JOURNAL).write_text(
        json.dumps({"state": "staging", "deliveries": [made.record()]}) + '\n{"state": "commi'
    )
    assert recover(tmp_path) == "failed"
    assert not made.staged.exists()
    assert recover(tmp_path) == "failed"
    assert from_record(json.loads(json.dumps(made.record()))).node == "node"


# ---------------------------------------------------------------- the script


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("parquet", {}), ("csv", {"separator": ";"}), ("json", {"mode": "append"}), ("tbl", {}),
        ("orc", {"mode": "upsert", "key": ["k y"]}), ("csv", {"single_file": True}),
        ("csv", {"single_file": True, "mode": "append"}), ("tbl", {"mode": "upsert", "key": ["k y"], "single_file": True}),
    ],
)  # fmt: skip
def test_the_script_writes_what_the_engine_writes(spark, tmp_path, name, settings):
    schema = "`k y` int, s string"
    target = {"name": f"{name}_target", "path": "t", **settings}
    written = make(**target)
    tools = ScriptTools("node", written, {"path": Code(source(str(tmp_path / "script" / "t")))})
    (tmp_path / "script").mkdir()
    for run, rows in enumerate([[(1, "a"), (2, None)], [(2, "b"), (3, "ç")]]):
        data = spark.createDataFrame(rows, schema)
        load(tmp_path / "engine", data, run=f"r{run}", **target)
        text = frame("data", dict(data.dtypes))
        lines = [
            *written.script_imports(),
            *written.script_write(text, tools),
            f"result = {written.script_read(text, tools)}",
        ]
        variables = {"spark": spark, "data": data}
        exec("\n".join(["from pyspark.sql import functions as F", *lines]), variables)
        engine = deliver(tmp_path / "engine", data.limit(0), run="r9", **{**target, "mode": "append", "key": []})
        expected = by_key([tuple(row) for row in engine.read(spark).collect()])
        engine.discard()
        assert by_key([tuple(row) for row in variables["result"].collect()]) == expected
        assert (
            len(expected)
            == {"overwrite": 2, "append": 2 + 2 * run, "upsert": 2 + run}[settings.get("mode", "overwrite")]
        )
        assert (tmp_path / "script" / "t").is_file() == written.is_single_file


def test_times_keep_their_microseconds(spark, tmp_path):
    rows = spark.sql("SELECT timestamp'2024-01-02 03:04:05.678901' a, timestamp_ntz'2024-01-02 03:04:05.678901' b")
    for name in ("csv", "json"):
        made = deliver(tmp_path, rows, f"{name}_target", path=name)
        assert made.read(spark).collect() == rows.collect()
        made.commit()
    text = "".join(lines_of(tmp_path / "csv"))
    assert text.count("2024-01-02T03:04:05.678901") == 2
