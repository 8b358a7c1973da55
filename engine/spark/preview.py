"""A look at the rows that leave by a port: computed on the first rows of every source, and written nowhere."""

from __future__ import annotations

import datetime
import decimal
import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.operator import Built, Place, Role, port_frame
from engine.spark.failures import NodeFailed, reason_of
from engine.spark.tools import build

SOURCE_ROWS = 20_000  # of every source; what is behind a join sees no more of them
ROWS = 1_000  # of the port, for the figures
SHOWN = 200  # of them in full
BINS = 12
TEXT = 300  # letters of a value


@dataclass
class ColumnFigures:
    """What the sample says of a column: its type, the share without a value, and how the values are spread."""

    name: str
    kind: str
    nulls: float
    distinct: int
    bars: list[float] = field(default_factory=list)  # each between 0 and 1, the tallest is 1
    labels: list[str] = field(default_factory=list)  # of the bars, or the two ends

    def as_dict(self) -> dict[str, Any]:
        """For the protocol."""
        return {"name": self.name, "type": self.kind, "nulls": round(self.nulls, 4), "distinct": self.distinct,
                "bars": [round(bar, 3) for bar in self.bars], "labels": self.labels}  # fmt: skip


def preview(bound: Bound, node: str, port: str, spark: SparkSession) -> dict[str, Any]:
    """Sample rows of a port with figures for each column. Targets pass on what they would be given."""
    place = bound.place(os.environ)
    frame = _Frames(bound, spark, place).of(node, port)
    try:
        schema = [(item.name, item.dataType.simpleString()) for item in frame.schema.fields]
        rows = [tuple(row) for row in frame.limit(ROWS).collect()]
    except Exception as error:
        raise NodeFailed(node, reason_of(error)) from error
    figures = [column_figures(name, kind, [row[at] for row in rows]) for at, (name, kind) in enumerate(schema)]
    return {
        "columns": [one.as_dict() for one in figures],
        "rows": [[_text(value) for value in row] for row in rows[:SHOWN]],
        "sampled_rows": len(rows),
        "source_rows": SOURCE_ROWS,
    }


def needed(bound: Bound, node: str) -> list[str]:
    """A node and all it comes from, in the order rows pass them; one whose settings do not hold is told."""
    wanted, waiting = {node}, [node]
    while waiting:
        at = waiting.pop()
        # A node that nothing reads yet can be looked at all the same.
        outputs = {port.name for port in bound.operators[at].output_ports()} if at in bound.operators else set()
        for problem in bound.errors:
            if problem.node == at and not (problem.setting is None and problem.port in outputs):
                raise BadInput(problem.text())
        for source, _ in bound.producers(at):
            if source not in wanted:
                wanted.add(source)
                waiting.append(source)
    return [at for at in bound.order if at in wanted]


class _Frames:
    """The plans from the sources to a node, each built once."""

    def __init__(self, bound: Bound, spark: SparkSession, place: Place) -> None:
        self.bound, self.spark, self.place = bound, spark, place
        self._built: dict[str, Built] = {}

    def of(self, node: str, port: str) -> DataFrame:
        for at in needed(self.bound, node):
            self._built[at] = self._build(at)
        try:
            return port_frame(self._built[node], port)
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error

    def _build(self, node: str) -> Built:
        operator = self.bound.operators[node]
        inputs: dict[str, list[DataFrame]] = {}
        for link in self.bound.incoming.get(node, ()):
            frame = port_frame(self._built[link.source], link.source_port)
            inputs.setdefault(link.target_port, []).append(frame)
        if operator.role in (Role.TARGET, Role.STAGING):
            frame = next(frames[0] for frames in inputs.values())
            return {port.name: frame for port in operator.output_ports()} or frame
        try:
            built = build(operator, inputs, self.spark, self.place)
        except NodeFailed:
            raise
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error
        if operator.role is Role.SOURCE:
            return {port.name: port_frame(built, port.name).limit(SOURCE_ROWS) for port in operator.output_ports()}
        return built


def column_figures(name: str, kind: str, values: list[Any]) -> ColumnFigures:
    """The figures of one column."""
    there = [value for value in values if value is not None]
    nulls = 1 - len(there) / len(values) if values else 0.0
    texts = Counter(_text(value) for value in there)
    figures = ColumnFigures(name, kind, nulls, len(texts))
    scale = _scale(there)
    if scale is not None and len(texts) > BINS:
        numbers = [scale(value) for value in there]
        low, high = min(numbers), max(numbers)
        width = (high - low) / BINS or 1.0
        counts = [0] * BINS
        for number in numbers:
            counts[min(int((number - low) / width), BINS - 1)] += 1
        figures.bars = [count / max(counts) for count in counts]
        figures.labels = [str(_text(min(there))), str(_text(max(there)))]
    elif texts:
        top = texts.most_common(BINS)
        figures.bars = [count / top[0][1] for _, count in top]
        figures.labels = [f"{text} ({count})" for text, count in top]
    return figures


def _scale(values: list[Any]) -> Callable[[Any], float] | None:
    """How values are put on a line; None where they have no order that means something."""
    if not values:
        return None
    if all(isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool) for value in values):
        return float if all(math.isfinite(value) for value in values) else None
    if all(isinstance(value, datetime.datetime) for value in values):
        return lambda value: value.timestamp()
    if all(isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) for value in values):
        return lambda value: float(value.toordinal())
    return None


def _text(value: Any) -> str | None:
    """A value as a person reads it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray)):
        return value.hex()[:TEXT]
    text = str(value)
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
