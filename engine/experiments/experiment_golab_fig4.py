"""The slowdown factor (streaming warehouse, figure 4), simulated."""

from __future__ import annotations

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import JOBS, PLAIN, Case, JobClass, figure

UTILIZATIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SLOWDOWNS = (2.0, 3.0, 5.0, 10.0)


def experiment(options: Options) -> Report:
    """How much slower slow periods are, and what that does to lateness (streaming warehouse, fig. 4)."""
    contenders = {
        f"S = {slowdown:g}": (Case((JobClass(JOBS),), 1.0, slowdown=slowdown), PLAIN) for slowdown in SLOWDOWNS
    }
    found = figure("golab_fig4", "Fig. 4: the effect of the slowdown factor", UTILIZATIONS, contenders, options)
    names = list(contenders)
    at_80 = [found.at(name, 0.8) for name in names]
    rising = all(found.at(name, 0.5) < found.at(name, 0.8) < found.at(name, 1.0) for name in names)
    return Report(
        "Streaming warehouse, figure 4: the effect of slowdowns on relative lateness (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "the slowdown factor can have a significant effect on the lateness",
                max(at_80) > 2 * min(at_80),
                f"at 80 %: {', '.join(f'{name}: {value:.2f}' for name, value in zip(names, at_80, strict=True))}",
            ),
            judged(
                "other values of S than 3 yield similar results: lateness rises with utilization for all of them",
                rising,
                f"for S = 3 from {found.at('S = 3', 0.5):.2f} at 50 % to {found.at('S = 3', 1.0):.2f} at 100 %",
            ),
        ],
    )
