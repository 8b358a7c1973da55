"""Speed-up by pipelines inside a tree (shared caching, figure 12)."""

from __future__ import annotations

from engine.experiments.caching import (
    PAPER_CORES,
    SHARED,
    Case,
    Found,
    judged_by_cores,
    noise,
    out_of_reach,
    runs,
    scales,
)
from engine.experiments.experiment import Cell, Options, Report, Table, judged
from engine.experiments.svg import Chart

SCALED = True
DEGREES = (1, 2, 4, 8, 16)
QUICK_DEGREES = (1, 2, 4)
LEAST = 3.7


def experiment(options: Options) -> Report:
    """Speed-up of SSB Q4.1 by the number of pipelines (shared caching, fig. 12)."""
    degrees = QUICK_DEGREES if options.quick else DEGREES
    sizes = scales(options)[-2:] if options.quick else scales(options)
    with runs(options) as here:
        cases = {
            (scale, degree): Case("q41", scale, {**SHARED, "degree": degree}) for scale in sizes for degree in degrees
        }
        found: dict[Case, Found] = {}
        for scale in sizes:
            found |= here.measure([cases[scale, degree] for degree in degrees])
        cores, problems = here.cores, here.problems()

    def seconds(scale: float, degree: int) -> float:
        case = cases[scale, degree]
        return found[case].seconds if case in found else float("nan")

    gains = {scale: [seconds(scale, 1) / seconds(scale, degree) for degree in degrees] for scale in sizes}
    rows: list[list[Cell]] = [
        [scale, degree, round(seconds(scale, degree), 3), round(gain, 3)]
        for scale in sizes
        for degree, gain in zip(degrees, gains[scale], strict=True)
    ]
    apart = {scale: noise(found[case] for case in cases.values() if case in found and case.scale == scale)
             for scale in sizes}  # fmt: skip
    within = {scale: max(gain for degree, gain in zip(degrees, gains[scale], strict=True) if degree <= cores)
              for scale in sizes}  # fmt: skip
    best = {scale: degrees[max(range(len(degrees)), key=lambda at: gains[scale][at])] for scale in sizes}
    every = [gain for scale in sizes for gain in gains[scale]]
    last, first = sizes[-1], sizes[0]
    beyond = "beyond the cores, more pipelines make it slower again"
    eight = f"eight pipelines are best, {LEAST} to 4.7 times as fast as one"
    several = "; ".join(f"scale {scale:g}: {max(gains[scale]):.2f} at {best[scale]}" for scale in sizes)
    return Report(
        "Shared caching, figure 12: speed-up of Q4.1 by the number of pipelines",
        [Table("caching_fig12", ("scale", "pipelines", "seconds", "speed-up"), rows, "against one pipeline")],
        [
            Chart(
                "caching_fig12", "Speed-up of Q4.1 by pipelines", "pipelines", "times as fast as one",
                {f"scale {scale:g}": gains[scale] for scale in sizes}, list(degrees),
            )
        ],
        [
            judged(
                "pipelines make the dataflow faster", max(gains[last]) > 1 + apart[last],
                f"{several}; noise {apart[last]:.0%}", gains[last],
            ),
            judged(
                beyond,
                all(within[scale] / gains[scale][-1] > 1 + apart[scale] for scale in sizes),
                f"{several}; with {degrees[-1]}: {', '.join(f'{gains[scale][-1]:.2f}' for scale in sizes)}; "
                f"noise {max(apart.values()):.0%}",
                every,
            )
            if degrees[-1] > cores
            else out_of_reach(beyond, f"{cores} cores, and {degrees[-1]} pipelines at most"),
            judged(
                "the speed-up is larger for larger data",
                max(gains[last]) / max(gains[first]) > 1 + max(apart[first], apart[last]),
                f"{max(gains[first]):.2f} at scale {first:g}, {max(gains[last]):.2f} at scale {last:g}, noise "
                f"{max(apart[first], apart[last]):.0%}; the paper's "
                "own figures say the opposite of its text, 4.7 for the smallest and 3.7 for the largest",
                every,
            ),
            judged_by_cores(eight, best[last] == PAPER_CORES and max(gains[last]) >= LEAST, several, every, cores)
            if PAPER_CORES in degrees
            else out_of_reach(eight, f"the small form has {degrees[-1]} pipelines at most"),
            *problems,
        ],
    )  # fmt: skip
