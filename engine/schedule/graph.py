"""What the monitor schedules: units of work, and the bounded queues of row packs between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Work(StrEnum):
    """How a unit takes its rows."""

    SOURCE = "source"  # reads a recordset, pack by pack
    STREAM = "stream"  # each pack is worked on as it comes
    BLOCK = "block"  # takes packs as they come, works on them once all of them are there


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """An ordered list of row packs between two units. No capacity means that it is staged on disk."""

    id: str
    producer: str
    consumer: str
    capacity_packs: int | None
    capacity_bytes: int | None = None  # beside that in packs, where somebody set it
    reference: bool = False  # the consumer needs all of it before it works on anything else


@dataclass(frozen=True, slots=True)
class UnitSpec:
    """One unit of scheduling; `number` is the operator id by which round robin goes."""

    id: str
    number: int
    work: Work
    nodes: tuple[str, ...] = ()
    memory_intensive: int = 0  # how many of its activities hold rows: blocking and binary ones
    group: str = ""  # the subflow it belongs to
    adds_rows: bool = False  # may give more than it takes; how much more shows in its first turn


@dataclass(frozen=True)
class ScheduleGraph:
    """Units in topological order and their queues."""

    units: tuple[UnitSpec, ...]
    queues: tuple[QueueSpec, ...]
    inputs: Mapping[str, list[QueueSpec]] = field(init=False, repr=False, compare=False)
    outputs: Mapping[str, list[QueueSpec]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inputs: dict[str, list[QueueSpec]] = {unit.id: [] for unit in self.units}
        outputs: dict[str, list[QueueSpec]] = {unit.id: [] for unit in self.units}
        for queue in self.queues:
            inputs[queue.consumer].append(queue)
            outputs[queue.producer].append(queue)
        object.__setattr__(self, "inputs", inputs)
        object.__setattr__(self, "outputs", outputs)

    def unit(self, id_: str) -> UnitSpec:
        """A unit by its id."""
        return next(unit for unit in self.units if unit.id == id_)

    def groups(self) -> dict[str, tuple[UnitSpec, ...]]:
        """The units of each subflow, in topological order of their first units."""
        found: dict[str, list[UnitSpec]] = {}
        for unit in self.units:
            found.setdefault(unit.group, []).append(unit)
        return {group: tuple(units) for group, units in found.items()}

    def providers(self) -> dict[str, set[str]]:
        """The groups that each group reads from."""
        group_of = {unit.id: unit.group for unit in self.units}
        found: dict[str, set[str]] = {group: set() for group in group_of.values()}
        for queue in self.queues:
            producer, consumer = group_of[queue.producer], group_of[queue.consumer]
            if producer != consumer:
                found[consumer].add(producer)
        return found
