"""Distribution policies between stages: which node gets what (elastic, sections 2 and 3). Pure.

A policy is a file here with a class of its name, found by that name.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Parcel:
    """Something that goes to a node: a pack of rows, a source, the rows of one key."""

    amount: float
    key: int = 0  # what rows of a kind have in common


class Distribution(ABC):
    """A policy. It may remember what it did last."""

    @abstractmethod
    def choose(self, parcel: Parcel, queues: Sequence[float]) -> Sequence[int]:
        """The numbers of the nodes that get a parcel, given what is queued at each."""

    def deal(self, parcels: Sequence[Parcel], queues: Sequence[float]) -> list[float]:
        """What each node gets of many parcels, one after the other."""
        waiting = list(queues)
        given = [0.0] * len(waiting)
        for parcel in parcels:
            for node in self.choose(parcel, waiting):
                given[node] += parcel.amount
                waiting[node] += parcel.amount
        return given


def names() -> list[str]:
    """The policies there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def distribution(name: str) -> Distribution:
    """A new policy of that name: `on_demand` is the class `OnDemand` of its file."""
    module = importlib.import_module(f"{__name__}.{name}")
    made: Distribution = getattr(module, name.title().replace("_", ""))()
    return made
