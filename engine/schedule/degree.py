"""How many splits a tree's input is cut into (shared caching, section 4.2, theorem 1 and algorithm 3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

PAYS = 0.95  # of the time without pipelines: one that takes more than that is not worth its threads


@dataclass(frozen=True)
class TreeMeasures:
    """What algorithm 3 measures on a sample of a tree's input."""

    activities: int  # n
    rows: int  # N: those that the staggering activity takes
    net_seconds: float  # c: for all rows in all activities, without the miscellaneous time
    misc_seconds: float  # t0: of one activity for one split
    row_seconds: float  # lambda: of one row in the staggering activity
    staggering: str = ""  # the slowest activity; not looked for where pipelines do not pay
    input_rows: int = 0  # of the tree; activities before the staggering one may have dropped some, or added
    turns: int = 0  # without pipelines, that corrected it

    def for_input(self, rows: int) -> TreeMeasures:
        """The measures for an input of so many rows: the net time is linear in them."""
        factor = rows / self.input_rows
        return replace(self, rows=round(self.rows * factor), net_seconds=self.net_seconds * factor, input_rows=rows)


def optimal_degree(measures: TreeMeasures) -> int:
    """Theorem 1: m = sqrt((c - lambda N) / t0), at least one and at most one split a row."""
    rest = measures.net_seconds - measures.row_seconds * measures.rows
    if rest <= 0:
        return 1  # one activity takes all the time: there is nothing to overlap
    if measures.misc_seconds <= 0:
        return max(1, measures.rows)
    square = rest / measures.misc_seconds
    degree = math.floor(math.sqrt(square))
    if square > degree * (degree + 1):  # of the two whole numbers around the root, the one that takes less time
        degree += 1
    return max(1, min(degree, max(1, measures.rows)))


def pipeline_seconds(measures: TreeMeasures, splits: int) -> float:
    """The time of a pipeline over `splits` even splits (section 4.2)."""
    net, misc = measures.net_seconds, measures.misc_seconds
    slowest = measures.row_seconds * measures.rows
    return (net - slowest) / splits + misc * splits + slowest + (measures.activities - 1) * misc


def least_seconds(measures: TreeMeasures) -> float:
    """The time at the optimal degree, as theorem 1 gives it."""
    slowest = measures.row_seconds * measures.rows
    rest = max(0.0, measures.net_seconds - slowest)
    return 2 * math.sqrt(measures.misc_seconds * rest) + slowest + (measures.activities - 1) * measures.misc_seconds


def with_pipeline(measures: TreeMeasures, splits: int, seconds: float) -> TreeMeasures:
    """Line 4 of algorithm 3: lambda, from the time that the measured rows took in so many splits side by side.

    Where that was no quicker than one after the other, all of the time is the staggering activity's: there is nothing
    to overlap, as on Spark where one job keeps all cores busy.
    """
    net, misc = measures.net_seconds, measures.misc_seconds
    if seconds >= PAYS * pipeline_seconds(measures, 1):
        slowest = net
    else:
        slowest = (seconds - net / splits - misc * (splits + measures.activities - 1)) / (1 - 1 / splits)
    return replace(measures, row_seconds=min(max(0.0, slowest), net) / max(1, measures.rows))


def corrected(measures: TreeMeasures, rows: int, splits: int, seconds: float) -> TreeMeasures:
    """The measures after so many rows really took so long in so many splits: half of what was thought, half of it."""
    if rows <= 0 or 2 * rows < measures.input_rows:
        return measures  # too few to tell more than the sample did
    before = measures.for_input(rows)
    seconds = (pipeline_seconds(before, splits) + seconds) / 2
    if splits > 1:
        return with_pipeline(before, splits, seconds)
    net = max(0.0, seconds - before.activities * before.misc_seconds)
    factor = net / before.net_seconds if before.net_seconds > 0 else 1.0
    return replace(before, net_seconds=net, row_seconds=before.row_seconds * factor, turns=before.turns + 1)


def measured(
    activities: Sequence[str],
    rows: Sequence[int],
    empty_seconds: float,
    sequential: Sequence[float],
    input_rows: int,
) -> TreeMeasures:
    """Algorithm 3 from its measurements without pipelines (lines 1 to 3).

    `empty_seconds` is the time of all activities over no rows, `sequential` that of each over the sample, one after
    the other, `rows` what each took and `input_rows` the sample. The slowest is the staggering activity.
    """
    count = len(activities)
    misc = empty_seconds / count
    net = [max(0.0, seconds - misc) for seconds in sequential]
    slowest = max(range(count), key=net.__getitem__)
    taken = max(1, rows[slowest])
    return TreeMeasures(count, taken, sum(net), misc, net[slowest] / taken, activities[slowest], input_rows)
