"""Runs one operator on real Spark, three ways that must agree.

1. its `build` on real frames, whose rows the test compares with rows computed by other means;
2. its schema rule, whose columns and types must be those Spark gives;
3. its `build` written down as a script, which is executed and must give the very same plan, or where Spark cannot
   tell that two plans are the same (they hold functions of Python's), the same rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from engine.model.checks import check_texts
from engine.model.meanings import Meaning
from engine.model.operator import BuildInputs, Inputs, Operator, Place, Source, port_frame
from engine.model.types import UNKNOWN
from engine.operators import catalogue
from engine.spark.backend import Connected, backend_of
from engine.spark.script import Code, ScriptTools, frame, source
from engine.spark.tools import build

Rows = list[tuple[Any, ...]]


def make(name: str, **settings: Any) -> Operator:
    """An operator from its settings, as a file would have them."""
    return catalogue()[name].model_validate(settings)


def findings(operator: Operator, **schemas: Mapping[str, str] | None) -> list[str]:
    """What is wrong with an operator over input schemas, as messages."""
    inputs = Inputs({port.rstrip("_"): [schema] for port, schema in schemas.items()})
    return [finding.message for finding in (*check_texts(operator, inputs), *operator.check(inputs))]


def run(
    spark: SparkSession,
    operator: Operator,
    inputs: Mapping[str, DataFrame | Sequence[DataFrame]] | None = None,
    ports: Sequence[str] | None = None,
    folder: Path | None = None,
) -> dict[str, Rows]:
    """The rows on each output port. Fails where the three ways do not agree."""
    if isinstance(backend_of(spark), Connected) and not operator.on_sail:
        pytest.skip(f"`{operator.name}` is not said to run on Sail")
    frames = {
        port: list(value) if isinstance(value, (list, tuple)) else [value] for port, value in (inputs or {}).items()
    }
    place = Place(lambda text: (folder or Path.cwd()) / text, lambda text: os.environ[text[6:-1]])
    known = {
        port: [dict(one.dtypes) if len(set(one.columns)) == len(one.columns) else None for one in many]
        for port, many in frames.items()
    }
    problems = findings_of(operator, known)
    assert not problems, problems
    built = build(operator, frames, spark, place)
    names = list(ports or [port.name for port in operator.output_ports()])
    results: dict[str, Rows] = {}
    rule = operator.output_schemas(
        Inputs(known, (operator.declared() or operator.discover(place)) if isinstance(operator, Source) else None)
    )
    script = _script_frames(spark, operator, frames, known, place, names)
    for name in names:
        actual = port_frame(built, name)
        _compare_schema(name, rule[name], dict(actual.dtypes))
        results[name] = rows(actual)
        assert script[name].dtypes == actual.dtypes, f"port {name}: the script gives other columns than the engine"
        if not _same_plan(actual, script[name]):
            assert Counter(map(repr, rows(script[name]))) == Counter(map(repr, results[name])), (
                f"port {name}: the script gives other rows than the engine"
            )
    return results


def findings_of(operator: Operator, known: Mapping[str, Sequence[Any]]) -> list[str]:
    checked = Inputs(known)
    return [finding.message for finding in (*check_texts(operator, checked), *operator.check(checked))]


def rows(data: DataFrame) -> Rows:
    """A frame's rows as plain tuples."""
    return [tuple(row) for row in data.collect()]


def _same_plan(one: DataFrame, other: DataFrame) -> bool:
    """Whether Spark can tell that two plans are the same."""
    try:
        return one.sameSemantics(other)
    except UnsupportedOperationException:  # Sail cannot tell; then the rows must be the same
        return False


def by_key(data: Rows) -> Rows:
    """Rows in an order that does not depend on Spark's."""
    return sorted(data, key=repr)


def _compare_schema(port: str, rule: Mapping[str, str] | None, actual: Mapping[str, str]) -> None:
    if rule is None:
        return  # unknown is silence
    assert list(rule) == list(actual), f"port {port}: the schema rule says {list(rule)}, Spark {list(actual)}"
    for column, kind in rule.items():
        if kind not in (UNKNOWN, None):
            assert kind == actual[column], f"port {port}, column {column}: rule {kind}, Spark {actual[column]}"


def _script_frames(
    spark: SparkSession,
    operator: Operator,
    frames: Mapping[str, list[DataFrame]],
    known: Mapping[str, list[Any]],
    place: Place,
    ports: Sequence[str],
) -> dict[str, DataFrame]:
    variables: dict[str, Any] = {"spark": spark, "F": F, "Window": Window, "os": os}
    stand_ins: dict[str, list[Code]] = {}
    for port, many in frames.items():
        for index, one in enumerate(many):
            variables[f"{port}_{index}"] = one
            stand_ins.setdefault(port, []).append(frame(f"{port}_{index}", known[port][index]))
    paths = {
        setting: Code(source(str(place.path(text))))
        for setting, text, means in operator.texts()
        if means.meaning is Meaning.PATH
    }
    schema = (operator.declared() or operator.discover(place)) if isinstance(operator, Source) else None
    tools = ScriptTools("node", operator, paths, schema=schema)
    built = operator.build(BuildInputs(stand_ins), tools)
    for definition in tools.definitions.values():
        exec(definition, variables)
    return {port: eval(str(port_frame(built, port)), variables) for port in ports}
