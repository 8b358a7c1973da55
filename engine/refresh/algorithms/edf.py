"""Earliest deadline first (section 3.1)."""

from __future__ import annotations

from typing import ClassVar

from engine.refresh.local import LocalAlgorithm
from engine.refresh.table import Table


class EarliestDeadline(LocalAlgorithm):
    """The job whose deadline, its release and a period, is nearest; priorities do not count."""

    name: ClassVar[str] = "edf"
    title: ClassVar[str] = "Earliest deadline first"

    def key(self, table: Table) -> float:
        return table.deadline
