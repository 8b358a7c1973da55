"""The warehouse as a whole: what its loads ask for and what its queries ask for (elastic, figures 8 and 9)."""

from __future__ import annotations

from engine.elastic.decision import Action, Decision
from engine.elastic.stages import warehouse_load, warehouse_query
from engine.model.elastic import Warehouse


def decide(load_s: float | None, query_s: float | None, limits: Warehouse) -> Decision:
    """Out where either asks for it; in only where each one that has a limit allows it."""
    load = warehouse_load.decide(load_s, limits)
    query = warehouse_query.decide(query_s, limits)
    for asked in (load, query):
        if asked.action is Action.OUT:
            return asked
    limited = [load] if limits.load_limit_s is not None else []
    if limits.query_limit_s is not None and limits.sessions:
        limited.append(query)
    busy = next((decision for decision in limited if decision.action is Action.KEEP), None)
    if busy is not None or not limited:
        return busy or load
    return Decision(Action.IN, "; ".join(decision.reason for decision in limited))
