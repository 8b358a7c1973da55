"""Staged copies: results that several units read, kept in the run's folder as columnar files."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from engine.model.operator import Split
from engine.spark.compile import PORT, UnitPlan, tagged, untagged, writable
from engine.spark.sorted_staging import SortedStage

# Copies live for one run: what counts is how fast they are written and read again.
_OPTIONS = {"compression": "lz4_raw"}


class StagedResult:
    """What one unit staged: a folder for each port, or one folder divided by port."""

    def __init__(self, folder: Path, stage: SortedStage | None = None) -> None:
        """`stage`: a sorter keeps the rows, which then leave by one port."""
        self.folder = folder
        self.stage = stage
        self.split: Split | None = None
        self.ports: tuple[str, ...] = ()
        self._schemas: dict[str, StructType] = {}  # told the columns, Spark starts no job to find them in the files

    def restore(self, plan: UnitPlan) -> None:
        """Know what a killed run had staged by the same plan."""
        for frame in self._frames(plan).values():
            if self.stage is not None:
                self.stage.restore(frame.sparkSession, frame.schema)

    def write(self, plan: UnitPlan) -> None:
        """Run the unit's plan and keep its rows."""
        for port, frame in self._frames(plan).items():
            if self.stage is not None:
                self.stage.write(frame, _OPTIONS)
                continue
            writer = frame.write.options(**_OPTIONS)
            (writer.partitionBy(PORT) if self.split is not None else writer).parquet(str(self.folder / port))

    def _frames(self, plan: UnitPlan) -> dict[str, DataFrame]:
        """What is written into which folder: all ports together into the one above, or each into its own."""
        self.split = plan.split
        if plan.split is not None:
            self.ports = plan.ports
            frames = {"": writable(tagged(plan.split, self.ports))}
        else:
            self.ports = tuple(plan.frames)
            frames = {port: writable(frame) for port, frame in plan.frames.items()}
        self._schemas = {port: frame.schema for port, frame in frames.items()}
        return frames

    def read(self, spark: SparkSession, port: str) -> DataFrame:
        """The rows that left by a port."""
        if self.stage is not None:
            return self.stage.read(spark)
        if self.split is not None:
            return untagged(spark.read.schema(self._schemas[""]).parquet(str(self.folder)), self.split, port)
        return spark.read.schema(self._schemas[port]).parquet(str(self.folder / port))

    def rows(self) -> dict[str, int]:
        """The exact number of rows by port, from the files' own footers."""
        return {port: sum(rows for _, rows in self._files(port)) for port in self.ports}

    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*.parquet"))

    def _files(self, port: str) -> list[tuple[Path, int]]:
        from pyarrow import parquet

        folder = self.folder / (f"{PORT}={port}" if self.split is not None else port)
        if self.stage is not None:
            folder = self.stage.folder
        files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
        return [(file, parquet.read_metadata(file).num_rows) for file in files]

    def delete(self) -> None:
        """Forget the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)
