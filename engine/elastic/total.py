"""How long extraction, transformation and load take in all, against the limit of all three (elastic, section 5.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.elastic.decision import Stage

OVER_S = 0.2  # the paper's own runs exceeded their limit by so much


@dataclass
class TotalTime:
    """Counts how often the limit was broken, and knows which stage took longest then."""

    limit_s: float | None
    looks: int = 0
    late: int = 0
    longest: dict[Stage, float] = field(default_factory=dict)
    longest_s: float = 0.0
    slowest: Stage | None = None  # at the latest moment of all
    _latest_s: float = 0.0
    _told: bool = False

    def look(self, extraction_s: float, transformation_s: float, load_s: float) -> str | None:
        """Take the times of a moment. What is to be told: once, when the limit is broken after it was kept."""
        times = {Stage.EXTRACTION: extraction_s, Stage.TRANSFORMATION: transformation_s, Stage.WAREHOUSE: load_s}
        total = sum(times.values())
        self.looks += 1
        self.longest = {stage: max(seconds, self.longest.get(stage, 0.0)) for stage, seconds in times.items()}
        self.longest_s = max(self.longest_s, total)
        if self.limit_s is None or total <= self.limit_s + OVER_S:
            self._told = False
            return None
        self.late += 1
        slowest = max(times, key=times.__getitem__)
        if total > self._latest_s:
            self._latest_s, self.slowest = total, slowest
        if self._told:
            return None
        self._told = True
        return (
            f"extraction, transformation and load took {total:.3f} s in all, more than their limit of "
            f"{self.limit_s:g} s (limit_s); the {slowest.value} took longest, {times[slowest]:.3f} s"
        )

    def summary(self) -> dict[str, Any]:
        """The longest times and how often they were too long, as the command line's JSON has them."""
        return {
            "extraction_max_s": round(self.longest.get(Stage.EXTRACTION, 0.0), 3),
            "transformation_max_s": round(self.longest.get(Stage.TRANSFORMATION, 0.0), 3),
            "load_max_s": round(self.longest.get(Stage.WAREHOUSE, 0.0), 3),
            "etl_max_s": round(self.longest_s, 3),
            "etl_limit_s": self.limit_s,
            "late_share": round(self.late / self.looks, 4) if self.looks else 0.0,
            "slowest": None if self.slowest is None else self.slowest.value,
        }
