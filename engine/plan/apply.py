"""A plan put to work: the settings that ask for its implementations, and the orders that its sorters make.

What runs a workflow takes both: settings go over the file's when it is bound, a sorter's order is the one in which a
recordset is staged, or rows are handed from one activity to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model.physical import Order
from engine.plan.graph import Graph
from engine.plan.space import Plan


@dataclass(frozen=True)
class Applied:
    """What a plan changes about a run."""

    settings: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # by node and setting, as `bind` takes them
    staged: Mapping[str, Order] = field(default_factory=dict)  # recordsets, with the order their rows are kept in
    passed: Mapping[tuple[str, str], Order] = field(default_factory=dict)  # edges, with the order rows are sorted in


def applied(graph: Graph, plan: Plan) -> Applied:
    """What a plan asks of a run. A setting that the person chose is never overruled: it left nothing to choose."""
    settings: dict[tuple[str, str], Any] = {}
    for node, way in plan.implementations.items():
        activity = graph.activity(node)
        assert activity is not None
        for setting, value in activity.physical.asks.get(way, {}).items():
            settings[node, setting] = value
    staged: dict[str, Order] = {}
    passed: dict[tuple[str, str], Order] = {}
    for position, order in plan.sorters.items():
        if position.edge is None:
            staged[position.node] = order
        else:
            passed[position.edge.source, position.edge.target] = order
    return Applied(settings, staged, passed)
