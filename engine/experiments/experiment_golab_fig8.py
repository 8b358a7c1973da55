"""Hierarchies and inherited priorities (streaming warehouse, figure 8), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import PLAIN, Case, JobClass, figure
from engine.refresh.inheritance import Inheritance

UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
LAST = (1.0, 10.0, 100.0)  # the priorities of the third level, of as many chains each
NONE, MAX, SUM, MAX_PLUS = "no inheritance", "Max", "Sum", "Max-plus"
WAYS = {NONE: Inheritance.NONE, MAX: Inheritance.MAX, SUM: Inheritance.SUM, MAX_PLUS: Inheritance.MAX_PLUS}


def experiment(options: Options) -> Report:
    """Chains of three tables, and what the first two inherit of the last (streaming warehouse, fig. 8)."""
    case = Case(tuple(JobClass(3, (0.001, 1.0, priority)) for priority in LAST), 1.0)  # 27 jobs
    found = figure(
        "golab_fig8",
        "Fig. 8: hierarchies and inheriting priorities, chains of three",
        UTILIZATIONS,
        {name: (case, replace(PLAIN, inheritance=way)) for name, way in WAYS.items()},
        options,
    )
    overall = {name: found.overall(name) for name in found.contenders}
    means = ", ".join(f"{name} {value:.3f}" for name, value in overall.items())
    inheriting = [MAX, SUM, MAX_PLUS]
    return Report(
        "Streaming warehouse, figure 8: hierarchies and inheriting priorities (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "performance is poor if there is no inheritance",
                found.at(NONE, 0.9) > 2 * max(found.at(name, 0.9) for name in inheriting),
                f"{found.both(NONE, MAX, 0.9)}; {found.both(NONE, SUM, 0.9)}",
            ),
            judged(
                "of the three ways to inherit, Max performs best overall",
                overall[MAX] == min(overall.values()),
                f"mean over all utilizations: {means}",
            ),
            judged(
                "and Sum performs worst, with Max-plus as its formula is printed",
                overall[SUM] > overall[MAX],
                "K times the largest priority among a table and its dependent views makes every table weigh K times as "
                "much as under Max, a view without views too: the order of jobs, and so the result, is that of Max. "
                f"Mean over all utilizations: Max and Max-plus {overall[MAX]:.3f}, Sum {overall[SUM]:.3f}",
            ),
            judged(
                "and Sum performs worst, with K once for each level",
                overall[SUM] == max(overall[name] for name in inheriting),
                "so that base tables gain over their views, as the paper says of a large K. Mean over all "
                f"utilizations: {means}. In chains, Sum and any K > 1 then do the same: a source comes before its "
                "view, where Max leaves that to the freshness deltas; so these two are level",
            ),
        ],
    )
