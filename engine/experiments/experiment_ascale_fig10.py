"""The full system scales out as the data rate grows (elastic, figure 10), simulated."""

from __future__ import annotations

from engine.elastic.decision import Stage
from engine.experiments.ascale import (
    HIGH,
    LOW,
    OVER_S,
    POOL,
    SCENARIO,
    STEP,
    by_stair,
    run,
    scaled,
    stair_s,
    stairs,
    where,
)
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart


def experiment(options: Options) -> Report:
    """ETL time kept within 3 s from 10,000 to 500,000 rows/s by adding nodes (elastic, fig. 10)."""
    seconds = stair_s(options)
    rates = list(range(LOW, HIGH + 1, STEP))
    limits, result = run(rate=stairs(rates, seconds))
    assert limits.limit_s is not None
    rows = []
    for rate, points in zip(rates, by_stair(result.points, seconds), strict=True):
        nodes = points[-1].nodes
        worst = max(point.etl_s for point in points)
        rows.append((rate, worst, *nodes.values(), sum(nodes.values())))
    outs = scaled(result, "scale out")
    longest = max(row[1] for row in rows)
    tight = _first_out(0.5)
    loose = _first_out(1.9)
    grown = {change.stage for change in outs}
    headings = ("rows/s", "ETL time s", *(stage.value for stage in Stage), "nodes")
    return Report(
        "Elastic, figure 10: the full system scales out (simulated)",
        [Table("ascale_fig10", headings, rows)],
        [
            Chart(
                "ascale_fig10",
                "ETL time and nodes by data rate, scaling out",
                "data rate (rows/s)",
                "time (seconds)",
                {"extraction, transformation and load": [row[1] for row in rows]},
                [float(rate) for rate in rates],
                levels={f"limit {limits.limit_s:g} s": limits.limit_s},
                marks=[(change.rate_rows_s, f"{change.stage.value} +{change.number}") for change in outs],
                right={"all nodes": [float(row[-1]) for row in rows]},
                y_right="nodes",
            )
        ],
        [
            judged(
                "from 10,000 to 500,000 rows/s the time stays within the limit of 3 s plus 0.2 s",
                longest <= limits.limit_s + OVER_S, f"{longest:.2f} s at most",
            ),
            judged(
                "each module scales on its own, where it is overloaded",
                {Stage.EXTRACTION, Stage.TRANSFORMATION, Stage.WAREHOUSE} <= grown, where(outs),
            ),
            judged(f"{POOL} nodes are enough", result.most_nodes <= POOL, f"{result.most_nodes} at most"),
            judged(
                "with a lower execution time it scales out earlier, with a higher one later",
                tight < outs[0].rate_rows_s < loose,
                f"first node added at {tight:,.0f} rows/s with limits of 0.5 s, {outs[0].rate_rows_s:,.0f} with 1 s, "
                f"{loose:,.0f} with 1.9 s",
            ),
        ],
    )  # fmt: skip


def _first_out(limit_s: float) -> float:
    """The rate at which the first node is added where extraction and load may take so long."""
    _, result = run(
        limit_s=None,
        rate=stairs(list(range(LOW, HIGH + 1, STEP)), 20.0),
        extraction=SCENARIO["extraction"] | {"limit_s": limit_s},
        transformation={"queue_mb": 100 * limit_s},
        warehouse=SCENARIO["warehouse"] | {"load_limit_s": limit_s},
    )
    return scaled(result, "scale out")[0].rate_rows_s
