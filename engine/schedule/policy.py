"""A scheduling policy: which unit is activated next. One file each in `policies`; plugins bring their own.

A policy is a pure function over a snapshot: the candidates with their queues and what was measured of them, and
which unit had the last turn. It is found because its class stands in a module of `policies`, because a package
announces it under the entry point group `papilio.policies`, or because a `--plugin` file defines it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.plugins import named_classes
from engine.schedule.graph import ScheduleGraph

ENTRY_POINTS = "papilio.policies"
MIXED = "mixed"  # not one policy: one for each subflow, see `engine.schedule.mixed`
ELASTIC = "elastic"  # none of these either: it adds and removes nodes, see `engine.request`


class Candidate(Protocol):
    """A unit that can go on: it has rows or a recordset to read, and room for what it gives."""

    @property
    def id(self) -> str:
        """The unit's id."""

    @property
    def number(self) -> int:
        """The operator id: the unit's place in topological order."""

    @property
    def queue_rows(self) -> int:
        """The rows in all its input queues; 0 for a source, whose rows take no memory yet."""

    @property
    def rows_in(self) -> int:
        """The rows it took so far out of its queues."""

    @property
    def rows_out(self) -> int:
        """The rows it gave so far."""

    @property
    def seconds(self) -> float:
        """How long it worked for that."""


class Policy(ABC):
    """Picks the next unit among the candidates, which stand in the order of their numbers."""

    name: ClassVar[str]
    title: ClassVar[str]
    timed: ClassVar[bool] = False  # whether a unit's turn ends with its time slot, or when its input is exhausted
    # Whether units with nothing to do are called in vain as well. Only the simulated backend charges for it.
    calls_idle: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        if "score" in vars(cls) and "scores" not in vars(cls):
            cls.scores = Policy.scores  # type: ignore[method-assign]  # not those of a policy that it is made from

    def begin(self, graph: ScheduleGraph) -> None:  # noqa: B027 - most policies need to know nothing beforehand
        """Look at what will be scheduled."""

    @abstractmethod
    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        """The unit whose turn it is. `last` is the number of the unit that had the last turn, -1 at first."""

    @abstractmethod
    def score(self, candidate: Candidate, last: int) -> float:
        """What speaks for a candidate; the decision log shows it. The highest score is picked."""

    def scores(self, candidates: Sequence[Candidate], last: int) -> list[float]:
        """The score of each candidate."""
        return [self.score(candidate, last) for candidate in candidates]


def policies() -> dict[str, type[Policy]]:
    """All single policies there are, by name."""
    from engine.schedule import policies as folder

    return named_classes(Policy, folder, ENTRY_POINTS, "policy")


def policy_named(name: str) -> type[Policy]:
    """A single policy by its name; an unknown one is told with its near match."""
    known = policies()
    if name not in known:
        names = [*known, MIXED]
        hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
        raise BadInput(f"--policy {name}: there is no such policy{hint}")
    return known[name]
