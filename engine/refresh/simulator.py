"""The simulator: the same scheduler on a virtual clock (section 4.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from random import Random
from typing import NamedTuple

from engine.refresh.estimates import Learnt
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


class Arrived(NamedTuple):
    """A batch that really came to a table, as a live warehouse saw it."""

    at_s: float
    table: str
    upto_s: float


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
    arrived: Sequence[Arrived] = ()  # batches that come besides those of the streams


@dataclass
class Observer:
    """What a warehouse tells while it runs, simulated or live; each is called with the time first."""

    began: Callable[[float, Scheduler], None] | None = None
    arrived: Callable[[float, str, float], None] | None = None  # for which table, up to which time
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


# What arrives next: when, its number (of what comes at one time the smallest is first), the table, its stream, and when
# the stream's batch was due before any jitter; without a stream, up to when the batch goes.
_Due = tuple[float, int, str, Stream | None, float]
_Lane = deque[_Due]


def simulate(
    world: World,
    settings: Settings,
    *,
    events: int,
    until_s: float = float("inf"),
    observer: Observer | None = None,
    learnt: Mapping[str, Learnt] | None = None,
) -> Result:
    """Process so many arrivals and finished jobs, or as many as there are until a time.

    `learnt` is what the scheduler knows of the tables when it begins.
    """
    scheduler = Scheduler(world.warehouse, settings, learnt=learnt)
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
    # One heap holds what comes next: (time, number, job) of a job that ends, (time, number, lane) of an arrival.
    coming: list[tuple[float, int, Job | _Lane]] = []
    number = len(world.streams) + len(world.arrived)
    for lane in _lanes(world):
        coming.append((*lane[0][:2], lane))
    heapify(coming)
    done = jobs = 0
    busy = now = 0.0
    while done < events and coming and coming[0][0] <= until_s:
        now, _, what = coming[0]
        done += 1
        number += 1
        if isinstance(what, deque):
            _, _, name, stream, upto = what.popleft()
            if stream is not None:
                after = upto + stream.period_s
                at = after if not stream.jitter else after + stream.jitter * stream.period_s * random()
                what.append((at, number, name, stream, after))
                upto = now - stream.delay_s
            if what:
                head = what[0]
                heapreplace(coming, (head[0], head[1], what))
            else:
                heappop(coming)
            arrive(name, upto, now)
            if stream is not None and stream.punctuated:
                scheduler.punctuate(name, upto, now)
            if watch.arrived is not None:
                watch.arrived(now, name, upto)
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
            heappush(coming, (now + seconds, number, job))
            if watch.started is not None:
                watch.started(now, job)
    scheduler.account(now)
    return Result(done, now, jobs, busy, weighted_staleness(scheduler, now), scheduler)


def _lanes(world: World) -> list[_Lane]:
    """Everything that arrives, in few lanes that are each in order: the heap holds the first of each, however many.

    Streams of one period and without jitter come in the same order over and over, so whoever came goes to the end.
    """
    lanes: list[_Lane] = []
    latest: dict[float, _Lane] = {}  # the lane of each period that is being filled
    numbered = enumerate(world.streams.items(), 1)
    for first, number, name, stream in sorted((one.first_s, number, name, one) for number, (name, one) in numbered):
        lane = None if stream.jitter else latest.get(stream.period_s)
        if lane is None or lane[0][0] + stream.period_s < first:
            lane = deque()
            lanes.append(lane)
            if not stream.jitter:
                latest[stream.period_s] = lane
        lane.append((first, number, name, stream, first))
    came = enumerate(world.arrived, len(world.streams) + 1)
    if world.arrived:
        lanes.append(deque(sorted((at, number, table, None, upto) for number, (at, table, upto) in came)))
    return lanes


def without_contention(world: World) -> Settings:
    """A track for every table: each job is executed when it is released (section 4.1), and for its table alone."""
    return Settings(sharing="one", tracks=len(world.warehouse.tables), chop=None, together=False)
