"""Max Benefit against prioritized EDF (streaming warehouse, figure 5), simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.golab import CYCLE, EVENTS, JOBS, PLAIN, QUICK_EVENTS, SEEDS, Case, JobClass, figure
from engine.refresh.algorithms.max_benefit_lookahead import MaxBenefitLookahead
from engine.refresh.simulator import simulate

UTILIZATIONS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.1)
CYCLES = (130.0, 430.0, 1_300.0, 4_300.0, CYCLE)  # lengths of a normal and a slow period together
MAX_BENEFIT, LOOKAHEAD, EDF_P = "Max Benefit", "with lookahead", "EDF-P"


def experiment(options: Options) -> Report:
    """Tables of two speeds under the prioritized local algorithms (streaming warehouse, fig. 5)."""
    policies = {
        MAX_BENEFIT: PLAIN,
        LOOKAHEAD: replace(PLAIN, policy="max-benefit-lookahead"),
        EDF_P: replace(PLAIN, policy="edf-p"),
    }
    half = JOBS // 2
    two_speeds = Case((JobClass(half, beta=0.1), JobClass(half, beta=0.01)), 1.0)
    alike = Case((JobClass(half), JobClass(half, (10.0,))), 1.0)
    found = figure(
        "golab_fig5",
        "Fig. 5: Max Benefit versus EDF-P, beta 0.1 and 0.01",
        UTILIZATIONS,
        {name: (two_speeds, settings) for name, settings in policies.items()},
        options,
    )
    same = figure(
        "golab_fig5_alike",
        "Section 4.2: jobs that differ in priority alone",
        UTILIZATIONS,
        {name: (alike, settings) for name, settings in policies.items()},
        options,
    )
    gap = max(abs(same.at(EDF_P, one) / same.at(MAX_BENEFIT, one) - 1) for one in UTILIZATIONS)
    uniform = [_looked_ahead(Case((JobClass(JOBS),), one), options) for one in UTILIZATIONS]
    by_cycle = {cycle: _looked_ahead(replace(alike, cycle=cycle), options) for cycle in CYCLES}
    short, long = by_cycle[CYCLES[0]], by_cycle[CYCLES[-1]]
    edf_better, benefit_better = found.where(EDF_P, MAX_BENEFIT), found.where(MAX_BENEFIT, EDF_P)
    return Report(
        "Streaming warehouse, figure 5: Max Benefit versus EDF-P (simulated)",
        [found.table(), same.table(), _by_cycle(by_cycle)],
        [found.chart(), same.chart()],
        [
            judged(
                "once priorities are accounted for, EDF-P and Max Benefit differ little",
                gap < 0.1,
                f"jobs of priority 1 and 10: at most {100 * gap:.1f} % apart",
            ),
            judged(
                "the gain of looking ahead is very minor, as it almost always chooses the same job (jobs of Table 2)",
                all(abs(one.gain) < 0.01 and one.others < 0.01 for one in uniform),
                f"at most {100 * max(abs(one.gain) for one in uniform):.2f} % less staleness and "
                f"{100 * max(one.others for one in uniform):.2f} % other choices at any utilization: no job to come is "
                "worth more than those that wait",
            ),
            judged(
                "the same with jobs of priority 1 and 10, whatever the length of slow periods",
                all(abs(one.gain) < 0.05 for one in by_cycle.values()),
                f"at 100 %: {100 * short.gain:.1f} % less staleness and {100 * short.others:.1f} % other choices where "
                f"slow periods take {CYCLES[0] / 2:g} (the paper does not say how long), {100 * long.gain:.1f} % and "
                f"{100 * long.others:.1f} % where they take {CYCLES[-1] / 2:g} as in the other figures. The longer "
                "they are, the longer become the jobs of low priority that wait, and looking ahead keeps them from "
                "starting just before one of high priority comes",
            ),
            judged(
                "with tables of two speeds, EDF-P is better where lateness first starts to increase",
                any(0.7 <= one <= 0.8 for one in edf_better),
                f"EDF-P is ahead at {_listed(edf_better)}; {found.both(MAX_BENEFIT, EDF_P, 0.8)}",
            ),
            judged(
                "and Max Benefit is better at higher utilizations",
                {1.0, 1.1} <= set(benefit_better),
                f"Max Benefit is ahead at {_listed(benefit_better)}; {found.both(MAX_BENEFIT, EDF_P, 1.1)}",
            ),
        ],
    )


@dataclass(frozen=True)
class _Looked:
    """What looking ahead was good for: how much less stale it leaves the tables, how often it chose another job."""

    gain: float
    others: float


def _looked_ahead(case: Case, options: Options) -> _Looked:
    events = QUICK_EVENTS if options.quick else EVENTS // SEEDS
    world = case.world(seed=1)
    ahead = simulate(world, replace(PLAIN, policy="max-benefit-lookahead"), events=events)
    plain = simulate(world, PLAIN, events=events)
    algorithm = ahead.scheduler.algorithm
    assert isinstance(algorithm, MaxBenefitLookahead)
    return _Looked(1 - ahead.weighted_staleness / plain.weighted_staleness, algorithm.others / algorithm.choices)


def _by_cycle(found: Mapping[float, _Looked]) -> Table:
    return Table(
        "golab_fig5_lookahead",
        ["normal and slow period together", "less staleness", "other choices"],
        [(cycle, round(one.gain, 4), round(one.others, 4)) for cycle, one in found.items()],
        "looking ahead at 100 %, jobs of priority 1 and 10, by the length of slow periods",
    )


def _listed(utilizations: list[float]) -> str:
    return ", ".join(f"{100 * one:g} %" for one in utilizations) or "no utilization"
