"""Extraction and data distributors: scale-out and scale-in (elastic, figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.decision import Action, Decision, keep, low_pairs, out
from engine.model.elastic import Extraction


def decide(times_s: Sequence[float], limits: Extraction) -> Decision:
    """By how long each node's last extraction took. Figure 3 first, figure 4 where nobody is late."""
    if not times_s:
        return keep("nothing was extracted yet")
    longest = max(times_s)
    if limits.limit_s is not None:
        if longest > limits.limit_s:
            return out(f"an extraction took {longest:.3f} s, more than its limit of {limits.limit_s:g} s")
    elif longest > limits.every_s:
        return out(
            f"an extraction took {longest:.3f} s and was not done by the next instant, after {limits.every_s:g} s"
        )
    threshold = limits.longest_s / 2 - limits.margin_s
    low = low_pairs(times_s, threshold)
    if low is None:
        return keep(f"the longest extraction took {longest:.3f} s, within {limits.longest_s:g} s")
    first, second = times_s[low[0][0]], times_s[low[1][0]]
    what = "the limit" if limits.limit_s is not None else "the frequency"
    return Decision(
        Action.IN,
        f"two extractions took {first:.3f} and {second:.3f} s, less than half of {what} minus X "
        f"({threshold:.3f} s): one node takes over the other's sources",
        *low,
    )
