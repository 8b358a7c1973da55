"""What a stage's decision algorithm answers: scale out, scale in or keep, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """A part of ETL+Q that scales on its own (elastic, section 3)."""

    EXTRACTION = "extraction"
    TRANSFORMATION = "transformation"
    BUFFER = "buffer"
    SWITCH = "switch"
    WAREHOUSE = "warehouse"


class Action(StrEnum):
    """What becomes of a stage's nodes."""

    OUT = "scale out"
    IN = "scale in"
    KEEP = "keep"


@dataclass(frozen=True)
class Decision:
    """An action with its reason. On scale-in, the nodes that can leave and those that take over, by their numbers.

    The first of the one list is taken over by the first of the other. The paper removes one node at a time; where many
    are idle, more can go at once.
    """

    action: Action
    reason: str
    leaves: tuple[int, ...] = ()
    takes_over: tuple[int, ...] = ()
    hold_s: float | None = None  # the condition's own time to hold, where the stage has one
    tight: bool = False  # within the limit, and perhaps not with half of the nodes


def keep(reason: str, tight: bool = False) -> Decision:
    """Nothing changes."""
    return Decision(Action.KEEP, reason, tight=tight)


def out(reason: str) -> Decision:
    """One node more."""
    return Decision(Action.OUT, reason)


Pairs = tuple[tuple[int, ...], tuple[int, ...]]


def pairs_of(numbers: Sequence[int]) -> Pairs:
    """Neighbours as pairs: the first of each can leave, the second takes over."""
    whole = len(numbers) // 2 * 2
    return tuple(numbers[0:whole:2]), tuple(numbers[1:whole:2])


def low_pairs(values: Sequence[float], threshold: float) -> Pairs | None:
    """The nodes below a threshold in pairs, the lowest first; None where two are not."""
    low = sorted((number for number, value in enumerate(values) if value < threshold), key=values.__getitem__)
    return pairs_of(low) if len(low) >= 2 else None
