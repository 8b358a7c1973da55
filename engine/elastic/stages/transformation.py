"""Transformation: scale-out and scale-in by the size of the queues (elastic, figure 5)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.decision import Action, Decision, keep, low_pairs, out
from engine.model.elastic import Transformation


def decide(queues_mb: Sequence[float], limits: Transformation) -> Decision:
    """By how full each node's queue is."""
    if not queues_mb:
        return keep("no queue yet")
    limit = limits.limit_mb
    longest = max(queues_mb)
    if longest > limit:
        return out(f"a queue holds {longest:.1f} MB, above its limit of {limit:g} MB")
    low = low_pairs(queues_mb, limit / 2)
    if low is None:
        return keep(f"the longest queue holds {longest:.1f} MB, within {limit:g} MB")
    return Decision(
        Action.IN,
        f"two queues hold {queues_mb[low[0][0]]:.1f} and {queues_mb[low[1][0]]:.1f} MB, less than half of the limit of "
        f"{limit:g} MB",
        *low,
    )
