"""Maximum memory over the data's size (scheduling, figure 10), simulated."""

from __future__ import annotations

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.scheduling import ARCHETYPES
from engine.experiments.scheduling_runs import by_scale, everywhere, measured, scales

SCALED = True


def experiment(options: Options) -> Report:
    """Maximum memory of each archetype as the data grow (scheduling, fig. 10)."""
    table, charts = by_scale("schedule_fig10", "max_packs", "maximum memory (row packs)", options)

    def packs(name: str, scale: float, policy: str) -> float:
        return measured(name, scale, policy)["max_packs"]

    by_mc, cases = everywhere(
        options, lambda name, scale: packs(name, scale, "mc") <= min(packs(name, scale, "rr"), packs(name, scale, "mm"))
    )
    below, _ = everywhere(options, lambda name, scale: packs(name, scale, "mc") <= packs(name, scale, "rr"))
    last, middle = scales(options)[-1], scales(options)[len(scales(options)) // 2]
    stable = [name for name in ARCHETYPES if packs(name, last, "mc") == packs(name, middle, "mc")]
    return Report(
        "Scheduling, figure 10: maximum memory by data size (simulated)",
        [table],
        charts,
        [
            judged(
                "in most cases MC gives the lowest peaks",
                by_mc > cases / 2,
                f"in {by_mc} of {cases} cases; in all others MM does. Here a blocking unit under MM hands on no more "
                "than its consumers work off in a slot, so that MM's peaks stay near its average; the paper's text on "
                "figure A1 says the same of its engine, against its figure 10",
            ),
            judged("MC's peaks are no higher than RR's", below == cases, f"in {below} of {cases} cases"),
            judged(
                "peaks are practically indifferent to the data's size",
                len(stable) >= len(ARCHETYPES) - 1,
                f"the same at scale {middle:g} and {last:g} under MC: {', '.join(stable)}",
            ),
        ],
    )
