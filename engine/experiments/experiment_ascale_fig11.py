"""The full system scales in as the data rate falls (elastic, figure 11), simulated."""

from __future__ import annotations

from engine.elastic.decision import Stage
from engine.experiments.ascale import HIGH, LOW, OVER_S, STEP, after, by_stair, run, scaled, stair_s, stairs, where
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

REST_S = 600.0


def experiment(options: Options) -> Report:
    """Nodes go back to the pool as the rate falls, later than they came (elastic, fig. 11)."""
    seconds = stair_s(options)
    up = list(range(LOW, HIGH + 1, STEP))
    down = up[::-1]
    # The last node's facts take minutes to move, so the lowest rate lasts.
    rest = [LOW] * round(REST_S / seconds)
    limits, result = run(rate=stairs([*up, *down, *rest], seconds))
    assert limits.limit_s is not None
    halves = by_stair(result.points, seconds)
    lasts = 2 * len(up) - 1
    halves[lasts:] = [[point for points in halves[lasts:] for point in points]]
    rising = {rate: max(point.etl_s for point in points) for rate, points in zip(up, halves, strict=False)}
    nodes_up = {rate: sum(points[-1].nodes.values()) for rate, points in zip(up, halves, strict=False)}
    rows = []
    for rate, points in zip(down, halves[len(up) :], strict=False):
        nodes = points[-1].nodes
        worst = max(point.etl_s for point in points)
        rows.append((rate, worst, *nodes.values(), sum(nodes.values()), nodes_up[rate], rising[rate]))
    outs, ins = scaled(result, "scale out"), scaled(result, "scale in")
    came = {(change.stage, after(change)): change.rate_rows_s for change in outs}
    pairs = [(change, came[change.stage, change.nodes]) for change in ins if (change.stage, change.nodes) in came]
    later = sum(change.rate_rows_s < rate for change, rate in pairs)
    longest = max(row[1] for row in rows)
    last = result.points[-1].nodes
    headings = ("rows/s", "ETL time s", *(stage.value for stage in Stage), "nodes", "nodes rising", "ETL time rising s")
    lowest = max((change.rate_rows_s for change in ins), default=0.0)
    return Report(
        "Elastic, figure 11: the full system scales in (simulated)",
        [Table("ascale_fig11", headings, rows)],
        [
            Chart(
                "ascale_fig11",
                "ETL time and nodes by data rate, scaling in (rate falls from right to left)",
                "data rate (rows/s)",
                "time (seconds)",
                {"extraction, transformation and load": [row[1] for row in rows[::-1]]},
                [float(rate) for rate in up],
                levels={f"limit {limits.limit_s:g} s": limits.limit_s},
                marks=[(change.rate_rows_s, f"{change.stage.value} −{change.number}") for change in ins],
                right={
                    "nodes falling": [float(row[7]) for row in rows[::-1]],
                    "nodes rising": [float(row[8]) for row in rows[::-1]],
                },
                y_right="nodes",
            )
        ],
        [
            judged(
                "nodes that are no longer necessary are set on standby, ready for other parts",
                all(number == 1 for number in last.values()),
                f"{sum(last.values())} nodes at 10,000 rows/s; {where(ins)}",
            ),
            judged(
                "scale-in comes at a later stage than scale-out", bool(pairs) and later == len(pairs),
                f"{later} of {len(pairs)} nodes leave at a lower rate than they came at; the first leaves at "
                f"{lowest:,.0f} rows/s",
            ),
            judged(
                "the time stays within the limit of 3 s plus 0.2 s while nodes leave",
                longest <= limits.limit_s + OVER_S, f"{longest:.2f} s at most",
            ),
        ],
    )  # fmt: skip
