"""The right-deep butterfly's ten cheapest plans (physical design, figure 9)."""

from __future__ import annotations

from engine.experiments.experiment import Claim, Options, Report, Verdict, judged
from engine.experiments.planning import FIG_9, beside, rows_in, scenario, timed
from engine.experiments.svg import Chart
from engine.plan.planner import Search

SECONDS, SIGNATURES, NODES, ACTIVITIES = 14, 49, 13, 6


def experiment(options: Options) -> Report:
    """The right-deep butterfly: ten cheapest plans and their sorters (physical design, fig. 9)."""
    reference = scenario("plan_right_deep")
    ranking, exhaustive = timed(reference, Search.EXHAUSTIVE)
    _, fast = timed(reference, Search.FAST)
    rows = rows_in(ranking)
    with_sorters = [row for row in rows if row[2]]
    shares = [100 * row[3] / row[1] for row in with_sorters]
    activities = len(ranking.space.choices)
    report = Report("Physical design, figure 9: the right-deep butterfly")
    report.tables.append(beside("plan_fig9", rows, FIG_9))
    report.claims = [
        judged(
            "the ten cheapest plans with their costs, in this order",
            rows == list(FIG_9),
            f"{sum(row == printed for row, printed in zip(rows, FIG_9, strict=True))} of 10 rows the same to the unit",
        ),
        judged(
            f"{SIGNATURES} signatures are generated, for {NODES} nodes of which {ACTIVITIES} are activities",
            (ranking.signatures, len(reference.graph.nodes), activities) == (SIGNATURES, NODES, ACTIVITIES),
            f"{ranking.signatures}: the initial state and {ranking.signatures - 1} combinations that fit",
        ),
        judged(
            "the best plan has one sorter, on V by B and C",
            rows[0][2] == 1 and "V!(B,C)" in rows[0][0],
            rows[0][0],
        ),
        judged(
            "nearly all of the ten have sorters, which cost 20 to 60 % of the plan",
            len(with_sorters) >= 9 and all(19.5 <= share <= 60 for share in shares),
            f"{len(with_sorters)} of 10 have sorters, {min(shares):.1f} to {max(shares):.1f} %; "
            "the third plan's 34.5 % is printed as 34 %",
        ),
        Claim(
            f"the search takes {SECONDS} s",
            Verdict.NOT_REPRODUCIBLE,
            f"on another machine and program; here {exhaustive * 1000:.1f} ms exhaustive, {fast * 1000:.1f} ms fast",
        ),
    ]
    report.charts.append(
        Chart(
            "plan_fig9",
            "Right-deep butterfly: the ten cheapest plans",
            "plan",
            "cost",
            {"activities": [row[1] - row[3] for row in rows], "sorters": [row[3] for row in rows]},
            [str(number) for number in range(1, 11)],
            bars=True,
        )
    )
    return report
