"""What holds of every warehouse, whatever arrives, fails, comes and goes: checked against a model of the data."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.refresh.inheritance import Inheritance
from engine.refresh.jobs import Job
from engine.refresh.local import algorithms
from engine.refresh.model import TableSpec, Warehouse
from engine.refresh.partition import ways_to_share
from engine.refresh.scheduler import Scheduler, Settings
from engine.refresh.simulator import Cost, Observer, Stream, World, simulate

STEPS = 120


class Data:
    """A warehouse with its records: what arrived for each base table, what each table holds."""

    def __init__(self, random: Random, asked: Settings) -> None:
        self.random = random
        self.now = 0.0
        self.made = 0
        self.arrived: dict[str, list[float]] = {}  # timestamps, by base table
        self.waiting: dict[str, deque[list[float]]] = {}  # batches that are not loaded
        self.loaded: dict[str, list[float]] = {}  # of base tables: all that was, in its order
        self.late: dict[str, list[float]] = {}  # and what of it came too late
        self.held: dict[str, list[float]] = {}
        self.newest: dict[str, float] = {}  # the largest timestamp on the stream
        self.promised: dict[str, float] = {}
        self.loaded_upto: dict[str, float] = {}
        self.empty: set[str] = set()  # base tables that came while it runs, and of which no data have arrived
        self.moved: set[str] = set()  # views that were updated
        self.waits: set[str] = set()  # tables that failed and are held
        specs = [self.new_base() for _ in range(random.randint(1, 4))]
        for _ in range(random.randint(0, 6)):
            specs.append(self.new_view([spec.name for spec in specs]))
        self.scheduler = Scheduler(Warehouse(specs), asked)

    def new_base(self) -> TableSpec:
        self.made += 1
        name = f"base{self.made}"
        self.arrived[name], self.waiting[name], self.held[name] = [], deque(), []
        self.loaded[name], self.late[name] = [], []
        self.newest[name] = self.promised[name] = self.loaded_upto[name] = self.now
        pick = self.random.choice
        return TableSpec(
            name, priority=pick([1, 10]), period_s=pick([None, 1.0, 5.0, 100.0]), alpha_s=pick([None, 0.5]),
            beta=pick([None, 0.1]), lateness_bound_s=pick([0.0, 0.0, 3.0]), staleness_bound_s=pick([None, 4.0]),
        )  # fmt: skip

    def new_view(self, names: list[str]) -> TableSpec:
        self.made += 1
        name = f"view{self.made}"
        pick = self.random.choice
        sources = tuple(self.random.sample(names, min(len(names), self.random.randint(1, 2))))
        self.held[name] = []
        return TableSpec(
            name, sources, priority=pick([0.1, 1, 10]), alpha_s=1.0, beta=pick([0.0, 0.2]),
            staleness_bound_s=pick([None, 9.0]), scan_share=pick([0.0, 0.6, None]),
        )  # fmt: skip

    def arrive(self) -> None:
        """A batch whose records are in order, late within the bound and just at it, or older than it."""
        name = self.random.choice(list(self.arrived))
        if name not in self.scheduler.tables:
            return
        late = self.scheduler.tables[name].lateness
        if name in self.empty:
            self.begin_earlier(name)
        newest = self.newest[name] + self.random.choice([0.0, 0.5, 1.0, 4.0])
        oldest = max(self.newest[name] - late, self.promised[name])
        records = [newest] if newest >= oldest else []
        records += [self.random.uniform(oldest, max(newest, oldest)) for _ in range(self.random.randint(0, 3))]
        records += [at for at in (oldest, self.newest[name], oldest - 0.5, oldest - 9.0) if self.random.random() < 0.2]
        if not records:
            return
        self.newest[name] = max(self.newest[name], *records)
        self.arrived[name] += records
        self.waiting[name].append(records)
        self.scheduler.arrive(name, max(records), self.now)

    def begin_earlier(self, name: str) -> None:
        """The first data of a table may be old: it and the views that are empty begin there."""
        self.empty.remove(name)
        first = self.newest[name] - self.random.choice([0.0, 1.0, 30.0])
        self.newest[name] = self.loaded_upto[name] = first
        below = [one for one in self.scheduler.warehouse.descendants(name) if one not in self.moved]
        before = {one: self.scheduler.tables[one].freshness for one in below}
        self.scheduler.begin_from([name, *below], first, self.now)
        for one in below:
            if self.scheduler.tables[one].freshness < before[one]:
                self.born[one] = first

    def punctuate(self) -> None:
        name = self.random.choice(list(self.arrived))
        if name in self.scheduler.tables:
            self.promised[name] = max(self.promised[name], self.newest[name] + self.random.choice([-2.0, 0.0, 2.0]))
            self.newest[name] = max(self.newest[name], self.promised[name])
            self.scheduler.punctuate(name, self.promised[name], self.now)

    def finish(self, job: Job, failed: bool, hold: bool = False) -> None:
        for load in job.loads:
            if failed or load.table not in self.scheduler.tables:
                continue
            spec = self.scheduler.warehouse.tables[load.table]
            if spec.is_base:
                assert load.batches >= 1
                records = [record for _ in range(load.batches) for record in self.waiting[load.table].popleft()]
                assert load.upto == max([load.after, *records])
                table, newest = self.scheduler.tables[load.table], self.loaded_upto[load.table]
                bound = max(newest - spec.lateness_bound_s, self.promised[load.table])
                for at in records:
                    # Views end before the safe edge: what is not smaller than that is in time, and nothing else is.
                    (self.held if at >= table.safe else self.late)[load.table].append(at)
                    assert at >= table.safe or at < bound
                self.loaded[load.table] += records
                self.loaded_upto[load.table] = max(newest, *records)
            else:
                assert load.upto > load.after
                self.moved.add(load.table)
                for source in spec.sources:
                    self.held[load.table] += [at for at in self.held[source] if load.after <= at < load.upto]
        held = [name for name in job.tables if hold and name in self.scheduler.tables]
        self.waits.update(held)
        self.scheduler.finish(job, self.now, failed=failed, hold=held)

    def resume(self) -> None:
        """Tables that failed are tried again."""
        for name in [name for name in sorted(self.waits) if self.random.random() < 0.5]:
            self.waits.remove(name)
            if name in self.scheduler.tables:
                self.scheduler.resume(name, self.now)

    def check(self) -> None:
        """The scheduler's own invariants, and every view equal to its definition at the trailing edge."""
        self.scheduler.check()
        assert len(self.scheduler.running) <= self.scheduler.settings.tracks
        for name, table in self.scheduler.tables.items():
            if table.is_base:
                count = sum(map(len, self.waiting[name]))
                loaded = self.loaded[name]
                assert len(loaded) + count == len(self.arrived[name])
                assert loaded == self.arrived[name][: len(loaded)], "out of order"
                assert len(self.held[name]) + len(self.late[name]) == len(loaded)
            else:
                assert sorted(self.held[name]) == self.view(name, table.freshness), name

    def view(self, name: str, upto: float) -> list[float]:
        """The view computed from scratch, over all that its base tables hold by now."""
        spec = self.scheduler.warehouse.tables[name]
        begin = self.born.get(name, 0.0)
        found = []
        for source in spec.sources:
            whole = self.held[source] if source in self.arrived else self.view(source, float("inf"))
            found += [at for at in whole if begin <= at < upto]
        return sorted(found)

    born: dict[str, float]

    def add(self) -> None:
        names = list(self.scheduler.tables)
        spec = self.new_base() if self.random.random() < 0.4 or not names else self.new_view(names)
        if spec.is_base:
            self.scheduler.add_table(spec, self.now, freshness=self.newest[spec.name])
            self.scheduler.tables[spec.name].safe = self.promised[spec.name] = float("-inf")
            self.empty.add(spec.name)
        else:
            sources = [self.scheduler.tables[source] for source in spec.sources]
            begin = min(one.safe if one.safe > float("-inf") else one.freshness for one in sources)
            self.born[spec.name] = begin
            self.scheduler.add_table(spec, self.now, freshness=begin)

    def remove(self) -> None:
        free = [name for name in self.scheduler.tables if not self.scheduler.warehouse.dependents[name]]
        if len(self.scheduler.tables) > 1 and free:
            name = self.random.choice(free)
            self.scheduler.remove_table(name, self.now)
            for kept in (self.arrived, self.waiting):
                kept.pop(name, None)
            self.empty.discard(name)
            self.waits.discard(name)

    def drain(self) -> None:
        """Let everything that arrived be loaded; it ends, so nothing waits for ever."""
        while self.waits:
            self.resume()
        for _ in range(2_000):
            self.scheduler.start(self.now)
            running = self.scheduler.running
            if not running:
                break
            self.now += 0.5
            self.finish(self.random.choice(running), failed=False)
            self.check()
        for name, table in self.scheduler.tables.items():
            assert table.released is None
            assert table.job is None
            if table.is_base:
                assert not self.waiting[name], "an update was lost"
            else:
                assert table.freshness >= min(source.safe for source in table.sources), "an update was lost"


chosen = st.builds(
    Settings,
    policy=st.sampled_from(sorted(algorithms())),
    sharing=st.sampled_from(sorted(ways_to_share())),
    tracks=st.integers(1, 4),
    aggressive=st.booleans(),
    all_tracks=st.booleans(),
    inheritance=st.sampled_from(list(Inheritance)),
    chop=st.sampled_from([None, 1.0, 3.0]),
)


@settings(max_examples=60, deadline=None)
@given(asked=chosen, seed=st.integers(0, 2**32))
@example(asked=Settings(), seed=0)
def test_nothing_is_lost_doubled_or_out_of_order_and_views_are_consistent(asked: Settings, seed: int) -> None:
    random = Random(seed)
    Data.born = {}
    data = Data(random, asked)
    for _ in range(STEPS):
        data.now += random.choice([0.0, 0.1, 1.0])
        running = data.scheduler.running
        step = random.random()
        if step < 0.45:
            data.arrive()
        elif step < 0.5:
            data.punctuate()
        elif step < 0.9 and running:
            data.finish(random.choice(running), failed=random.random() < 0.1)
        elif step < 0.93:
            data.add()
        elif step < 0.95:
            data.remove()
        elif step < 0.96:
            data.now = max(0.0, data.now - 2.0)  # a clock that goes backwards
        for job in data.scheduler.start(data.now):
            assert all(data.scheduler.tables[name].job is job for name in job.tables)
        data.check()
    data.drain()


@settings(max_examples=60, deadline=None)
@given(asked=chosen, seed=st.integers(0, 2**32), slowdown=st.sampled_from([1.0, 5.0, 20.0]))
@example(asked=Settings(), seed=0, slowdown=5.0)
def test_with_slowdowns_failures_that_hold_tables_and_tables_that_come_and_begin_late_nothing_is_lost(
    asked: Settings, seed: int, slowdown: float
) -> None:
    """Jobs take their time, in slow periods much more; those that fail hold their tables for a while."""
    random = Random(seed)
    Data.born = {}
    data = Data(random, asked)
    ends: list[tuple[float, int, Job]] = []
    for _ in range(2 * STEPS):
        data.now += random.choice([0.1, 0.5, 1.0])
        while ends and ends[0][0] <= data.now:
            _, _, job = heappop(ends)
            failed = random.random() < 0.15
            data.finish(job, failed, hold=failed and random.random() < 0.8)
        step = random.random()
        if step < 0.5:
            data.arrive()
        elif step < 0.55:
            data.punctuate()
        elif step < 0.6:
            data.add()
        elif step < 0.63:
            data.remove()
        elif step < 0.8:
            data.resume()
        for job in data.scheduler.start(data.now):
            for load in job.loads:
                assert not data.scheduler.tables[load.table].held
                assert load.after == data.scheduler.tables[load.table].freshness, "out of order"
            slow = slowdown if data.now % 40 > 20 else 1.0
            heappush(ends, (data.now + slow * random.uniform(0.1, 1.0), job.number, job))
        assert sum(len(job.tables) for job in data.scheduler.running) == len(
            {name for job in data.scheduler.running for name in job.tables}
        )
        data.check()
    data.drain()


@settings(max_examples=25, deadline=None)
@given(asked=chosen, seed=st.integers(0, 2**32), slowdown=st.sampled_from([1.0, 3.0, 10.0]))
def test_in_a_simulation_with_slowdowns_every_invariant_holds_after_every_step(
    asked: Settings, seed: int, slowdown: float
) -> None:
    random = Random(seed)
    names: list[str] = []
    specs = []
    for number in range(random.randint(1, 8)):
        sources = tuple(random.sample(names, min(len(names), random.choice([0, 1, 2]))))
        bound = random.choice([None, 30.0])
        period = None if sources else random.choice([None, 5.0, 80.0])
        specs.append(
            TableSpec(
                f"t{number}", sources, random.choice([1.0, 10.0]), period, bound,
                lateness_bound_s=0.0 if sources else random.choice([0.0, 7.0]),
                alpha_s=random.choice([None, 1.0]), beta=random.choice([None, 0.1]),
            )
        )  # fmt: skip
        names.append(f"t{number}")
    world = World(
        Warehouse(specs),
        {
            spec.name: Stream(
                random.choice([4.0, 50.0]), random.random(), jitter=random.choice([0.0, 0.5]), delay_s=1.0
            )
            for spec in specs
            if spec.is_base
        },
        {name: Cost(random.choice([0.2, 3.0]), random.choice([0.0, 0.1])) for name in names},
        slowdown=slowdown,
        normal_s=60.0,
        slow_s=40.0,
        seed=seed,
    )
    watched: list[Scheduler] = []
    ends: dict[str, float] = {}

    def started(now: float, job: Job) -> None:
        (scheduler,) = watched
        assert len(scheduler.running) <= asked.tracks
        for load in job.loads:
            assert ends.get(load.table, -1.0) <= now, "two updates of a table at once"
            assert load.after == scheduler.tables[load.table].freshness, "out of order"
            ends[load.table] = float("inf")

    def finished(now: float, job: Job) -> None:
        (scheduler,) = watched
        for load in job.loads:
            ends[load.table] = now
            table = scheduler.tables[load.table]
            assert table.freshness == load.upto
            assert table.is_base or load.upto <= min(source.safe for source in table.sources)
        scheduler.check()

    observer = Observer(began=lambda now, scheduler: watched.append(scheduler), started=started, finished=finished)
    result = simulate(world, asked, events=400, observer=observer)
    assert result.events == 400
