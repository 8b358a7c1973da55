"""The elastic ETL+Q system on a virtual clock: a data rate against a model of the stages, scaled by the scaler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.elastic.decision import Stage
from engine.elastic.rates import DataRate
from engine.elastic.scaler import Order, Sample, Scaler, Start, Stop, Unreachable
from engine.elastic.simulated_stages import Buffers, Extractors, Star, Transformers
from engine.model.elastic import Buffer, Elastic

_MB = 1e6
_TICKS_A_SAMPLE = 8  # fine enough that a stage which is a little late does not miss the next instant


@dataclass(frozen=True)
class Point:
    """The system at a moment: what the scaler saw, and what is drawn."""

    at_s: float
    rate_rows_s: float
    nodes: dict[str, int]
    ready: int
    extraction_s: float
    queue_mb: float  # of the fullest node
    queues_mb: tuple[float, ...]  # of each node, where few
    transformation_s: float
    memory_mb: tuple[float, ...]
    disk_mb: tuple[float, ...]
    switch_rows_s: float
    load_s: float
    query_s: float | None
    facts_mb: float

    @property
    def etl_s(self) -> float:
        """Extraction, transformation and load together."""
        return self.extraction_s + self.transformation_s + self.load_s


@dataclass(frozen=True)
class Change:
    """Something that the scaler decided or that came of it."""

    at_s: float
    stage: Stage
    kind: str  # `scale out`, `scale in`, `unreachable`
    number: int
    nodes: int  # at work when it was decided
    ready: int
    rate_rows_s: float
    reason: str


@dataclass(frozen=True)
class Rebalancing:
    """The warehouse's data were distributed anew."""

    at_s: float
    nodes_before: int
    nodes_after: int
    moved_mb: float
    seconds: float


@dataclass(frozen=True)
class Full:
    """From a moment on the buffers have no room."""

    at_s: float
    nodes: int

    def told(self, limits: Buffer) -> str:
        """What a person reads."""
        return (
            f"the buffers are full, {self.nodes} with {limits.memory_mb:,g} MB of memory and {limits.disk_mb:,g} MB of "
            "disk each: rows wait in the queues of the transformation"
        )


@dataclass
class Simulated:
    """What a simulation found."""

    seconds: float
    points: list[Point] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    rebalancings: list[Rebalancing] = field(default_factory=list)
    generated_rows: float = 0.0
    loaded_rows: float = 0.0
    waiting_rows: float = 0.0  # between source and warehouse at the end
    full_s: float = 0.0  # for how long the buffers had no room
    node_seconds: float = 0.0
    most_nodes: int = 0


@dataclass
class _Doing:
    """An order under way."""

    done_at: float
    order: Start | Stop
    rebalancing: Rebalancing | None = None


Listener = Callable[[Point | Change | Rebalancing | Full], None]


class Simulation:
    """One run on the virtual clock."""

    def __init__(
        self,
        limits: Elastic,
        rate: DataRate,
        listener: Listener | None = None,
        pace: Callable[[float], None] | None = None,
    ) -> None:
        """`pace` returns when the virtual clock may go to a moment."""
        self.limits = limits
        self.rate = rate
        self.scaler = Scaler(limits)
        self.tick_s = limits.sample_s / _TICKS_A_SAMPLE
        self.result = Simulated(rate.seconds)
        self._listener = listener
        self._pace = pace
        self._extraction = Extractors(limits)
        self._transformation = Transformers(limits)
        self._buffers = Buffers(limits)
        self._star = Star(limits)
        self._doing: list[_Doing] = []
        self._full = False  # rows wait for the buffers, and that was told

    def run(self) -> Simulated:
        """All of it. Rows are neither lost nor made: `rows()` adds up after every step."""
        ticks = max(1, round(self.rate.seconds / self.tick_s))  # however short: it is looked at once
        for tick in range(ticks):
            now = tick * self.tick_s
            if self._pace is not None and tick % _TICKS_A_SAMPLE == 0:
                self._pace(now)
            self.step(now)
            if tick % _TICKS_A_SAMPLE == 0:
                self.sample(now)
        result = self.result
        result.loaded_rows = self._star.rows + self._star.removed - self._star.first_rows
        result.waiting_rows = self.rows() - result.loaded_rows
        return result

    def step(self, now: float) -> None:
        """One tick: rows move on, orders are carried out."""
        self._carry_out(now)
        seconds = self.tick_s
        rows = self.rate.at(now) * seconds
        self.result.generated_rows += rows
        extracted = self._extraction.step(now, seconds, rows)
        done = self._transformation.step(seconds, extracted, self._buffers.room())
        self._look_at_room(now)
        if self._extraction.idle:
            self._transformation.rest()
        self._buffers.step(seconds, done)
        self._star.step(now, self._buffers)
        # A node counts from the moment it is taken from the pool.
        used = self.limits.pool - self.scaler.ready
        self.result.node_seconds += used * seconds
        self.result.most_nodes = max(self.result.most_nodes, used)

    def _look_at_room(self, now: float) -> None:
        """Tell once when rows begin to wait for the buffers; until nothing waits for transformation it is the same."""
        if self._transformation.held_back:
            self.result.full_s += self.tick_s
            if not self._full:
                self._tell(Full(now, self.scaler.stages[Stage.BUFFER].nodes))
            self._full = True
        elif not self._transformation.queues.any():
            self._full = False

    def rows(self) -> float:
        """The rows that are anywhere in the system."""
        inside = self._extraction.rows + float(self._transformation.queues.sum()) + self._buffers.rows
        return inside + self._star.loading + self._star.rows + self._star.removed - self._star.first_rows

    def sample(self, now: float) -> None:
        """Look at the stages and let the scaler decide."""
        row_mb = self.limits.capacity.row_bytes / _MB
        queues = self._transformation.peaks * row_mb
        switches = self.scaler.stages[Stage.SWITCH].nodes
        seen = Sample(
            extraction_s=self._extraction.times.tolist(),
            queues_mb=queues.tolist(),
            transformation_s=self._transformation.measured_s,
            memory_mb=np.round(self._buffers.peaks, 6).tolist(),  # what is full is full
            disk_mb=self._buffers.disk.tolist(),
            switch_rows_s=[self._star.rate_rows_s / switches] * switches,
            load_s=self._star.load_s,
            query_s=self._star.query_s(),
        )
        self._tell_point(now, seen)
        self._transformation.peaks = self._transformation.queues.copy()
        self._buffers.peaks = self._buffers.memory.copy()
        for order in self.scaler.sample(now, seen):
            self._begin(now, order)

    def _tell_point(self, now: float, seen: Sample) -> None:
        few = 12  # nodes whose queues and buffers are worth keeping one by one
        last = self.result.points[-1] if self.result.points else None
        times = self._extraction.times
        point = Point(
            at_s=now,
            rate_rows_s=self.rate.at(now),
            nodes=self.scaler.nodes(),
            ready=self.scaler.ready,
            extraction_s=float(times.max()) if len(times) else last.extraction_s if last else 0.0,
            queue_mb=max(seen.queues_mb),
            queues_mb=tuple(seen.queues_mb) if len(seen.queues_mb) <= few else (),
            transformation_s=self._transformation.longest_s,
            memory_mb=_few(seen.memory_mb, few),
            disk_mb=_few(seen.disk_mb, few),
            switch_rows_s=seen.switch_rows_s[0],
            load_s=seen.load_s if seen.load_s is not None else last.load_s if last else 0.0,
            query_s=seen.query_s,
            facts_mb=self._star.facts_mb,
        )
        self.result.points.append(point)
        self._tell(point)

    def _tell(self, what: Point | Change | Rebalancing | Full) -> None:
        if self._listener is not None:
            self._listener(what)

    # -- orders

    def _begin(self, now: float, order: Order) -> None:
        kind = {Start: "scale out", Stop: "scale in", Unreachable: "unreachable"}[type(order)]
        number = 0 if isinstance(order, Unreachable) else order.number
        nodes = self.scaler.stages[order.stage].nodes
        change = Change(now, order.stage, kind, number, nodes, self.scaler.ready, self.rate.at(now), order.reason)
        self.result.changes.append(change)
        self._tell(change)
        if isinstance(order, Unreachable):
            return
        takes = self.limits.capacity.start_s if isinstance(order, Start) else 0.0
        rebalancing = None
        if order.stage is Stage.WAREHOUSE:
            rebalancing = self._rebalance(now + takes, order)
            takes += rebalancing.seconds
        self._doing.append(_Doing(now + takes, order, rebalancing))

    def _rebalance(self, begins: float, order: Start | Stop) -> Rebalancing:
        """Loads and queries go on with the old distribution while facts move."""
        nodes = self._star.nodes + (order.number if isinstance(order, Start) else -order.number)
        moved, seconds = self._star.rebalancing(nodes)
        rebalancing = Rebalancing(begins, self._star.nodes, nodes, moved, seconds)
        self.result.rebalancings.append(rebalancing)
        return rebalancing

    def _carry_out(self, now: float) -> None:
        for doing in [doing for doing in self._doing if doing.done_at <= now]:
            self._doing.remove(doing)
            order = doing.order
            stage: Any = {
                Stage.EXTRACTION: self._extraction,
                Stage.TRANSFORMATION: self._transformation,
                Stage.BUFFER: self._buffers,
            }.get(order.stage)
            if isinstance(order, Start):
                if stage is not None:
                    stage.add(order.number)
                self.scaler.started(order.stage, now, order.number)
            else:
                if stage is not None:
                    stage.remove(order.leaves, order.takes_over)
                self.scaler.stopped(order.stage, now)
            if doing.rebalancing is not None:
                self._tell(doing.rebalancing)  # in its order: a log's time does not go back
                self._star.resize(self.scaler.stages[Stage.WAREHOUSE].nodes)


def _few(values: Any, few: int) -> tuple[float, ...]:
    """The values one by one, or their mean where they are many."""
    return tuple(values) if len(values) <= few else (float(np.mean(values)),)


def simulate(limits: Elastic, rate: DataRate, listener: Listener | None = None) -> Simulated:
    """Run the system against a data rate."""
    return Simulation(limits, rate, listener).run()
