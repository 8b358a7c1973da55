"""The scheduler of a streaming warehouse: which table is updated next, on which track (sections 2 and 3).

A state machine without I/O and without a clock of its own. Arrivals, punctuations, finished jobs and changes of the
warehouse are told to it, each with its time; `start` answers which jobs begin now. A live warehouse drives it by the
real clock and Spark, the simulator by a virtual one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, merge, nsmallest
from random import Random

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.refresh.estimates import Learnt, significant
from engine.refresh.inheritance import Inheritance, reached, weigh
from engine.refresh.jobs import Job, Load
from engine.refresh.local import LocalAlgorithm, algorithm_named
from engine.refresh.model import TableSpec, Warehouse
from engine.refresh.partition import Group, Partition, tracks_named
from engine.refresh.table import NEVER, Table
from engine.refresh.together import joint_seconds, saved_share, worth_joining

GAIN = 10.0  # how much more a table weighs whose bound is near
NEAR = 0.25  # a bound is near when less than this share of it is left
LEARNING = 8  # for so many tables at most, sharing the tracks anew is worth one finished job
_SLACK = 1e-9  # three periods of a tenth are not exactly 0.3


@dataclass(frozen=True)
class Settings:
    """How updates are scheduled. The defaults are what the paper found best (section 4.8)."""

    policy: str = "max-benefit"  # the local algorithm
    sharing: str = "proportional"  # how the tracks are shared
    tracks: int = 4
    aggressive: bool = True
    all_tracks: bool = True  # of Proportional: none stays free
    k: float = 10.0  # of Proportional: how many times as long a period may be within a cluster
    inheritance: Inheritance = Inheritance.MAX
    max_plus_k: float = 2.0
    chop: float | None = 3.0  # periods' data in one job at most, see `_chopped`; None: all that waits
    chop_by_cost: bool = True  # also more, where it takes no more than so many times a usual job; else as in the paper
    bounds: bool = True  # whether a table weighs more when its staleness bound is near
    together: bool = True  # whether one job updates several tables that scan the same, where that is cheaper
    seed: int = 0  # of the local algorithm `random`

    def __post_init__(self) -> None:
        for name in ("tracks", "k", "max_plus_k", "chop"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise BadInput(f"{name} is {value:g}; it must be at least 1")


class Scheduler:
    """All tables of a warehouse, what waits to be loaded into them, and what runs on the tracks."""

    def __init__(
        self,
        warehouse: Warehouse,
        settings: Settings | None = None,
        *,
        now: float = 0.0,
        freshness: Mapping[str, float] | None = None,
        learnt: Mapping[str, Learnt] | None = None,
    ) -> None:
        """`freshness` is up to when each table holds data already (else: until now)."""
        self.settings = settings or Settings()
        self.warehouse = warehouse
        self.now = now
        self.backwards = 0  # how often the clock went backwards
        self.repartitions = 0  # how often the tracks were shared anew
        self.tables: dict[str, Table] = {}
        self.partition: Partition
        self._learnt = dict(learnt or {})
        self._number = 0  # of the last table that came
        self._jobs = 0
        self._finished = 0
        self._shared_at = 0  # how many jobs were finished when the tracks were shared last
        self._queued = 0  # tables that wait in the queues of the groups
        self._running: list[Job | None] = [None] * self.settings.tracks
        self._idle = list(range(self.settings.tracks))[::-1]
        self._near: list[tuple[float, int, Table, float]] = []  # when a bound will be near, should the table not move
        self._coming: list[tuple[float, int, Table]] = []  # when the next batches are expected
        self._random = Random(self.settings.seed)
        self._algorithm = algorithm_named(self.settings.policy)
        self._key = self._algorithm.key
        self._sharing = tracks_named(self.settings.sharing)(
            aggressive=self.settings.aggressive, all_tracks=self.settings.all_tracks, k=self.settings.k
        )
        self._stale_partition = False
        for name in warehouse.order:
            self._enter(warehouse.tables[name], (freshness or {}).get(name, now))
        self._connect()
        self._algorithm.begin(self)

    # -- what happens

    def arrive(self, name: str, upto: float, now: float) -> None:
        """A batch of new data arrived for a base table, with timestamps up to `upto`."""
        now = self._clock(now)
        table = self.tables[name]
        table.batches.append((upto, table.punctuated))
        if upto > table.available:
            table.available = upto
        periods = table.periods
        if periods.given is None:
            periods.observe(now)
            if periods.value is not None and (table.period == NEVER or significant(table.period, periods.value)):
                self._stale_partition = True
        if table.released is None:
            table.released = now
        if table.job is None:
            self._put(table)
        if self._algorithm.looks_ahead and table.period < NEVER:
            table.next_arrival = now + table.period
            heappush(self._coming, (table.next_arrival, table.number, table))

    def punctuate(self, name: str, safe: float, now: float) -> None:
        """A base table's stream promises that no record with a smaller timestamp will come any more (section 2.2)."""
        self._clock(now)
        table = self.tables[name]
        if safe <= table.punctuated:
            return
        table.punctuated = safe
        if table.batches:  # it holds once these are loaded
            table.batches[-1] = (table.batches[-1][0], safe)
        elif safe > table.safe:
            self._moved(table, safe)
            self._cascade(table)

    def finish(
        self,
        job: Job,
        now: float,
        *,
        failed: bool = False,
        cold: bool = False,
        hold: Iterable[str] = (),
        safe: Mapping[str, float] | None = None,
    ) -> None:
        """A job is done: its tables are as fresh as it said, or nothing of it was loaded and all has to come again.

        Nothing is learnt from a cold one, which did what only the first update of a table has to do. Tables to hold
        are not tried again before `resume`; what comes for them waits. `safe` is up to where base tables are safe,
        where their driver knows it: of what arrived, not all may have been there any more.
        """
        now = self._clock(now)
        if self._running[job.track] is not job:
            raise ValueError(f"job {job.number} does not run on track {job.track}")
        self._finished += 1
        self._running[job.track] = None
        self._idle.append(job.track)
        if len(job.loads) > 1 and not failed and not cold:
            self._learn_scan(job, now - job.started)
        held = set(hold)
        for load in job.loads:
            table = self.tables.get(load.table)
            if table is None or table.job is not job:
                continue  # it was removed meanwhile
            table.job = None
            table.held = load.table in held
            if failed:
                table.loading = 0
                if table.released is None:
                    table.released = job.started
            else:
                self._loaded(table, load, now, job.number, (safe or {}).get(load.table))
                if len(job.loads) == 1 and table.cost.learns and not cold and load.upto > load.after:
                    self._learn(table, load.upto - load.after, now - job.started)
            if table.released is not None:
                self._put(table)

    def resume(self, name: str, now: float) -> None:
        """A table that was held may be tried again."""
        self._clock(now)
        table = self.tables[name]
        table.held = False
        if table.released is not None and table.job is None:
            self._put(table)

    def add_table(self, spec: TableSpec, now: float, freshness: float | None = None) -> None:
        """A table joins while the warehouse runs; it holds data up to `freshness` already (else: until now)."""
        now = self._clock(now)
        self.warehouse = self.warehouse.with_table(spec)
        self._enter(spec, now if freshness is None else freshness)
        self._connect()
        table = self.tables[spec.name]
        if not table.is_base:
            self._follow(table)

    def remove_table(self, name: str, now: float) -> None:
        """A table leaves while the warehouse runs; a job of it that runs is of no more effect."""
        self._clock(now)
        self.warehouse = self.warehouse.without_table(name)
        table = self.tables.pop(name)
        table.removed = True
        if table.place:
            self._take(table)
        for source in table.sources:
            source.dependents.remove(table)
        self._connect()

    def begin_from(self, names: Iterable[str], freshness: float, now: float) -> None:
        """Tables that are still empty will hold data from an earlier time on than was thought."""
        now = self._clock(now)
        views = []
        for name in names:
            table = self.tables[name]
            if table.freshness > freshness and (table.is_base or table.job is None):
                table.account(now)
                kept = not table.beyond(now)
                table.freshness = table.available = freshness
                table.breaks += kept and table.beyond(now)
                # One that nothing was ever loaded into stays at no time, and what was promised holds.
                table.safe = min(table.safe, max(freshness, table.punctuated))
                if table.is_base:  # what waits are promises alone
                    table.batches = [(freshness, promised) for _, promised in table.batches]
                else:
                    table.released = None
                    if table.place:
                        self._take(table)
                    views.append(table)
                if table.bound is not None:
                    self._watch(table, now)
        for view in views:
            self._follow(view)

    def catch_up(self, now: float) -> None:
        """Views that hold less than their sources, as a stop or a kill may leave them, have something to load."""
        self._clock(now)
        for name in self.warehouse.order:
            if not self.tables[name].is_base:
                self._follow(self.tables[name])

    # -- what to do

    def start(self, now: float) -> list[Job]:
        """The jobs that begin now."""
        now = self._clock(now)
        jobs: list[Job] = []
        if self._stale_partition and (self._finished - self._shared_at) * LEARNING >= len(self.tables) - LEARNING:
            self._connect()  # costs as much as there are tables, and while they are learnt each job changes one
        if not self._queued or not self._idle:
            return jobs
        if self._near and self._near[0][0] <= now:
            self._gain(now)
        groups = self.partition.groups
        if len(groups) == 1 and len(groups[0].home) == len(self._running):
            queue = groups[0].queue
            while queue.size and self._idle:
                first = queue.first()
                assert first is not None
                jobs.append(self._launch(first[1], self._idle.pop(), now))
            return jobs
        waiting = [group for group in groups if group.queue.size]
        while waiting and self._idle:
            # The released jobs in order: the first of each group, as all of a group may use the same tracks.
            key, table = waiting[0].queue.first()  # type: ignore[misc]
            for group in waiting[1:]:
                other = group.queue.first()
                if other[0] < key:  # type: ignore[index]
                    key, table = other  # type: ignore[misc]
            group = table.group
            track = self._track_for(group, waiting)
            if track is None:
                waiting.remove(group)  # its jobs are delayed
                continue
            self._idle.remove(track)
            jobs.append(self._launch(table, track, now))
            if not group.queue.size:
                waiting.remove(group)
        return jobs

    def _track_for(self, group: Group, waiting: Sequence[Group]) -> int | None:
        """Where a job of the group may run now: at home, on a free track, or promoted (sections 3.2.2 and 3.2.3).

        The first of the group comes next of all that wait in these groups.
        """
        running, partition = self._running, self.partition
        for track in group.home:
            if running[track] is None:
                return track
        for track in partition.free:
            if running[track] is None:
                return track
        idle = [track for track in group.promotable if running[track] is None]
        if idle and not partition.aggressive:
            wanted = self._wanted([other for other in waiting if other is not group])
            idle = [track for track in idle if track not in wanted]
        return idle[0] if idle else None

    def _wanted(self, groups: Sequence[Group]) -> set[int]:
        """The idle tracks that the released jobs of these groups would be scheduled on at home, in their order."""
        idle = {track for track, job in enumerate(self._running) if job is None}
        wanted: set[int] = set()
        nexts = [
            nsmallest(len(idle), ((table.key, number, table.number) for table in group.queue.waiting()))
            for number, group in enumerate(groups)
        ]
        for _, number, _ in merge(*nexts):
            home = next((track for track in groups[number].home if track in idle), None)
            if home is not None:
                idle.remove(home)
                wanted.add(home)
        return wanted

    def _launch(self, table: Table, track: int, now: float) -> Job:
        if self._algorithm.looks_ahead:
            table = self._algorithm.instead(table, now)
        together = worth_joining(table, self.settings.chop) if table.siblings else [table]
        expected = table.seconds if len(together) == 1 else joint_seconds(together)
        self._jobs += 1
        job = Job(self._jobs, track, tuple([self._load(one) for one in together]), now, expected)
        for one in together:
            self._take(one)
            one.job = job
        self._running[track] = job
        return job

    def _load(self, table: Table) -> Load:
        """What the table's next job loads: all that waits, up to the chopping (section 3.4)."""
        after = table.freshness
        upto = table.available
        limit = after + table.chop * (1 + _SLACK)
        if not table.is_base:
            if upto > limit:
                upto = after + table.chop  # and it stays released
            else:
                table.released = None
            return Load(table.name, after, upto)
        batches = table.batches
        table.loading = len(batches)
        if upto > limit:  # whole batches, one at least
            upto, table.loading = after, 0
            for at, _ in batches:
                if table.loading and at > limit:
                    break
                table.loading += 1
                upto = max(upto, at)
        if table.loading == len(batches):
            table.released = None
        return Load(table.name, after, upto, table.loading)

    # -- what follows

    def _loaded(self, table: Table, load: Load, now: float, job: int, known_safe: float | None) -> None:
        """A table has what a job loaded into it; whatever derives from it may now move."""
        table.account(now)
        table.updates += 1
        table.freshness = safe = load.upto
        if table.is_base:
            safe -= table.lateness
            for _, promised in table.batches[: table.loading]:
                if promised > safe:
                    safe = promised
            del table.batches[: table.loading]
            table.loading = 0
            if known_safe is not None:
                safe = known_safe
            if not table.batches:
                table.available = load.upto
        elif safe <= load.after:  # it could not move: it is tried again once one of its sources has
            table.released = None
            table.available = safe
            if any(source.moved >= job for source in table.sources):
                self._follow(table)
        elif table.released is None:
            table.available = safe  # a driver may end a view's job earlier, where its sources' partitions end
        if safe > table.safe:
            self._moved(table, safe)
        if table.bound is not None:
            self._watch(table, now)
        if table.dependents:
            self._cascade(table)

    def _moved(self, table: Table, safe: float) -> None:
        table.safe = safe
        table.moved = self._jobs

    def _cascade(self, table: Table) -> None:
        """The update jobs of all tables directly sourced from one are released (section 2.1)."""
        for dependent in table.dependents:
            self._follow(dependent)

    def _follow(self, table: Table) -> None:
        """A derived table may go up to the safe trailing edge of its sources (section 2.2)."""
        sources = table.sources
        edge = sources[0].safe if len(sources) == 1 else min([source.safe for source in sources])
        if edge > table.available:
            table.available = edge
            if table.released is None:
                table.released = self.now
            if table.job is None:
                self._put(table)

    def _learn(self, table: Table, n: float, seconds: float) -> None:
        table.cost.observe(n, seconds)
        table.alpha, table.beta = table.cost.values()
        table.chop = self._chopped(table)
        if significant(table.shared_s, table.usual_seconds):
            self._stale_partition = True

    def _learn_scan(self, job: Job, seconds: float) -> None:
        """What one job for several tables saved."""
        tables = [self.tables[load.table] for load in job.loads if load.table in self.tables]
        if len(tables) == len(job.loads):
            alone = [
                table.alpha + table.beta * (load.upto - load.after)
                for table, load in zip(tables, job.loads, strict=True)
            ]
            share = saved_share(alone, seconds)
            for table in tables:
                table.scan.observe(share)

    def _put(self, table: Table) -> None:
        """Its released job waits, or moves in the queue because it changed."""
        if table.held:
            return
        key = self._key(table)
        if table.place:
            if key == table.key:
                return
        else:
            self._queued += 1
        table.key = key
        table.group.queue.put(table, key)

    def _take(self, table: Table) -> None:
        self._queued -= 1
        table.group.queue.take(table)

    def _clock(self, now: float) -> float:
        """Time never goes backwards here, whatever a real clock does."""
        if now < self.now:
            self.backwards += 1
            return self.now
        self.now = now
        return now

    # -- staleness bounds as targets

    def _watch(self, table: Table, now: float) -> None:
        """The table moved: its bound is far again, and will be near at a time that is known now."""
        bound = table.bound
        if bound is None or not self.settings.bounds:
            return
        if table.gain != 1.0:
            table.gain = 1.0
            self._weigh_again(table)
        left = max(NEAR * bound, 2 * table.usual_seconds)
        heappush(self._near, (table.freshness + bound - left, table.number, table, table.freshness))

    def _gain(self, now: float) -> None:
        """Tables that are about to break their bounds weigh more, and so do those that they wait for."""
        while self._near and self._near[0][0] <= now:
            _, _, table, freshness = heappop(self._near)
            if not table.removed and table.freshness == freshness and table.gain == 1.0:
                table.gain = GAIN
                self._weigh_again(table)

    def _weigh_again(self, table: Table) -> None:
        settings = self.settings
        # Those behind others first: in a diamond a table is reached before one that stands between.
        affected = sorted([table, *reached(table, "sources")], key=lambda one: one.number, reverse=True)
        for changed in weigh(affected, settings.inheritance, settings.max_plus_k):
            if changed.place:
                self._put(changed)

    # -- what is known of the future

    def expected_releases(self, now: float, until: float, most: int) -> list[tuple[float, Table, float]]:
        """When base tables that wait for nothing expect a batch, and their freshness delta then; the next first."""
        found: list[tuple[float, Table, float]] = []
        kept = []
        coming = self._coming
        while coming and coming[0][0] <= until and len(found) < most:
            entry = heappop(coming)
            at, _, table = entry
            if at != table.next_arrival or at < now or table.removed:
                continue  # it came, or is overdue
            kept.append(entry)
            if table.released is None and table.job is None:
                found.append((at, table, min(table.available + table.period - table.freshness, table.chop)))
        for entry in kept:
            heappush(coming, entry)
        return found

    # -- the warehouse itself

    def _enter(self, spec: TableSpec, freshness: float) -> None:
        self._number += 1
        table = self.tables[spec.name] = Table(spec, self._number, freshness, self.now)
        learnt = self._learnt.get(spec.name)
        if learnt is not None:
            table.cost.remember(learnt)
            table.alpha, table.beta = table.cost.values()
            if table.is_base and table.periods.given is None:
                table.periods.remember(learnt)
        table.sources = [self.tables[source] for source in spec.sources]
        for source in table.sources:
            source.dependents.append(table)
        if not table.is_base:
            table.available = table.freshness
            table.safe = table.freshness
        if table.bound is not None:
            self._watch(table, self.now)

    def _connect(self) -> None:
        """Tables came or went, or what is known of them changed much: weights, periods and tracks anew."""
        settings, order = self.settings, self.warehouse.order
        tables = [self.tables[name] for name in order]
        weigh(reversed(tables), settings.inheritance, settings.max_plus_k)
        by_sources: dict[tuple[int, ...], list[Table]] = {}
        for table in tables:
            if table.is_base:
                table.period = table.periods.value or NEVER
            else:
                table.period = table.spec.period_s or max(source.period for source in table.sources)
                by_sources.setdefault(tuple(sorted(s.number for s in table.sources)), []).append(table)
            table.chop = self._chopped(table)
            table.shared_s = table.usual_seconds
            table.siblings = []
        for reading in by_sources.values():
            if settings.together and len(reading) > 1 and any(table.spec.scan_share != 0 for table in reading):
                for table in reading:
                    table.siblings = reading
        self.partition = self._sharing.partition(tables, settings.tracks)
        self._stale_partition = False
        self._shared_at = self._finished
        self.repartitions += 1
        for group in self.partition.groups:
            group.queue = self._algorithm.queue(self._random)
            for table in group.tables:
                table.group = group
                if table.place:
                    table.place = 0
                    self._queued -= 1
                    self._put(table)

    def _chopped(self, table: Table) -> float:
        """How much time's data one job loads at most: c periods' (section 3.4).

        Chopping is there to keep jobs short. Where most of a job's time is its alpha, cutting at c periods would make
        none shorter and pay alpha over and over after an overload. So by cost, once that is known, it may be what takes
        c times as long as a usual job; but what was learnt is trusted no further than c times the longest span that it
        was learnt from. Where batches are always equal, no beta can be seen, and that is c periods.
        """
        c = self.settings.chop
        if c is None or table.period == NEVER:
            return NEVER
        limit = c * table.period
        if self.settings.chop_by_cost and table.cost.known:
            as_long = limit + (c - 1) * table.alpha / table.beta if table.beta > 0 else NEVER
            limit = max(limit, min(as_long, c * table.cost.widest)) if table.cost.learns else as_long
        # A view whose sources have buckets ends where these end: a shorter step would lead nowhere, again and again.
        return max(limit, table.spec.step_s)

    def learnt(self) -> dict[str, Learnt]:
        """What the updates so far taught of each table, to be kept for the next run."""
        return {
            name: Learnt(table.alpha, table.beta, self._period_of(table), table.cost.observed)
            for name, table in self.tables.items()
            if table.cost.observed or table.periods.observed
        }

    @staticmethod
    def _period_of(table: Table) -> float | None:
        if table.is_base:
            return table.periods.value
        return table.period if table.period < NEVER else None

    def account(self, now: float) -> None:
        """Add up the staleness of every table until now."""
        now = self._clock(now)
        for table in self.tables.values():
            table.account(now)

    @property
    def algorithm(self) -> LocalAlgorithm:
        """The local algorithm, with what it keeps of this schedule."""
        return self._algorithm

    @property
    def running(self) -> list[Job]:
        """The jobs that run."""
        return [job for job in self._running if job is not None]

    def table(self, name: str) -> Table:
        """A table by its name."""
        if name not in self.tables:
            raise BadInput(f"there is no table `{name}`{did_you_mean(name, self.tables)}")
        return self.tables[name]

    def check(self) -> None:
        """Every invariant, for tests."""
        assert len(self.running) + len(self._idle) == self.settings.tracks
        assert sorted(self._idle) == [track for track, job in enumerate(self._running) if job is None]
        updated = [name for job in self.running for name in job.tables]
        assert len(set(updated)) == len(updated), "two updates of a table at once"
        assert self._queued == sum(group.queue.size for group in self.partition.groups)
        placed = [table for group in self.partition.groups for table in group.tables]
        assert len(placed) == len(self.tables)
        assert set(placed) == set(self.tables.values())
        for group in self.partition.groups:
            waiting = list(group.queue.waiting())
            assert len(waiting) == group.queue.size
            assert all(table.group is group for table in waiting)
            first = group.queue.first()
            assert first is None or first[1] in waiting
        for table in self.tables.values():
            table.check()
            assert bool(table.place) == (table.job is None and table.released is not None and not table.held)
            assert not table.place or table.key == self._key(table)
            assert table.job is None or table.job in self.running
