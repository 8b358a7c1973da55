"""What a streaming warehouse is: base tables fed by streams, and views derived from tables (section 2.1)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

from engine.errors import BadInput
from engine.model.problems import did_you_mean


@dataclass(frozen=True)
class TableSpec:
    """One table of the warehouse. Without sources it is a base table, loaded from a stream; else a derived one.

    All times are in seconds of whichever clock drives the scheduler. What is None is learnt while running.
    """

    name: str
    sources: tuple[str, ...] = ()
    priority: float = 1.0
    period_s: float | None = None  # every so often a batch arrives; of a derived table, its ancestors' longest
    staleness_bound_s: float | None = None  # a target: the table should never be staler
    lateness_bound_s: float = 0.0  # of a base table: a record may come so much later than a younger one
    alpha_s: float | None = None  # an update takes alpha + beta · n, n being the time that its data span
    beta: float | None = None
    scan_share: float | None = 0.0  # how much of an update's time is its scan, which one job for several does once
    step_s: float = 0.0  # of a derived table whose sources have buckets: less than this it cannot move
    time_column: str | None = None  # of a base table: the column that holds a record's timestamp

    @property
    def is_base(self) -> bool:
        """Whether it is loaded from a stream."""
        return not self.sources


class Warehouse:
    """The tables of a warehouse and how they depend on each other; sound, or it cannot be made.

    `file` is where they were described, for the messages.
    """

    def __init__(self, tables: Iterable[TableSpec], file: str | None = None) -> None:
        self.file = file
        self.tables: dict[str, TableSpec] = {}
        for spec in tables:
            if spec.name in self.tables:
                raise self.problem(spec.name, "is described twice")
            self.tables[spec.name] = spec
        for spec in self.tables.values():
            for reason in _unsound(spec):
                raise self.problem(spec.name, reason)
            for source in spec.sources:
                if source not in self.tables:
                    hint = did_you_mean(source, self.tables)
                    raise self.problem(spec.name, f"is derived from `{source}`, which is no table{hint}")
        self.dependents: dict[str, tuple[str, ...]] = self._direct_dependents()
        self.order = self._breadth_first()

    def problem(self, table: str, reason: str) -> BadInput:
        """What is wrong with a table, with the file named."""
        place = f"{self.file}: " if self.file else ""
        return BadInput(f"{place}table `{table}`: {reason}")

    def _direct_dependents(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {name: [] for name in self.tables}
        for spec in self.tables.values():
            for source in spec.sources:
                found[source].append(spec.name)
        return {name: tuple(names) for name, names in found.items()}

    def _breadth_first(self) -> tuple[str, ...]:
        """All tables, each behind its sources, level by level: the order in which updates cascade."""
        waiting = {name: len(spec.sources) for name, spec in self.tables.items()}
        ready = deque(name for name, count in waiting.items() if count == 0)
        order = []
        while ready:
            name = ready.popleft()
            order.append(name)
            for dependent in self.dependents[name]:
                waiting[dependent] -= 1
                if waiting[dependent] == 0:
                    ready.append(dependent)
        if len(order) < len(self.tables):
            cycle = self._cycle({name for name, count in waiting.items() if count > 0})
            raise self.problem(cycle[0], f"is derived from itself: {' ← '.join([*cycle, cycle[0]])}")
        return tuple(order)

    def _cycle(self, left: set[str]) -> list[str]:
        """A circle among tables none of which can come first; every one of them has a source among them."""
        path = [min(left)]
        while True:
            source = next(source for source in self.tables[path[-1]].sources if source in left)
            if source in path:
                return path[path.index(source) :]
            path.append(source)

    def ancestors(self, name: str) -> set[str]:
        """The tables that directly or indirectly serve as its sources."""
        return self._reached(name, {table: spec.sources for table, spec in self.tables.items()})

    def descendants(self, name: str) -> set[str]:
        """The tables that are directly or indirectly sourced from it: the paper's dependent tables."""
        return self._reached(name, self.dependents)

    @staticmethod
    def _reached(name: str, ways: Mapping[str, Iterable[str]]) -> set[str]:
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for other in ways[waiting.pop()]:
                if other not in found:
                    found.add(other)
                    waiting.append(other)
        return found

    def with_table(self, spec: TableSpec) -> Warehouse:
        """The warehouse with one more table."""
        return Warehouse([*self.tables.values(), spec], self.file)

    def without_table(self, name: str) -> Warehouse:
        """The warehouse with one table less; nothing may be derived from it."""
        if name not in self.tables:
            raise self.problem(name, f"there is no such table{did_you_mean(name, self.tables)}")
        if self.dependents[name]:
            raise self.problem(name, f"cannot be removed: {', '.join(self.dependents[name])} derive from it")
        return Warehouse([spec for spec in self.tables.values() if spec.name != name], self.file)


def _unsound(spec: TableSpec) -> Iterator[str]:
    """What is wrong with one table by itself."""
    for item in fields(spec):
        value = getattr(spec, item.name)
        if isinstance(value, float | int) and not math.isfinite(value):
            yield f"{item.name} is {value}; it must be a finite number"
        elif isinstance(value, float | int) and value < 0:
            yield f"{item.name} is {value:g}; it cannot be negative"
    if not spec.name:
        yield "needs a name"
    if spec.period_s == 0:
        yield "period_s is 0; leave it out where it is not known"
    if spec.staleness_bound_s == 0:
        yield "staleness_bound_s is 0; no table is ever that fresh"
    if spec.alpha_s == 0 and spec.beta == 0:
        yield "alpha_s and beta are both 0; an update takes some time"
    if spec.scan_share is not None and spec.scan_share > 1:
        yield f"scan_share is {spec.scan_share:g}; it is a share, at most 1"
    if len(set(spec.sources)) < len(spec.sources):
        yield "names a source twice"
    if spec.sources and spec.lateness_bound_s:
        yield "lateness_bound_s belongs to base tables; a derived table takes what is safe of its sources"
