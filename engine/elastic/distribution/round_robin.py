"""Round robin: each node in its turn."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.distribution import Distribution, Parcel


class RoundRobin(Distribution):
    """Each parcel goes to the next node."""

    def __init__(self) -> None:
        self._next = 0

    def choose(self, parcel: Parcel, queues: Sequence[float]) -> Sequence[int]:
        node = self._next % len(queues)
        self._next = node + 1
        return (node,)
