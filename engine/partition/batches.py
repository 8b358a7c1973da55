"""Which operators may stand between an elastic run's source and its facts: rows pass them batch by batch.

What needs all rows at once would give other facts for each batch than for all of them, so it is refused.
"""

from __future__ import annotations

from collections.abc import Set

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.elastic import Live
from engine.model.operator import Category, Operator
from engine.operators.code import Python, PythonStyle
from engine.operators.join import Join, JoinKind
from engine.operators.lookup import Exists
from engine.operators.sets import Union

_ALL_ROWS = "needs all rows at once, and live they come batch by batch; put it behind the warehouse, as a query"
# The side whose rows all leave, or are matched, once: it must be the one that comes in batches.
_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.CROSS)
_RIGHT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.CROSS)


def refuse_blocking(bound: Bound, live: Live) -> None:
    """Refuse a workflow whose facts would be others batch by batch, with file, node and reason."""
    arriving = closure(bound, live.source, forward=True)
    passed = (arriving & closure(bound, live.facts, forward=False)) - {live.source, live.facts}
    file = bound.file or bound.name
    problems = []
    for node in bound.order:
        if node not in passed:
            continue
        links = bound.incoming.get(node, ())
        moving = {link.target_port for link in links if link.source in arriving}
        still = {link.target_port for link in links if link.source not in arriving}
        reason = why_not(bound.operators[node], moving, still)
        if reason is not None:
            problems.append(f"{file}: node `{node}`: `{bound.operators[node].name}` {reason}")
    if problems:
        raise BadInput("\n".join(problems))


def why_not(operator: Operator, moving: Set[str], still: Set[str]) -> str | None:
    """Why an operator gives other rows batch by batch; None where it does not.

    By the ports of `moving` come batches, by those of `still` the same rows for each.
    """
    match operator:
        case Python() if operator.style is PythonStyle.BATCHES:
            return None
        case Join():
            return _join(operator, moving)
        case Union():
            if operator.distinct or operator.sorted_by:
                return _ALL_ROWS
            return "would add the rows of an input that does not move to each batch again" if still else None
    if operator.category is not Category.ROW_SYNCHRONIZED and not isinstance(operator, Exists):
        return _ALL_ROWS
    others = moving - {port.name for port in operator.input_ports()[:1]}
    if others:
        return f"looks up rows that arrive by `{min(others)}`, and what it looks for may be in another batch"
    return None


def _join(join: Join, moving: Set[str]) -> str | None:
    if len(moving) == 2:
        return "joins rows that arrive with others that arrive, and these may be in another batch"
    (side,) = moving
    if join.kind in (_LEFT if side == "left" else _RIGHT):
        return None
    other = "right" if side == "left" else "left"
    return f"of kind `{join.kind}` would give rows of its {other} input with each batch again"


def closure(bound: Bound, node: str, forward: bool) -> set[str]:
    """A node and all behind it, or in front of it."""
    found, waiting = {node}, [node]
    while waiting:
        at = waiting.pop()
        more = {other for other, _ in (bound.consumers(at) if forward else bound.producers(at))} - found
        found |= more
        waiting += more
    return found
