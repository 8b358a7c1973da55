"""Average execution time under each policy (scheduling, figure 4), simulated."""

from __future__ import annotations

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.scheduling_runs import average, averages

SCALED = True


def experiment(options: Options) -> Report:
    """Average execution time of the archetypes under RR, MC and MM (scheduling, fig. 4)."""
    table, chart = averages("schedule_fig4", "seconds", "execution time (virtual seconds)", options)
    rr, mc, mm = (average("seconds", policy, options) for policy in ("rr", "mc", "mm"))
    return Report(
        "Scheduling, figure 4: average execution time (simulated)",
        [table],
        [chart],
        [
            judged("on average MC performs better than RR", mc < rr, f"{mc:.2f} s against {rr:.2f} s"),
            judged(
                "MM is slower than the other two", mm > max(rr, mc), f"{mm:.2f} s, {100 * (mm / mc - 1):.1f} % above MC"
            ),
        ],
    )
