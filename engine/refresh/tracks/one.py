"""Global scheduling: all tracks work off one queue (section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.refresh.partition import Group, Partition, Tracks
from engine.refresh.table import Table


class OneTrack(Tracks):
    """One queue for all jobs, with as many of them at a time as there are tracks."""

    name: ClassVar[str] = "one"
    title: ClassVar[str] = "One queue"

    def partition(self, tables: Sequence[Table], tracks: int) -> Partition:
        return Partition([Group(tuple(range(tracks)), tables=list(tables))])
