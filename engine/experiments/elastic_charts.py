"""Pictures of an elastic run: rate, nodes, times against their limits, queues and buffers."""

from __future__ import annotations

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
    queries = [point.query_s for point in points if point.query_s is not None]
    if len(queries) == len(points):
        times["query"] = queries
        if limits.warehouse.query_limit_s is not None:
            levels[f"query limit {limits.warehouse.query_limit_s:g} s"] = limits.warehouse.query_limit_s
    limit = limits.transformation.limit_mb
    return [
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
