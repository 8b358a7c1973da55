"""Round robin (scheduling, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from engine.schedule.policy import Candidate, Policy


class RoundRobin(Policy):
    """Each unit in turn, by its operator id, until its input is exhausted."""

    name: ClassVar[str] = "rr"
    title: ClassVar[str] = "Round robin"
    calls_idle: ClassVar[bool] = True  # every activity gets the same chance, also those that wait for their producers

    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        for candidate in candidates:
            if candidate.number > last:
                return candidate
        return candidates[0]

    def score(self, candidate: Candidate, last: int) -> float:
        # Those behind the last come first, by their numbers, then those before it.
        return -candidate.number if candidate.number > last else -candidate.number - 1e9

    def scores(self, candidates: Sequence[Candidate], last: int) -> list[float]:
        return [-one.number if one.number > last else -one.number - 1e9 for one in candidates]
