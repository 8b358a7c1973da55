"""The processor's use by pipelines inside a tree (shared caching, figure 13)."""

from __future__ import annotations

from engine.experiments.caching import SHARED, Case, largest_scale, more_cores, noise, out_of_reach, runs
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.experiment_caching_fig12 import DEGREES, QUICK_DEGREES
from engine.experiments.svg import Chart

SCALED = True


def experiment(options: Options) -> Report:
    """Processor usage of SSB Q4.1 by the number of pipelines (shared caching, fig. 13)."""
    degrees = QUICK_DEGREES if options.quick else DEGREES
    scale = largest_scale(options)
    with runs(options) as here:
        cases = [Case("q41", scale, {**SHARED, "degree": degree}) for degree in degrees]
        found = here.measure(cases)
        cores, problems = here.cores, here.problems()
    usage = [100 * found[case].utilisation if case in found else float("nan") for case in cases]
    several = ", ".join(f"{degree}: {value:.0f} %" for degree, value in zip(degrees, usage, strict=True))
    apart = noise(found.values())
    return Report(
        "Shared caching, figure 13: processor usage of Q4.1 by the number of pipelines",
        [
            Table(
                "caching_fig13", ("pipelines", "usage of all cores, %", "seconds"),
                [[degree, round(value, 1), round(found[case].seconds, 3) if case in found else None]
                 for degree, value, case in zip(degrees, usage, cases, strict=True)],
                f"scale {scale:g}, {cores} cores, the whole process tree",
            )
        ],
        [
            Chart("caching_fig13", "Processor usage by pipelines", "pipelines", "usage of all cores, %",
                  {f"{cores} cores": usage}, list(degrees))
        ],
        [
            judged(
                "the usage grows with the number of pipelines", usage[1] / usage[0] > 1 + apart,
                f"{several}; noise {apart:.0%}", usage,
            ),
            out_of_reach("with 4, 6 and 8 cores the usage grows up to that many pipelines", more_cores(cores)),
            *problems,
        ],
    )  # fmt: skip
