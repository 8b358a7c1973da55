"""Staged copies: results that several units read, kept in the run's folder as columnar files."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from engine.model.operator import Split
from engine.spark.compile import PORT, UnitPlan, tagged, untagged, writable

# Copies live for one run: what counts is how fast they are written and read again.
_OPTIONS = {"compression": "lz4_raw"}


class StagedResult:
    """What one unit staged: a folder for each port, or one folder divided by port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.split: Split | None = None
        self.ports: tuple[str, ...] = ()

    def restore(self, plan: UnitPlan) -> None:
        """Know what a killed run had staged by the same plan."""
        self.split = plan.split
        self.ports = plan.ports if plan.split is not None else tuple(plan.frames)

    def write(self, plan: UnitPlan) -> None:
        """Run the unit's plan and keep its rows."""
        if plan.split is not None:
            self.split = plan.split
            self.ports = plan.ports
            frame = writable(tagged(plan.split, self.ports))
            frame.write.options(**_OPTIONS).partitionBy(PORT).parquet(str(self.folder))
        else:
            self.ports = tuple(plan.frames)
            for port, frame in plan.frames.items():
                writable(frame).write.options(**_OPTIONS).parquet(str(self.folder / port))

    def read(self, spark: SparkSession, port: str) -> DataFrame:
        """The rows that left by a port."""
        if self.split is not None:
            return untagged(spark.read.parquet(str(self.folder)), self.split, port)
        return spark.read.parquet(str(self.folder / port))

    def rows(self) -> dict[str, int]:
        """The exact number of rows by port, from the files' own footers."""
        return {port: sum(rows for _, rows in self._files(port)) for port in self.ports}

    def size(self) -> int:
        """Bytes on disk."""
        return sum(file.stat().st_size for file in self.folder.rglob("*.parquet"))

    def _files(self, port: str) -> list[tuple[Path, int]]:
        from pyarrow import parquet

        folder = self.folder / (f"{PORT}={port}" if self.split is not None else port)
        files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
        return [(file, parquet.read_metadata(file).num_rows) for file in files]

    def delete(self) -> None:
        """Forget the copy."""
        shutil.rmtree(self.folder, ignore_errors=True)
