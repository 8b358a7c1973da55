"""Max Benefit against prioritized EDF (streaming warehouse, figure 5), simulated."""

from __future__ import annotations

from dataclasses import replace

from engine.experiments.experiment import Options, Report, judged
from engine.experiments.golab import JOBS, PLAIN, Case, JobClass, figure

UTILIZATIONS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.1)
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
    gains = {one: 1 - same.at(LOOKAHEAD, one) / same.at(MAX_BENEFIT, one) for one in UTILIZATIONS}
    most = max(gains, key=lambda one: abs(gains[one]))
    edf_better, benefit_better = found.where(EDF_P, MAX_BENEFIT), found.where(MAX_BENEFIT, EDF_P)
    return Report(
        "Streaming warehouse, figure 5: Max Benefit versus EDF-P (simulated)",
        [found.table(), same.table()],
        [found.chart(), same.chart()],
        [
            judged(
                "once priorities are accounted for, EDF-P and Max Benefit differ little",
                gap < 0.1,
                f"jobs of priority 1 and 10: at most {100 * gap:.1f} % apart",
            ),
            judged(
                "the gain of looking ahead is very minor, as it almost always chooses the same job",
                abs(gains[most]) < 0.05,
                f"jobs of priority 1 and 10: {same.both(MAX_BENEFIT, LOOKAHEAD, 0.6)}; "
                f"{same.both(MAX_BENEFIT, LOOKAHEAD, most)}. After a slow period jobs of low priority have grown long, "
                "and looking ahead keeps them from starting just before one of high priority comes",
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


def _listed(utilizations: list[float]) -> str:
    return ", ".join(f"{100 * one:g} %" for one in utilizations) or "no utilization"
