"""Average memory under each policy (scheduling, figure 5), simulated."""

from __future__ import annotations

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.scheduling import ARCHETYPES
from engine.experiments.scheduling_runs import average, averages

SCALED = True


def experiment(options: Options) -> Report:
    """Average memory of the archetypes under RR, MC and MM (scheduling, fig. 5)."""
    table, chart = averages("schedule_fig5", "avg_packs", "memory (row packs)", options)
    rr, mc, mm = (average("avg_packs", policy, options) for policy in ("rr", "mc", "mm"))
    least = all(
        average("avg_packs", "mm", options, name)
        < min(average("avg_packs", "rr", options, name), average("avg_packs", "mc", options, name))
        for name in ARCHETYPES
    )
    return Report(
        "Scheduling, figure 5: average memory (simulated)",
        [table],
        [chart],
        [
            judged(
                "MM is clearly superior to the other two in memory",
                least and mm < min(rr, mc) / 2,
                f"{mm:.1f} row packs against {mc:.1f} (MC) and {rr:.1f} (RR), and least on every workflow",
            ),
        ],
    )
