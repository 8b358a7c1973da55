"""Speed-up by threads inside a component (shared caching, figure 14)."""

from __future__ import annotations

from engine.experiments.caching import SHARED, Case, largest_scale, more_cores, noise, out_of_reach, runs
from engine.experiments.experiment import Options, Report, Table, judged
from engine.experiments.svg import Chart

SCALED = True
THREADS = (1, 2, 4, 8, 16)
QUICK_THREADS = (1, 2, 4)
COMPONENT = "supplier"


def experiment(options: Options) -> Report:
    """Speed-up of SSB Q4.1 by threads in the supplier lookup (shared caching, fig. 14)."""
    threads = QUICK_THREADS if options.quick else THREADS
    scale = largest_scale(options)
    with runs(options) as here:
        cases = [Case("q41", scale, SHARED, {COMPONENT: count}) for count in threads]
        found = here.measure(cases)
        cores, problems = here.cores, here.problems()
    seconds = [found[case].seconds if case in found else float("nan") for case in cases]
    gains = [seconds[0] / value for value in seconds]
    several = ", ".join(f"{count}: {gain:.2f}" for count, gain in zip(threads, gains, strict=True))
    apart = noise(found.values())
    beginning = [gain for count, gain in zip(threads, gains, strict=True) if 1 < count <= max(cores, threads[1])]
    best = max(range(len(threads)), key=lambda at: gains[at])
    return Report(
        "Shared caching, figure 14: speed-up of Q4.1 by threads in its supplier lookup",
        [
            Table("caching_fig14", ("threads", "seconds", "speed-up"),
                  [[count, round(value, 3), round(gain, 3)]
                   for count, value, gain in zip(threads, seconds, gains, strict=True)],
                  f"scale {scale:g}, {cores} cores; rows keep their order")
        ],
        [
            Chart("caching_fig14", "Speed-up by threads in one component", "threads", "times as fast as one",
                  {f"{cores} cores": gains}, list(threads))
        ],
        [
            judged(
                "the speed-up grows at the beginning", max(beginning) > 1 + apart,
                f"{several}; noise {apart:.0%}", gains,
            ),
            judged(
                "too many threads make it slower again", max(gains) / gains[-1] > 1 + apart,
                f"best with {threads[best]}; {several}; noise {apart:.0%}", gains,
            ),
            out_of_reach("more cores give a better speed-up", more_cores(cores)),
            out_of_reach(
                "the lookup without an index is the bottleneck of the whole dataflow",
                "a lookup is a hash join on Spark, in which there is no index to remove",
            ),
            *problems,
        ],
    )  # fmt: skip
