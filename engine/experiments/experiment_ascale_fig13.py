"""Extraction scales with the data rate (elastic, figure 13), simulated."""

from __future__ import annotations

from engine.elastic.decision import Stage
from engine.experiments.ascale import LOW, OVER_S, STEP, by_stair, run, scaled, stair_s, stairs, where
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

HIGH = 650_000
LIMIT_S = 1.0


def experiment(options: Options) -> Report:
    """Extraction every 3 s within 1 s: each time it takes longer a node is added (elastic, fig. 13)."""
    seconds = stair_s(options)
    rates = list(range(LOW, HIGH + 1, STEP))
    # Extraction alone: the stages after it have all the nodes they need.
    _, result = run(
        limit_s=None,
        pool=30,
        rate=stairs(rates, seconds),
        extraction={"every_s": 3, "limit_s": LIMIT_S, "margin_s": 0.05},
        transformation={"queue_mb": 1000, "nodes": {"min": 4}},
        switch={"limit_rows_s": 1e9},
        warehouse={"every_s": 10, "nodes": {"min": 4}},
    )
    rows = []
    for rate, points in zip(rates, by_stair(result.points, seconds), strict=True):
        times = [point.extraction_s for point in points]
        rows.append((rate, sum(times) / len(times), max(times), points[-1].nodes["extraction"]))
    outs = scaled(result, "scale out", Stage.EXTRACTION)
    first = {rate: number for number, rate in enumerate(rates)}
    drops = [
        (rows[first[round(change.rate_rows_s)] - 1][1], rows[first[round(change.rate_rows_s)] + 1][1])
        for change in outs
    ]
    longest = max(row[2] for row in rows)
    return Report(
        "Elastic, figure 13: extraction (simulated)",
        [Table("ascale_fig13", ("rows/s", "average extraction s", "longest s", "nodes"), rows)],
        [
            Chart(
                "ascale_fig13",
                "Extraction time and nodes by data rate",
                "data rate (rows/s)",
                "time (seconds)",
                {"average extraction time": [row[1] for row in rows]},
                [float(rate) for rate in rates],
                levels={"limit 1 s": LIMIT_S},
                right={"extraction nodes": [float(row[3]) for row in rows]},
                y_right="nodes",
            )
        ],
        [
            judged(
                "each time the extraction takes more than 1 s a node is added, and only then",
                len(outs) >= 2 and all("more than its limit" in change.reason for change in outs), where(outs),
            ),
            judged(
                "after a node is added the extraction time improves",
                all(later < earlier for earlier, later in drops),
                ", ".join(f"{earlier:.2f} → {later:.2f} s" for earlier, later in drops),
            ),
            judged("it stays within 1 s plus 0.2 s", longest <= LIMIT_S + OVER_S, f"{longest:.2f} s at most"),
        ],
    )  # fmt: skip
