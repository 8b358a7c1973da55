"""What a running `build` gets: Spark itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from engine.errors import BadInput
from engine.model.operator import BuildInputs, BuildTools, Built, Operator, Place, Source
from engine.model.types import Schema, ddl
from engine.operators import _formats
from engine.operators._parquet_keys import keys_are_unique
from engine.spark.connect import speaks_connect

GATHERED_BYTES = 32 << 20
"""Files of this size one worker reads about as fast as several: a shuffle between them would take longer."""


_PLAIN = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\d+\)|string|binary|date|timestamp|timestamp_ntz"
)


class SparkTools(BuildTools):
    """Spark's modules and a node's resolved paths and secrets."""

    functions = F
    window = Window

    def __init__(
        self, spark: SparkSession, operator: Operator, place: Place, files: Sequence[str] | None = None
    ) -> None:
        self.spark = spark
        self.subqueries = not speaks_connect(spark)  # not every server that speaks Spark's API has them
        self._operator = operator
        self._place = place
        self._files = files

    def path(self, setting: str) -> str:
        return str(self._place.path(getattr(self._operator, setting)))

    def files(self, setting: str) -> Any:
        return self.path(setting) if self._files is None else list(self._files)

    def secret(self, setting: str) -> Any:
        return self._place.secret(getattr(self._operator, setting))

    def source_schema(self) -> Schema:
        assert isinstance(self._operator, Source)
        schema = self._operator.declared() or self._operator.discover(self._place)
        if schema is None:
            raise BadInput("its columns cannot be told from what is there; declare them")
        return schema

    def function(self, code: str, name: str) -> Any:
        # Not a module that could be imported, so Spark carries its functions to the workers by value.
        namespace: dict[str, Any] = {"__name__": "papilio_code"}
        exec(compile(code, f"<{self._operator.name}>", "exec"), namespace)
        return namespace[name]

    def columns(self, frame: DataFrame) -> list[str]:
        return frame.columns

    def spelled(self, frame: DataFrame, names: Iterable[str]) -> list[str]:
        own = {name.lower(): name for name in frame.columns}
        return [own.get(name.lower(), name) for name in names]

    def schema(self, frame: DataFrame) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in frame.schema.fields}

    def gathered(self, frame: DataFrame, setting: str | None = None) -> DataFrame:
        files = _formats.data_files(Path(self.path(setting))) if setting else local_files(frame)
        return frame.coalesce(1) if files and size_of(files) <= GATHERED_BYTES else frame

    def unique_keys(self, setting: str, names: Sequence[str]) -> bool:
        return keys_are_unique(_formats.data_files(Path(self.path(setting))), names)

    def parquet(self, setting: str) -> DataFrame:
        path = Path(self.path(setting))
        reader, columns = self.spark.read, flat_parquet_columns(path)
        return (reader.schema(ddl(columns)) if columns else reader).parquet(str(path))


def local_files(frame: DataFrame) -> list[Path]:
    """The files that a frame is computed from; none where it is not from files of this machine alone."""
    try:
        places = [urlsplit(file) for file in frame.inputFiles()]
    except Exception:
        return []  # not every server that speaks Spark's API can tell
    return [] if any(place.scheme != "file" for place in places) else [Path(unquote(place.path)) for place in places]


def size_of(files: Sequence[Path]) -> int:
    """The bytes of files together."""
    try:
        return sum(file.stat().st_size for file in files)
    except OSError:
        return sys.maxsize  # whoever reads them says so


def flat_parquet_columns(path: Path) -> Schema | None:
    """The columns of Parquet files, where each is of one plain type and none is a folder's name."""
    files = _formats.data_files(path)
    if not files or _formats.partition_columns(path, files[0]):
        return None
    try:
        columns = _formats.parquet_columns(files[0])
    except Exception:
        return None  # a broken file is told by Spark, in its own words
    return columns if all(_PLAIN.fullmatch(kind) for kind in columns.values()) else None


def build(
    operator: Operator,
    inputs: Mapping[str, Sequence[DataFrame]],
    spark: SparkSession,
    place: Place,
    ahead: Any = None,
    files: Sequence[str] | None = None,
) -> Built:
    """An operator's plan over real frames; `ahead` is what it has prepared, `files` those of it that a source reads."""
    tools = SparkTools(spark, operator, place, files)
    tools.ahead = ahead
    return operator.build(BuildInputs(inputs), tools)
