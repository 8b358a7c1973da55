"""On demand: whoever has least to do asks next."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from engine.elastic.distribution import Distribution, Parcel


class OnDemand(Distribution):
    """Each parcel goes to the node with the shortest queue."""

    def choose(self, parcel: Parcel, queues: Sequence[float]) -> Sequence[int]:
        return (min(range(len(queues)), key=queues.__getitem__),)

    def deal(self, parcels: Sequence[Parcel], queues: Sequence[float]) -> list[float]:
        waiting = [(queued, node) for node, queued in enumerate(queues)]
        heapq.heapify(waiting)
        given = [0.0] * len(waiting)
        for parcel in parcels:
            queued, node = waiting[0]
            given[node] += parcel.amount
            heapq.heapreplace(waiting, (queued + parcel.amount, node))
        return given
