"""Uniform jobs without slowdowns (streaming warehouse, figure 6), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import JOBS, PLAIN, Case, JobClass, figure, lateness

TRACKS = 5
UTILIZATIONS = (0.7, 0.8, 0.9, 0.95, 1.0, 1.02, 1.05)
ONE, RANDOM, PARTITIONED, PROPORTIONAL = "Max Benefit", "Random", "EDF-partitioned", "Proportional"
# The scheduler knows alpha and beta as they are at 85 %, the most for which EDF-partitioned fits the jobs into five
# tracks (and not into four); the simulation always runs slowed down to the utilization, as the paper's did.
KNOWN = 0.85


def experiment(options: Options) -> Report:
    """Uniform jobs on five tracks, no slowdowns: is partitioning needed? (streaming warehouse, fig. 6)"""
    case = Case((JobClass(JOBS),), 1.0, tracks=TRACKS, slowdown=1.0, known=KNOWN)
    one = replace(PLAIN, tracks=TRACKS)
    contenders = {
        ONE: one,
        RANDOM: replace(one, policy="random"),
        PARTITIONED: replace(one, sharing="edf-partitioned"),
        PROPORTIONAL: replace(one, sharing="proportional"),
    }
    found = figure(
        "golab_fig6",
        "Fig. 6: no slowdowns, uniform jobs, five tracks",
        UTILIZATIONS,
        {name: (case, settings) for name, settings in contenders.items()},
        options,
    )
    worst = [
        at
        for at in UTILIZATIONS
        if found.at(PARTITIONED, at) > max(found.at(name, at) for name in contenders if name != PARTITIONED)
    ]
    level = max(abs(found.at(PROPORTIONAL, at) / found.at(ONE, at) - 1) for at in UTILIZATIONS)
    past = UTILIZATIONS[-1]
    events = 40_000 if options.quick else 1_000_000
    short, long = (lateness(replace(case, utilization=past), [one], 1, some)[0] for some in (events // 2, events))
    full = [at for at in UTILIZATIONS if at <= 1]
    return Report(
        "Streaming warehouse, figure 6: no slowdowns, uniform jobs, five tracks (simulated)",
        [found.table()],
        [found.chart()],
        [
            judged(
                "EDF-partitioned performs the worst, worse than Random, because it wastes processing resources",
                set(full) <= set(worst),
                f"the worst at {', '.join(f'{100 * at:g} %' for at in worst)}; "
                f"{found.both(PARTITIONED, RANDOM, 0.95)}; {found.both(PARTITIONED, RANDOM, past)}. Past 100 % no "
                "track is ever idle and nothing is wasted; there it is the order of the jobs that counts",
            ),
            judged(
                "Proportional is on par with Max Benefit on one track",
                level < 0.02,
                f"at most {100 * level:.2f} % apart",
            ),
            judged(
                "lateness is incurred only at nearly 100 % utilization",
                found.at(ONE, 0.9) < 1.1 and found.at(ONE, past) > 1.3,
                f"Max Benefit: {', '.join(f'{found.at(ONE, at):.2f} at {100 * at:g} %' for at in UTILIZATIONS)}",
            ),
            judged(
                "an offered load of more than 100 % is still stable, because delayed jobs are cheaper",
                long < 1.2 * short,
                f"at {100 * past:g} %: {short:.2f} over {events // 2:,} events, {long:.2f} over {events:,}",
            ),
        ],
    )
