"""Separate caches, shared caches, and shared caches with pipelines (shared caching, figure 15)."""

from __future__ import annotations

from engine.experiments.caching import SEPARATE, SHARED, Case, Found, judged_by_cores, noise, runs, scales
from engine.experiments.experiment import Cell, Options, Report, Table, judged
from engine.experiments.svg import Chart

SCALED = True
NAMES = ("separate caches", "shared caches", "shared caches, pipelines")
SAVED = 0.10
SEPARATE_TIMES, SHARED_TIMES = 4.7, 3.9


def experiment(options: Options) -> Report:
    """SSB Q4.1 with separate caches, shared caches and pipelines, as the data grow (shared caching, fig. 15)."""
    sizes = scales(options)[-2:] if options.quick else scales(options)
    with runs(options) as here:
        ways = dict(zip(NAMES, (SEPARATE, SHARED, {**SHARED, "degree": here.cores}), strict=True))
        cases = {(name, scale): Case("q41", scale, way) for name, way in ways.items() for scale in sizes}
        found: dict[Case, Found] = {}
        for scale in sizes:
            found |= here.measure([cases[name, scale] for name in NAMES])
        cores, problems = here.cores, here.problems()

    def seconds(name: str, scale: float) -> float:
        case = cases[name, scale]
        return found[case].seconds if case in found else float("nan")

    rows: list[list[Cell]] = [[scale, *(round(seconds(name, scale), 3) for name in NAMES)] for scale in sizes]
    last = sizes[-1]
    separate, shared, piped = (seconds(name, last) for name in NAMES)
    saved = 1 - shared / separate
    apart = noise(found[case] for case in cases.values() if case in found and case.scale == last)
    return Report(
        "Shared caching, figure 15: Q4.1 with separate and with shared caches",
        [Table("caching_fig15", ("scale", *NAMES), rows, f"seconds; {cores} pipelines")],
        [
            Chart(
                "caching_fig15", "Q4.1 by the size of the data", "SSB scale", "seconds",
                {name: [seconds(name, scale) for scale in sizes] for name in NAMES}, list(sizes),
            )
        ],
        [
            judged(
                "shared caches are faster than separate ones", separate / shared > 1 + apart,
                f"{separate / shared:.2f} times as fast at scale {last:g}, noise {apart:.0%}", [saved],
            ),
            judged(
                "shared caches save about 10 %", SAVED / 2 <= saved <= 2 * SAVED,
                f"{saved:.0%}, where {SAVED / 2:.0%} to {2 * SAVED:.0%} would do: a copy between two "
                "components is a file and a Spark job here, not a move in memory",
                [saved],
            ),
            judged_by_cores(
                f"with pipelines it is {SEPARATE_TIMES} times as fast as with separate caches",
                separate / piped >= SEPARATE_TIMES, f"{separate / piped:.1f} times, on {cores} cores",
                [separate, piped], cores,
            ),
            judged_by_cores(
                f"and {SHARED_TIMES} times as fast as with shared caches in sequence", shared / piped >= SHARED_TIMES,
                f"{shared / piped:.2f} times, on {cores} cores: Spark works on a single split with all of them already",
                [shared, piped], cores,
            ),
            *problems,
        ],
    )  # fmt: skip
