"""Sources that are files, and those whose files say themselves what their columns are: Parquet and ORC."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Built,
    DataFrame,
    Finding,
    Inputs,
    PathText,
    Place,
    Source,
    SqlType,
)
from engine.model.problems import did_you_mean
from engine.model.types import UNKNOWN, Schema
from engine.operators import _formats
from engine.operators._sql import normal_or_none, plain, repeated


class FileSource(Source):
    """A source that is a file, or a folder with files of one kind."""

    nested: ClassVar[bool] = True  # files in folders below are read as well

    path: PathText = Field(description="The file, or the folder whose files are read.")
    columns: dict[str, SqlType] = Field(
        default_factory=dict, description="The columns with their types; found in the files where left out."
    )

    def declared(self) -> Schema | None:
        if not self.columns:
            return None
        return {name: normal_or_none(kind) or UNKNOWN for name, kind in self.columns.items()}

    def identity(self, place: Place) -> str:
        return str(place.path(self.path))

    def fingerprint(self, place: Place) -> str | None:
        return _formats.fingerprint(place.path(self.path))

    def missing(self, place: Place) -> str | None:
        return _formats.unreadable(place.path(self.path), self.nested)

    def files(self, place: Place) -> list[Path]:
        """The files that are read, in the order of their names."""
        return _formats.data_files(place.path(self.path))

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from repeated(list(self.columns), "columns")


class ColumnarSource(FileSource):
    """A source whose files say themselves what their columns are."""

    columnar: ClassVar[bool] = True
    nested: ClassVar[bool] = False

    columns: dict[str, SqlType] = Field(
        default_factory=dict, description="The columns that are read, with their types; all of them where left out."
    )

    @abstractmethod
    def columns_of(self, file: Path) -> Schema:
        """The columns of one file, from its footer."""

    @abstractmethod
    def rows_of(self, file: Path) -> int:
        """The rows of one file, from its footer."""

    def held_rows(self, place: Place) -> int | None:
        if self.missing(place):
            return None
        return sum(map(self.rows_of, self.files(place)))

    def discover(self, place: Place) -> Schema | None:
        path = place.path(self.path)
        files = _formats.data_files(path)
        return {**self.columns_of(files[0]), **_formats.partition_columns(path, files[0])} if files else None

    def drift(self, place: Place) -> str | None:
        path = place.path(self.path)
        expected, origin = self.declared(), "declared"
        for file in _formats.data_files(path)[: _formats.FOOTERS]:
            try:
                found = {**self.columns_of(file), **_formats.partition_columns(path, file)}
            except Exception:
                continue  # a broken file is told by the run, with Spark's own reason
            if expected is None:
                expected, origin = found, f"in {file.name}"
            elif difference := _schema_difference(found, expected, origin):
                return f"{file}: {difference}"
        return None

    def select(self, frame: DataFrame) -> DataFrame:
        """Only the declared columns, where they are."""
        return frame.select(*[plain(name) for name in self.columns]) if self.columns else frame


class ParquetSource(ColumnarSource):
    """Reads Parquet files; only the columns and row groups that the workflow needs."""

    name: ClassVar[str] = "parquet_source"
    title: ClassVar[str] = "Parquet"
    on_sail: ClassVar[bool] = True

    def columns_of(self, file: Path) -> Schema:
        return _formats.parquet_columns(file)

    def rows_of(self, file: Path) -> int:
        return _formats.count_parquet_rows(file)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return self.select(tools.parquet("path"))


class OrcSource(ColumnarSource):
    """Reads ORC files; only the columns and stripes that the workflow needs."""

    name: ClassVar[str] = "orc_source"
    title: ClassVar[str] = "ORC"

    def columns_of(self, file: Path) -> Schema:
        return _formats.orc_columns(file)

    def rows_of(self, file: Path) -> int:
        return _formats.count_orc_rows(file)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return self.select(tools.spark.read.orc(tools.path("path")))


def _schema_difference(found: Schema, expected: Schema, origin: str) -> str | None:
    known = {name.lower(): kind for name, kind in found.items()}
    for name, kind in expected.items():
        if name.lower() not in known:
            return f"there is no column `{name}`, {origin} a `{kind}`{did_you_mean(name, found)}"
        other = known[name.lower()]
        if UNKNOWN not in (kind, other) and kind != other:
            return f"the column `{name}` is of type `{other}`, {origin} `{kind}`"
    return None
