"""The warehouse scales by the time of its loads (elastic, figure 16), simulated."""

from __future__ import annotations

import itertools

from engine.elastic.decision import Stage
from engine.experiments.ascale import by_stair, run, scaled, stairs
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

LIMIT_S = 60.0
EVERY_S = 120.0
SIZES_MB = list(range(100, 2501, 100))


def experiment(options: Options) -> Report:
    """Loads of growing size within 60 s: nodes are added and data rebalanced (elastic, fig. 16)."""
    loads = 6 if options.quick else 10
    row_mb = 131 / 1e6
    seconds = loads * EVERY_S
    # A database that drops and builds indexes takes some 10 MB/s a node (the paper's is such a one).
    _, result = run(
        limit_s=None,
        sample_s=20,
        settle_s=60,
        hold_s=1e6,
        rate=stairs([size / row_mb / EVERY_S for size in SIZES_MB], seconds),
        extraction={"every_s": 20},
        transformation={"queue_mb": 1000},
        switch={"limit_rows_s": 1e9},
        warehouse={"every_s": EVERY_S, "load_limit_s": LIMIT_S, "batch_mb": 100},
        capacity={"load_rows_s": 10 / row_mb, "load_fixed_s": 0.5},
    )
    rows = []
    for size, points in zip(SIZES_MB, by_stair(result.points, seconds), strict=True):
        moved = [one for one in result.rebalancings if points[0].at_s <= one.at_s <= points[-1].at_s]
        times = sorted({round(point.load_s, 3) for point in points[len(points) // 3 :]})
        rows.append((
            size, points[-1].load_s, times[-1], points[-1].nodes["warehouse"],
            sum(one.moved_mb for one in moved) or None, sum(one.seconds for one in moved) or None,
        ))  # fmt: skip
    outs = scaled(result, "scale out", Stage.WAREHOUSE)
    late = [row for row in rows if row[1] > LIMIT_S]
    grows = [
        later[1] > earlier[1] for earlier, later in itertools.pairwise(rows) if later[3] == earlier[3]
    ]  # fmt: skip
    return Report(
        "Elastic, figure 16: the warehouse by its loads (simulated)",
        [
            Table(
                "ascale_fig16",
                ("load MB", "load s", "longest s", "nodes", "rebalanced MB", "rebalancing s"),
                rows,
            )
        ],
        [
            Chart(
                "ascale_fig16",
                "Load time and warehouse nodes by the size of a load",
                "size of a load (MB)",
                "load time (seconds)",
                {"load time": [row[1] for row in rows]},
                [float(size) for size in SIZES_MB],
                levels={"limit 60 s": LIMIT_S},
                marks=[
                    (float(row[0]), f"{row[4]:,.0f} MB moved in {row[5]:.0f} s") for row in rows if row[4] and row[5]
                ],
                right={"nodes": [float(row[3]) for row in rows]},
                y_right="nodes",
            )
        ],
        [
            judged(
                "load performance degrades as the data grow",
                sum(grows) == len(grows), f"in {sum(grows)} of {len(grows)} steps without a new node",
            ),
            judged(
                "when a load takes more than 60 s a node is added",
                len(outs) >= 2 and all("more than its limit of 60 s" in change.reason for change in outs),
                f"{len(outs)} nodes added",
            ),
            judged(
                "after a new node the load is below the limit again", not late,
                f"at the end of each size: {max(row[1] for row in rows):.1f} s at most",
            ),
            judged(
                "every time a node is added the warehouse is rebalanced",
                len(result.rebalancings) == len(outs),
                ", ".join(f"{one.moved_mb:,.0f} MB in {one.seconds:.0f} s" for one in result.rebalancings),
            ),
        ],
    )  # fmt: skip
