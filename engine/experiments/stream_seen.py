"""What a live streaming warehouse did: its arrivals and its jobs, as they were, and what follows from them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from engine.refresh.jobs import Job, Load
from engine.refresh.scheduler import Scheduler
from engine.refresh.simulator import Arrived, Cost, Observer


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

    def period_costs(self, period_s: Callable[[str], float], fast: Callable[[str], bool]) -> dict[str, float]:
        """E(P) of every table that was updated by itself: what one period's data take, of jobs that were merged too.

        A fast table's update takes about as long for one period's data as for some; a slow one's is nearly all data.
        """
        found: dict[str, list[tuple[bool, float]]] = {}
        for job in self.jobs:
            if len(job.loads) == 1 and (span := job.loads[0].upto - job.loads[0].after) > 0:
                name = job.loads[0].table
                seconds = job.seconds if fast(name) else job.seconds * period_s(name) / span
                found.setdefault(name, []).append((job.cold, seconds))
        return {
            name: statistics.fmean([seconds for cold, seconds in times if not cold] or [times[0][1]])
            for name, times in found.items()
        }

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

    def own_costs(self, before: Mapping[str, float], fast: Callable[[str], bool]) -> dict[str, Cost]:
        """alpha and beta as the warehouse had learnt them at the end, so that its very jobs take as long in all.

        It learns from jobs of one table and counts the latest most. So the fast tables' are scaled by one factor and
        the slow ones' by another: then the jobs of the whole run, those for several tables with what they share,
        would have taken as long by these costs as they did. A table that taught nothing costs what it did `before`.
        """
        learnt = self.scheduler.learnt()
        costs = {
            name: Cost(learnt[name].alpha_s, learnt[name].beta)
            if name in learnt and learnt[name].observed
            else Cost(before[name], 0.0)
            for name in self.scheduler.tables
        }
        spent: dict[bool, list[tuple[float, float]]] = {True: [], False: []}  # seconds, and by these costs
        for job in self.jobs:
            if not job.cold:
                spent[fast(job.loads[0].table)].append((job.seconds, self._by(costs, job)))
        scale = {
            kind: sum(real for real, _ in jobs) / sum(reckoned for _, reckoned in jobs) if jobs else 1.0
            for kind, jobs in spent.items()
        }
        return {
            name: Cost(cost.alpha_s * scale[fast(name)], cost.beta * scale[fast(name)]) for name, cost in costs.items()
        }

    def _by(self, costs: Mapping[str, Cost], job: Ran) -> float:
        alone = [costs[load.table].alpha_s + costs[load.table].beta * (load.upto - load.after) for load in job.loads]
        if len(alone) == 1:
            return alone[0]
        scans = [self.scheduler.tables[load.table].scan.value * one for load, one in zip(job.loads, alone, strict=True)]
        return sum(alone) - sum(scans) + max(scans)
