"""Minimum memory prediction (scheduling, section 4.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from engine.schedule.policy import Candidate, Policy


class MinimumMemory(Policy):
    """The unit that will free the most memory, for one time slot."""

    name: ClassVar[str] = "mm"
    title: ClassVar[str] = "Minimum memory"
    timed: ClassVar[bool] = True

    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        largest = -1
        most = -math.inf
        by_memory = by_cost = candidates[0]
        for candidate in candidates:
            rows, seconds = candidate.queue_rows, candidate.seconds
            # Nothing was measured yet: the formula cannot be applied, and speaks neither for nor against it.
            benefit = (candidate.rows_in - candidate.rows_out) / seconds * rows if seconds > 0 else 0.0
            if most < benefit:
                by_memory, most = candidate, benefit
            if largest < rows:
                by_cost, largest = candidate, rows
        return by_memory if most > 0 else by_cost

    def score(self, candidate: Candidate, last: int) -> float:
        """MemB: rows freed for each second so far, times the rows that wait."""
        if candidate.seconds <= 0:
            return 0.0
        return (candidate.rows_in - candidate.rows_out) / candidate.seconds * candidate.queue_rows
