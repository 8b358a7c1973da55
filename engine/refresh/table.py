"""A table as the scheduler knows it: its edges, what waits to be loaded into it, and its staleness so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.refresh.estimates import CostEstimate, PeriodEstimate, ScanEstimate
from engine.refresh.model import TableSpec

if TYPE_CHECKING:
    from engine.refresh.jobs import Job
    from engine.refresh.partition import Group

NEVER = float("inf")


class Table:
    """One table while the warehouse runs. Its update job is released while `released` is a time."""

    __slots__ = (
        "alpha", "area", "available", "batches", "beta", "bound", "breaks", "broken_s", "chop", "cost", "dependents",
        "freshness", "gain", "group", "held", "is_base", "job", "key", "lateness", "loading", "moved", "name",
        "next_arrival", "number", "peak", "period", "periods", "place", "priority", "punctuated", "released", "removed",
        "safe", "scan", "shared_s", "siblings", "since", "sources", "spec", "updates", "weight",
    )  # fmt: skip

    def __init__(self, spec: TableSpec, number: int, freshness: float, now: float) -> None:
        self.spec = spec
        self.name = spec.name
        self.number = number
        self.is_base = spec.is_base
        self.sources: list[Table] = []
        self.dependents: list[Table] = []  # direct
        self.siblings: list[Table] = []  # all that read the very same sources, where one job may be for several
        self.priority = spec.priority  # its own, by which its staleness weighs
        self.weight = spec.priority  # inherited, and gained when its bound is near: by which it is scheduled
        self.gain = 1.0
        self.bound = spec.staleness_bound_s
        self.lateness = spec.lateness_bound_s
        # What an update costs and how often one comes: as given, or as learnt so far.
        self.cost = CostEstimate(spec.alpha_s, spec.beta)
        self.alpha, self.beta = self.cost.values()
        self.scan = ScanEstimate(spec.scan_share)
        self.periods = PeriodEstimate(spec.period_s if spec.is_base else None)
        self.period = NEVER  # set by the scheduler: of a derived table, its ancestors' longest
        self.shared_s = 0.0  # its E(P) when the tracks were last shared
        self.chop = NEVER  # at most so much time's data in one job
        # Edges (section 2.2).
        self.freshness = freshness  # the largest timestamp in it
        self.safe = freshness  # no smaller timestamp can come any more, as far as it is loaded
        self.moved = 0  # how many jobs had begun when its safe edge moved last
        self.available = freshness  # what it would be were all loaded that waits
        self.batches: list[tuple[float, float]] = []  # of a base table: (largest timestamp, safe after it)
        self.punctuated = -NEVER  # what the stream promised last
        self.loading = 0  # so many of its first batches are being loaded
        self.next_arrival = -NEVER  # when the next batch is expected
        # Its update job.
        self.released: float | None = None  # since when there is something to load
        self.held = False  # its driver does not want it tried again just yet
        self.job: Job | None = None  # that runs now
        self.key: Any = None  # in the queue of its group, while it waits there
        self.place = 0  # which of its entries in that queue counts
        self.group: Group
        self.removed = False
        # Staleness (section 2.3).
        self.since = now  # when its freshness last moved
        self.area = 0.0  # under its staleness, until then
        self.peak = 0.0
        self.updates = 0
        self.breaks = int(self.beyond(now))  # how often its bound was broken; it may begin so
        self.broken_s = 0.0  # and for how long in all

    @property
    def delta(self) -> float:
        """The freshness delta of its next job: what is there and not loaded, chopped (sections 2.4, 3.4)."""
        delta = self.available - self.freshness
        return delta if delta < self.chop else self.chop

    @property
    def seconds(self) -> float:
        """How long its next job takes: E(n) = alpha + beta · n."""
        delta = self.available - self.freshness
        return self.alpha + self.beta * (delta if delta < self.chop else self.chop)

    @property
    def usual_seconds(self) -> float:
        """E(P): how long a job takes that comes in time."""
        return self.alpha + self.beta * self.period if self.period < NEVER else self.alpha

    @property
    def utilization(self) -> float:
        """u = E(P) / P; nothing for a table whose period nobody knows yet."""
        return self.usual_seconds / self.period

    @property
    def deadline(self) -> float:
        """Its release and a period (section 3.1)."""
        return (self.released or 0.0) + self.period

    @property
    def benefit(self) -> float:
        """The decrease of weighted staleness for each second that its next job takes.

        Until it is known what jobs of the table take, all that waits counts: else a table that is far behind would
        not come first either, and nobody would ever learn that more could be loaded at once.
        """
        delta = self.available - self.freshness
        if delta > self.chop and self.cost.known:
            delta = self.chop
        return self.weight * delta / (self.alpha + self.beta * delta)

    def staleness(self, now: float) -> float:
        """S = now - F."""
        return now - self.freshness

    def beyond(self, now: float) -> bool:
        """Whether it is staler than its bound allows."""
        return self.bound is not None and now - self.freshness > self.bound

    def account(self, now: float) -> None:
        """Add up its staleness until now. Its freshness has not moved since the last time."""
        freshness, since = self.freshness, self.since
        high = now - freshness
        low = since - freshness
        self.area += (high - low) * (high + low) / 2
        if high > self.peak:
            self.peak = high
        bound = self.bound
        if bound is not None and high > bound:
            if low <= bound:
                self.breaks += 1
                low = bound
            self.broken_s += high - low
        self.since = now

    def check(self) -> None:
        """Its own invariants, for tests."""
        assert self.available >= self.freshness
        assert not self.is_base or self.safe <= max(self.freshness, self.punctuated)
        assert self.is_base or self.safe == self.freshness
        if self.is_base:
            pending = bool(self.batches)
        else:
            pending = self.available > self.freshness
            # An empty view counts as fresh from where its data will begin, which its sources have yet to reach.
            assert self.available == self.freshness or self.available <= min(source.safe for source in self.sources)
        if self.job is None:
            assert pending == (self.released is not None)
