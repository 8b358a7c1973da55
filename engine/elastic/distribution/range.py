"""Range: neighbouring keys go to the same node."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.distribution import Distribution, Parcel


class Range(Distribution):
    """The keys from 0 to the highest that was seen are cut into as many ranges as there are nodes."""

    def __init__(self) -> None:
        self._highest = 0

    def choose(self, parcel: Parcel, queues: Sequence[float]) -> Sequence[int]:
        self._highest = max(self._highest, parcel.key)
        return (min(parcel.key * len(queues) // (self._highest + 1), len(queues) - 1),)

    def deal(self, parcels: Sequence[Parcel], queues: Sequence[float]) -> list[float]:
        # All keys of a deal are known before the first is placed.
        self._highest = max((self._highest, *(parcel.key for parcel in parcels)))
        return super().deal(parcels, queues)
