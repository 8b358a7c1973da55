"""Any released job (section 4.3)."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from engine.refresh.local import LocalAlgorithm
from engine.refresh.queues import RandomQueue
from engine.refresh.table import Table


class AnyJob(LocalAlgorithm):
    """Chooses randomly among the released jobs."""

    name: ClassVar[str] = "random"
    title: ClassVar[str] = "Random"

    def key(self, table: Table) -> float:
        return 0.0

    def queue(self, random: Random) -> RandomQueue:
        return RandomQueue(random)
