"""A scheduling policy: which unit is activated next. One file each in `policies`; plugins bring their own.

A policy is a pure function over a snapshot: the candidates with their queues and what was measured of them, and
which unit had the last turn. It is found because its class stands in a module of `policies`, because a package
announces it under the entry point group `papilio.policies`, or because a `--plugin` file defines it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.schedule.graph import ScheduleGraph

ENTRY_POINTS = "papilio.policies"
MIXED = "mixed"  # not one policy: one for each subflow, see `engine.schedule.mixed`


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

    def begin(self, graph: ScheduleGraph) -> None:  # noqa: B027 - most policies need to know nothing beforehand
        """Look at what will be scheduled."""

    @abstractmethod
    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        """The unit whose turn it is. `last` is the number of the unit that had the last turn, -1 at first."""

    @abstractmethod
    def score(self, candidate: Candidate, last: int) -> float:
        """What speaks for a candidate; the decision log shows it. The highest score is picked."""


def policies() -> dict[str, type[Policy]]:
    """All single policies there are, by name."""
    from engine.schedule import policies as folder

    for info in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{info.name}")
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            raise BadInput(f"policy plugin {entry.name}: cannot be loaded: {error}") from error
    found: dict[str, type[Policy]] = {}
    waiting = Policy.__subclasses__()
    for kind in waiting:  # grows while it is walked
        waiting.extend(kind.__subclasses__())
        if "name" in kind.__dict__:
            known = found.setdefault(kind.name, kind)
            if known is not kind and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
                raise BadInput(
                    f"{kind.__module__}: the policy `{kind.name}` is already defined in {known.__module__}; "
                    "a plugin's policy needs a name of its own"
                )
            found[kind.name] = kind  # a plugin file that was loaded again: its latest
    return dict(sorted(found.items()))


def policy_named(name: str) -> type[Policy]:
    """A single policy by its name; an unknown one is told with its near match."""
    known = policies()
    if name not in known:
        names = [*known, MIXED]
        hint = did_you_mean(name, names) or f"; there are {', '.join(names)}"
        raise BadInput(f"--policy {name}: there is no such policy{hint}")
    return known[name]
