"""First in, first out."""

from __future__ import annotations

from typing import ClassVar

from engine.refresh.local import LocalAlgorithm
from engine.refresh.table import Table


class FirstIn(LocalAlgorithm):
    """In the order in which the jobs were released."""

    name: ClassVar[str] = "fifo"
    title: ClassVar[str] = "First in, first out"

    def key(self, table: Table) -> float:
        return table.released or 0.0
