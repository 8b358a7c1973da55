"""Data switches: scale-out and scale-in by the data rate (elastic, figure 7)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.elastic.decision import Action, Decision, keep, out, pairs_of
from engine.model.elastic import Switch


def decide(rates_rows_s: Sequence[float], limits: Switch) -> Decision:
    """By the rows a second that pass each switch.

    Scale-in: two switches together stay below the configured rate, less the variation Z, for the configured time;
    so the one that takes over keeps its limit.
    """
    if not rates_rows_s:
        return keep("no switch yet")
    highest = max(rates_rows_s)
    if highest > limits.limit_rows_s:
        return out(f"{highest:,.0f} rows/s pass a switch, above its limit of {limits.limit_rows_s:,g}")
    threshold = limits.limit_rows_s - limits.margin_rows_s
    leave, take_over = pairs_of(sorted(range(len(rates_rows_s)), key=rates_rows_s.__getitem__))
    together = [rates_rows_s[one] + rates_rows_s[other] for one, other in zip(leave, take_over, strict=True)]
    fitting = sum(rate < threshold for rate in together)
    if fitting:
        return Decision(
            Action.IN,
            f"{together[0]:,.0f} rows/s pass two switches together, less than the limit minus Z ({threshold:,.0f})",
            leave[:fitting],
            take_over[:fitting],
            limits.hold_s,
        )
    return keep(f"{highest:,.0f} rows/s pass the busiest switch, within {limits.limit_rows_s:,g}")
