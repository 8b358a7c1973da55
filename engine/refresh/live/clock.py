"""The time of a live warehouse."""

from __future__ import annotations

import time
from collections.abc import Callable

BACK_S = 0.5  # a clock that is so far behind where it was went backwards


class Clock:
    """Seconds since 1970 that never go backwards: a clock that is put back is passed over, and counted."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._offset = wall() - steady()
        self.backwards_s = 0.0  # how far it was put back, the last time

    def __call__(self) -> float:
        steady, wall = self._steady(), self._wall()
        if wall > steady + self._offset:
            self._offset = wall - steady
        elif wall < steady + self._offset - BACK_S and not self.backwards_s:
            self.backwards_s = steady + self._offset - wall
        return steady + self._offset
