"""Update jobs: what the scheduler tells its driver to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Load(NamedTuple):
    """What a job brings into one table.

    Of a base table: its next `batches` arrivals, in the order in which they arrived. Of a derived table: what its
    sources hold from `after` to `upto`, and up to there alone; nothing that is smaller can come any more, so that
    the table is consistent with its sources as of `upto` (section 2.2).
    """

    table: str
    after: float  # the table's freshness before
    upto: float  # and what it is when the job is done
    batches: int = 0


@dataclass(slots=True, eq=False)
class Job:
    """An update job that begins now, on a track, and is never preempted. Mostly of one table (section 2.1)."""

    number: int
    track: int
    loads: tuple[Load, ...]
    started: float
    expected_s: float  # by what is known of alpha and beta

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it updates."""
        return tuple(load.table for load in self.loads)
