"""What a table is made of, as its workflow describes it: kept with the table, and compared at the next start. Pure."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from engine.model.binding import Bound
from engine.model.operator import Operator, Place
from engine.operators.streams import FOLDER, Stream
from engine.operators.warehouse import MaterializedView
from engine.partition.tables import TablePlan

ID = "id"  # of what a table holds: another one once it is made anew
STREAM, COLUMNS, TIME, WAY, VIEW = "stream", "columns", "time", "way", "view"
TIME_COLUMN = "time_column"  # as the setting is called

# What a view's rows do not depend on.
_BESIDES = {MaterializedView: {"priority", "period_s", "staleness_bound_s", "refresh"}}


def made_of(
    bound: Bound, plan: TablePlan, place: Place, columns: Mapping[str, str], sources: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """All that the rows of a table depend on, but for its id; `sources` is what those of a view are made of."""
    if plan.stream is not None:
        return {
            STREAM: stream_of(bound, plan, place),
            COLUMNS: dict(columns),
            TIME: plan.operator.time_column,
            WAY: _digest(way_of(bound, plan)),
        }
    whole = [
        way_of(bound, plan), dict(columns), plan.operator.time_column, plan.partition_us, plan.granule_us,
        [sources[source].get(ID) for source in plan.sources],
    ]  # fmt: skip
    return {VIEW: _digest(whole)}


def stream_of(bound: Bound, plan: TablePlan, place: Place) -> dict[str, Any]:
    """What makes a base table's stream the one that it is; a folder is named as seen from the table's own."""
    stream = bound.operators[plan.stream or ""]
    assert isinstance(stream, Stream)
    found: dict[str, Any] = {"operator": stream.name, **stream.itself()}
    if FOLDER in found:  # so that both may be moved together
        found[FOLDER] = os.path.relpath(place.path(found[FOLDER]), place.path(plan.operator.path))
    return found


def way_of(bound: Bound, plan: TablePlan) -> list[Any]:
    """What stands between a table and what feeds it: nodes, their settings, and how they are linked."""
    nodes = (*plan.nodes, *plan.statics)
    links = [
        [link.source, link.source_port, node, link.target_port]
        for node in (*plan.nodes, plan.name)
        for link in bound.incoming.get(node, ())
    ]
    return [[[node, bound.operators[node].name, _settings(bound.operators[node])] for node in nodes], sorted(links)]


def another_stream(made: Mapping[str, Any], stream: Mapping[str, Any]) -> str | None:
    """How the stream of a base table differs from the one that it was loaded from; None where it is that one."""
    return _difference(made.get(STREAM, stream), stream)


def other_columns(made: Mapping[str, Any], columns: Mapping[str, str], time_column: str) -> str | None:
    """How the columns of a base table differ from those that its rows have; None where they are the same."""
    time = _difference({TIME_COLUMN: made.get(TIME, time_column)}, {TIME_COLUMN: time_column})
    return time or _difference(made.get(COLUMNS, columns), columns)


def _difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if was == now:
        return None
    names = [name for name in dict.fromkeys((*was, *now)) if was.get(name) != now.get(name)]
    return ", ".join(f"{name}: {was.get(name, 'none')} → {now.get(name, 'none')}" for name in names)


def _settings(operator: Operator) -> dict[str, Any]:
    besides = next((names for kind, names in _BESIDES.items() if isinstance(operator, kind)), set[str]())
    return operator.model_dump(mode="json", exclude=besides)


def _digest(what: Any) -> str:
    text = json.dumps(what, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
