"""Partitioning large workflows: trees, subflows, strata and the units of every granularity."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping
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
REPEATS = 15  # in each round
OTHER_MEMORY = 16 << 20  # numbers, 128 MiB: more than caches hold
PACKED = (Granularity.OPERATOR, Granularity.SUBFLOW, Granularity.TREE)


def _partition(bound: Bound) -> None:
    flow = flow_of(bound)
    execution_trees(flow)
    break_into_subflows(with_readers_and_writers(flow))


WAYS: dict[str, Callable[[Bound], object]] = {"partition": _partition, "fused": fuse}
for granularity in PACKED:
    WAYS[granularity.value] = partial(divide, granularity=granularity)
    WAYS[f"{granularity.value} with queues"] = partial(pack_units, granularity=granularity, queue_packs=100)


def _seconds(work: Callable[[Bound], object], bounds: Mapping[int, Bound], repeats: int) -> dict[int, float]:
    """Seconds of the processor for each size, the least of a few: what others do on the machine can only add to them.

    The sizes take turns, so that what slows the machine down for a while slows all of them. A workflow is cut once,
    after it was read: in between, other memory is read, so that neither size is still in the processor's caches from
    its last turn. The collector rests: its walks over all that lives here are no part of the work.
    """
    found = dict.fromkeys(bounds, math.inf)
    other = np.ones(OTHER_MEMORY)
    gc.collect()
    for _ in range(repeats):
        for size, bound in bounds.items():
            other.sum()
            with collector_paused():
                begun = time.process_time()
                work(bound)
                found[size] = min(found[size], time.process_time() - begun)
    return found


def benchmark(options: Options) -> Report:
    """Cut workflows of 10,000 and 20,000 nodes, by the papers' algorithms and into units of scheduling."""
    report = Report()
    bounds = {size: bind(large_workflow(size), catalogue()) for size in SIZES}
    for number in range(options.rounds + 1):
        options.say(f"round {number}" if number else "warming up")
        for name, work in WAYS.items():
            for size, seconds in _seconds(work, bounds, REPEATS if number else 1).items():
                if number:
                    report.contenders.setdefault(f"{name} {size:,}", Contender()).seconds.append(seconds)
    small, large = (f"{size:,}" for size in SIZES)
    medians = {name: contender.as_dict()["median"] for name, contender in report.contenders.items()}
    kinds = [name.removesuffix(f" {small}") for name in medians if name.endswith(f" {small}")]
    report.claims[f"{small} nodes are cut into trees, subflows and strata in under 1 s"] = (
        medians[f"partition {small}"] < 1
    )
    report.claims[f"{small} nodes are divided into units in under 1 s at every granularity"] = all(
        medians[f"{kind} {small}"] < 1 for kind in kinds
    )
    ratios = {}
    for kind in kinds:  # the least of all rounds, for the same reason as in each of them
        least = [min(report.contenders[f"{kind} {size}"].seconds) for size in (large, small)]
        ratios[kind] = report.ratios[f"{kind} {large} / {kind} {small}, the least of all rounds"] = least[0] / least[1]
    whole = ratios.pop("partition")
    most = max(ratios, key=ratios.__getitem__)
    report.claim(
        f"{large} nodes take at most 2.3 times as long to cut into trees, subflows and strata",
        whole <= 2.3, f"{whole:.2f} times",
    )  # fmt: skip
    report.claim(
        f"{large} nodes take at most 2.3 times as long to divide into units, at every granularity",
        ratios[most] <= 2.3, f"{ratios[most]:.2f} times, {most}",
    )  # fmt: skip
    return report
