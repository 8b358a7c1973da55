"""Data rates over time, as a workflow file gives them: steps, ramps, recorded, diurnal, bursts."""

from __future__ import annotations

import bisect
import csv
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from engine.errors import BadInput
from engine.model.elastic import BurstsRate, DiurnalRate, RampRate, Rate, RecordedRate, StepsRate

_DAY_S = 86_400.0


@dataclass(frozen=True)
class DataRate:
    """Rows a second at every moment, for so many seconds."""

    at: Callable[[float], float]
    seconds: float


def data_rate(rate: Rate, folder: Path) -> DataRate:
    """The rate that a workflow file in `folder` asks for."""
    match rate:
        case StepsRate():
            return DataRate(_stairs([(step.at_s, step.rows_s) for step in rate.steps]), rate.seconds)
        case RampRate():
            return DataRate(_ramp(rate), rate.seconds)
        case RecordedRate():
            recorded = _recorded(folder / rate.path)
            return DataRate(_stairs(recorded), recorded[-1][0])
        case DiurnalRate():
            return DataRate(_diurnal(rate), rate.seconds)
        case BurstsRate():
            return DataRate(_bursts(rate), rate.seconds)


def _stairs(steps: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    moments = [moment for moment, _ in steps]

    def at(now: float) -> float:
        number = bisect.bisect_right(moments, now) - 1
        return steps[number][1] if number >= 0 else 0.0

    return at


def _ramp(rate: RampRate) -> Callable[[float], float]:
    low, high = rate.from_rows_s, rate.to_rows_s
    if rate.stairs is None:
        return lambda now: low + (high - low) * min(now / rate.seconds, 1.0)
    last = rate.stairs - 1
    return lambda now: low + (high - low) * min(math.floor(now / rate.seconds * (last + 1)), last) / last


def _diurnal(rate: DiurnalRate) -> Callable[[float], float]:
    middle, swing = (rate.low_rows_s + rate.high_rows_s) / 2, (rate.high_rows_s - rate.low_rows_s) / 2
    peak = rate.peak_hour * 3600
    return lambda now: middle + swing * math.cos(2 * math.pi * (now - peak) / _DAY_S)


def _bursts(rate: BurstsRate) -> Callable[[float], float]:
    chance = Random(rate.seed)
    steps = [(0.0, rate.base_rows_s)]
    now = chance.expovariate(1 / rate.every_s)
    while now < rate.seconds:
        steps += [(now, rate.burst_rows_s), (now + rate.burst_s, rate.base_rows_s)]
        now += rate.burst_s + chance.expovariate(1 / rate.every_s)
    return _stairs(steps)


def _recorded(file: Path) -> list[tuple[float, float]]:
    """Moments and rates of a CSV file; the last line says when it all ends."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines)
            if not {"seconds", "rows_s"} <= set(reader.fieldnames or ()):
                raise BadInput(f"{file}: a recorded rate needs the columns `seconds` and `rows_s`")
            steps = [_line(file, reader.line_num, row) for row in reader]
    except OSError as error:
        raise BadInput(f"{file}: the recorded rate cannot be read: {error.strerror}") from None
    if len(steps) < 2:
        raise BadInput(f"{file}: a recorded rate needs two lines at least; the last says when it ends")
    for number, (one, other) in enumerate(itertools.pairwise(steps), start=3):
        if one[0] >= other[0]:
            raise BadInput(f"{file}:{number}: the moments must grow from line to line")
    return steps


def _line(file: Path, number: int, row: dict[str, str]) -> tuple[float, float]:
    try:
        moment, rows = float(row["seconds"]), float(row["rows_s"])
        if not (0 <= moment < math.inf and 0 <= rows < math.inf):
            raise ValueError
    except (TypeError, ValueError):
        raise BadInput(f"{file}:{number}: `seconds` and `rows_s` must be numbers from 0 on") from None
    return moment, rows
