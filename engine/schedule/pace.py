"""Pausing and stepping: whether the monitor may decide. Pure state; turns that have begun are never touched by it."""

from __future__ import annotations


class Pace:
    """How many decisions may still be taken: as many as there are, none (paused), or so many (stepping)."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left: int | None = None

    @property
    def paused(self) -> bool:
        """Whether the run was paused and not resumed since; it may still have steps to take."""
        return self.left is not None

    @property
    def held(self) -> bool:
        """Whether no decision may be taken now."""
        return self.left == 0

    def pause(self) -> None:
        """No decision from now on."""
        self.left = 0

    def step(self) -> None:
        """One decision more, then paused."""
        self.left = (self.left or 0) + 1

    def resume(self) -> None:
        """Decide freely again."""
        self.left = None

    def decided(self) -> None:
        """A decision was taken."""
        if self.left:
            self.left -= 1
