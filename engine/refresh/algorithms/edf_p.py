"""Prioritized earliest deadline first (section 3.1)."""

from __future__ import annotations

from typing import ClassVar

from engine.refresh.local import LocalAlgorithm
from engine.refresh.table import Table


class PrioritizedEdf(LocalAlgorithm):
    """By priority, and by deadline where priorities are equal."""

    name: ClassVar[str] = "edf-p"
    title: ClassVar[str] = "Prioritized EDF"

    def key(self, table: Table) -> tuple[float, float]:
        return -table.weight, table.deadline
