"""Pictures of an elastic run: rate, nodes, times against their limits, queues and buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.elastic.decision import Stage
from engine.elastic.simulator import Change, Point, Simulated
from engine.experiments.svg import Chart
from engine.model.elastic import Elastic

_MOST_POINTS = 400
_MOST_MARKS = 24  # more would hide what they mark


def charts(limits: Elastic, result: Simulated) -> list[Chart]:
    """What `papilio scale simulate --plot` draws, one below the other."""
    points = thinned(result.points)
    unit, divisor = time_unit(result.seconds)
    xs = [point.at_s / divisor for point in points]
    marks = marked(result.changes, divisor)
    levels = {f"limit {limits.limit_s:g} s": limits.limit_s} if limits.limit_s is not None else {}
    nodes = {stage.value: [float(point.nodes[stage.value]) for point in points] for stage in Stage}
    times = {
        "extraction": [point.extraction_s for point in points],
        "transformation": [point.transformation_s for point in points],
        "load": [point.load_s for point in points],
        "all three": [point.etl_s for point in points],
    }
    limit = limits.transformation.limit_mb
    drawn = [
        Chart("rate", "Data rate", unit, "rows/s", {"rate": [point.rate_rows_s for point in points]}, xs),
        Chart("nodes", "Nodes of each stage", unit, "nodes", nodes, xs, marks=marks),
        Chart("times", "Times", unit, "seconds", times, xs, levels=levels, marks=marks),
        Chart(
            "queue",
            "Longest queue before a transformation node",
            unit,
            "MB",
            {"queue": [point.queue_mb for point in points]},
            xs,
            levels={f"limit {limit:g} MB": limit},
        ),
        Chart(
            "buffer",
            "Buffers",
            unit,
            "MB",
            {
                "memory": [sum(point.memory_mb) for point in points],
                "disk": [sum(point.disk_mb) for point in points],
            },
            xs,
        ),
    ]
    if any(point.query_s is not None for point in points):
        slowest = limits.warehouse.query_limit_s
        drawn.append(
            Chart(
                "queries",
                "Average query time",
                unit,
                "seconds",
                {"query": [math.nan if point.query_s is None else point.query_s for point in points]},
                xs,
                levels={f"limit {slowest:g} s": slowest} if slowest is not None else {},
            )
        )
    if result.rebalancings:
        drawn.append(_rebalanced(result, xs, unit, divisor))
    return drawn


def _rebalanced(result: Simulated, xs: Sequence[float], unit: str, divisor: float) -> Chart:
    """What was moved so far, and each rebalancing with its nodes, MB and seconds."""
    ends = [((one.at_s + one.seconds) / divisor, one.moved_mb) for one in result.rebalancings]
    moved = [sum(size for end, size in ends if end <= at) for at in xs]
    marks = [
        (one.at_s / divisor, f"{one.nodes_before}→{one.nodes_after}: {one.moved_mb:,.0f} MB in {one.seconds:,.0f} s")
        for one in result.rebalancings[:_MOST_MARKS]
    ]
    return Chart("rebalancing", "Facts moved by rebalancing", unit, "MB", {"moved": moved}, xs, marks=marks)


def thinned(points: Sequence[Point]) -> list[Point]:
    """So many points as a picture can show."""
    every = max(1, len(points) // _MOST_POINTS)
    return list(points[::every])


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit of a time axis, and how many seconds it has."""
    for name, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 3 * length:
            return f"time ({name})", length
    return "time (seconds)", 1.0


def marked(changes: Sequence[Change], divisor: float) -> list[tuple[float, str]]:
    """Decisions as marks; of too many only those that tell that a limit is out of reach."""
    shown = changes if len(changes) <= _MOST_MARKS else [item for item in changes if item.kind == "unreachable"]
    signs = {"scale out": "+", "scale in": "−", "unreachable": "!"}
    return [
        (change.at_s / divisor, f"{change.stage.value} {signs[change.kind]}{change.number or ''}")
        for change in shown[:_MOST_MARKS]
    ]
