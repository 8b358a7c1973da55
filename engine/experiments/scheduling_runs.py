"""Simulated runs of the scheduling paper's archetypes at its settings, and how its figures tabulate them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from engine.experiments.experiment import Cell, Options, Table
from engine.experiments.scheduling import ARCHETYPES, KEPT, archetype
from engine.experiments.svg import Chart
from engine.model.binding import Bound
from engine.partition.granularity import Granularity
from engine.plan.rows import Rows
from engine.schedule.costs import SimulationSettings, simulate
from engine.schedule.policy import MIXED

SINGLE = ("rr", "mc", "mm")
NAMES = {"rr": "RR", "mc": "MC", "mm": "MM", "mixed": "MP"}
SCALES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
QUICK_SCALES = (0.05, 0.1, 0.2)


def scales(options: Options) -> Sequence[float]:
    """The TPC-H scales of an experiment."""
    chosen = QUICK_SCALES if options.quick else SCALES
    return chosen if options.scale is None else [options.scale * scale / chosen[-1] for scale in chosen]


def run(
    bound: Bound,
    policy: str,
    granularity: Granularity = Granularity.OPERATOR,
    theta: int = 4,
    rows: Rows | None = None,
) -> dict[str, Any]:
    """A simulated run at the paper's settings."""
    return simulate(bound, SimulationSettings(granularity, policy, theta), rows)


def saved_by_mixed(bound: Bound, rows: Rows | None = None) -> tuple[float, float]:
    """What share of the best single policy's time MP saves: where units are operators, and where they are subflows."""

    def saved(granularity: Granularity) -> float:
        best = min(run(bound, policy, granularity, rows=rows)["seconds"] for policy in SINGLE)
        mixed: float = run(bound, MIXED, granularity, rows=rows)["seconds"]
        return 1 - mixed / best

    return saved(Granularity.OPERATOR), saved(Granularity.SUBFLOW)


@cache
def measured(name: str, scale: float, policy: str, kept: float = KEPT) -> dict[str, float]:
    """Seconds, average and maximum memory (row packs) of an archetype."""
    summary = run(archetype(name, scale, kept), policy)
    return {
        "seconds": summary["seconds"],
        "avg_packs": summary["queue"]["avg_packs"],
        "max_packs": summary["queue"]["max_packs"],
    }


def by_scale(figure: str, what: str, unit: str, options: Options) -> tuple[Table, list[Chart]]:
    """A figure that shows one measure of every archetype over the data's size, under each policy."""
    rows: list[tuple[Cell, ...]] = [
        (name, scale, *(round(measured(name, scale, policy)[what], 3) for policy in SINGLE))
        for name in ARCHETYPES
        for scale in scales(options)
    ]
    charts = [
        Chart(
            f"{figure}_{name.replace(' ', '_')}",
            f"{name}: {unit} by data size",
            "TPC-H scale",
            unit,
            {NAMES[policy]: [measured(name, scale, policy)[what] for scale in scales(options)] for policy in SINGLE},
            list(scales(options)),
        )
        for name in ARCHETYPES
    ]
    return Table(figure, ("workflow", "scale", *(NAMES[policy] for policy in SINGLE)), rows, unit), charts


def everywhere(options: Options, holds: Callable[[str, float], bool]) -> tuple[int, int]:
    """In how many cases (archetype and scale) something holds, and how many there are."""
    found = [holds(name, scale) for name in ARCHETYPES for scale in scales(options)]
    return sum(found), len(found)


def average(what: str, policy: str, options: Options, name: str | None = None) -> float:
    """A measure averaged over the archetypes (or one of them) and the scales."""
    found = [
        measured(each, scale, policy)[what] for each in ([name] if name else ARCHETYPES) for scale in scales(options)
    ]
    return sum(found) / len(found)


def averages(figure: str, what: str, unit: str, options: Options) -> tuple[Table, Chart]:
    """A figure that shows one measure of every archetype averaged over the data sizes."""
    means = {name: [round(average(what, policy, options, name), 3) for policy in SINGLE] for name in ARCHETYPES}
    means["average"] = [round(average(what, policy, options), 3) for policy in SINGLE]
    rows: list[list[Cell]] = [[name, *found] for name, found in means.items()]
    chart = Chart(
        figure,
        f"Average {unit} over all data sizes",
        "workflow",
        unit,
        {NAMES[policy]: [average(what, policy, options, name) for name in ARCHETYPES] for policy in SINGLE},
        list(ARCHETYPES),
        bars=True,
    )
    return Table(figure, ("workflow", *(NAMES[policy] for policy in SINGLE)), rows, unit), chart
