"""A plan while it runs: the session's settings that it needs, the tables of its sorters, rows sorted on their way."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from engine.model.binding import Bound, Link
from engine.operators._sql import plain
from engine.plan.apply import Applied
from engine.plan.graph import input_numbers
from engine.spark.sorted_staging import SETTINGS, SortedStage, in_no_order, in_order

BUCKETS_PER_CORE = 2
BUCKET_ROWS = 1_000_000  # a bucket is sorted by one task
EXCLUDED = "spark.sql.optimizer.excludedRules"


class Planned:
    """What a plan asks of one run, carried out in its session."""

    def __init__(self, run: str, bound: Bound, plan: Applied, spark: SparkSession) -> None:
        self.run = run
        self.plan = plan
        self.spark = spark
        # One number for all sorters: rows that are divided alike can meet as they are.
        least = BUCKETS_PER_CORE * spark.sparkContext.defaultParallelism if plan.has_sorters else 1
        self.parts = max(least, -(-plan.rows // BUCKET_ROWS))
        self._numbers = input_numbers(bound)

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """The session as sorters need it; afterwards as it was, for it may be lent."""
        if not self.plan.has_sorters:
            yield
            return
        before = {name: self.spark.conf.get(name, None) for name in SETTINGS}
        for name, value in SETTINGS.items():
            kept = before[name] if name == EXCLUDED else None
            self.spark.conf.set(name, f"{kept},{value}" if kept else value)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # the JVM may be gone
                for name, old in before.items():
                    self.spark.conf.unset(name) if old is None else self.spark.conf.set(name, old)

    def stage(self, node: str, folder: Path) -> SortedStage | None:
        """The sorter on a recordset, if the plan has one there."""
        layout = self.plan.staged.get(node)
        if layout is None:
            return None
        name = hashlib.blake2b(f"{self.run}/{node}".encode(), digest_size=8).hexdigest()
        return SortedStage(f"papilio_{name}", folder, layout, self.parts)

    def passed(self, link: Link, frame: DataFrame) -> DataFrame:
        """Rows as the consumer of a link takes them."""
        key = (link.source, link.target, self._numbers[link])
        layout = self.plan.passed.get(key)
        if layout is not None:
            return in_order(frame, layout, self.parts)
        if key in self.plan.divided:
            return frame.repartition(*map(plain, self.plan.divided[key]))
        return in_no_order(frame) if key in self.plan.mixed else frame
