"""Heterogeneous jobs (streaming warehouse, figure 9), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import PLAIN, Case, figure
from engine.experiments.golab_heterogeneous import JOB_CLASSES, UTILIZATIONS

ONE, PARTITIONED, PROPORTIONAL = "Max Benefit", "EDF-partitioned", "Proportional"


def experiment(options: Options) -> Report:
    """Periods of 100 and 10,000: one queue, EDF-partitioned, Proportional (streaming warehouse, fig. 9)."""
    case = Case(JOB_CLASSES, 1.0)
    contenders = {
        ONE: PLAIN,
        PARTITIONED: replace(PLAIN, sharing="edf-partitioned"),
        PROPORTIONAL: replace(PLAIN, sharing="proportional"),
    }
    found = figure(
        "golab_fig9",
        "Fig. 9: effects of heterogeneous jobs, periods 100 and 10,000",
        UTILIZATIONS,
        {name: (case, settings) for name, settings in contenders.items()},
        options,
    )
    low = [at for at in UTILIZATIONS if at <= 0.5]
    overall = {name: found.overall(name) for name in contenders}
    means = ", ".join(f"{name} {value:.2f}" for name, value in overall.items())
    return Report(
        "Streaming warehouse, figure 9: effects of heterogeneous jobs (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "without partitioning, lateness is large",
                found.at(ONE, 0.5) > 1.3,
                f"Max Benefit on one queue: {', '.join(f'{found.at(ONE, at):.2f} at {100 * at:g} %' for at in low)}",
            ),
            judged(
                "EDF-partitioned is better than one queue at lower utilizations",
                all(found.at(PARTITIONED, at) < found.at(ONE, at) for at in low),
                found.both(ONE, PARTITIONED, 0.5),
            ),
            judged(
                "and worse at higher ones",
                found.at(PARTITIONED, 1.0) > found.at(ONE, 1.0),
                found.both(ONE, PARTITIONED, 1.0),
            ),
            judged(
                "Proportional is best overall",
                overall[PROPORTIONAL] == min(overall.values()),
                f"mean over all utilizations: {means}",
            ),
        ],
    )
