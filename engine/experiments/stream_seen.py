"""What a live streaming warehouse did: its arrivals and its jobs, as they were, and what follows from them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.refresh.jobs import Job, Load
from engine.refresh.scheduler import Scheduler
from engine.refresh.simulator import Arrived, Cost, Observer

FLAT = 0.05  # updates whose sizes differ by less than this share show no slope


@dataclass(frozen=True)
class Ran:
    """A job that was carried out, in seconds of the run."""

    began_s: float
    ended_s: float
    loads: tuple[Load, ...]
    cold: bool  # whether one of its tables had not been updated before

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.ended_s - self.began_s


@dataclass
class Seen:
    """Written down while a warehouse runs. Times are the run's own: it begins at 0."""

    arrived: list[Arrived] = field(default_factory=list)
    jobs: list[Ran] = field(default_factory=list)
    scheduler: Scheduler = field(init=False, repr=False)
    _begin: float = 0.0
    _known: set[str] = field(default_factory=set)

    def observer(self) -> Observer:
        """What the warehouse tells it."""
        return Observer(began=self._began, arrived=self._came, finished=self._finished)

    def _began(self, now: float, scheduler: Scheduler) -> None:
        self._begin, self.scheduler = now, scheduler

    def _came(self, now: float, table: str, upto: float) -> None:
        self.arrived.append(Arrived(now - self._begin, table, upto - self._begin))

    def _finished(self, now: float, job: Job) -> None:
        loads = tuple(load._replace(after=load.after - self._begin, upto=load.upto - self._begin) for load in job.loads)
        cold = not self._known.issuperset(job.tables)
        self._known.update(job.tables)
        self.jobs.append(Ran(job.started - self._begin, now - self._begin, loads, cold))

    # -- what came of it

    def busy(self, first_s: float, last_s: float) -> float:
        """The share of a span that the tracks were busy."""
        inside = sum(max(min(job.ended_s, last_s) - max(job.began_s, first_s), 0.0) for job in self.jobs)
        return inside / (last_s - first_s) / self.scheduler.settings.tracks

    def judged(self, until_s: float) -> tuple[float, set[str]]:
        """The weighted staleness, and the tables whose bounds were broken, until a time.

        Not longer: once a run is to end no job begins any more, and tables grow stale that no policy could help.
        """
        steps: dict[str, list[tuple[float, float]]] = {name: [] for name in self.scheduler.tables}
        for job in self.jobs:
            for load in job.loads:
                if job.ended_s < until_s:
                    steps[load.table].append((job.ended_s, load.upto))
        weighted, broken = 0.0, set()
        for name, table in self.scheduler.tables.items():
            fresh = since = 0.0
            for at, upto in [*steps[name], (until_s, until_s)]:
                high, low = at - fresh, since - fresh
                weighted += table.priority * (high - low) * (high + low) / 2
                if table.bound is not None and high > table.bound:
                    broken.add(name)
                fresh, since = upto, at
        return weighted / until_s, broken

    def lines(self, light: Callable[[str], bool]) -> dict[str, Cost]:
        """alpha and beta of every table that was updated by itself, by least squares over these updates.

        A table whose updates are not light had always about as much to load, and nearly all of it is data.
        """
        found: dict[str, list[tuple[bool, float, float]]] = {}
        for job in self.jobs:
            if len(job.loads) == 1 and (span := job.loads[0].upto - job.loads[0].after) > 0:
                found.setdefault(job.loads[0].table, []).append((job.cold, span, job.seconds))
        costs = {}
        for name, jobs in found.items():
            points = [(span, seconds) for cold, span, seconds in jobs if not cold] or [jobs[0][1:]]
            if light(name):
                costs[name] = line_through(points)
            else:
                costs[name] = Cost(0.0, sum(seconds for _, seconds in points) / sum(span for span, _ in points))
        return costs

    def unloaded(self, until_s: float) -> set[str]:
        """The tables that do not hold all that had arrived for their base table when the run was to end."""
        fresh = dict.fromkeys(self.scheduler.tables, 0.0)
        for job in self.jobs:
            for load in job.loads:
                fresh[load.table] = max(fresh[load.table], load.upto)
        came: dict[str, float] = {}
        for at, table, upto in self.arrived:
            if at < until_s:
                came[table] = max(came.get(table, 0.0), upto)
        behind = set()
        for base, upto in came.items():
            for name in (base, *self.scheduler.warehouse.descendants(base)):
                if fresh[name] < upto - 1e-3:  # a view's edge is a whole microsecond
                    behind.add(name)
        return behind

    def own_costs(self, before: Mapping[str, float], light: Callable[[str], bool]) -> dict[str, Cost]:
        """alpha and beta of this run's own updates, so that its very jobs take as long in all.

        They are those of jobs for one table. So the light tables' are scaled by one factor and the others' by another:
        then the jobs of the whole run, those for several tables with what they share, would have taken as long by
        these costs as they did. A table that was never updated by itself costs what it did `before`.
        """
        lines = self.lines(light)
        costs = {name: lines.get(name) or Cost(before[name], 0.0) for name in self.scheduler.tables}
        spent: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # seconds, and by these costs
        for job in self.jobs:
            if not job.cold:
                spent[light(job.loads[0].table)].append((job.seconds, self._by(costs, job)))
        scale = {
            kind: sum(real for real, _ in jobs) / sum(reckoned for _, reckoned in jobs) if jobs else 1.0
            for kind, jobs in spent.items()
        }
        return {
            name: Cost(cost.alpha_s * scale[light(name)], cost.beta * scale[light(name)])
            for name, cost in costs.items()
        }

    def _by(self, costs: Mapping[str, Cost], job: Ran) -> float:
        alone = [costs[load.table].alpha_s + costs[load.table].beta * (load.upto - load.after) for load in job.loads]
        if len(alone) == 1:
            return alone[0]
        scans = [self.scheduler.tables[load.table].scan.value * one for load, one in zip(job.loads, alone, strict=True)]
        return sum(alone) - sum(scans) + max(scans)


def line_through(points: Sequence[tuple[float, float]]) -> Cost:
    """E(n) = alpha + beta · n by least squares, neither of them negative; all alpha where n is always the same."""
    mean_n = statistics.fmean(n for n, _ in points)
    mean_e = statistics.fmean(seconds for _, seconds in points)
    spread = sum((n - mean_n) ** 2 for n, _ in points)
    if spread <= len(points) * (FLAT * mean_n) ** 2:
        return Cost(mean_e, 0.0)
    slope = sum((n - mean_n) * (seconds - mean_e) for n, seconds in points) / spread
    beta = min(max(slope, 0.0), mean_e / mean_n)
    return Cost(mean_e - beta * mean_n, beta)
