"""The elastic paper's scenarios on the simulator (its section 5), for the experiments `ascale-fig10` to `ascale-fig18`.

The paper prints limits, rates and sizes but not what its machines can do; the capacities are those of the model's
defaults, chosen so that twelve nodes suffice as they did there. So it is shapes that are judged, not seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.elastic.decision import Stage
from engine.elastic.rates import data_rate
from engine.elastic.simulator import Change, Point, Simulated, simulate
from engine.experiments.experiment import Options
from engine.model.elastic import Elastic

LOW, HIGH, STEP = 10_000, 500_000, 10_000
OVER_S = 0.2  # the paper's own runs exceed the limit by 0.1 and 0.2 s
POOL = 12

#: E, T and L every 2 s and at most 1 s each, 3 s in all; files of 100 MB (section 5.2).
SCENARIO: dict[str, Any] = {
    "pool": POOL,
    "limit_s": 3,
    "extraction": {"every_s": 2, "limit_s": 1, "margin_s": 0.05},
    "transformation": {"queue_mb": 100},
    "buffer": {"memory_mb": 10_000, "disk_mb": 1_000_000},
    "switch": {"limit_rows_s": 300_000, "margin_rows_s": 20_000},
    "warehouse": {"every_s": 2, "load_limit_s": 1, "batch_mb": 100, "margin_s": 0.05},
}


def run(**more: Any) -> tuple[Elastic, Simulated]:
    """The scenario with other limits, capacities or rates."""
    limits = Elastic.model_validate(SCENARIO | more)
    return limits, simulate(limits, data_rate(limits.rate, Path()))


def stair_s(options: Options) -> float:
    """How long each rate lasts."""
    return 20.0 if options.quick else 30.0


def stairs(rates: Sequence[float], seconds: float) -> dict[str, Any]:
    """Rates one after the other, each for so long."""
    steps = [{"at_s": number * seconds, "rows_s": rate} for number, rate in enumerate(rates)]
    return {"kind": "steps", "steps": steps, "seconds": len(rates) * seconds}


def by_stair(points: Sequence[Point], seconds: float) -> list[list[Point]]:
    """The points of each stair."""
    found: list[list[Point]] = []
    for point in points:
        number = int(point.at_s // seconds)
        while len(found) <= number:
            found.append([])
        found[number].append(point)
    return found


def scaled(result: Simulated, kind: str, stage: Stage | None = None) -> list[Change]:
    """The decisions of a kind."""
    return [change for change in result.changes if change.kind == kind and stage in (None, change.stage)]


def where(changes: Sequence[Change]) -> str:
    """Decisions with the rates they were made at, in words."""
    parts = [f"{change.stage.value} {change.nodes}→{after(change)} at {change.rate_rows_s:,.0f}" for change in changes]
    return ", ".join(parts) or "none"


def after(change: Change) -> int:
    """The nodes a decision leads to."""
    return change.nodes + (change.number if change.kind == "scale out" else -change.number)
