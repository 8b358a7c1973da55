"""The first query of each kind in sequence, against an ordinary tool (shared caching, figure 16)."""

from __future__ import annotations

from engine.experiments.caching import SEPARATE, SHARED, against_ordinary
from engine.experiments.experiment import Options, Report

SCALED = True


def experiment(options: Options) -> Report:
    """SSB Q1.1, Q2.1, Q3.1, Q4.1 in sequence, shared caches against separate ones (shared caching, fig. 16)."""
    return against_ordinary(
        options, "caching_fig16", "Shared caching, figure 16: sequential execution of four queries",
        SEPARATE, SHARED, "the framework is faster than the ordinary tool for all four queries",
    )  # fmt: skip
