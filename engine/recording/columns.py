"""Numbers that grow at their end: columns of one table, kept as one array each."""

from __future__ import annotations

from collections.abc import Iterable
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LARGE_BYTES = 1 << 20


class Columns:
    """Columns of numbers with one row for each thing that happened.

    One thread may add while another reads: a reader sees whole rows only, because the count grows last.
    """

    def __init__(self, *names: str) -> None:
        self._place = {name: place for place, name in enumerate(names)}
        self._data = np.empty((len(names), 16))
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> Floats:
        count = self.count  # before the array: a longer one has the same beginning
        return self._data[self._place[name], :count]

    def add(self, rows: Floats) -> None:
        """More rows: an array with a line for each column."""
        self.room(rows.shape[1])[:] = rows
        self.count += rows.shape[1]

    def room(self, more: int) -> Floats:
        """Where so many rows come to stand; they are seen once the count has grown."""
        count = self.count + more
        if count > self._data.shape[1]:
            self.reserve(max(count, 2 * self._data.shape[1]))
        return self._data[:, self.count : count]

    def reserve(self, count: int) -> None:
        """Have room for so many rows, so that none need be moved when they come."""
        if count > self._data.shape[1]:
            data = _empty(len(self._place), count)
            data[:, : self.count] = self._data[:, : self.count]
            self._data = data

    def add_row(self, *values: float) -> None:
        """One more row."""
        self.add(np.array(values)[:, None])

    def last(self, name: str) -> float:
        """The newest value of a column; 0 where there is none."""
        return self.at(name, self.count - 1)

    def at(self, name: str, row: int) -> float:
        """A value; 0 in front of the first row."""
        return self._data.item(self._place[name], row) if row >= 0 else 0.0


def _empty(columns: int, rows: int) -> Floats:
    """Room for a table. Of a large one, a page is taken when it is written to; numpy would take 500 at a time."""
    size = columns * rows * 8
    if size < LARGE_BYTES:
        return np.empty((columns, rows))
    return np.frombuffer(mmap(-1, size), np.float64).reshape(columns, rows)


class _Numbers(dict[str, int]):
    """Gives a name that it does not know the next number."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, name: str) -> int:
        number = len(self.names)
        self.names.append(name)
        self[name] = number
        return number


class Names:
    """Names by number, in the order in which they were first heard."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.numbers = _Numbers(self.names)
        for name in names:
            self.number(name)

    def __len__(self) -> int:
        return len(self.names)

    def number(self, name: str) -> int:
        """The number of a name; a new one gets the next."""
        return self.numbers[name]
