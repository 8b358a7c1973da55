"""Average memory over the data's size (scheduling, figure 9), simulated."""

from __future__ import annotations

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.scheduling import ARCHETYPES
from engine.experiments.scheduling_runs import average, by_scale, everywhere, measured, scales

SCALED = True


def experiment(options: Options) -> Report:
    """Average memory of each archetype as the data grow (scheduling, fig. 9)."""
    table, charts = by_scale("schedule_fig9", "avg_packs", "average memory (row packs)", options)

    def packs(name: str, scale: float, policy: str) -> float:
        return measured(name, scale, policy)["avg_packs"]

    least, cases = everywhere(
        options, lambda name, scale: packs(name, scale, "mm") < min(packs(name, scale, "rr"), packs(name, scale, "mc"))
    )
    worse, _ = everywhere(options, lambda name, scale: packs(name, scale, "rr") >= packs(name, scale, "mc"))
    shares = [
        packs(name, scale, "mm") / packs(name, scale, other)
        for name in ARCHETYPES
        for scale in scales(options)
        for other in ("rr", "mc")
    ]
    means = {
        policy: {name: average("avg_packs", policy, options, name) for name in ARCHETYPES} for policy in ("mc", "mm")
    }
    heavy = ("fork", "butterfly", "primary flow")
    light = ("line", "wishbone", "tree")
    spread = max(means["mm"].values()) - min(means["mm"].values())
    return Report(
        "Scheduling, figure 9: average memory by data size (simulated)",
        [table],
        charts,
        [
            judged("MM outperforms the other two in all cases", least == cases, f"in {least} of {cases}"),
            judged(
                "RR is worse than MC", worse > 0.9 * cases,
                f"RR needs at least as much in {worse} of {cases} cases. On a line and on a fork both take the same "
                "turns, and RR's idle calls only lengthen the run, by less than 1 %: the same packs over a longer time",
            ),
            judged(
                "MM's average memory ranges between 1/2 and 1/10 of the others'",
                max(shares) <= 0.5 and min(shares) <= 0.1,
                f"between {max(shares):.2f} and {min(shares):.2f} of it; in {sum(one < 0.1 for one in shares)} of "
                f"{len(shares)} comparisons less than 1/10, which is more saved than the paper says",
            ),
            judged(
                "workflows with a right wing or many memory-intensive activities need more than others",
                min(means["mc"][name] for name in heavy) > max(means["mc"][name] for name in light),
                ", ".join(f"{name} {found:.0f}" for name, found in means["mc"].items()) + " packs under MC",
            ),
            judged(
                "MM remains practically stable, whatever the workflow",
                spread < (max(means["mc"].values()) - min(means["mc"].values())),
                f"between {min(means['mm'].values()):.1f} and {max(means['mm'].values()):.1f} packs, "
                f"MC between {min(means['mc'].values()):.1f} and {max(means['mc'].values()):.1f}",
            ),
        ],
    )  # fmt: skip
