"""The warehouse, after each query: scale-out where queries take too long on average (elastic, figure 9)."""

from __future__ import annotations

from engine.elastic.decision import Action, Decision, keep, out
from engine.model.elastic import Warehouse


def decide(average_s: float | None, limits: Warehouse) -> Decision:
    """By how long queries took on average. The paper gives scale-in no condition; here it is that of the extraction."""
    if average_s is None:
        return keep("nothing was asked yet")
    if limits.query_limit_s is None:
        return keep("a query has no limit")
    if average_s > limits.query_limit_s:
        return out(
            f"queries took {average_s:.3f} s on average, more than their limit of {limits.query_limit_s:g} s: rebalance"
        )
    threshold = limits.query_limit_s / 2 - limits.margin_s
    if average_s < threshold:
        reason = f"queries took {average_s:.3f} s on average, less than half of the limit minus X ({threshold:.3f} s)"
        return Decision(Action.IN, reason)
    return keep(f"queries took {average_s:.3f} s on average, within {limits.query_limit_s:g} s", tight=True)
