"""Partitioning large workflows: trees, subflows, strata and the units of every granularity."""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.bench_large_file import large_workflow
from engine.model.binding import Bound, bind
from engine.model.yamldata import collector_paused
from engine.operators import catalogue
from engine.partition.flow import flow_of
from engine.partition.fused import fuse
from engine.partition.granularity import Granularity
from engine.partition.subflows import break_into_subflows, with_readers_and_writers
from engine.partition.trees import execution_trees
from engine.partition.units import divide
from engine.schedule.build import pack_units

SIZES = (10_000, 20_000)
GROWTH = 2.3
WALK = "a walk"  # no claim: what it grows by, the processor's caches make of twice the memory
PROCESSES = 3  # of each size, in each round
REPEATS = 7  # in each process
OTHER_MEMORY = 16 << 20  # numbers, 128 MiB: more than caches hold
PACKED = (Granularity.OPERATOR, Granularity.SUBFLOW, Granularity.TREE)


def _partition(bound: Bound) -> None:
    flow = flow_of(bound)
    execution_trees(flow)
    break_into_subflows(with_readers_and_writers(flow))


def _walk(bound: Bound) -> object:
    """Nothing but a look at each node and each link: what so much memory takes, whatever is made of it."""
    number = {node: place for place, node in enumerate(bound.order)}
    ends = [(number[link.source], number[link.target]) for link in bound.links]
    return [(type(bound.operators[node]), place) for node, place in number.items()], ends


WAYS: dict[str, Callable[[Bound], object]] = {WALK: _walk, "partition": _partition, "fused": fuse}
for granularity in PACKED:
    WAYS[granularity.value] = partial(divide, granularity=granularity)
    WAYS[f"{granularity.value} with queues"] = partial(pack_units, granularity=granularity, queue_packs=100)


def _seconds(size: int) -> dict[str, float]:
    """The seconds of the processor that each way takes: the median of several turns.

    A workflow is cut once, after it was read: in between, other memory is read, so that nothing of it is still in the
    processor's caches. The collector rests: its walks over all that lives here are no part of the work.
    """
    bound = bind(large_workflow(size), catalogue())
    other = np.ones(OTHER_MEMORY)
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    gc.collect()
    for _ in range(REPEATS):
        for name, work in WAYS.items():
            other.sum()
            with collector_paused():
                begun = time.process_time()
                made = work(bound)
                found[name].append(time.process_time() - begun)
                del made  # to throw it away is no part of the work either
    return {name: statistics.median(seconds) for name, seconds in found.items()}


def benchmark(options: Options) -> Report:
    """Cut workflows of 10,000 and 20,000 nodes, by the papers' algorithms and into units of scheduling."""
    report = Report()
    least: dict[str, dict[int, list[float]]] = {name: {size: [] for size in SIZES} for name in WAYS}
    for number in range(1, PROCESSES * options.rounds + 1):
        options.say(f"pair of processes {number} of {PROCESSES * options.rounds}")
        for size in SIZES:
            for name, seconds in _apart(size).items():
                least[name][size].append(seconds)
    few, many = SIZES
    for name, found in least.items():
        for size in SIZES:
            report.contenders[f"{name} {size:,}"] = Contender(seconds=found[size])
        growth = [after / before for before, after in zip(found[few], found[many], strict=True)]
        report.ratios[f"{name} {many:,} / {name} {few:,}, the middle of all pairs"] = statistics.median(growth)
    _conclude(report)
    return report


def _conclude(report: Report) -> None:
    few, many = (f"{size:,}" for size in SIZES)
    seconds = {name: report.contenders[f"{name} {few}"].median for name in WAYS}
    growth = {name: report.ratios[f"{name} {many} / {name} {few}, the middle of all pairs"] for name in WAYS}
    del seconds[WALK], growth[WALK]
    cut = seconds.pop("partition")
    slowest = max(seconds, key=seconds.__getitem__)
    report.claim(f"{few} nodes are cut into trees, subflows and strata in under 1 s", cut < 1, f"{cut:.3f} s")
    report.claim(
        f"{few} nodes are divided into units in under 1 s at every granularity",
        seconds[slowest] < 1, f"{seconds[slowest]:.3f} s, {slowest}",
    )  # fmt: skip
    whole = growth.pop("partition")
    most = max(growth, key=growth.__getitem__)
    report.claim(
        f"{many} nodes take at most {GROWTH} times as long to cut into trees, subflows and strata",
        whole <= GROWTH, f"{whole:.2f} times",
    )  # fmt: skip
    report.claim(
        f"{many} nodes take at most {GROWTH} times as long to divide into units, at every granularity",
        growth[most] <= GROWTH, f"{growth[most]:.2f} times, {most}",
    )  # fmt: skip


def _apart(size: int) -> dict[str, float]:
    """What each way takes in a process of its own, as for somebody who opens one workflow.

    Where one process holds several, the larger one lies in what the others left of the memory.
    """
    command = [sys.executable, "-m", __name__, str(size)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_seconds(int(sys.argv[1]))))
