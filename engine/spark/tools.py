"""What a running `build` gets: Spark itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from engine.errors import BadInput
from engine.model.operator import BuildInputs, BuildTools, Built, Operator, Place, Source
from engine.model.types import Schema


class SparkTools(BuildTools):
    """Spark's modules and a node's resolved paths and secrets."""

    functions = F
    window = Window

    def __init__(self, spark: SparkSession, operator: Operator, place: Place) -> None:
        self.spark = spark
        self._operator = operator
        self._place = place

    def path(self, setting: str) -> str:
        return str(self._place.path(getattr(self._operator, setting)))

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


def build(operator: Operator, inputs: Mapping[str, Sequence[DataFrame]], spark: SparkSession, place: Place) -> Built:
    """An operator's plan over real frames."""
    return operator.build(BuildInputs(inputs), SparkTools(spark, operator, place))
