"""The simulator's model of the five stages: nodes as numbers in arrays, so that thousands of them are quick."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.elastic.distribution import Parcel, distribution
from engine.model.elastic import Capacity, Elastic, Sources

Numbers = NDArray[np.float64]

_CHUNKS_A_NODE = 8  # large sources are cut, so that every node gets some of their rows
_MB = 1e6


class Dealer:
    """What each node gets of an amount, by a distribution policy over unequal sources."""

    def __init__(self, policy: str, sources: Sources) -> None:
        self._policy = policy
        weights = [1 / rank**sources.skew for rank in range(1, sources.number + 1)]
        self._weights = [weight / sum(weights) for weight in weights]
        self._shares: dict[int, Numbers] = {}

    def deal(self, amount: float, queues: Numbers) -> Numbers:
        """The amount dealt to nodes with such queues."""
        if self._policy == "on_demand":
            return _levelled(amount, queues)
        number = len(queues)
        if number not in self._shares:
            sizes = [
                weight / chunks
                for weight in self._weights
                for chunks in (max(1, math.ceil(weight * _CHUNKS_A_NODE * number)),)
                for _ in range(chunks)
            ]
            parcels = [Parcel(size, key) for key, size in enumerate(sizes)]
            self._shares[number] = np.array(distribution(self._policy).deal(parcels, [0.0] * number))
        return amount * self._shares[number]


def _levelled(amount: float, queues: Numbers) -> Numbers:
    """On demand, in the smallest parcels: the shortest queues are filled until all are level."""
    order = np.sort(queues)
    # With the k shortest filled to the height of the next, so much has been given.
    given = np.arange(1, len(order) + 1) * np.append(order[1:], np.inf) - np.cumsum(order)
    number = int(np.searchsorted(given, amount)) + 1
    level = (amount + order[:number].sum()) / number
    return np.maximum(level - queues, 0.0)


def without(values: Numbers, leaves: Sequence[int], takes_over: Sequence[int]) -> Numbers:
    """The values of the nodes that stay; what a leaving node had goes to the one that takes over."""
    values = values.copy()
    for leaving, heir in zip(leaves, takes_over, strict=True):
        values[heir] += values[leaving]
    return np.delete(values, list(leaves))


def _within(values: Numbers, most: float) -> Numbers:
    """No value above the most there may be: what is too much for one goes to those that have room."""
    over = float(np.maximum(values - most, 0.0).sum())
    values = np.minimum(values, most)
    room = most - values
    free = float(room.sum())
    return values + room * min(over / free, 1.0) if over and free else values


class Extractors:
    """Every so many seconds each node takes what its sources gave since (elastic, section 5.3)."""

    def __init__(self, limits: Elastic) -> None:
        self._every = limits.extraction.every_s
        self._rate = limits.capacity.extraction_rows_s
        self._dealer = Dealer(limits.extraction.distribution, limits.sources)
        self._next = 0.0
        number = limits.extraction.nodes.min
        self.pending = 0.0  # at the sources
        self.waiting = np.zeros(number)  # given to a node that still extracts
        self.coming = np.zeros(number)  # being extracted
        self.done_at = np.zeros(number)
        self.times = np.zeros(0)  # of the last extraction; none since the nodes changed

    def step(self, now: float, seconds: float, rows: float) -> float:
        """The rows that are extracted by the end of this step."""
        self.pending += rows
        arrived = self._arrived(now)
        if now >= self._next - 1e-9:
            self._next += self._every
            self.waiting += self._dealer.deal(self.pending, np.zeros(len(self.waiting)))
            self.pending = 0.0
            free = self.done_at <= now
            times = self.waiting / self._rate
            # A node that is late goes on: it has taken all the time since.
            self.times = np.where(free, times, np.maximum(self.done_at - now + self._every, times))
            self.done_at = np.where(free, now + times, self.done_at)
            self.coming = np.where(free, self.waiting, self.coming)
            self.waiting = np.where(free, 0.0, self.waiting)
        return arrived + self._arrived(now + seconds)

    def _arrived(self, now: float) -> float:
        here = self.done_at <= now
        rows = float(self.coming[here].sum())
        self.coming[here] = 0.0
        return rows

    @property
    def idle(self) -> bool:
        """Whether the last extraction brought nothing."""
        return not self.times.any() and not self.rows

    def add(self, number: int) -> None:
        """More nodes share the sources from the next extraction on."""
        more = np.zeros(number)
        self.waiting, self.coming, self.done_at = (
            np.concatenate([values, more]) for values in (self.waiting, self.coming, self.done_at)
        )
        self.times = np.zeros(0)

    def remove(self, leaves: Sequence[int], takes_over: Sequence[int]) -> None:
        """Nodes leave; others take over their sources."""
        self.waiting = without(self.waiting, leaves, takes_over)
        self.coming = without(self.coming, leaves, takes_over)
        self.done_at = np.delete(self.done_at, list(leaves))
        self.times = np.zeros(0)

    @property
    def rows(self) -> float:
        """All rows that are here."""
        return float(self.pending + self.waiting.sum() + self.coming.sum())


class Transformers:
    """Each node works off its queue (elastic, section 5.4)."""

    def __init__(self, limits: Elastic) -> None:
        self._rate = limits.capacity.transformation_rows_s
        self._dealer = Dealer(limits.transformation.distribution, limits.sources)
        number = limits.transformation.nodes.min
        self.queues = np.zeros(number)
        self.peaks = np.zeros(number)  # since the last sample
        self.longest_s = 0.0  # that the rows which came last wait and are worked on
        self.measured_s: float | None = None  # the same, of these nodes; none since they changed
        self.held_back = False  # whether the buffers had too little room for the last step

    def step(self, seconds: float, rows: float, room: float) -> float:
        """The rows transformed in this step; no more than the buffers have room for."""
        if rows:
            self.queues += self._dealer.deal(rows, self.queues)
            self.longest_s = self.measured_s = float(self.queues.max()) / self._rate
        np.maximum(self.peaks, self.queues, out=self.peaks)
        done = np.minimum(self.queues, self._rate * seconds)
        total = float(done.sum())
        self.held_back = total > room
        if self.held_back:
            done *= room / total
            total = room
        self.queues -= done
        return total

    def rest(self) -> None:
        """No rows come; once the queues are worked off, none waits."""
        if not self.queues.any():
            self.longest_s = self.measured_s = 0.0

    def add(self, number: int) -> None:
        """More nodes with empty queues."""
        self.queues = np.concatenate([self.queues, np.zeros(number)])
        self.peaks = self.queues.copy()
        self.measured_s = None

    def remove(self, leaves: Sequence[int], takes_over: Sequence[int]) -> None:
        """Nodes leave their queues to others."""
        self.queues = without(self.queues, leaves, takes_over)
        self.peaks = self.queues.copy()
        self.measured_s = None


class Buffers:
    """Memory up to half, then disk until memory is empty (elastic, section 5.5); full, rows wait in the queues."""

    def __init__(self, limits: Elastic) -> None:
        self._limits = limits.buffer
        self._swap = limits.capacity.swap_mb_s
        self._row_mb = limits.capacity.row_bytes / _MB
        self._dealer = Dealer(limits.buffer.distribution, limits.sources)
        number = limits.buffer.nodes.min
        self.memory = np.zeros(number)
        self.peaks = np.zeros(number)  # of memory, since the last sample
        self.disk = np.zeros(number)
        self.swapping = np.zeros(number, dtype=bool)

    def room(self) -> float:
        """Rows that fit into memory now."""
        return float(np.maximum(self._limits.memory_mb - self.memory, 0.0).sum()) / self._row_mb

    def step(self, seconds: float, rows: float) -> None:
        """Rows come in, no more than there is room for; buffers that are half full swap while their disk has room."""
        self.memory = _within(self.memory + self._dealer.deal(rows * self._row_mb, self.memory), self._limits.memory_mb)
        np.maximum(self.peaks, self.memory, out=self.peaks)
        # As the stage's own `swaps` says, for all nodes at once.
        full = self.memory > self._limits.memory_mb * self._limits.swap_share
        self.swapping = full | (self.swapping & (self.memory > 0))
        free = np.maximum(self._limits.disk_mb - self.disk, 0.0)
        moved = np.where(self.swapping, np.minimum(np.minimum(self.memory, self._swap * seconds), free), 0.0)
        self.memory -= moved
        self.disk += moved

    def take(self) -> float:
        """All rows leave by the switches: what is on disk came first."""
        rows = float(self.memory.sum() + self.disk.sum()) / self._row_mb
        self.memory[:] = 0.0
        self.disk[:] = 0.0
        return rows

    def add(self, number: int) -> None:
        """More buffers, empty."""
        more = np.zeros(number)
        self.memory, self.disk = np.concatenate([self.memory, more]), np.concatenate([self.disk, more])
        self.swapping = np.concatenate([self.swapping, np.zeros(number, dtype=bool)])
        self.peaks = self.memory.copy()

    def remove(self, leaves: Sequence[int], takes_over: Sequence[int]) -> None:
        """A buffer's data go to another's disk, as far as it has room."""
        held = without(self.disk + self.memory, leaves, takes_over)
        memory = np.delete(self.memory, list(leaves))
        self.disk = np.minimum(held - memory, self._limits.disk_mb)
        self.memory = held - self.disk
        self.swapping = np.delete(self.swapping, list(leaves))
        self.peaks = self.memory.copy()

    @property
    def rows(self) -> float:
        """All rows that are here."""
        return float(self.memory.sum() + self.disk.sum()) / self._row_mb


class Star:
    """The warehouse: facts in as many parts as nodes, dimensions on each; loads and queries (elastic, section 5.6)."""

    def __init__(self, limits: Elastic) -> None:
        self._limits = limits.warehouse
        self._turn_s = max(limits.warehouse.every_s, limits.extraction.every_s)  # when rows are due again
        self._capacity: Capacity = limits.capacity
        self._row_mb = limits.capacity.row_bytes / _MB
        self._next = 0.0
        self._loading = 0.0
        self._done_at = 0.0
        self._taken_at = -self._limits.every_s  # when the buffers were emptied last
        self._history: deque[tuple[float, float]] = deque()
        self.nodes = limits.warehouse.nodes.min
        self.first_rows = limits.capacity.warehouse_mb / self._row_mb
        self.rows = self.first_rows
        self.removed = 0.0  # facts that became too old
        self.load_s: float | None = None  # of the last load since the nodes changed
        self.rate_rows_s = 0.0  # that the switches had at the last load

    @property
    def facts_mb(self) -> float:
        """The size of all facts."""
        return self.rows * self._row_mb

    @property
    def loading(self) -> float:
        """Rows on their way in."""
        return self._loading

    def step(self, now: float, buffers: Buffers) -> None:
        """Begin a load where one is due and the last is done. Loads go on while facts move."""
        if self._loading and self._done_at <= now:
            self.rows += self._loading
            if self._capacity.keep_s is not None:
                self._history.append((now, self._loading))
            self._loading = 0.0
        self._forget(now)
        if now < self._next - 1e-9 or self._loading:
            return
        self._next = max(self._next + self._limits.every_s, now)
        rows = buffers.take()
        if rows:
            self.rate_rows_s = rows / (now - self._taken_at)
            self._taken_at = now
            # Each node loads one file after the other; files are full but for the last.
            rounds = max(1, int(np.ceil(rows * self._row_mb / self._limits.batch_mb / self.nodes)))
            seconds = rounds * self._capacity.load_fixed_s + rows / (self.nodes * self._capacity.load_rows_s)
            self._loading, self._done_at, self.load_s = rows, now + seconds, seconds
        elif now - self._taken_at >= self._turn_s - 1e-9:  # no rows are a load too, one that takes no time
            self.load_s, self.rate_rows_s = 0.0, 0.0

    def _forget(self, now: float) -> None:
        keep = self._capacity.keep_s
        while keep is not None and self._history and self._history[0][0] < now - keep:
            rows = self._history.popleft()[1]
            self.rows -= rows
            self.removed += rows

    def query_s(self) -> float | None:
        """How long a query takes on average while so many sessions ask."""
        if not self._limits.sessions:
            return None
        slower = 1 + self._capacity.session_share * (self._limits.sessions - 1)
        return self._capacity.query_fixed_s + self.facts_mb / self.nodes / self._capacity.scan_mb_s * slower

    def rebalancing(self, nodes: int) -> tuple[float, float]:
        """MB that move when there are so many nodes, and the seconds: the node with most to send or receive decides.

        Scale-out replicates the dimensions to the new nodes, extracts facts from the others and loads them; scale-in
        extracts what leaving nodes have and loads it like new data.
        """
        facts, speed = self.facts_mb, self._capacity.rebalance_mb_s
        more = nodes - self.nodes
        dimensions = self._capacity.dimensions_mb if more > 0 else 0.0
        moved = facts * abs(more) / max(nodes, self.nodes)
        one = facts * abs(1 / self.nodes - 1 / nodes)  # a node that stays sends or receives this
        other = facts / max(nodes, self.nodes)  # a node that comes or goes, that
        return moved + dimensions * max(more, 0), (dimensions + max(one, other)) / speed

    def resize(self, nodes: int) -> None:
        """Facts are distributed over so many nodes from now on."""
        self.nodes = nodes
        self.load_s = None
