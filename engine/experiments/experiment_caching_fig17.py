"""The first query of each kind with pipelines, against an ordinary tool with sub-flows (shared caching, figure 17)."""

from __future__ import annotations

from engine.experiments.caching import SEPARATE, SHARED, against_ordinary
from engine.experiments.experiment import Options, Report

SCALED = True
PIPELINES = 2


def experiment(options: Options) -> Report:
    """SSB Q1.1, Q2.1, Q3.1, Q4.1 with pipelines, shared caches against separate ones (shared caching, fig. 17)."""
    return against_ordinary(
        options, "caching_fig17", "Shared caching, figure 17: four queries cut into parallel splits",
        {**SEPARATE, "degree": PIPELINES}, {**SHARED, "degree": PIPELINES},
        "with as many parallel splits the framework is faster than the ordinary tool for all four queries",
    )  # fmt: skip
