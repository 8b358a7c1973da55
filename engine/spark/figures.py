"""What a sample says of its columns: types, missing values, and how the others are spread. Needs no Spark."""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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


def column_figures(name: str, kind: str, values: list[Any]) -> ColumnFigures:
    """The figures of one column."""
    there = [value for value in values if value is not None]
    nulls = 1 - len(there) / len(values) if values else 0.0
    texts = Counter(shown(value) for value in there)
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
        figures.labels = [str(shown(min(there))), str(shown(max(there)))]
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


def shown(value: Any) -> str | None:
    """A value as a person reads it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray)):
        return value.hex()[:TEXT]
    text = str(value)
    return text if len(text) <= TEXT else text[: TEXT - 1] + "…"
