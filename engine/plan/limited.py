"""Partial plans under limits: what each costs, and what of it counts for each limit.

Of two partial plans over the same orders the dearer one is of use only if it leaves more of some limit to the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import le

from engine.plan.constraints import Limit
from engine.plan.costs import units

Label = tuple[int, tuple[int, ...]]  # a plan's number, and what it spends of each limit

LABELS = 2_000  # partial plans over the same orders that are kept at most
PAIRS = 200_000  # of partial plans that are put together at most


class TooEntangled(Exception):
    """So many streams meet that their orders, or their ways to keep the limits, have too many combinations."""


class Labels:
    """How lists of partial plans are made, put together and thinned out, each list the best first."""

    def __init__(self, limits: Sequence[Limit], top: int) -> None:
        self.limits = limits
        self.top = top
        self.spent = [0] * len(limits)  # by every plan, whatever is chosen

    def one(self, number: int, owner: str, cost: int) -> list[Label]:
        """One decision."""
        return self._kept([(number, tuple(cost if owner in limit.nodes else 0 for limit in self.limits))])

    def times(self, one: list[Label], other: list[Label]) -> list[Label]:
        """Every pair."""
        if len(one) * len(other) > PAIRS:
            raise TooEntangled
        pairs = (
            (first + second, tuple(map(sum, zip(spent, more, strict=True))))
            for first, spent in one
            for second, more in other
        )
        return self._kept(pairs)

    def best(self, lists: list[list[Label]]) -> list[Label]:
        """All that may be of use of some lists."""
        return lists[0] if len(lists) == 1 else self._kept(label for some in lists for label in some)

    def _kept(self, labels: Iterable[Label]) -> list[Label]:
        """Those that keep the limits, and that fewer than `top` others are better than in every way."""
        kept: list[Label] = []
        for label in sorted(labels):
            spent = label[1]
            if not self._keeps(spent):
                continue
            better = 0
            for _, other in kept:
                if all(map(le, other, spent)):
                    better += 1
                    if better == self.top:
                        break
            else:
                kept.append(label)
                if len(kept) > LABELS:
                    raise TooEntangled
        return kept

    def _keeps(self, spent: tuple[int, ...]) -> bool:
        return all(
            units(always + own) <= limit.cost for always, own, limit in zip(self.spent, spent, self.limits, strict=True)
        )

    # -- what a limit still has to tell

    def least(self, lists: Iterable[list[Label]]) -> tuple[int, ...]:
        """What is spent of each limit at the least, and so by every plan; from now on that is reckoned with."""
        some = [spent for labels in lists for _, spent in labels]
        least = tuple(map(min, zip(*some, strict=True))) if some else (0,) * len(self.limits)
        self.spent = [always + own for always, own in zip(self.spent, least, strict=True)]
        return least

    def beyond(self, labels: list[Label], least: tuple[int, ...]) -> list[Label]:
        """The same plans with what each spends beyond the least."""
        return [(number, tuple(own - low for own, low in zip(spent, least, strict=True))) for number, spent in labels]

    def counting(self, lists: Iterable[list[Label]]) -> set[int]:
        """The limits of which some plans spend more than others."""
        return {index for labels in lists for _, spent in labels for index, own in enumerate(spent) if own}

    def without(self, labels: list[Label], done: Sequence[int]) -> list[Label]:
        """Those that keep the limits, some of which nothing more counts for: they no longer tell plans apart."""
        return self._kept(
            (number, tuple(0 if index in done else own for index, own in enumerate(spent)))
            for number, spent in labels
            if self._keeps(spent)
        )
