"""Proportional: clusters of similar jobs share the tracks in proportion to their load (section 3.2.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import ClassVar

from engine.refresh.partition import Group, Partition, Tracks
from engine.refresh.table import Table

_SLACK = 1e-9  # shares of tracks are not exact


def clusters(tables: Sequence[Table], k: float) -> list[list[Table]]:
    """By increasing period; a new cluster where one is longer, and not less than k times the current one's smallest.

    The paper's listing orders the jobs by execution time, and compares that with k times the smallest period. Its own
    example (section 3.2.4) would then give one cluster instead of two, and its k = 10 for periods of 5 minutes, an hour
    and a day would separate none of them; compared by period, both come out as it says. Where jobs of long periods take
    longer, the order is the same by either; but a rarely updated table with little new data may take no longer than one
    that is updated each second, and ordered by execution time the two classes would be cut into many clusters.
    """
    found: list[list[Table]] = []
    smallest = 0.0
    for table in sorted(tables, key=attrgetter("period", "usual_seconds", "number")):
        if found and (table.period < k * smallest or table.period == smallest):
            found[-1].append(table)
        else:
            smallest = table.period
            found.append([table])
    return found


def track_ranges(loads: Sequence[float], tracks: float) -> list[tuple[float, float]]:
    """track_lo and track_hi of each cluster: proportional to its load, the longest jobs lowest."""
    total = sum(loads)
    factor = tracks / total if total > 0 else 0.0  # M
    ranges = []
    low = 0.0
    for load in reversed(loads):
        high = low + (factor * load if total > 0 else tracks / len(loads))
        ranges.append((low, high))
        low = high
    return ranges[::-1]


class Proportional(Tracks):
    """Guarantees each cluster its share of the tracks, and lets short jobs use the idle tracks of longer ones."""

    name: ClassVar[str] = "proportional"
    title: ClassVar[str] = "Proportional"

    def partition(self, tables: Sequence[Table], tracks: int) -> Partition:
        found = clusters(tables, self.k)
        loads = [sum(table.utilization for table in cluster) for cluster in found]
        whole = tracks if self.all_tracks else max(min(math.ceil(sum(loads) - _SLACK), tracks), 1)
        groups = []
        for cluster, (low, high) in zip(found, track_ranges(loads, whole), strict=True):
            first = min(math.floor(low + _SLACK), whole - 1)
            last = min(max(math.ceil(high - _SLACK) - 1, first), whole - 1)
            # Those above the lowest come first, because the lowest may be shared with longer jobs.
            home = (*range(first + 1, last + 1), first)
            groups.append(Group(home, tuple(range(first)), cluster))
        return Partition(groups, tuple(range(whole, tracks)), self.aggressive)
