"""Minimum cost prediction (scheduling, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.schedule.policy import Candidate, Policy


class MinimumCost(Policy):
    """The unit with the largest input queue, until that is exhausted: few interruptions."""

    name: ClassVar[str] = "mc"
    title: ClassVar[str] = "Minimum cost"

    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        largest = 0
        picked = candidates[0]
        for candidate in candidates:
            if largest < candidate.queue_rows:
                picked = candidate
                largest = candidate.queue_rows
        return picked

    def score(self, candidate: Candidate, last: int) -> float:
        return float(candidate.queue_rows)

    def scores(self, candidates: Sequence[Candidate], last: int) -> list[float]:
        return [float(one.queue_rows) for one in candidates]  # at once, for that is quicker
