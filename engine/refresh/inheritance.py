"""What a table's job weighs because of the views behind it (section 3.3)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from engine.refresh.table import Table


class Inheritance(StrEnum):
    """How a table inherits the priorities of its dependent views."""

    NONE = "none"
    SUM = "sum"
    MAX = "max"
    MAX_PLUS = "max-plus"


def weigh(tables: Iterable[Table], way: Inheritance, max_plus_k: float) -> list[Table]:
    """Set the inherited priority of tables, those behind others first; returns those that weigh another.

    Max-plus is K times the largest, once for each level of views behind a table: so base tables gain over the tables
    derived from them, most where the chain of ancestors is long, as the paper says of a large K.
    """
    factor = max_plus_k if way is Inheritance.MAX_PLUS else 1.0
    changed = []
    for table in tables:
        weight = table.priority * table.gain
        if way is Inheritance.SUM:
            weight += sum(other.priority * other.gain for other in reached(table, "dependents"))
        elif way is not Inheritance.NONE:
            weight = max(weight, factor * max((other.weight for other in table.dependents), default=0.0))
        if weight != table.weight:
            table.weight = weight
            changed.append(table)
    return changed


def reached(table: Table, way: str) -> list[Table]:
    """All tables directly or indirectly behind a table (`dependents`) or before it (`sources`), without itself."""
    found: dict[Table, None] = {}
    waiting = [table]
    for one in waiting:  # grows while it is walked
        for other in getattr(one, way):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return list(found)
