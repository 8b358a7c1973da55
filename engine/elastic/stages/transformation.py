"""Transformation: scale-out and scale-in by the size of the queues (elastic, figure 5) and by a time limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from engine.elastic.decision import Action, Decision, keep, low_pairs, out
from engine.model.elastic import Transformation


def decide(
    queues_mb: Sequence[float], limits: Transformation, seconds: float | None = None, every_s: float = math.inf
) -> Decision:
    """By how full each node's queue is, and how long rows wait in it and are transformed.

    Figure 5 asks for the queues alone; the time limit is that of section 5.2. Scale-in leaves half of the nodes at
    least, so rows that take less than half of the time stay within it; `every_s` brings the next ones.
    """
    if not queues_mb:
        return keep("no queue yet")
    limit = limits.limit_mb
    longest = max(queues_mb)
    if longest > limit:
        return out(f"a queue holds {longest:.1f} MB, above its limit of {limit:g} MB")
    if limits.limit_s is not None and seconds is not None and seconds > limits.limit_s:
        return out(f"rows took {seconds:.3f} s to be transformed, more than their limit of {limits.limit_s:g} s")
    within = every_s if limits.limit_s is None else min(limits.limit_s, every_s)
    if seconds is not None and seconds >= within / 2:
        return keep(f"rows took {seconds:.3f} s to be transformed, not less than half of {within:g} s", tight=True)
    low = low_pairs(queues_mb, limit / 2)
    if low is None:
        return keep(f"the longest queue holds {longest:.1f} MB, within {limit:g} MB", tight=longest >= limit / 2)
    return Decision(
        Action.IN,
        f"two queues hold {queues_mb[low[0][0]]:.1f} and {queues_mb[low[1][0]]:.1f} MB, less than half of the limit of "
        f"{limit:g} MB",
        *low,
    )
