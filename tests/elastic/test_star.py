"""The partitioned warehouse on Spark: rows exact, queries the same before, during and after a rebalancing."""

from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.elastic.queries import SQL
from engine.errors import RunFailed
from engine.experiments.ssb import generate_ssb
from engine.spark.star import Manifest, StarWarehouse


@pytest.fixture(scope="module")
def ssb(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("star") / "ssb"
    generate_ssb(folder, 0.01)
    return folder


@pytest.fixture
def star(spark, ssb, tmp_path) -> StarWarehouse:
    """A warehouse on two nodes with its dimensions."""
    made = StarWarehouse(spark, tmp_path / "warehouse", "lineorder", "lo_orderkey")
    made.set_up(2, spark.read.parquet(str(ssb / "lineorder.parquet")).schema)
    for name in ("customer", "supplier", "part", "date"):
        made.put_dimension(name, spark.read.parquet(str(ssb / f"{name}.parquet")))
    return made


def packs(ssb: Path, folder: Path, parts: int) -> list[tuple[Path, int]]:
    table = pq.read_table(ssb / "lineorder.parquet")
    folder.mkdir()
    made = []
    step = -(-table.num_rows // parts)
    for number in range(parts):
        piece = table.slice(number * step, step)
        pq.write_table(piece, folder / f"{number}.parquet")
        made.append((folder / f"{number}.parquet", piece.num_rows))
    return made


@pytest.mark.slow
def test_facts_are_distributed_dimensions_replicated_and_queries_see_one_server(star, spark, ssb, tmp_path):
    given = packs(ssb, tmp_path / "packs", 3)
    total = sum(rows for _, rows in given)
    for number, (pack, rows) in enumerate(given):
        assert star.load([pack], rows).rows == sum(count for _, count in given[: number + 1])
    shares = [sum(file.rows for file in part) / total for part in star.current.facts]
    assert shares == pytest.approx([0.5, 0.5], abs=0.05)
    for node in range(2):
        assert {path.name for path in (star.folder / f"node-{node:03d}").iterdir()} == {
            "lineorder",
            "customer",
            "supplier",
            "part",
            "date",
        }
    one_server = spark.newSession()  # its names are not the shared session's
    for name in ("lineorder", "customer", "supplier", "part", "date"):
        one_server.read.parquet(str(ssb / f"{name}.parquet")).createOrReplaceTempView(name)
    for sql in SQL.values():
        assert star.query(sql)[0] == [tuple(row) for row in one_server.sql(sql).collect()]

    # While queries go on, the facts move: out to three nodes, a load in between, and in to one.
    wanted = star.query(SQL["Q2.1"])[0]
    assert wanted
    answers, stop = [], threading.Event()

    def ask() -> None:
        while not stop.is_set():
            answers.append(star.query(SQL["Q2.1"]))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        out = star.rebalance(3)
        back = star.rebalance(1)
    finally:
        stop.set()
        asking.join()
    assert (out.nodes_before, out.nodes_after, out.rows) == (2, 3, total)
    assert (back.nodes_before, back.nodes_after, back.rows) == (3, 1, total)
    assert out.bytes > 0 < out.seconds
    assert [answer for answer, _ in answers if answer != wanted] == []
    assert {version for _, version in answers} & {out.version - 1, out.version}
    assert star.query(SQL["Q2.1"]) == (wanted, back.version)

    # Nothing is left of distributions that nobody reads, and the manifest on disk is the one in use.
    assert {str(path) for path in star.folder.glob("node-*/lineorder/*")} == star.current.files
    assert Manifest.from_dict(json.loads((star.folder / "manifest.json").read_text())) == star.current


def test_a_query_does_not_wait_for_a_rebalancing_and_sees_the_distribution_that_was(star, ssb, tmp_path, monkeypatch):
    ((pack, rows),) = packs(ssb, tmp_path / "packs", 1)
    before = star.load([pack], rows)
    wanted = star.query(SQL["Q1.1"])
    distribute = star._distribute
    answers = []

    def with_a_query_between(files, nodes, rows):
        moved = distribute(files, nodes, rows)
        # All facts are in both places now. Somebody else asks, and this goes on when he has his answer.
        with ThreadPoolExecutor(1) as other:
            answers.append(other.submit(star.query, SQL["Q1.1"]).result(60))
        return moved

    monkeypatch.setattr(star, "_distribute", with_a_query_between)
    star.rebalance(3)
    # The second one was asked when loads had to wait, just before readers see the new distribution.
    assert answers == [wanted] * 2
    assert wanted[1] == before.version
    assert star.query(SQL["Q1.1"]) == (wanted[0], star.current.version)


def test_a_query_of_one_s_own_is_answered_over_all_nodes_and_looked_at_before(star, ssb, tmp_path):
    ((pack, rows),) = packs(ssb, tmp_path / "packs", 1)
    own = "SELECT count(*) AS lines, count(DISTINCT d_year) AS years FROM lineorder JOIN `date` ON lo_orderdate = d_datekey"
    star.check(own)  # also while there are no facts
    star.load([pack], rows)
    ((lines, years),), _ = star.query(own)
    assert (lines, years) == (rows, 7)
    with pytest.raises(Exception, match="lo_orderday"):
        star.check(own.replace("lo_orderdate", "lo_orderday"))


def test_facts_move_in_short_tasks_so_that_queries_find_a_core_in_between(star, ssb, tmp_path, monkeypatch, spark):
    ((pack, rows),) = packs(ssb, tmp_path / "packs", 1)
    star.load([pack], rows)
    monkeypatch.setattr("engine.spark.star._TASK_ROWS", 5000)
    star.rebalance(3)
    assert [len(part) for part in star.current.facts] == [math.ceil(rows / 3 / 5000)] * 3
    assert max(file.rows for part in star.current.facts for file in part) < 2 * 5000
    for node, part in enumerate(star.current.facts):
        placed = spark.read.parquet(*(file.path for file in part)).selectExpr("pmod(xxhash64(lo_orderkey), 3) AS node")
        assert [tuple(row) for row in placed.distinct().collect()] == [(node,)]


def test_a_load_that_lost_rows_is_not_loaded(star, ssb, tmp_path):
    ((pack, rows),) = packs(ssb, tmp_path / "packs", 1)
    before = star.current
    with pytest.raises(RunFailed, match=r"none of them is loaded"):
        star.load([pack], rows + 1)
    assert star.current == before
    assert list(star.folder.glob("node-*/lineorder/*")) == []
    assert list(star.folder.glob("new-*")) == []


def test_what_is_loaded_while_facts_move_is_there_afterwards(star, ssb, tmp_path, monkeypatch):
    given = packs(ssb, tmp_path / "packs", 2)
    star.load([given[0][0]], given[0][1])
    distribute = star._distribute
    once = []

    def with_a_load_between(files, nodes, rows):
        moved = distribute(files, nodes, rows)
        if not once:
            once.append(True)
            star.load([given[1][0]], given[1][1])
        return moved

    monkeypatch.setattr(star, "_distribute", with_a_load_between)
    with star.pinned() as seen:
        star.rebalance(3)
        assert all(Path(path).exists() for path in seen.files)  # a reader of the old distribution keeps its files
    assert star.current.rows == given[0][1] + given[1][1] == star.frame(star.current).count()
    assert not any(Path(path).exists() for path in seen.files)


def test_the_dimensions_of_a_node_that_left_stay_as_long_as_a_query_that_began_before(star):
    def copies(node: int) -> dict[str, int]:
        """Every file of a node's dimensions, and which it is."""
        home = star.folder / f"node-{node:03d}"
        found = {name: sorted(home.glob(f"{name}/*.parquet")) for name in star.current.dimensions}
        return {name: file.stat().st_ino for name, files in found.items() for file in files}

    star.rebalance(3)
    there = copies(2)
    assert list(there) == ["customer", "supplier", "part", "date"]
    with star.pinned():
        star.rebalance(1)
        assert copies(2) == there
        again = star.rebalance(3)  # they are taken over as they are
        assert copies(2) == there
        assert again.bytes == star.current.bytes
        star.rebalance(2)
        assert copies(2) == there
    assert copies(2) == {}
    assert len(copies(1)) == 4, "of a node that is there"
    star.rebalance(1)
    assert copies(1) == {}
    assert star.rebalance(2).bytes > star.current.bytes
    assert len(copies(1)) == 4
    assert list(star.folder.glob("node-*/.new-*")) == []


def test_dimensions_of_another_run_in_the_folder_are_not_taken_for_new_ones(star, spark, ssb):
    star.rebalance(3)
    again = StarWarehouse(spark, star.folder, "lineorder", "lo_orderkey")
    again.set_up(1, spark.read.parquet(str(ssb / "lineorder.parquet")).schema)
    again.put_dimension("date", spark.read.parquet(str(ssb / "date.parquet")).limit(1))
    assert again.current.dimensions.count("date") == 1
    again.rebalance(2)
    for node in range(2):
        assert spark.read.parquet(str(star.folder / f"node-{node:03d}" / "date")).count() == 1
