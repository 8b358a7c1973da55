"""The butterfly's shape: left wing, body, right wing, and the name of its archetype.

The body is the recordset that the left wing fills and the right wing reads (physical design, section 5.1). With
several recordsets in question it is the one through which most of the flow passes: the most sources before it
and the most targets behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.model.binding import Bound
from engine.model.operator import Role


class Archetype(StrEnum):
    """The kinds of butterflies (scheduling, section 7; physical design, section 5.1)."""

    LINE = "line"
    WISHBONE = "wishbone"
    PRIMARY_FLOW = "primary flow"
    TREE = "tree"
    FORK = "fork"
    BALANCED = "balanced butterfly"
    RIGHT_DEEP = "right-deep hierarchy"
    OTHER = "other"


@dataclass(frozen=True)
class Shape:
    """The three parts of a butterfly and its archetype."""

    left: tuple[str, ...]
    body: tuple[str, ...]
    right: tuple[str, ...]
    archetype: Archetype

    def as_dict(self) -> dict[str, object]:
        """The shape as the command line's JSON has it."""
        return {
            "archetype": self.archetype.value,
            "wings": {"left": list(self.left), "body": list(self.body), "right": list(self.right)},
        }


def shape(bound: Bound) -> Shape:
    """Find the body, the wings and the archetype of a workflow. Linear in its size."""
    if not bound.order:
        return Shape((), (), (), Archetype.OTHER)
    body = _body(bound)
    if body is None:
        return Shape(tuple(bound.order), (), (), _left_archetype(bound, set(bound.order)))
    right = _reachable(bound, body)
    left = [node for node in bound.order if node != body and node not in right]
    archetype = _archetype(bound, set(left), body, right)
    ordered_right = tuple(node for node in bound.order if node in right)
    return Shape(tuple(left), (body,), ordered_right, archetype)


def _body(bound: Bound) -> str | None:
    """The recordset in the middle: most sources before it times most targets behind it.

    The counts are of paths, capped, which keeps the pass linear and orders the candidates as counts of nodes
    would on all but contrived graphs.
    """
    roles = {node: operator.role for node, operator in bound.operators.items()}
    before: dict[str, int] = {}
    behind: dict[str, int] = {}
    for node in bound.order:
        incoming = bound.incoming.get(node)
        before[node] = min(sum([before[link.source] for link in incoming]), 10**9) if incoming else 1
    for node in reversed(bound.order):
        own = 1 if roles[node] is Role.TARGET else 0
        behind[node] = min(own + sum([behind[link.target] for link in bound.outgoing.get(node, ())]), 10**9)
    candidates = [node for node in bound.order if roles[node] in (Role.TARGET, Role.STAGING)]
    if not candidates:
        return None
    position = {node: index for index, node in enumerate(bound.order)}

    def weight(node: str) -> tuple[int, int, int]:
        staging = 0 if roles[node] is Role.TARGET else -1
        return (before[node] * behind[node], staging, -position[node])

    best = max(candidates, key=weight)
    # A fork reads its source directly: the source is the table the views are made of.
    sources = [node for node in bound.order if roles[node] is Role.SOURCE]
    if len(sources) == 1 and len(bound.consumers(sources[0])) > 1 and not bound.consumers(best):
        return sources[0]
    return best


def _reachable(bound: Bound, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for link in bound.outgoing.get(waiting.pop(), ()):
            if link.target not in found:
                found.add(link.target)
                waiting.append(link.target)
    return found


def _archetype(bound: Bound, left: set[str], body: str, right: set[str]) -> Archetype:
    combinations = [node for node in left if _is_combination(bound, node)]
    views = [node for node in right if bound.role(node) is Role.TARGET]
    if not views:
        return _left_archetype(bound, left | {body})
    depth, width = _right_depth(bound, body, right)
    if not combinations:
        if width == 1 and _is_line(bound, set(bound.order)):
            return Archetype.LINE
        if depth > 1:
            return Archetype.RIGHT_DEEP
        return Archetype.FORK if width > 1 else Archetype.OTHER
    if depth > 2 and len(right) > 2 * len(left):
        return Archetype.RIGHT_DEEP
    return Archetype.BALANCED


def _left_archetype(bound: Bound, nodes: set[str]) -> Archetype:
    """The kinds without a right wing: lines and combinations that end in the body."""
    if _is_line(bound, nodes):
        return Archetype.LINE
    combinations = [node for node in nodes if _is_combination(bound, node)]
    if not combinations:
        fans_out = any(len(bound.outgoing.get(node, ())) > 1 for node in nodes)
        return Archetype.FORK if fans_out else Archetype.OTHER
    if all(_has_recordset_input(bound, node) for node in combinations):
        return Archetype.PRIMARY_FLOW
    return Archetype.WISHBONE if len(combinations) == 1 else Archetype.TREE


def _is_combination(bound: Bound, node: str) -> bool:
    return len(bound.incoming.get(node, ())) > 1


def _has_recordset_input(bound: Bound, node: str) -> bool:
    """Whether a combination meets a line with a recordset, as lookups do."""
    roles = [bound.role(source) for source, _ in bound.producers(node)]
    return sum(role is not Role.ACTIVITY for role in roles) >= 1 and any(
        role is Role.ACTIVITY or len(roles) > 1 for role in roles
    )


def _is_line(bound: Bound, nodes: set[str]) -> bool:
    return (
        all(len(bound.incoming.get(node, ())) <= 1 and len(bound.outgoing.get(node, ())) <= 1 for node in nodes)
        and sum(not bound.incoming.get(node) for node in nodes) == 1
    )


def _right_depth(bound: Bound, body: str, right: set[str]) -> tuple[int, int]:
    """How many recordsets stand one behind the other in the right wing, and how many ways leave the body."""
    depth = {body: 0}
    for node in bound.order:
        if node in right:
            inner = max(depth.get(source, 0) for source, _ in bound.producers(node))
            depth[node] = inner + (bound.role(node) is not Role.ACTIVITY)
    deepest = max((value for node, value in depth.items() if node in right), default=0)
    return deepest, len(bound.consumers(body))
