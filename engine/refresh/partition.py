"""How jobs share the tracks: groups of jobs, each with the tracks it may use (section 3.2).

A way to share tracks is one file in `tracks`; plugins bring more under the entry point group `papilio.tracks`. It only
says who may run where. Placing a job is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.plugins import named_classes

if TYPE_CHECKING:
    from engine.refresh.queues import ReadyQueue
    from engine.refresh.table import Table

ENTRY_POINTS = "papilio.tracks"


@dataclass(slots=True, eq=False)
class Group:
    """Jobs that may all use the same tracks; their released ones wait in one queue."""

    home: tuple[int, ...]  # its own tracks, in the order in which they are tried
    promotable: tuple[int, ...] = ()  # tracks of longer jobs that it may use when they are idle
    tables: list[Table] = field(default_factory=list)
    queue: ReadyQueue = field(init=False)

    @property
    def utilization(self) -> float:
        """The sum of u = E(P)/P over its jobs."""
        return sum(table.utilization for table in self.tables)


@dataclass(slots=True, eq=False)
class Partition:
    """All groups, the tracks that belong to none, and whether a promoted job need not give way."""

    groups: list[Group]
    free: tuple[int, ...] = ()
    aggressive: bool = False
    fits: bool = True  # whether every track has a feasible schedule; else as many as there are tracks share them


class Tracks(ABC):
    """A way to share the tracks among the jobs."""

    name: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, *, aggressive: bool = True, all_tracks: bool = True, k: float = 10.0) -> None:
        self.aggressive = aggressive  # a promoted job takes an idle track also from jobs that wait for it
        self.all_tracks = all_tracks  # of Proportional: all tracks are shared out, and none stays free
        self.k = k  # of Proportional: how different the jobs of a cluster may be

    @abstractmethod
    def partition(self, tables: Sequence[Table], tracks: int) -> Partition:
        """Share so many tracks among the tables' jobs."""


def ways_to_share() -> dict[str, type[Tracks]]:
    """All ways to share tracks, by name."""
    from engine.refresh import tracks as folder

    return named_classes(Tracks, folder, ENTRY_POINTS, "way to share tracks")


def tracks_named(name: str) -> type[Tracks]:
    """A way to share tracks by its name; an unknown one is told with its near match."""
    known = ways_to_share()
    if name not in known:
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise BadInput(f"--sharing {name}: there is no such way to share tracks{hint}")
    return known[name]
