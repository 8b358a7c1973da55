"""Prioritized jobs (streaming warehouse, figure 7), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import JOBS, PLAIN, Case, JobClass, figure

UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
PRIORITIZED, EDF, RANDOM = "Max Benefit", "EDF", "Random"


def experiment(options: Options) -> Report:
    """Priorities 1 and 10 under algorithms that know them and that do not (streaming warehouse, fig. 7)."""
    case = Case((JobClass(JOBS // 2), JobClass(JOBS // 2, (10.0,))), 1.0)
    policies = {PRIORITIZED: "max-benefit", EDF: "edf", RANDOM: "random"}
    found = figure(
        "golab_fig7",
        "Fig. 7: effects of prioritized jobs, priorities 1 and 10",
        UTILIZATIONS,
        {name: (case, replace(PLAIN, policy=policy)) for name, policy in policies.items()},
        options,
    )
    late = [at for at in UTILIZATIONS if at >= 0.8]
    share = max((found.at(PRIORITIZED, at) - 1) / (min(found.at(EDF, at), found.at(RANDOM, at)) - 1) for at in late)
    return Report(
        "Streaming warehouse, figure 7: effects of prioritized jobs (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "the prioritized algorithm incurs a far lower lateness than EDF and Random",
                share < 0.5,
                f"from 80 % on, its lateness beyond 1 is at most {share:.2f} of theirs; "
                f"{found.both(PRIORITIZED, EDF, 1.0)}, {found.both(PRIORITIZED, RANDOM, 1.0)}",
            )
        ],
    )
