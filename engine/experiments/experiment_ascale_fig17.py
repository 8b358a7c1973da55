"""The warehouse scales by the time of its queries (elastic, figure 17, workload 1), simulated."""

from __future__ import annotations

from engine.experiments.ascale_queries import LIMIT_S, SIZE_MB, queried
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

WORKLOAD = 4  # queries: Q1.1, Q2.1, Q3.1, Q4.1


def experiment(options: Options) -> Report:
    """50 GB, four SSB queries within 60 s on average: nodes are added until they are (elastic, fig. 17)."""
    result = queried(sessions=1, nodes=1)
    seen: dict[int, float] = {}
    for point in result.points:
        assert point.query_s is not None
        seen.setdefault(point.nodes["warehouse"], point.query_s)
    moved = {one.nodes_after: one for one in result.rebalancings}
    rows = [
        (
            nodes, SIZE_MB / 1000 / nodes, seconds, seconds * WORKLOAD,
            moved[nodes].moved_mb if nodes in moved else None, moved[nodes].seconds if nodes in moved else None,
        )
        for nodes, seconds in seen.items()
    ]  # fmt: skip
    times = [row[2] for row in rows]
    last = result.changes[-1]
    return Report(
        "Elastic, figure 17: the warehouse by its queries, workload 1 (simulated)",
        [
            Table(
                "ascale_fig17",
                ("nodes", "GB a node", "average query s", "workload s", "rebalanced MB", "rebalancing s"),
                rows,
            )
        ],
        [
            Chart(
                "ascale_fig17",
                "Average query time by nodes, 50 GB",
                "nodes: GB a node",
                "time (seconds)",
                {"average query time": times, "rebalancing time": [row[5] or float("nan") for row in rows]},
                [f"{row[0]}: {row[1]:.1f}" for row in rows],
                levels={"limit 60 s": LIMIT_S},
            )
        ],
        [
            judged(
                "every time the average is above the limit one node is added",
                [row[0] for row in rows] == list(range(1, len(rows) + 1)) and min(times[:-1]) > LIMIT_S,
                ", ".join(f"{row[0]}: {row[2]:.0f} s" for row in rows),
            ),
            judged(
                "once the average is below the limit it stops scaling",
                times[-1] <= LIMIT_S and last.at_s < result.seconds / 2,
                f"{times[-1]:.1f} s with {rows[-1][0]} nodes; the last was added after {last.at_s:,.0f} of "
                f"{result.seconds:,.0f} s",
            ),
            judged(
                "each scale-out takes a rebalancing, a shorter one the more nodes there are",
                len(result.rebalancings) == len(rows) - 1
                and [one.seconds for one in result.rebalancings]
                == sorted((one.seconds for one in result.rebalancings), reverse=True),
                ", ".join(f"{one.seconds:.0f} s" for one in result.rebalancings),
            ),
        ],
    )  # fmt: skip
