"""One turn of a unit: what it is to do, what came of it, and why it was its turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from engine.schedule.queues import Pack, Queue
from engine.schedule.unit import Unit


class Step(StrEnum):
    """What a unit does in one turn."""

    READ = "read"  # a source reads packs
    PROCESS = "process"  # packs are worked on as they come
    ABSORB = "absorb"  # packs move out of the queues into the unit's own area
    WHOLE = "whole"  # a blocking unit works on all it has
    DELIVER = "deliver"  # packs of the outbox find room at last


class Activation(msgspec.Struct, eq=False):
    """One turn of one unit."""

    number: int
    unit: Unit
    step: Step
    take: Sequence[tuple[Queue, int]] = ()  # packs from the front of these queues
    read_packs: int = 0  # of a source: how many at most
    deliver: int = 0  # packs from the front of the outbox

    @property
    def packs(self) -> int:
        """How many packs the turn is about."""
        return self.read_packs or self.deliver or sum(count for _, count in self.take)


class Outcome(msgspec.Struct, eq=False):
    """What came of a turn."""

    seconds: float
    produced: Sequence[tuple[Pack, tuple[Queue, ...]]] = ()
    rows_read: int = 0  # of a source
    exhausted: bool = False  # of a source: nothing is left to read


class Decided(msgspec.Struct, eq=False):
    """A decision with all that led to it."""

    activation: Activation
    policy: str
    group: str
    candidates: tuple[Unit, ...]
    values: list[float]  # what spoke for each of them

    @property
    def scores(self) -> list[tuple[str, float]]:
        """The score of each candidate, by its id."""
        return [(unit.id, value) for unit, value in zip(self.candidates, self.values, strict=True)]


@dataclass(frozen=True)
class Limits:
    """How much a turn may take."""

    pack_rows: int
    slot_seconds: float = 0.0  # 0: until the input is exhausted
