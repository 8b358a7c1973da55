"""What is known of a workflow's rows and costs: hints in its file, its last run, the footers of its sources."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from engine.errors import PapilioError
from engine.model.binding import Bound
from engine.model.operator import Role, Source
from engine.plan.rows import Recorded, Rows, rows_of
from engine.store.peek import CannotPeek, last_summary

UNIT_SECONDS = 0.3  # to start a unit's jobs and to end them
TELLING_ROWS = 20_000


def known_rows(bound: Bound, url: str | None = None) -> Rows:
    """The rows that flow through a workflow, as far as they are known without running it."""
    return rows_of(bound, source_rows(bound), recorded_rows(bound, url))


def source_rows(bound: Bound) -> dict[str, int]:
    """The rows of the sources that say it themselves and cost no connection. A broken file is told when it is read."""
    place = bound.place()
    found = {}
    for node, operator in bound.operators.items():
        if isinstance(operator, Source) and not operator.remote:
            with contextlib.suppress(Exception):
                rows = operator.held_rows(place)
                if rows is not None:
                    found[node] = rows
    return found


def recorded_rows(bound: Bound, url: str | None = None) -> dict[str, Recorded]:
    """What the last run of the workflow that was done counted. A store that fails only costs knowledge."""
    with contextlib.suppress(CannotPeek):
        return recorded_in(bound, last_summary(url, bound.name) or {})
    with contextlib.suppress(PapilioError):
        from engine.store import MetadataStore

        with MetadataStore(url) as store:
            runs = store.list_runs(workflow=bound.name, status="done", limit=1)
        if runs:
            return recorded_in(bound, runs[0].summary)
    return {}


def recorded_in(bound: Bound, summary: Mapping[str, Any]) -> dict[str, Recorded]:
    """The rows and costs in the summary of a run, of the nodes that the workflow still has."""
    costs = _costs_us(bound, summary)
    found = {}
    for node, counted in summary.get("nodes", {}).items():
        if node in bound.operators and isinstance(counted, Mapping):
            found[node] = Recorded(counted.get("rows_in"), counted.get("rows_out"), costs.get(node))
    return found


def _costs_us(bound: Bound, summary: Mapping[str, Any]) -> dict[str, float]:
    """Microseconds for a row, of activities that ran as a unit of their own (with recordsets at most beside them).

    What a unit takes whatever its rows is not theirs, and few rows say nothing.
    """
    costs = {}
    for unit in summary.get("units", {}).values():
        nodes = [node for node in unit.get("nodes", ()) if node in bound.operators]
        activities = [node for node in nodes if bound.role(node) is Role.ACTIVITY]
        if len(activities) == 1:
            rows_in = summary.get("nodes", {}).get(activities[0], {}).get("rows_in")
            seconds = (unit.get("seconds") or 0) - UNIT_SECONDS
            if rows_in and rows_in >= TELLING_ROWS and seconds > 0:
                costs[activities[0]] = seconds * 1_000_000 / rows_in
    return costs
