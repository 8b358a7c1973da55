"""The warehouse, after each load: scale-out where it took too long (elastic, figure 8)."""

from __future__ import annotations

from engine.elastic.decision import Action, Decision, keep, out
from engine.model.elastic import Warehouse


def decide(load_s: float | None, limits: Warehouse) -> Decision:
    """By how long the last load took. The paper gives scale-in no condition; here it is that of the extraction."""
    if load_s is None:
        return keep("nothing was loaded yet")
    if limits.load_limit_s is None:
        return keep("a load has no limit")
    if load_s > limits.load_limit_s:
        return out(f"a load took {load_s:.3f} s, more than its limit of {limits.load_limit_s:g} s: rebalance")
    threshold = limits.load_limit_s / 2 - limits.margin_s
    if load_s < threshold:
        reason = f"a load took {load_s:.3f} s, less than half of the limit minus X ({threshold:.3f} s)"
        return Decision(Action.IN, reason)
    return keep(f"a load took {load_s:.3f} s, within {limits.load_limit_s:g} s", tight=True)
