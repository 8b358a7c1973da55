"""EDF-partitioned: each track has a feasible schedule, idle ones take promoted jobs (sections 3.2.1-3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import ClassVar

from engine.refresh.partition import Group, Partition, Tracks
from engine.refresh.table import Table

_SLACK = 1e-9  # sums of shares are not exact


class HomeTrack:
    """One track with the jobs whose home it is, as the schedulability condition sees them."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.utilization = 0.0
        self.longest = 0.0  # Emax
        self.shortest_period = float("inf")  # Pmin

    def schedulable_with(self, table: Table) -> bool:
        """U <= 1 - Emax/Pmin, were the job here as well: what is lost because short jobs may wait for the longest.

        Whether a job may be promoted to the track is the same question. The paper prints that condition without the
        job's own utilization; only with it does its example (section 3.2.4) come out, and section 3.2.3 says too that
        both conditions are one.
        """
        longest, shortest = max(self.longest, table.usual_seconds), min(self.shortest_period, table.period)
        return self.utilization + table.utilization <= 1 - longest / shortest + _SLACK

    def add(self, table: Table) -> None:
        """The job's home is here."""
        self.tables.append(table)
        self.utilization += table.utilization
        self.longest = max(self.longest, table.usual_seconds)
        self.shortest_period = min(self.shortest_period, table.period)


def home_tracks(tables: Sequence[Table]) -> list[HomeTrack]:
    """By increasing period; a new track whenever the schedulability condition would be violated."""
    homes: list[HomeTrack] = []
    for table in sorted(tables, key=attrgetter("period", "number")):
        if not homes or not homes[-1].schedulable_with(table):
            homes.append(HomeTrack())
        homes[-1].add(table)
    return homes


class EdfPartitioned(Tracks):
    """Short jobs are protected from long ones, and may be promoted to idle tracks of long ones."""

    name: ClassVar[str] = "edf-partitioned"
    title: ClassVar[str] = "EDF-partitioned"

    def partition(self, tables: Sequence[Table], tracks: int) -> Partition:
        homes = home_tracks(tables)
        fits = len(homes) <= tracks
        if not fits:  # the paper's cannot run then; here what does not fit shares the last track
            for extra in homes[tracks:]:
                for table in extra.tables:
                    homes[tracks - 1].add(table)
            del homes[tracks:]
        groups: dict[tuple[int, tuple[int, ...]], Group] = {}
        for track, home in enumerate(homes):
            for table in home.tables:
                others = tuple(
                    other for other, there in enumerate(homes) if other != track and there.schedulable_with(table)
                )
                group = groups.setdefault((track, others), Group((track,), others))
                group.tables.append(table)
        return Partition(list(groups.values()), tuple(range(len(homes), tracks)), self.aggressive, fits)
