"""From a workflow to the warehouse that the scheduler knows. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.binding import Bound
from engine.operators.streams import MICROS
from engine.partition.tables import TablePlan, tables_of
from engine.refresh.model import TableSpec, Warehouse


def spec_of(plan: TablePlan, scan_share: float | None = None) -> TableSpec:
    """A table as the scheduler knows it; what is not said of its scan is learnt."""
    return TableSpec(
        plan.name,
        plan.sources,
        priority=plan.priority,
        period_s=plan.period_s,
        staleness_bound_s=plan.staleness_bound_s,
        lateness_bound_s=plan.operator.lateness_bound_s,
        time_column=plan.operator.time_column,
        scan_share=scan_share,
        step_s=plan.step_us / MICROS,
    )


def warehouse_of(bound: Bound, plans: Iterable[TablePlan] | None = None) -> Warehouse:
    """The warehouse that a streaming workflow describes; what is wrong with it is told with file and table."""
    file = str(bound.file) if bound.file else bound.name
    return Warehouse(
        [spec_of(plan, scan_share_of(bound, plan)) for plan in (tables_of(bound) if plans is None else plans)], file
    )


def scan_share_of(bound: Bound, plan: TablePlan) -> float | None:
    """What the hints of a table say of its scan."""
    hints = bound.workflow.nodes[plan.name].hints
    return None if hints is None else hints.scan_share
