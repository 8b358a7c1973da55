"""The released jobs of a group, in the order of the local algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.refresh.table import Table


class ReadyQueue(ABC):
    """Tables whose jobs are released and wait. `first` stays the same until something is put or taken."""

    size: int

    @abstractmethod
    def put(self, table: Table, key: Any) -> None:
        """A table joins, or moves because its key changed."""

    @abstractmethod
    def take(self, table: Table) -> None:
        """A table that is in it leaves."""

    @abstractmethod
    def first(self) -> tuple[Any, Table] | None:
        """The key and the table that come first."""

    @abstractmethod
    def waiting(self) -> Iterator[Table]:
        """All its tables, in no order."""


class KeyedQueue(ReadyQueue):
    """A heap by key; of equal keys the one that came first. What moved leaves an entry behind that no longer counts."""

    __slots__ = ("_heap", "_stamp", "size")

    def __init__(self) -> None:
        self._heap: list[tuple[Any, int, Table]] = []
        self._stamp = count(1)
        self.size = 0

    def put(self, table: Table, key: Any) -> None:
        stamp = next(self._stamp)
        if not table.place:
            self.size += 1
        table.place = stamp
        heap = self._heap
        heappush(heap, (key, stamp, table))
        if len(heap) > 4 * self.size + 64:
            self._heap = [entry for entry in heap if entry[1] == entry[2].place]
            heapify(self._heap)

    def take(self, table: Table) -> None:
        table.place = 0
        self.size -= 1

    def first(self) -> tuple[Any, Table] | None:
        heap = self._heap
        while heap:
            key, stamp, table = heap[0]
            if table.place == stamp:
                return key, table
            heappop(heap)
        return None

    def waiting(self) -> Iterator[Table]:
        return (table for _, stamp, table in self._heap if table.place == stamp)


class RandomQueue(ReadyQueue):
    """Any of them with the same chance, drawn anew for each decision."""

    __slots__ = ("_drawn", "_random", "_tables", "size")

    def __init__(self, random: Random) -> None:
        self._random = random
        self._tables: list[Table] = []
        self._drawn: tuple[float, Table] | None = None
        self.size = 0

    def put(self, table: Table, key: Any) -> None:
        if not table.place:
            self._tables.append(table)
            self.size += 1
            table.place = self.size
        self._drawn = None

    def take(self, table: Table) -> None:
        last = self._tables.pop()
        if last is not table:
            self._tables[table.place - 1] = last
            last.place = table.place
        table.place = 0
        self.size -= 1
        self._drawn = None

    def first(self) -> tuple[float, Table] | None:
        if self._drawn is None and self._tables:
            table = self._tables[int(self._random.random() * self.size)]
            # The smallest of `size` equally likely keys: so that groups are met in a random order of all jobs.
            self._drawn = 1 - self._random.random() ** (1 / self.size), table
        return self._drawn

    def waiting(self) -> Iterator[Table]:
        return iter(self._tables)
