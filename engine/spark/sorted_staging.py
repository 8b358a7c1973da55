"""Sorters on Spark: a recordset's rows staged in an order that its consumers really use.

Rows are divided into buckets by the first column of the order and sorted inside them, one file a bucket. Spark's plan
then has neither an exchange nor a sort in front of an aggregate or a merge join over that order, and a filter on the
first column skips the row groups it does not want. The files alone would not tell Spark; the session's catalogue does.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.model.physical import Order
from engine.operators._sql import plain

# Spark does not rely on the order inside buckets unless it is told that each is one file.
SETTINGS = {
    "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
    "spark.sql.execution.replaceHashWithSortAgg": "true",  # a sort-based aggregate wherever its rows come in order
}


def in_order(frame: DataFrame, order: Order) -> DataFrame:
    """Rows on their way from one activity to the next: those of one first key together, each part in order."""
    return frame.repartition(plain(order[0].column)).sortWithinPartitions(*_keys(order))


class SortedStage:
    """Rows kept in buckets of an order. `name` is the table's in the session's catalogue."""

    def __init__(self, name: str, folder: Path, order: Order, buckets: int) -> None:
        if not order:
            raise ValueError("a sorter needs an order")
        self.name = name
        self.folder = folder
        self.order = order
        self.buckets = buckets

    @property
    def is_bucketed(self) -> bool:
        """Buckets are in ascending order only; rows in another are kept in files of that order."""
        return not any(key.descending for key in self.order)

    def write(self, frame: DataFrame) -> None:
        """Divide, sort and keep rows."""
        first = plain(self.order[0].column)
        # Spark divides rows for an exchange as it divides them into buckets, so each task writes one bucket.
        rows = frame.repartition(self.buckets, first).sortWithinPartitions(*_keys(self.order))
        writer = rows.write.mode("overwrite").format("parquet")
        if not self.is_bucketed:
            writer.save(str(self.folder))
            return
        columns = [key.column for key in self.order]
        writer = writer.bucketBy(self.buckets, columns[0]).sortBy(*columns).option("path", str(self.folder))
        writer.saveAsTable(self.name)

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows, with what Spark knows of their order."""
        return spark.table(self.name) if self.is_bucketed else spark.read.parquet(str(self.folder))

    def delete(self, spark: SparkSession) -> None:
        """Forget the rows."""
        if self.is_bucketed:
            spark.sql(f"DROP TABLE IF EXISTS {self.name}")
        shutil.rmtree(self.folder, ignore_errors=True)


def _keys(order: Order) -> list[Column | Any]:
    return [
        F.col(plain(key.column)).desc() if key.descending else F.col(plain(key.column)).asc() for key in order
    ]  # fmt: skip
