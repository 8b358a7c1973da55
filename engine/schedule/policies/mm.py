"""Minimum memory prediction (scheduling, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.schedule.policy import Candidate, Policy


class MinimumMemory(Policy):
    """The unit that will free the most memory, for one time slot."""

    name: ClassVar[str] = "mm"
    title: ClassVar[str] = "Minimum memory"
    timed: ClassVar[bool] = True

    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        largest = 0
        most = 0.0
        by_memory, by_cost = None, candidates[0]
        for candidate in candidates:
            rows = candidate.queue_rows
            if rows:
                if rows > largest:
                    by_cost, largest = candidate, rows
                seconds = candidate.seconds
                # Nothing was measured yet: the formula cannot be applied, and speaks neither for nor against it.
                if seconds > 0:
                    benefit = (candidate.rows_in - candidate.rows_out) / seconds * rows
                    if benefit > most:
                        by_memory, most = candidate, benefit
        return by_cost if by_memory is None else by_memory

    def score(self, candidate: Candidate, last: int) -> float:
        """MemB: rows freed for each second so far, times the rows that wait."""
        if candidate.seconds <= 0:
            return 0.0
        return (candidate.rows_in - candidate.rows_out) / candidate.seconds * candidate.queue_rows

    def scores(self, candidates: Sequence[Candidate], last: int) -> list[float]:
        """MemB of each; where none is positive, the rows that wait, by which it then picks as MC does."""
        # All at once: calling `score` for each of them would be a third of what a decision takes.
        found = [
            (one.rows_in - one.rows_out) / one.seconds * one.queue_rows if one.seconds > 0 else 0.0
            for one in candidates
        ]
        return found if max(found) > 0 else [float(one.queue_rows) for one in candidates]
