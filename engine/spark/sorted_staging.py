"""Sorters on Spark: a recordset's rows staged in an order that its consumers really use.

Rows are divided into buckets by the first columns of the order and sorted inside them, one file a bucket. Spark's plan
then has neither an exchange nor a sort in front of an aggregate or a merge join over that order, and a filter on the
first column skips the row groups it does not want. The files alone would not tell Spark; the session's catalogue does.
Where filters alone use the order, rows are divided into ranges of the first column, and whole files are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from engine.operators._sql import literal, plain, quoted
from engine.plan.apply import Layout

SORT_BASED = "spark.sql.execution.replaceHashWithSortAgg"
SETTINGS = {
    # Spark does not rely on the order inside buckets unless it is told that each is one file.
    "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
    SORT_BASED: "true",  # a sort-based aggregate wherever its rows come in order
    # Two inputs that are divided by some of their keys in the same way can be joined as they are.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Sorting in front of an aggregate is what the plan asks for, not a mistake to be mended.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.EliminateSorts",
}
ROW_GROUP_BYTES = 8 << 20  # small enough for a sorted filter to skip most of a file
OPTIONS = {"parquet.block.size": str(ROW_GROUP_BYTES)}


def in_order(frame: DataFrame, layout: Layout, parts: int) -> DataFrame:
    """Rows on their way from one activity to the next: those of the same first keys together, each part in order."""
    divided = frame.repartition(parts, *_divided(layout)) if layout.by else frame
    return divided.sortWithinPartitions(*_keys(layout)) if layout.sorts else divided


def in_no_order(frame: DataFrame) -> DataFrame:
    """The same rows, of whose order and division Spark no longer knows."""
    return frame.coalesce(1 << 20)


class SortedStage:
    """Rows kept in buckets of an order. `name` is the table's in the session's catalogue."""

    def __init__(self, name: str, folder: Path, layout: Layout, buckets: int) -> None:
        if not layout.order:
            raise ValueError("a sorter needs an order")
        self.name = name
        self.folder = folder
        self.layout = layout
        self.buckets = buckets

    @property
    def is_bucketed(self) -> bool:
        """Whether rows are divided into buckets, of which Spark's plans know, or into ranges for filters alone."""
        return self.layout.by > 0

    def write(self, frame: DataFrame, options: Mapping[str, Any] | None = None) -> None:
        """Divide, sort and keep rows."""
        options = {**OPTIONS, **(options or {})}
        if not self.is_bucketed:
            keys = _keys(self.layout)
            rows = frame.repartitionByRange(self.buckets, keys[0]).sortWithinPartitions(*keys)
            rows.write.mode("overwrite").options(**options).parquet(str(self.folder))
            return
        # Spark divides rows for an exchange as it divides them into buckets, so each task writes one bucket.
        rows = frame.repartition(self.buckets, *_divided(self.layout))
        columns = [key.column for key in self.layout.order]
        writer = rows.write.mode("overwrite").format("parquet").options(**options)
        writer = writer.bucketBy(self.buckets, *columns[: self.layout.by]).sortBy(*columns)  # which sorts as it writes
        writer.option("path", str(self.folder)).saveAsTable(self.name)

    def restore(self, spark: SparkSession, schema: StructType) -> None:
        """Know rows again that another session had written."""
        if self.is_bucketed:
            columns = [quoted(key.column) for key in self.layout.order]
            spark.sql(
                f"CREATE TABLE {self.name} ({schema.toDDL()}) USING parquet "
                f"CLUSTERED BY ({', '.join(columns[: self.layout.by])}) SORTED BY ({', '.join(columns)}) "
                f"INTO {self.buckets} BUCKETS LOCATION {literal(str(self.folder))}"
            )

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows, with what Spark knows of their order."""
        return spark.table(self.name) if self.is_bucketed else spark.read.parquet(str(self.folder))

    def forget(self, spark: SparkSession) -> None:
        """Take the rows out of the catalogue; they stay where they are."""
        if self.is_bucketed:
            spark.sql(f"DROP TABLE IF EXISTS {self.name}")

    def delete(self, spark: SparkSession) -> None:
        """Forget the rows and remove them."""
        self.forget(spark)
        shutil.rmtree(self.folder, ignore_errors=True)


def _divided(layout: Layout) -> list[str]:
    return [plain(key.column) for key in layout.order[: layout.by]]


def _keys(layout: Layout) -> list[Column]:
    return [F.col(plain(key.column)) for key in layout.order]
