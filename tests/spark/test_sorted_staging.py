"""Sorters on Spark: the order they make is the one the executed plan uses."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.model.physical import ordered_by
from engine.plan.apply import Layout
from engine.spark.sorted_staging import SETTINGS, SortedStage, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ROWS = 20_000


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session with the settings of sorted staging, and small tables joined as large ones are."""
    changed = {**SETTINGS, "spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.enabled": "false"}
    before = {name: spark.conf.get(name, None) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.fixture
def rows(session: SparkSession) -> DataFrame:
    return session.range(ROWS).selectExpr("id * 7 % 1000 AS A", "id % 13 AS B", "id * 3 % 7 AS C", "id")


@pytest.fixture
def staged(session: SparkSession, rows: DataFrame, tmp_path: Path) -> Iterator[SortedStage]:
    stage = SortedStage("papilio_staged", tmp_path / "staged", Layout(ordered_by("A", "B"), 1), 4)
    stage.write(rows)
    yield stage
    stage.delete(session)
    assert not stage.folder.exists()


def executed(frame: DataFrame) -> str:
    return frame._jdf.queryExecution().executedPlan().toString()


def test_aggregates_over_the_order_or_its_beginning_need_no_exchange_and_no_sort(session, staged, rows):
    for group in (["A", "B"], ["A"]):
        frame = staged.read(session).groupBy(*group).sum("id")
        assert "Exchange" not in executed(frame)
        assert " Sort " not in executed(frame)
        assert "SortAggregate" in executed(frame)
        assert sorted(frame.collect()) == sorted(rows.groupBy(*group).sum("id").collect())
    assert "Exchange" in executed(rows.groupBy("A").sum("id"))  # as it is without a sorter


def test_a_merge_join_of_two_sorted_recordsets_needs_neither(session, staged, rows, tmp_path):
    other = SortedStage("papilio_other", tmp_path / "other", Layout(ordered_by("A"), 1), 4)
    small = rows.where("id < 3000").select("A", "C")
    other.write(small)
    try:
        joined = staged.read(session).join(other.read(session).hint("merge"), "A")
        assert "SortMergeJoin" in executed(joined)
        assert "Exchange" not in executed(joined)
        assert " Sort " not in executed(joined)
        assert joined.count() == rows.join(small, "A").count()
    finally:
        other.delete(session)


def test_each_bucket_is_one_file_in_order(session, staged):
    from pyarrow import parquet

    files = list(staged.folder.glob("*.parquet"))
    assert 0 < len(files) <= 4
    for file in files:
        table = parquet.read_table(file)
        keys = list(zip(table["A"].to_pylist(), table["B"].to_pylist(), strict=True))
        assert keys == sorted(keys)
    assert staged.read(session).count() == ROWS


def scanned(frame: DataFrame) -> int:
    """The rows that leave the scan, before the filter looks at each."""
    found = frame.groupBy().count()
    found.collect()
    nodes = [found._jdf.queryExecution().executedPlan()]
    while nodes:
        node = nodes.pop()
        if "Scan" in node.nodeName():
            return node.metrics().apply("numOutputRows").value()
        children = node.children()
        nodes += [children.apply(index) for index in range(children.size())]
    raise AssertionError("no scan")


def test_a_filter_on_the_sorted_column_skips_row_groups(session, tmp_path):
    rows = session.range(200_000).selectExpr("(id * 7919) % 200000 AS A", "uuid() AS filler")
    stage = SortedStage("papilio_wide", tmp_path / "wide", Layout(ordered_by("A"), 1), 1)
    session.conf.set("parquet.block.size", "1048576")
    try:
        stage.write(rows)
        plain = tmp_path / "plain"
        rows.coalesce(1).write.parquet(str(plain))
    finally:
        session.conf.unset("parquet.block.size")

    def read(frame: DataFrame) -> int:
        frame = frame.where("A < 1000")
        assert frame.count() == 1_000
        return scanned(frame)

    try:
        assert read(stage.read(session)) < 100_000
        assert read(session.read.parquet(str(plain))) == 200_000
    finally:
        stage.delete(session)


def test_rows_between_two_activities_are_divided_and_sorted_once(session, rows):
    frame = in_order(rows, Layout(ordered_by("A", "B"), 1), 4).groupBy("A", "B").sum("id")
    assert executed(frame).count("Exchange") == executed(frame).count("Sort [") == 1
    assert "SortAggregate" in executed(frame)
    assert sorted(frame.collect()) == sorted(rows.groupBy("A", "B").sum("id").collect())
    other = rows.where("id < 3000").select("A", "C")
    joined = in_order(rows, Layout(ordered_by("A"), 1), 4).join(
        in_order(other, Layout(ordered_by("A"), 1), 4).hint("merge"), "A"
    )
    assert executed(joined).count("Exchange hashpartitioning") == 2
    assert executed(joined).count("Sort [") == 2
    assert joined.count() == rows.join(other, "A").count()


def test_groups_that_are_whole_in_one_bucket_are_sorted_where_they_are(session, staged, rows):
    frame = in_order(staged.read(session), Layout(ordered_by("A", "C"), 0), 4).groupBy("A", "C").sum("id")
    assert "Exchange" not in executed(frame)
    assert executed(frame).count("Sort [") == 1
    assert "SortAggregate" in executed(frame)
    assert sorted(frame.collect()) == sorted(rows.groupBy("A", "C").sum("id").collect())


def test_rows_in_ranges_let_filters_from_either_end_skip_whole_files(session, rows, tmp_path):
    from pyarrow import parquet

    stage = SortedStage("papilio_ranges", tmp_path / "ranges", Layout(ordered_by("id"), 0), 4)
    stage.write(rows)
    assert not stage.is_bucketed
    ends = []
    for file in sorted(stage.folder.glob("*.parquet")):
        values = parquet.read_table(file)["id"].to_pylist()
        assert values == sorted(values)
        ends.append((values[0], values[-1]))
    assert len(ends) == 4
    assert all(before[1] < after[0] for before, after in pairwise(ends)), "the ranges do not overlap"
    for condition in ("id < 100", f"id >= {ROWS - 100}"):
        frame = stage.read(session).where(condition)
        assert frame.count() == 100
        assert scanned(frame) < ROWS / 2
    hashed = SortedStage("papilio_hashed", tmp_path / "hashed", Layout(ordered_by("id"), 1), 4)
    hashed.write(rows)
    assert scanned(hashed.read(session).where("id < 100")) == ROWS, "each bucket has some, in its one row group"
    for each in (stage, hashed):
        each.delete(session)
        assert not each.folder.exists()


def test_a_window_over_groups_that_a_sorter_made_needs_neither_exchange_nor_sort(session, staged, rows):
    ranked = "rank() OVER (PARTITION BY A ORDER BY B) AS place"
    frame = staged.read(session).selectExpr("*", ranked)
    assert "Window" in executed(frame)
    assert "Exchange" not in executed(frame)
    assert "Sort [" not in executed(frame)
    assert sorted(frame.collect()) == sorted(rows.selectExpr("*", ranked).collect())
    falling = staged.read(session).selectExpr("*", ranked.replace("ORDER BY B", "ORDER BY B DESC"))
    assert "Sort [" in executed(falling), "which is why a sorter is not credited with it"
    everything = staged.read(session).orderBy("A", "B")
    assert "Exchange rangepartitioning" in executed(everything), "nor with putting all rows in an order"


def test_what_another_session_had_sorted_is_known_again(session, staged, rows):
    staged.forget(session)
    staged.restore(session, rows.schema)
    frame = staged.read(session).groupBy("A", "B").sum("id")
    assert "Exchange" not in executed(frame)
    assert "SortAggregate" in executed(frame)
    assert sorted(frame.collect()) == sorted(rows.groupBy("A", "B").sum("id").collect())
