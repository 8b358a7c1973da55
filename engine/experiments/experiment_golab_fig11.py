"""Update chopping (streaming warehouse, figure 11), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import JOBS, PLAIN, Case, JobClass, figure
from engine.refresh.inheritance import Inheritance

UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
WHOLE, CHOPPED = "no chopping", "chopped at 3 periods"


def experiment(options: Options) -> Report:
    """Chains of two with priorities 1 and 10, with and without chopping (streaming warehouse, fig. 11)."""
    case = Case((JobClass(JOBS // 2, (1.0, 10.0)),), 1.0)
    whole = replace(PLAIN, inheritance=Inheritance.MAX)
    contenders = {WHOLE: whole, CHOPPED: replace(whole, chop=3.0)}
    found = figure(
        "golab_fig11",
        "Fig. 11: update chopping with two priority classes",
        UTILIZATIONS,
        {name: (case, settings) for name, settings in contenders.items()},
        options,
    )
    high = [at for at in UTILIZATIONS if at >= 0.9]
    return Report(
        "Streaming warehouse, figure 11: update chopping with two priority classes (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "update chopping is an effective strategy after periods of overload",
                all(found.at(CHOPPED, at) < found.at(WHOLE, at) for at in high),
                "; ".join(found.both(WHOLE, CHOPPED, at) for at in high),
            ),
            judged(
                "and costs nothing where there is no overload",
                all(found.at(CHOPPED, at) < 1.01 * found.at(WHOLE, at) for at in (0.5, 0.6)),
                found.both(WHOLE, CHOPPED, 0.6),
            ),
        ],
    )
