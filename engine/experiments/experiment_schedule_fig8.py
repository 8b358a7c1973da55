"""Execution time over the data's size (scheduling, figure 8), simulated."""

from __future__ import annotations

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.scheduling import ARCHETYPES
from engine.experiments.scheduling_runs import SINGLE, by_scale, everywhere, measured, scales

SCALED = True


def experiment(options: Options) -> Report:
    """Execution time of each archetype as the data grow (scheduling, fig. 8)."""
    table, charts = by_scale("schedule_fig8", "seconds", "execution time (virtual seconds)", options)

    def seconds(name: str, scale: float, policy: str) -> float:
        return measured(name, scale, policy)["seconds"]

    first, last = scales(options)[0], scales(options)[-1]
    bends = [
        abs(seconds(name, last, policy) / seconds(name, first, policy) / (last / first) - 1)
        for name in ARCHETYPES
        for policy in SINGLE
    ]
    worst, cases = everywhere(
        options,
        lambda name, scale: seconds(name, scale, "mm") > max(seconds(name, scale, "rr"), seconds(name, scale, "mc")),
    )
    better, _ = everywhere(options, lambda name, scale: seconds(name, scale, "mc") <= seconds(name, scale, "rr"))
    gaps = [
        seconds(name, scale, "rr") / seconds(name, scale, "mc") - 1 for name in ARCHETYPES for scale in scales(options)
    ]
    return Report(
        "Scheduling, figure 8: execution time by data size (simulated)",
        [table],
        charts,
        [
            judged(
                "the effect of the data's size on the time is linear in almost all cases",
                max(bends) <= 0.05,
                f"from scale {first:g} to {last:g}, at most {100 * max(bends):.1f} % off a straight line",
            ),
            judged("typically MM is the slowest", worst > 0.9 * cases, f"in {worst} of {cases} cases"),
            judged(
                "MC is slightly better than RR, and the difference is small",
                better == cases and max(gaps) < 0.05,
                f"no slower in {better} of {cases} cases, at most {100 * max(gaps):.2f} % quicker",
            ),
        ],
    )
