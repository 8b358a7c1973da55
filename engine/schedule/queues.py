"""Row packs and the queues that hold them, as the monitor counts them. Where their rows are is the backend's."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.schedule.graph import QueueSpec

if TYPE_CHECKING:
    from engine.schedule.monitor import Unit

MANY = 1 << 40  # packs, where nothing limits them


@dataclass(slots=True, eq=False)
class Pack:
    """Some rows that travel together. A fan-out shares it: it goes when its last holder lets go."""

    rows: int
    bytes: int
    name: str = ""
    holders: int = 0


class Queue:
    """An ordered list of packs, bounded. Only a spill, which the monitor states, takes it past its capacity."""

    __slots__ = (
        "bytes", "capacity", "capacity_bytes", "consumer", "extra", "packs", "passed_rows", "producer", "rows", "spec",
    )  # fmt: skip

    def __init__(self, spec: QueueSpec, producer: Unit, consumer: Unit) -> None:
        self.spec = spec
        self.producer = producer
        self.consumer = consumer
        self.capacity = spec.capacity_packs
        self.capacity_bytes = spec.capacity_bytes
        self.extra = 0  # packs beyond the capacity that a spill allows
        self.packs: deque[Pack] = deque()
        self.rows = 0
        self.bytes = 0
        self.passed_rows = 0  # all rows that ever entered

    @property
    def room(self) -> int:
        """How many packs still go in."""
        capacity = self.capacity
        if capacity is None:
            return MANY
        if self.capacity_bytes is not None and self.bytes >= self.limit_bytes:
            return 0
        return capacity + self.extra - len(self.packs)

    @property
    def limit_bytes(self) -> float:
        """How many bytes it may hold; a spill raises them as it raises the packs."""
        if self.capacity is None or self.capacity_bytes is None:
            return math.inf
        return self.capacity_bytes * (1 + self.extra / self.capacity)

    def fits(self, pack: Pack) -> bool:
        """Whether there is room for a pack. One that is larger than the whole queue goes into an empty one."""
        return self.room > 0 and (not self.packs or self.bytes + pack.bytes <= self.limit_bytes)

    def put_many(self, packs: Sequence[Pack], rows: int, size: int) -> None:
        """Add packs at the end; `rows` and `size` (bytes) are those of all of them."""
        self.packs.extend(packs)
        self.rows += rows
        self.passed_rows += rows
        self.bytes += size
        self.consumer.queue_rows += rows
        self.consumer.queue_packs += len(packs)

    def take_many(self, count: int) -> list[Pack]:
        """Remove the first packs."""
        queued, consumer = self.packs, self.consumer
        if count == len(queued):
            taken = list(queued)
            queued.clear()
            rows, size = self.rows, self.bytes
        else:
            taken = [queued.popleft() for _ in range(count)]
            rows, size = sum([pack.rows for pack in taken]), sum([pack.bytes for pack in taken])
        self.rows -= rows
        self.bytes -= size
        consumer.queue_rows -= rows
        consumer.queue_packs -= count
        if self.extra and self.capacity is not None and len(queued) <= self.capacity:
            self.extra = 0  # what was spilled has been worked off
            if len(queued) > 1 and self.bytes > self.limit_bytes:
                self.extra = self.capacity * (math.ceil(self.bytes / (self.capacity_bytes or 1)) - 1)
        return taken

    def put(self, pack: Pack) -> None:
        """Add a pack at the end."""
        self.put_many((pack,), pack.rows, pack.bytes)

    def take(self) -> Pack:
        """Remove the first pack."""
        return self.take_many(1)[0]


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
    _last: float = 0.0
    _area: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def clock(self, now: float) -> None:
        """Time has come to `now`; until then the queues held what they hold."""
        if self._since is None:
            self._first = now
        else:
            passed = now - self._since
            area = self._area
            area[0] += passed * self.packs
            area[1] += passed * self.rows
            area[2] += passed * self.bytes
        self._since = self._last = now

    def hold_all(self, packs: Sequence[Pack], holders: int, rows: int, size: int) -> None:
        """So many more hold the packs, which all have none yet or all have some; `rows` and `size` are theirs."""
        new = not packs[0].holders
        for pack in packs:
            pack.holders += holders
        if new:
            self.packs += len(packs)
            self.rows += rows
            self.bytes += size
            if self.packs > self.max_packs:
                self.max_packs = self.packs
            if self.rows > self.max_rows:
                self.max_rows = self.rows
            if self.bytes > self.max_bytes:
                self.max_bytes = self.bytes

    def release_all(self, packs: Sequence[Pack]) -> None:
        """One fewer holds each of the packs."""
        for pack in packs:
            pack.holders -= 1
            if not pack.holders:
                self.packs -= 1
                self.rows -= pack.rows
                self.bytes -= pack.bytes

    def hold(self, pack: Pack) -> None:
        """One more holds the pack."""
        self.hold_all((pack,), 1, pack.rows, pack.bytes)

    def release(self, pack: Pack) -> bool:
        """One fewer holds the pack; true when it was the last."""
        self.release_all((pack,))
        return not pack.holders

    def summary(self) -> dict[str, float]:
        """What the run's summary says of the queues."""
        seconds = self._last - self._first
        averages = [area / seconds if seconds > 0 else 0.0 for area in self._area]
        return {
            "avg_bytes": round(averages[2]),
            "max_bytes": self.max_bytes,
            "avg_packs": round(averages[0], 3),
            "max_packs": self.max_packs,
            "avg_rows": round(averages[1], 1),
            "max_rows": self.max_rows,
        }
