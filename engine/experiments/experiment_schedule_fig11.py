"""The effect of selectivity on two workflows (scheduling, figure 11), simulated."""

from __future__ import annotations

from itertools import pairwise

from engine.experiments.experiment import Cell, Options, Report, Table, judged
from engine.experiments.scheduling_runs import NAMES, SINGLE, measured
from engine.experiments.svg import Chart

WORKFLOWS = ("butterfly", "primary flow")
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)
MEASURES = {"seconds": "execution time (virtual seconds)", "avg_packs": "average memory", "max_packs": "maximum memory"}


def experiment(options: Options) -> Report:
    """Time, average and maximum memory as the checks let more rows pass (scheduling, fig. 11)."""
    scale = 0.1 if options.quick else 1.0

    def found(name: str, kept: float, policy: str, what: str) -> float:
        return measured(name, scale, policy, kept)[what]

    rows: list[tuple[Cell, ...]] = [
        (name, kept, what, *(round(found(name, kept, policy, what), 3) for policy in SINGLE))
        for name in WORKFLOWS
        for kept in SHARES
        for what in MEASURES
    ]
    charts = [
        Chart(
            f"schedule_fig11_{name.replace(' ', '_')}_{what}",
            f"{name} at scale {scale:g}: {title} by selectivity",
            "share of rows that the checks let pass",
            title,
            {NAMES[policy]: [found(name, kept, policy, what) for kept in SHARES] for policy in SINGLE},
            list(SHARES),
        )
        for name in WORKFLOWS
        for what, title in MEASURES.items()
    ]
    cases = [(name, kept) for name in WORKFLOWS for kept in SHARES]
    slow = sum(
        found(*case, "mm", "seconds") > max(found(*case, "rr", "seconds"), found(*case, "mc", "seconds"))
        for case in cases
    )
    lean = [
        found(*case, "mm", "avg_packs") / min(found(*case, "rr", "avg_packs"), found(*case, "mc", "avg_packs"))
        for case in cases
    ]
    rising = all(
        found(name, less, policy, "seconds") < found(name, more, policy, "seconds")
        for name in WORKFLOWS
        for policy in SINGLE
        for less, more in pairwise(SHARES)
    )
    return Report(
        "Scheduling, figure 11: the effect of selectivity (simulated)",
        [Table("schedule_fig11", ("workflow", "rows kept", "measure", *(NAMES[policy] for policy in SINGLE)), rows)],
        charts,
        [
            judged("the more rows pass, the longer it takes, as with the data's size", rising, "under every policy"),
            judged("MM is the slowest at every selectivity", slow == len(cases), f"in {slow} of {len(cases)} cases"),
            judged(
                "MM needs significantly less memory on average at every selectivity",
                max(lean) <= 0.5,
                f"between {min(lean):.2f} and {max(lean):.2f} of the better of the other two",
            ),
        ],
    )
