"""What a streaming warehouse came to: the staleness of its tables, and the bounds that were kept and broken."""

from __future__ import annotations

from typing import Any

from engine.refresh.scheduler import Scheduler


def weighted_staleness(scheduler: Scheduler, seconds: float) -> float:
    """The average over time of the priority-weighted staleness of all tables: what is minimized (section 2.3)."""
    return sum(table.priority * table.area for table in scheduler.tables.values()) / seconds if seconds > 0 else 0.0


def tables_report(scheduler: Scheduler, seconds: float) -> dict[str, dict[str, Any]]:
    """Every table's staleness, its bound and what is known of its updates."""
    return {
        name: {
            "staleness_avg_s": round(table.area / seconds, 4) if seconds > 0 else 0.0,
            "staleness_max_s": round(table.peak, 4),
            "priority": table.priority,
            "updates": table.updates,
            "bound_s": table.bound,
            "bound_broken": table.breaks,
            "bound_broken_s": round(table.broken_s, 4),
            "alpha_s": round(table.alpha, 5),
            "beta": round(table.beta, 6),
            "period_s": table.periods.value if table.is_base else None,
        }
        for name, table in scheduler.tables.items()
    }


def bounds_report(scheduler: Scheduler) -> dict[str, list[str]]:
    """The tables whose staleness bounds were kept all the time, and those whose were not."""
    bounded = [table for table in scheduler.tables.values() if table.bound is not None]
    return {
        "kept": [table.name for table in bounded if not table.breaks],
        "broken": [table.name for table in bounded if table.breaks],
    }
