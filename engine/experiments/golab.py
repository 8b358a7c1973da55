"""The simulations behind the streaming warehouse's figures 4 to 11 (section 4)."""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from engine.experiments.experiment import Cell, Options, Table
from engine.experiments.svg import Chart
from engine.refresh.inheritance import Inheritance
from engine.refresh.model import TableSpec, Warehouse
from engine.refresh.scheduler import Settings
from engine.refresh.simulator import Cost, Stream, World, simulate, without_contention

# Table 2 of the paper.
ALPHA, BETA, PERIOD, SPREAD, TRACKS, JOBS, SLOWDOWN = 1.0, 0.1, 100.0, 0.5, 4, 30, 3.0
# The paper says neither how long its slow periods are nor when its streams begin. A normal and a slow period take
# 13,000 together: long enough for jobs to pile up, short enough for many of them in a simulation, and no multiple of
# a job's period. All streams begin within the first 100, so that those of a period of 10,000 come close together.
CYCLE = 13_000.0
EVENTS = 1_000_000  # for a point, as in the paper: shared by the runs with different seeds
SEEDS = 4
QUICK_EVENTS, QUICK_SEEDS = 48_000, 2

# What the paper's own experiments ran with, but for what a figure varies.
PLAIN = Settings(
    "max-benefit", "one", TRACKS, aggressive=False, all_tracks=False, k=1.0, inheritance=Inheritance.NONE, chop=None,
    chop_by_cost=False,
)  # fmt: skip


@dataclass(frozen=True)
class JobClass:
    """Jobs that are alike: chains of a base table and views, each with its priority."""

    chains: int
    priorities: tuple[float, ...] = (1.0,)
    period: float = PERIOD
    alpha: float = ALPHA
    beta: float = BETA

    @property
    def jobs(self) -> int:
        """How many jobs it has."""
        return self.chains * len(self.priorities)

    @property
    def utilization(self) -> float:
        """The sum of E(P)/P of its jobs, before they are scaled."""
        return self.jobs * (self.alpha + self.beta * self.period) / self.period


@dataclass(frozen=True)
class Case:
    """What is simulated for a point of a figure: the jobs and how much work they bring."""

    classes: tuple[JobClass, ...]
    utilization: float  # offered, of all tracks together, slow periods included
    tracks: int = TRACKS
    slowdown: float = SLOWDOWN  # 1: there are no slow periods
    known: float | None = None  # the utilization for which the scheduler was told alpha and beta; else the true one
    cycle: float = CYCLE  # how long a normal and a slow period take together

    def world(self, seed: int) -> World:
        """The tables and streams, with alpha and beta scaled to the utilization."""
        # Jobs take twice as long on average as in normal periods, whatever the slowdown (section 4.1).
        slow_share, mean = (1 / (self.slowdown - 1), 2.0) if self.slowdown > 1 else (0.0, 1.0)
        unscaled = sum(one.utilization for one in self.classes) * mean / self.tracks
        scale = self.utilization / unscaled
        known = scale if self.known is None else self.known / unscaled
        random = Random(seed)
        specs: list[TableSpec] = []
        streams, costs = {}, {}
        for number, one in enumerate(self.classes):
            for chain in range(one.chains):
                source: tuple[str, ...] = ()
                for level, priority in enumerate(one.priorities):
                    name = f"jobs{number}_chain{chain}_{level}"
                    alpha, beta = one.alpha * known, one.beta * known
                    period = None if source else one.period
                    specs.append(TableSpec(name, source, priority, period, alpha_s=alpha, beta=beta))
                    costs[name] = Cost(one.alpha * scale, one.beta * scale)
                    if not source:
                        streams[name] = Stream(one.period, random.random() * PERIOD)
                    source = (name,)
        normal, slow = self.cycle * (1 - slow_share), self.cycle * slow_share
        return World(Warehouse(specs), streams, costs, SPREAD, self.slowdown, normal, slow, seed)


def lateness(case: Case, contenders: Sequence[Settings], seed: int, events: int) -> list[float]:
    """The relative lateness under each: weighted staleness over that without contention (section 4.1)."""
    world = case.world(seed)
    alone = simulate(world, without_contention(world), events=events).weighted_staleness
    return [
        simulate(world, replace(settings, seed=seed), events=events).weighted_staleness / alone
        for settings in contenders
    ]


@dataclass(frozen=True)
class Point:
    """What several seeds gave: their mean, and the standard error of it."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.values)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return statistics.stdev(self.values) / math.sqrt(len(self.values)) if len(self.values) > 1 else 0.0


@dataclass
class Figure:
    """A figure of the paper, made again: the relative lateness of contenders over the utilization."""

    name: str
    title: str
    contenders: tuple[str, ...]
    utilizations: tuple[float, ...]
    points: dict[tuple[str, float], Point] = field(default_factory=dict)

    def at(self, contender: str, utilization: float) -> float:
        """The relative lateness of a point."""
        return self.points[contender, utilization].mean

    def overall(self, contender: str) -> float:
        """The mean over all utilizations."""
        return statistics.fmean(self.at(contender, utilization) for utilization in self.utilizations)

    def where(self, better: str, worse: str) -> list[float]:
        """The utilizations at which one contender is no later than another."""
        return [one for one in self.utilizations if self.at(better, one) <= self.at(worse, one)]

    def both(self, first: str, second: str, utilization: float) -> str:
        """Two contenders at a utilization, in words."""
        return (
            f"at {100 * utilization:g} %: {first} {self.at(first, utilization):.2f}, "
            f"{second} {self.at(second, utilization):.2f}"
        )

    def table(self) -> Table:
        """All points with their standard errors."""
        headings = ["utilization", *(text for name in self.contenders for text in (name, f"± {name}"))]
        rows: list[tuple[Cell, ...]] = []
        for utilization in self.utilizations:
            points = [self.points[name, utilization] for name in self.contenders]
            figures = [value for point in points for value in (round(point.mean, 4), round(point.error, 4))]
            rows.append((utilization, *figures))
        return Table(
            self.name, headings, rows, f"relative lateness, mean of {self._seeds} seeds and its standard error"
        )

    @property
    def _seeds(self) -> int:
        return len(next(iter(self.points.values())).values)

    def chart(self) -> Chart:
        """The points as lines with error bars."""
        return Chart(
            self.name,
            self.title,
            "offered utilization of all tracks",
            "relative lateness",
            {name: [self.at(name, one) for one in self.utilizations] for name in self.contenders},
            list(self.utilizations),
            errors={name: [self.points[name, one].error for one in self.utilizations] for name in self.contenders},
        )


def figure(
    name: str,
    title: str,
    utilizations: Sequence[float],
    contenders: Mapping[str, tuple[Case, Settings]],
    options: Options,
) -> Figure:
    """Simulate every contender at every utilization, with several seeds, on all cores that this process may use."""
    seeds, events = (QUICK_SEEDS, QUICK_EVENTS) if options.quick else (SEEDS, EVENTS)
    made = Figure(name, title, tuple(contenders), tuple(utilizations))
    tasks = []
    for utilization in utilizations:
        # Contenders over the same jobs share the world without contention.
        by_case: dict[Case, list[str]] = {}
        for contender, (case, _) in contenders.items():
            by_case.setdefault(replace(case, utilization=utilization), []).append(contender)
        for case, names in by_case.items():
            for seed in range(1, seeds + 1):
                tasks.append((case, names, [contenders[one][1] for one in names], seed, events // seeds))
    found: dict[tuple[str, float], list[float]] = {}
    for number, (case, names, values) in enumerate(_run(tasks, options.quick), start=1):
        for contender, value in zip(names, values, strict=True):
            found.setdefault((contender, case.utilization), []).append(value)
        if number % seeds == 0:
            options.say(f"{title}: {number} of {len(tasks)} simulations")
    made.points = {key: Point(tuple(values)) for key, values in found.items()}
    return made


_Task = tuple[Case, list[str], list[Settings], int, int]


def _run(tasks: list[_Task], quick: bool) -> Iterator[tuple[Case, list[str], list[float]]]:
    """What each simulation gave, in the order of the tasks."""
    cores = len(os.sched_getaffinity(0))
    if quick or cores == 1:
        yield from map(_simulated, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        yield from pool.imap(_simulated, tasks)


def _simulated(task: _Task) -> tuple[Case, list[str], list[float]]:
    case, names, contenders, seed, events = task
    return case, names, lateness(case, contenders, seed, events)
