"""Transformation scales with the size of its queues (elastic, figure 14), simulated."""

from __future__ import annotations

import math

from engine.elastic.decision import Stage
from engine.experiments.ascale import by_stair, run, scaled, stairs, where
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

RATES = list(range(50_000, 700_001, 50_000))
SECONDS = 60.0
LIMIT_ROWS = 380_000  # 50 MB, the paper says
MOST = 4


def experiment(options: Options) -> Report:
    """Average queue of each transformation node by data rate, limit 50 MB (elastic, fig. 14)."""
    seconds = SECONDS / 2 if options.quick else SECONDS
    limits, result = run(
        limit_s=None,
        pool=30,
        rate=stairs(RATES, seconds),
        extraction={"every_s": 2, "nodes": {"min": 4}},
        switch={"limit_rows_s": 1e9},
        warehouse={"every_s": 2, "nodes": {"min": 6}},
    )
    row_mb = limits.capacity.row_bytes / 1e6
    rows: list[tuple[float, ...]] = []
    numbers = []
    for rate, points in zip(RATES, by_stair(result.points, seconds), strict=True):
        settled = [point for point in points if point.nodes == points[-1].nodes]
        number = points[-1].nodes["transformation"]
        averages = [sum(point.queues_mb[node] for point in settled) / len(settled) / row_mb for node in range(number)]
        worst = max(point.queue_mb for point in points) / row_mb
        numbers.append(number)
        rows.append((rate, number, *averages, *[math.nan] * (MOST - number), worst))
    outs = scaled(result, "scale out", Stage.TRANSFORMATION)
    most = max(numbers)
    heads = [f"node {node + 1}" for node in range(MOST)]
    over = [row for row in rows if max(value for value in row[2:6] if not math.isnan(value)) > LIMIT_ROWS]
    return Report(
        "Elastic, figure 14: transformation (simulated)",
        [
            Table(
                "ascale_fig14",
                ("rows/s", "nodes", *heads, "longest queue"),
                [tuple(None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row) for row in rows],
                "average queue of each node, in rows",
            )
        ],
        [
            Chart(
                "ascale_fig14",
                "Average queue of each transformation node",
                "data rate (rows/s)",
                "queue (rows)",
                {head: [float(row[2 + node]) for row in rows] for node, head in enumerate(heads)},
                [f"{rate // 1000}k" for rate in RATES],
                bars=True,
                levels={"limit 50 MB, about 380,000 rows": LIMIT_ROWS},
            )
        ],
        [
            judged(
                "when a queue grows above 50 MB, about 380,000 rows, a node is added",
                bool(outs) and all("above its limit of 50 MB" in change.reason for change in outs), where(outs),
            ),
            judged("up to 4 nodes", most == MOST, f"{most} at {RATES[-1]:,} rows/s"),
            judged(
                "with the new node the queues are within their limit at every rate", not over,
                f"{len(over)} of {len(rows)} rates with an average queue above {LIMIT_ROWS:,} rows",
            ),
            judged(
                "data are distributed to all nodes",
                all(
                    max(row[2 : 2 + number]) - min(row[2 : 2 + number]) < 0.1 * LIMIT_ROWS
                    for row, number in zip(rows, numbers, strict=True)
                ),
                "the queues of one rate differ by less than a tenth of the limit",
            ),
        ],
    )  # fmt: skip
