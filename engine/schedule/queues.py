"""Row packs and the queues that hold them, as the monitor counts them. Where their rows are is the backend's."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from engine.schedule.graph import QueueSpec

if TYPE_CHECKING:
    from engine.schedule.unit import Unit

MANY = 1 << 40  # packs, where nothing limits them


# A struct rather than a dataclass, here and in the monitor: it is made in a third of the time, at every turn.
class Pack(msgspec.Struct, eq=False, gc=False):
    """Some rows that travel together; or a run of `count` such packs, one as large as the other.

    Where packs are files each is on its own. A simulation has runs, for then a turn takes as long with a hundred
    packs as with one.
    """

    rows: int
    bytes: int
    name: str = ""
    count: int = 1


class Queue:
    """An ordered list of packs, bounded. Only a spill, which the monitor states, takes it past its capacity."""

    __slots__ = (
        "beside", "bytes", "capacity", "capacity_bytes", "consumer", "count", "extra", "packs", "passed_rows",
        "producer", "room", "rows", "spec",
    )  # fmt: skip

    def __init__(self, spec: QueueSpec, producer: Unit, consumer: Unit) -> None:
        self.spec = spec
        self.producer = producer
        self.consumer = consumer
        self.capacity = spec.capacity_packs
        self.capacity_bytes = spec.capacity_bytes
        self.extra = 0  # packs beyond the capacity that a spill allows
        self.packs: deque[Pack] = deque()
        self.count = 0  # of the packs
        self.rows = 0
        self.bytes = 0
        self.passed_rows = 0  # all rows that ever entered
        self.room = MANY  # how many packs still go in
        if self.capacity is not None:
            self._measure_room()
        self.beside: tuple[Queue, ...] = (self,)  # the queues that get the very same packs, itself among them

    @property
    def limit_bytes(self) -> float:
        """How many bytes it may hold; a spill raises them as it raises the packs."""
        if self.capacity is None or self.capacity_bytes is None:
            return math.inf
        return self.capacity_bytes * (1 + self.extra / self.capacity)

    def fits(self, pack: Pack) -> bool:
        """Whether there is room for a pack. One that is larger than the whole queue goes into an empty one."""
        if self.room <= 0:
            return False
        return self.capacity_bytes is None or not self.count or self.bytes + pack.bytes <= self.limit_bytes

    def put(self, pack: Pack, beside: tuple[Queue, ...]) -> None:
        """Add a pack, or a run of them, at the end; those `beside` get it too."""
        count = pack.count
        rows, size = pack.rows * count, pack.bytes * count
        consumer = self.consumer
        self.beside = beside
        self.packs.append(pack)
        self.count += count
        self.rows += rows
        self.passed_rows += rows
        self.bytes += size
        consumer.queue_rows += rows
        consumer.queue_packs += count
        if self.capacity is not None:
            self.room -= count
            if self.capacity_bytes is not None:
                self._measure_room()

    def take(self, count: int) -> None:
        """Remove so many packs from the front."""
        packs, consumer = self.packs, self.consumer
        if count == self.count:
            packs.clear()
            rows, size = self.rows, self.bytes
        else:
            rows = size = 0
            left = count
            while left:
                pack = packs[0]
                if pack.count <= left:
                    packs.popleft()
                    some = pack.count
                else:
                    some = left
                    packs[0] = Pack(pack.rows, pack.bytes, pack.name, pack.count - some)
                left -= some
                rows += pack.rows * some
                size += pack.bytes * some
        self.count -= count
        self.rows -= rows
        self.bytes -= size
        consumer.queue_rows -= rows
        consumer.queue_packs -= count
        capacity = self.capacity
        if capacity is None:
            return
        self.room += count
        if self.extra and self.count <= capacity:
            self.extra = 0  # what was spilled has been worked off
            if self.count > 1 and self.bytes > self.limit_bytes:
                self.extra = capacity * (math.ceil(self.bytes / (self.capacity_bytes or 1)) - 1)
            self._measure_room()
        elif self.capacity_bytes is not None:
            self._measure_room()

    def rows_of(self, count: int) -> int:
        """The rows of so many packs from the front."""
        if count == self.count:
            return self.rows
        rows = 0
        for pack in self.packs:
            if pack.count >= count:
                return rows + pack.rows * count
            rows += pack.rows * pack.count
            count -= pack.count
        return rows

    def spill(self) -> None:
        """Let as many packs more in as its capacity is."""
        assert self.capacity is not None
        self.extra += self.capacity
        self._measure_room()

    def _measure_room(self) -> None:
        assert self.capacity is not None
        heavy = self.capacity_bytes is not None and self.bytes >= self.limit_bytes
        self.room = 0 if heavy else self.capacity + self.extra - self.count

    def beside_it(self) -> tuple[int, int, int]:
        """The packs, rows and bytes that the queues beside it hold together, each pack once.

        All of them got the same packs, and give them away from the front: the longest holds what the others hold.
        What is staged lies on disk, and is no queue memory.
        """
        longest: Queue | None = None
        most = 0
        for queue in self.beside:
            if queue.count > most and queue is not self and queue.capacity is not None:
                longest, most = queue, queue.count
        return (0, 0, 0) if longest is None else (most, longest.rows, longest.bytes)


@dataclass(slots=True)
class QueueStatistics:
    """Average and peak of what all queues hold, weighted by time. A shared pack counts once.

    Time begins with the first call of `clock`.
    """

    packs: int = 0
    rows: int = 0
    bytes: int = 0
    max_packs: int = 0
    max_rows: int = 0
    max_bytes: int = 0
    _since: float | None = None
    _first: float = 0.0
    _pack_seconds: float = 0.0
    _row_seconds: float = 0.0
    _byte_seconds: float = 0.0

    def clock(self, now: float) -> None:
        """Time has come to `now`; until then the queues held what they hold."""
        since = self._since
        if since is None:
            self._first = now
        else:
            passed = now - since
            self._pack_seconds += passed * self.packs
            self._row_seconds += passed * self.rows
            self._byte_seconds += passed * self.bytes
        self._since = now

    def hold(self, packs: int, rows: int, size: int) -> None:
        """So many packs are held from now on, with all their rows and bytes."""
        self.packs = packs = self.packs + packs
        self.rows = rows = self.rows + rows
        self.bytes = size = self.bytes + size
        if packs > self.max_packs:
            self.max_packs = packs
        if rows > self.max_rows:
            self.max_rows = rows
        if size > self.max_bytes:
            self.max_bytes = size

    def release(self, packs: int, rows: int, size: int) -> None:
        """So many are held no longer."""
        self.packs -= packs
        self.rows -= rows
        self.bytes -= size

    def summary(self) -> dict[str, float]:
        """What the run's summary says of the queues."""
        seconds = 0.0 if self._since is None else self._since - self._first
        areas = (self._pack_seconds, self._row_seconds, self._byte_seconds)
        averages = [area / seconds if seconds > 0 else 0.0 for area in areas]
        return {
            "avg_bytes": round(averages[2]),
            "max_bytes": self.max_bytes,
            "avg_packs": round(averages[0], 3),
            "max_packs": self.max_packs,
            "avg_rows": round(averages[1], 1),
            "max_rows": self.max_rows,
        }
