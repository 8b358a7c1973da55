"""The simulator: the same scheduler on a virtual clock (section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from random import Random

from engine.refresh.jobs import Job
from engine.refresh.model import Warehouse
from engine.refresh.report import weighted_staleness
from engine.refresh.scheduler import Scheduler, Settings


@dataclass(frozen=True)
class Stream:
    """How data arrive for a base table: a batch each period, with all that happened since the one before."""

    period_s: float
    first_s: float  # when the first batch arrives
    jitter: float = 0.0  # a batch comes up to this share of a period later than its time
    delay_s: float = 0.0  # how old the youngest record of a batch is when it arrives
    punctuated: bool = False  # every batch promises that nothing older comes


@dataclass(frozen=True)
class Cost:
    """How long an update really takes: E(n) = alpha + beta · n, in the mean."""

    alpha_s: float
    beta: float


@dataclass(frozen=True)
class World:
    """What happens to a warehouse in a simulation, and what its updates really cost."""

    warehouse: Warehouse
    streams: Mapping[str, Stream]
    costs: Mapping[str, Cost]
    spread: float = 0.5  # b: a job takes between b and 1+b times E(n), all alike
    slowdown: float = 1.0  # S: how many times as long jobs take in slow periods
    normal_s: float = 0.0  # how long a normal period lasts; 0: it is always slow
    slow_s: float = 0.0
    seed: int = 0


@dataclass
class Observer:
    """What a simulation tells while it runs; each is called with the time first."""

    began: Callable[[float, Scheduler], None] | None = None
    started: Callable[[float, Job], None] | None = None
    finished: Callable[[float, Job], None] | None = None


@dataclass
class Result:
    """What came of a simulation."""

    events: int  # arrivals and finished jobs
    clock_s: float  # how long it was, by its own clock
    jobs: int
    busy_s: float  # that tracks were busy, all added up
    weighted_staleness: float  # the average over time of the priority-weighted staleness of all tables
    scheduler: Scheduler = field(repr=False)

    @property
    def utilization(self) -> float:
        """How busy the tracks were."""
        return self.busy_s / (self.clock_s * self.scheduler.settings.tracks) if self.clock_s else 0.0


def simulate(
    world: World, settings: Settings, *, events: int, until_s: float = float("inf"), observer: Observer | None = None
) -> Result:
    """Process so many arrivals and finished jobs, or as many as there are until a time."""
    scheduler = Scheduler(world.warehouse, settings)
    watch = observer or Observer()
    if watch.began is not None:
        watch.began(0.0, scheduler)
    random = Random(world.seed).random
    arrive, start, finish = scheduler.arrive, scheduler.start, scheduler.finish
    costs = {name: (cost.alpha_s, cost.beta) for name, cost in world.costs.items()}
    specs = world.warehouse.tables
    spread, slowdown, normal = world.spread, world.slowdown, world.normal_s
    cycle = world.normal_s + world.slow_s
    always = cycle <= 0 or normal <= 0
    # One heap holds what comes next: (time, number, job) of a finished job, (time, number, stream) of an arrival.
    coming: list[tuple[float, int, tuple[str, Stream] | Job, float]] = []
    number = 0
    for name, stream in world.streams.items():
        number += 1
        coming.append((stream.first_s, number, (name, stream), stream.first_s))
    heapify(coming)
    done = jobs = 0
    busy = now = 0.0
    while done < events and coming and coming[0][0] <= until_s:
        now, _, what, due = coming[0]
        done += 1
        number += 1
        if isinstance(what, tuple):
            name, stream = what
            period = stream.period_s
            after = due + period
            at = after if not stream.jitter else after + stream.jitter * period * random()
            heapreplace(coming, (at, number, what, after))
            arrive(name, now - stream.delay_s, now)
            if stream.punctuated:
                scheduler.punctuate(name, now - stream.delay_s, now)
        else:
            heappop(coming)
            finish(what, now)
            if watch.finished is not None:
                watch.finished(now, what)
        for job in start(now):
            jobs += 1
            seconds = scans = longest = 0.0
            for table, begin, upto, _ in job.loads:
                alpha, beta = costs[table]
                alone = alpha + beta * (upto - begin)
                seconds += alone
                if len(job.loads) > 1:  # one job for several tables scans what they share once
                    scan = (specs[table].scan_share or 0.0) * alone
                    scans += scan
                    longest = max(longest, scan)
            seconds = (seconds - scans + longest) * (spread + random())
            if always or now % cycle >= normal:
                seconds *= slowdown
            busy += seconds
            number += 1
            heappush(coming, (now + seconds, number, job, 0.0))
            if watch.started is not None:
                watch.started(now, job)
    scheduler.account(now)
    return Result(done, now, jobs, busy, weighted_staleness(scheduler, now), scheduler)


def without_contention(world: World) -> Settings:
    """A track for every table: each job is executed when it is released (section 4.1)."""
    return Settings(sharing="one", tracks=len(world.warehouse.tables), chop=None)
