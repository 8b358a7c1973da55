"""Max Benefit (section 3.1)."""

from __future__ import annotations

from typing import ClassVar

from engine.refresh.local import LocalAlgorithm
from engine.refresh.table import Table


class MaxBenefit(LocalAlgorithm):
    """The job with the highest marginal benefit: weighted freshness delta for each second of execution."""

    name: ClassVar[str] = "max-benefit"
    title: ClassVar[str] = "Max Benefit"

    def key(self, table: Table) -> float:
        return -table.benefit
