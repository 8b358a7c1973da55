"""A local algorithm: which released job comes next (section 3.1). One file each in `algorithms`; plugins bring more.

It is found because its class stands in a module of `algorithms`, because a package announces it under the entry point
group `papilio.refresh`, or because a `--plugin` file defines it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.plugins import named_classes
from engine.refresh.queues import KeyedQueue, ReadyQueue

if TYPE_CHECKING:
    from engine.refresh.scheduler import Scheduler
    from engine.refresh.table import Table

ENTRY_POINTS = "papilio.refresh"


class LocalAlgorithm(ABC):
    """Orders the released jobs. Its key for a job may depend on that job's own table alone."""

    name: ClassVar[str]
    title: ClassVar[str]
    looks_ahead: ClassVar[bool] = False  # whether it asks for releases to come, and may start another than the first

    def begin(self, scheduler: Scheduler) -> None:  # noqa: B027 - most algorithms need to know nothing beforehand
        """Look at what will be scheduled."""

    @abstractmethod
    def key(self, table: Table) -> Any:
        """By what the table's job is ordered; the smallest comes first. Asked again whenever the table changed."""

    def queue(self, random: Random) -> ReadyQueue:
        """What holds the released jobs of a group, in order."""
        return KeyedQueue()

    def instead(self, table: Table, now: float) -> Table:
        """The job to start where this one would be next; of the same queue."""
        return table


def algorithms() -> dict[str, type[LocalAlgorithm]]:
    """All local algorithms there are, by name."""
    from engine.refresh import algorithms as folder

    return named_classes(LocalAlgorithm, folder, ENTRY_POINTS, "local algorithm")


def algorithm_named(name: str) -> LocalAlgorithm:
    """A local algorithm by its name; an unknown one is told with its near match."""
    known = algorithms()
    if name not in known:
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise BadInput(f"--policy {name}: there is no such local algorithm{hint}")
    return known[name]()
