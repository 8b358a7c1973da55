"""The warehouse scales by the number of sessions (elastic, figure 18, workload 2), simulated."""

from __future__ import annotations

import math
from statistics import fmean

from engine.experiments.ascale import POOL
from engine.experiments.ascale_queries import LIMIT_S, SIZE_MB, queried
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

SESSIONS = range(1, 9)


def experiment(options: Options) -> Report:
    """50 GB, 1 to 8 sessions, queries within 60 s, 12 nodes (elastic, fig. 18)."""
    rows = []
    nodes = 1
    told: list[int] = []
    for sessions in SESSIONS:
        options.say(f"{sessions} sessions")
        result = queried(sessions, nodes)
        nodes = result.points[-1].nodes["warehouse"]
        moved = [one.seconds for one in result.rebalancings]
        average = result.points[-1].query_s or 0.0
        rows.append((sessions, nodes, SIZE_MB / 1000 / nodes, average, fmean(moved) if moved else None))
        if any(change.kind == "unreachable" for change in result.changes):
            told.append(sessions)
    over = [row[0] for row in rows if row[3] > LIMIT_S]
    return Report(
        "Elastic, figure 18: the warehouse by its sessions, workload 2 (simulated)",
        [Table("ascale_fig18", ("sessions", "nodes", "GB a node", "average query s", "average rebalancing s"), rows)],
        [
            Chart(
                "ascale_fig18",
                "Average query time by sessions, 50 GB",
                "sessions: GB a node, nodes",
                "query time (seconds)",
                {"average query time": [row[3] for row in rows]},
                [f"{row[0]}: {row[2]:.1f}, {row[1]}" for row in rows],
                bars=True,
                levels={"limit 60 s": LIMIT_S},
                right={"average rebalancing time": [row[4] or math.nan for row in rows]},
                y_right="rebalancing (seconds)",
            )
        ],
        [
            judged(
                "while the sessions increase the system scales the nodes",
                [row[1] for row in rows] == sorted(row[1] for row in rows) and rows[-1][1] > rows[0][1],
                ", ".join(f"{row[0]}: {row[1]}" for row in rows) + " nodes",
            ),
            judged(
                "the average follows the limit, but for the last result: 12 nodes are not enough for it",
                over == [SESSIONS[-1]] and rows[-1][1] == POOL,
                f"above 60 s with {', '.join(map(str, over)) or 'no number of'} sessions "
                f"({rows[-1][3]:.1f} s with 8 sessions on {rows[-1][1]} nodes)",
            ),
            judged("a limit that cannot be kept is told", told == over, f"told with {told} sessions, late with {over}"),
        ],
    )  # fmt: skip
