"""`papilio data tpch --nulls … --duplicates … --broken … --key-misses …`: dirt in the shares asked for, by seed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from engine.errors import BadInput
from engine.experiments.data import TPCH_TABLES, DataSet, generate_tpch
from engine.experiments.dirt import SSB, TPCH, Dirt, make_dirty
from engine.experiments.ssb import SSB_TABLES, generate_ssb
from tests.end_to_end.helpers import papilio_here

CRITICAL, FOREIGN, FORMATTED = TPCH.critical, TPCH.foreign, TPCH.formatted
SCALE = 0.02
DIRT = Dirt(nulls=0.10, duplicates=0.05, broken=0.20, key_misses=0.08, seed=3)
KEYS = {
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
PARENTS = {
    "s_nationkey": ("nation", "n_nationkey"),
    "c_nationkey": ("nation", "n_nationkey"),
    "ps_suppkey": ("supplier", "s_suppkey"),
    "o_custkey": ("customer", "c_custkey"),
    "l_partkey": ("part", "p_partkey"),
    "l_suppkey": ("supplier", "s_suppkey"),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("data")
    generate_tpch(folder / "clean", SCALE)
    generate_tpch(folder / "dirty", SCALE, dirt=DIRT)
    return folder / "clean", folder / "dirty"


@pytest.fixture(scope="module")
def database(folders: tuple[Path, Path]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for schema, folder in zip(("clean", "dirty"), folders, strict=True):
        connection.execute(f"CREATE SCHEMA {schema}")
        for table in TPCH_TABLES:
            connection.execute(f"CREATE VIEW {schema}.{table} AS SELECT * FROM '{folder / table}.parquet'")
    return connection


@pytest.fixture(scope="module")
def told(folders: tuple[Path, Path]) -> dict[str, dict[str, int]]:
    marker = DataSet.read_marker(folders[1], "tpch")
    assert marker is not None
    assert marker.dirt == {"nulls": 0.1, "duplicates": 0.05, "broken": 0.2, "key_misses": 0.08, "seed": 3}
    return marker.dirtied


def count(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {query}").fetchone()
    assert row is not None
    return int(row[0])


def near(share: float, rows: int):  # type: ignore[no-untyped-def]
    """Within five standard deviations of so many independent draws."""
    return pytest.approx(share * rows, abs=5 * (rows * share * (1 - share)) ** 0.5)


@pytest.mark.parametrize("table", CRITICAL)
def test_rows_without_a_value_are_as_many_as_told_and_about_as_many_as_asked(table, database, told):
    empty = " OR ".join(f"{column} IS NULL" for column in CRITICAL[table])
    rows = count(database, f"clean.{table}")
    assert told[table]["nulls"] == near(DIRT.nulls, rows)
    assert count(database, f"(SELECT DISTINCT * FROM dirty.{table}) WHERE {empty}") == told[table]["nulls"]
    each = [count(database, f"dirty.{table} WHERE {column} IS NULL") for column in CRITICAL[table]]
    assert min(each) > 0, "every critical column is hit"


@pytest.mark.parametrize("table", CRITICAL)
def test_duplicates_are_whole_rows_and_nothing_else_is_added(table, database, told):
    rows = count(database, f"clean.{table}")
    assert count(database, f"dirty.{table}") == rows + told[table]["duplicates"]
    assert count(database, f"(SELECT DISTINCT * FROM dirty.{table})") == rows
    assert told[table]["duplicates"] == near(DIRT.duplicates, rows)


@pytest.mark.parametrize("table", FORMATTED)
def test_a_broken_format_is_no_text_that_a_clean_table_has(table, database, told):
    column = FORMATTED[table]
    distinct = f"(SELECT DISTINCT * FROM dirty.{table})"
    broken = count(database, f"{distinct} WHERE {column} NOT IN (SELECT {column} FROM clean.{table})")
    emptied = count(database, f"{distinct} WHERE {column} IS NULL")
    assert told[table]["broken"] == near(DIRT.broken, count(database, f"clean.{table}"))
    assert told[table]["broken"] - emptied <= broken <= told[table]["broken"]
    assert "broken" not in told["partsupp"], "it has no format to break"


@pytest.mark.parametrize("table", FOREIGN)
def test_missed_keys_lead_nowhere_and_the_others_still_somewhere(table, database, told):
    missed = " OR ".join(
        f"{key} NOT IN (SELECT {parent_key} FROM clean.{parent})"
        for key in FOREIGN[table]
        for parent, parent_key in [PARENTS[key]]
    )
    found = count(database, f"(SELECT DISTINCT * FROM dirty.{table}) WHERE {missed}")
    emptied = [column for column in FOREIGN[table] if column in CRITICAL[table]]
    assert told[table]["key_misses"] == near(DIRT.key_misses, count(database, f"clean.{table}"))
    if emptied:
        assert found <= told[table]["key_misses"], "some were emptied afterwards"
    else:
        assert found == told[table]["key_misses"]


@pytest.mark.parametrize("table", ["region", "nation"])
def test_small_tables_stay_clean(table, database, told):
    assert count(database, f"(FROM clean.{table} EXCEPT ALL FROM dirty.{table})") == 0
    assert table not in told


@pytest.mark.parametrize(("table", "keys"), KEYS.items())
def test_a_row_can_still_be_told_by_its_key(table, keys, database):
    names = ", ".join(keys)
    assert count(database, f"(SELECT DISTINCT {names} FROM dirty.{table})") == count(database, f"clean.{table}")


def test_the_same_seed_makes_the_same_rows_dirty_whatever_else_is_asked_for(tmp_path, folders):
    clean, _ = folders

    def rows(name: str, dirt: Dirt) -> list[tuple]:
        shutil.copytree(clean, tmp_path / name)
        make_dirty(tmp_path / name, ["supplier", "customer"], dirt)
        with duckdb.connect() as connection:
            return connection.execute(f"FROM '{tmp_path / name}/customer.parquet'").fetchall()

    one = rows("one", Dirt(nulls=0.2, seed=5))
    assert rows("again", Dirt(nulls=0.2, seed=5)) == one
    assert rows("other", Dirt(nulls=0.2, seed=6)) != one
    both = rows("both", Dirt(nulls=0.2, broken=0.5, seed=5))
    assert [row[3] for row in both] == [row[3] for row in one], "nulls do not depend on the other dirt"


def test_clean_and_dirty_data_are_not_taken_for_each_other(folders):
    clean, dirty = folders
    assert generate_tpch(dirty, SCALE, dirt=DIRT).kept
    with pytest.raises(BadInput, match=r"holds TPC-H at scale 0\.02 as parquet, dirty \(nulls 0\.1, duplicates 0\.05"):
        generate_tpch(dirty, SCALE)
    with pytest.raises(BadInput, match=r"holds TPC-H at scale 0\.02 as parquet; "):
        generate_tpch(clean, SCALE, dirt=DIRT)


def test_the_command_tells_what_it_hit_and_refuses_shares_that_make_no_sense(tmp_path):
    def ask(*more: object):  # type: ignore[no-untyped-def]
        return papilio_here("data", "tpch", "--scale", 0.001, "--to", tmp_path / "tpch", *more, home=tmp_path)

    wrong = ask("--nulls", 5)
    assert wrong.returncode == 2
    assert "--nulls 5: give a share of the rows, from 0 to 1" in wrong.stderr
    text = ask("--nulls", 0.5, "--format", "csv")
    assert text.returncode == 2
    assert "dirt is for Parquet" in text.stderr
    done = ask("--key-misses", 1, "--tables", "customer", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["dirtied"] == {"customer": {"key_misses": 150}}
    assert answer["dirt"] == {"key_misses": 1.0, "seed": 1}


# ---------------------------------------------------------------- SSB

SSB_PARENTS = {
    "lo_custkey": ("customer", "c_custkey"),
    "lo_partkey": ("part", "p_partkey"),
    "lo_suppkey": ("supplier", "s_suppkey"),
    "lo_orderdate": ("date", "d_datekey"),
}


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> tuple[duckdb.DuckDBPyConnection, dict[str, dict[str, int]]]:
    """Clean and dirty SSB, and how many rows of it were hit."""
    folder = tmp_path_factory.mktemp("star")
    generate_ssb(folder / "clean", SCALE)
    made = generate_ssb(folder / "dirty", SCALE, dirt=DIRT)
    assert generate_ssb(folder / "dirty", SCALE, dirt=DIRT).kept
    with pytest.raises(BadInput, match=r"dirty \(nulls 0\.1, duplicates 0\.05"):
        generate_ssb(folder / "dirty", SCALE)
    connection = duckdb.connect()
    for schema in ("clean", "dirty"):
        connection.execute(f"CREATE SCHEMA {schema}")
        for table in SSB_TABLES:
            connection.execute(f"CREATE VIEW {schema}.{table} AS SELECT * FROM '{folder / schema / table}.parquet'")
    return connection, made.data.dirtied


@pytest.mark.parametrize("table", SSB.critical)
def test_every_kind_of_dirt_hits_the_tables_of_ssb_as_often_as_asked_and_told(table, star):
    connection, told = star
    rows = count(connection, f"clean.{table}")
    distinct = f"(SELECT DISTINCT * FROM dirty.{table})"
    for kind, hit in told[table].items():
        assert hit == near(getattr(DIRT, kind), rows)
    assert count(connection, f"dirty.{table}") == rows + told[table]["duplicates"]
    empty = " OR ".join(f"{column} IS NULL" for column in SSB.critical[table])
    assert count(connection, f"{distinct} WHERE {empty}") == told[table]["nulls"]
    column = SSB.formatted[table]
    broken = count(connection, f"{distinct} WHERE {column} NOT IN (SELECT {column} FROM clean.{table})")
    emptied = count(connection, f"{distinct} WHERE {column} IS NULL")
    assert told[table]["broken"] - emptied <= broken <= told[table]["broken"]


def test_facts_of_ssb_miss_their_dimensions_as_often_as_told_and_columns_keep_their_types(star):
    connection, told = star
    missed = " OR ".join(f"{key} NOT IN (SELECT {own} FROM clean.{table})" for key, (table, own) in SSB_PARENTS.items())
    assert (
        count(connection, f"(SELECT DISTINCT * FROM dirty.lineorder) WHERE {missed}") == told["lineorder"]["key_misses"]
    )
    assert count(connection, "(FROM clean.date EXCEPT ALL FROM dirty.date)") == 0
    for table in SSB_TABLES:
        kinds = [connection.execute(f"DESCRIBE {schema}.{table}").fetchall() for schema in ("clean", "dirty")]
        assert kinds[0] == kinds[1]
