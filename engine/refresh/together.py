"""One job for several tables that scan the same partitions (section 2.1, and the paper's future work)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.refresh.table import Table

LEAST_SHARE = 0.01  # a scan that is less of an update than this is not worth a look


def joint_seconds(tables: Sequence[Table]) -> float:
    """How long one job for all of them takes: the longest of their scans once, and the rest of each."""
    scans = [table.scan.value * table.seconds for table in tables]
    return max(scans) + sum(table.seconds for table in tables) - sum(scans)


def worth_joining(first: Table, chop: float | None) -> list[Table]:
    """The tables that one job should update with the first one, itself included.

    Others join that read the very same span of the very same sources and wait as well, as long as one job is cheaper
    than two and the marginal benefit does not fall: whoever was first in line is not held up for those it takes along.
    Nor are tables of other sources: as with chopping, one job takes at most `chop` times as long as the first alone.
    """
    chosen = [first]
    if first.scan.value < LEAST_SHARE or not first.cost.known:
        return chosen
    waiting = [
        other
        for other in first.siblings
        if other is not first
        and other.place
        and other.group is first.group
        and other.freshness == first.freshness
        and other.delta == first.delta
        and other.cost.known
    ]
    longest = float("inf") if chop is None else chop * first.seconds
    for other in sorted(waiting, key=lambda table: (-table.benefit, table.number)):
        together = [*chosen, other]
        seconds, before = joint_seconds(together), joint_seconds(chosen)
        gained = sum(table.weight for table in together) / seconds
        cheaper = seconds < before + other.seconds and gained >= sum(table.weight for table in chosen) / before
        if cheaper and seconds <= longest:
            chosen = together
    return chosen


def saved_share(alone: Sequence[float], together_s: float) -> float:
    """The share of each that must have been done once, where one job took so long and each by itself takes `alone`."""
    return (sum(alone) - together_s) / (sum(alone) - max(alone))
