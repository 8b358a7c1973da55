"""Variants of Proportional (streaming warehouse, figure 10), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import PLAIN, Case, figure
from engine.experiments.golab_heterogeneous import JOB_CLASSES, UTILIZATIONS

BASIC, ALL, AGGRESSIVE = "basic", "all", "all, aggressive"


def experiment(options: Options) -> Report:
    """Proportional with free tracks, with all tracks shared out, and aggressive (streaming warehouse, fig. 10)."""
    case = Case(JOB_CLASSES, 1.0)
    basic = replace(PLAIN, sharing="proportional")
    contenders = {
        BASIC: basic,
        ALL: replace(basic, all_tracks=True),
        AGGRESSIVE: replace(basic, all_tracks=True, aggressive=True),
    }
    found = figure(
        "golab_fig10",
        "Fig. 10: Proportional scheduling variations",
        UTILIZATIONS,
        {name: (case, settings) for name, settings in contenders.items()},
        options,
    )
    lower = [at for at in UTILIZATIONS if at <= 0.7]
    best = [
        at for at in UTILIZATIONS if found.at(AGGRESSIVE, at) <= 1.01 * min(found.at(name, at) for name in (BASIC, ALL))
    ]
    return Report(
        "Streaming warehouse, figure 10: Proportional scheduling variations (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "allocating all tracks is significantly better at lower utilizations than leaving free ones",
                all(found.at(ALL, at) < found.at(BASIC, at) for at in lower),
                f"{found.both(BASIC, ALL, 0.3)}; {found.both(BASIC, ALL, 0.5)}",
            ),
            judged(
                "aggressive on top of it is good at all utilizations: best everywhere",
                len(best) == len(UTILIZATIONS),
                f"best, or within 1 % of it, at {len(best)} of {len(UTILIZATIONS)} utilizations; "
                f"{found.both(ALL, AGGRESSIVE, 0.8)}; {found.both(BASIC, AGGRESSIVE, 1.0)}",
            ),
        ],
    )
