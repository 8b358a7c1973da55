"""One job for several tables that scan the same partitions (section 2.1, and the paper's future work)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.refresh.table import Table


def joint_seconds(tables: Sequence[Table]) -> float:
    """How long one job for all of them takes: the longest of their scans once, and the rest of each."""
    scans = [table.spec.scan_share * table.seconds for table in tables]
    return max(scans) + sum(table.seconds for table in tables) - sum(scans)


def worth_joining(first: Table) -> list[Table]:
    """The tables that one job should update with the first one, itself included.

    Others join that read the very same span of the very same sources and wait as well, as long as one job is cheaper
    than two and the marginal benefit does not fall: whoever was first in line is not held up for those it takes along.
    """
    chosen = [first]
    if not first.spec.scan_share:
        return chosen
    waiting = [
        other
        for other in first.siblings
        if other.place
        and other.group is first.group
        and other.freshness == first.freshness
        and other.delta == first.delta
    ]
    for other in sorted(waiting, key=lambda table: (-table.benefit, table.number)):
        together = [*chosen, other]
        seconds, before = joint_seconds(together), joint_seconds(chosen)
        gained = sum(table.weight for table in together) / seconds
        if seconds < before + other.seconds and gained >= sum(table.weight for table in chosen) / before:
            chosen = together
    return chosen
