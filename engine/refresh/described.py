"""From a workflow to the warehouse that the scheduler knows. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.binding import Bound
from engine.partition.tables import TablePlan, tables_of
from engine.refresh.model import TableSpec, Warehouse


def spec_of(plan: TablePlan) -> TableSpec:
    """A table as the scheduler knows it."""
    return TableSpec(
        plan.name,
        plan.sources,
        priority=plan.priority,
        period_s=plan.period_s,
        staleness_bound_s=plan.staleness_bound_s,
        lateness_bound_s=plan.operator.lateness_bound_s,
        time_column=plan.operator.time_column,
    )


def warehouse_of(bound: Bound, plans: Iterable[TablePlan] | None = None) -> Warehouse:
    """The warehouse that a streaming workflow describes; what is wrong with it is told with file and table."""
    file = str(bound.file) if bound.file else bound.name
    return Warehouse([spec_of(plan) for plan in (tables_of(bound) if plans is None else plans)], file)
