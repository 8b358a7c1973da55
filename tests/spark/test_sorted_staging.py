"""Sorters on Spark: the order they make is the one the executed plan uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.model.physical import Key, ordered_by
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
        """The rows that leave the scan, before the filter looks at each."""
        frame = frame.where("A < 1000")
        assert frame.count() == 1_000
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


def test_a_descending_order_is_kept_in_the_files(session, rows, tmp_path):
    from pyarrow import parquet

    stage = SortedStage("papilio_down", tmp_path / "down", Layout((Key("id", descending=True),), 1), 2)
    stage.write(rows)
    assert not stage.is_bucketed
    for file in stage.folder.glob("*.parquet"):
        values = parquet.read_table(file)["id"].to_pylist()
        assert values == sorted(values, reverse=True)
    assert stage.read(session).count() == ROWS
    stage.delete(session)


def test_what_another_session_had_sorted_is_known_again(session, staged, rows):
    staged.forget(session)
    staged.restore(session, rows.schema)
    frame = staged.read(session).groupBy("A", "B").sum("id")
    assert "Exchange" not in executed(frame)
    assert "SortAggregate" in executed(frame)
    assert sorted(frame.collect()) == sorted(rows.groupBy("A", "B").sum("id").collect())
