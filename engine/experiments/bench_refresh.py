"""How quickly a streaming warehouse is simulated, and how that grows with events and with tables."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import pairwise

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.golab import JOBS, Case, JobClass
from engine.refresh.scheduler import Settings
from engine.refresh.simulator import simulate

EVENTS = (250_000, 500_000, 1_000_000)
TABLES = (100, 1_000, 10_000)
EVENTS_EACH = 40  # for every table
UTILIZATION = 0.9
NOISE = 1.2  # what two runs of the same may differ by on a machine that does other things as well
DEFAULTS = Settings()


def benchmark(options: Options) -> Report:
    """A million events under the default policy; time over events, and over up to 10,000 tables."""
    report = Report(facts={"seconds": "of the processor, on one core", "policy": DEFAULTS.policy})
    usual = Case((JobClass(JOBS // 2, (100.0,), 100.0), JobClass(JOBS // 2, (1.0,), 10_000.0)), UTILIZATION)
    many = {count: _chains(count) for count in TABLES}
    for number in range(options.rounds):
        options.say(f"round {number + 1} of {options.rounds}")
        for events in EVENTS:
            _measure(report, _of_events(events), usual, events)
        for count, case in many.items():
            _measure(report, _of_tables(count), case, count * EVENTS_EACH)
    million = report.contenders[_of_events(EVENTS[-1])]
    report.claim(
        "a million events are simulated in under 10 s",
        million.median < 10,
        f"{million.median:.2f} s, {million.median / EVENTS[-1] * 1e6:.1f} µs an event",
    )
    for fewer, more in pairwise(EVENTS):
        found = report.ratio(_of_events(more), _of_events(fewer))
        allowed = more * math.log(more) / (fewer * math.log(fewer))
        report.claim(
            f"{more:,} events take no more than n·log n of {fewer:,}",
            found <= allowed * NOISE,
            f"{found:.2f} times as long, n·log n is {allowed:.2f}",
        )
    for few, lots in pairwise(TABLES):
        found = report.ratio(_of_tables(lots), _of_tables(few))
        report.claim(
            f"{lots:,} tables take about {lots // few} times as long as {few:,}, with {EVENTS_EACH} events each",
            found <= 1.5 * lots / few,
            f"{found:.1f} times",
        )
    return report


def _of_events(events: int) -> str:
    return f"{JOBS} tables, {events:,} events"


def _of_tables(count: int) -> str:
    return f"{count:,} tables, {count * EVENTS_EACH:,} events"


def _chains(count: int) -> Case:
    """So many tables: half of them of each class of periods, in chains of a base table and a view."""
    classes = (JobClass(count // 4, (1.0, 10.0), 100.0), JobClass(count // 4, (1.0, 10.0), 300.0))
    return Case(classes, UTILIZATION)


def _measure(report: Report, name: str, case: Case, events: int) -> None:
    world = case.world(seed=1)
    settings = replace(DEFAULTS, tracks=case.tracks)
    began = time.process_time()
    result = simulate(world, settings, events=events)
    contender = report.contenders.setdefault(name, Contender())
    contender.seconds.append(time.process_time() - began)
    contender.add(jobs=result.jobs, utilization=result.utilization)
