"""Planning a workflow: the search, the constraints it has to keep, and what is said where there is no plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.errors import BadInput
from engine.plan.constraints import Constraints, Limit
from engine.plan.costs import CostModel, units
from engine.plan.exhaustive import exhaustive_ordering, keeps
from engine.plan.fast import count_plans, fast_search
from engine.plan.graph import Graph, Offered
from engine.plan.limited import TooEntangled
from engine.plan.signature import read_signature, signature
from engine.plan.space import Plan, Space

EXHAUSTIVE_STATES = 200_000  # a few seconds' worth


class TooLarge(BadInput):
    """A workflow for which no search finds a plan in sensible time."""


class Search(StrEnum):
    """How plans are looked for."""

    FAST = "fast"
    EXHAUSTIVE = "exhaustive"


@dataclass(frozen=True)
class Ranking:
    """The cheapest plans of a workflow, in the order they are listed."""

    space: Space
    plans: tuple[Plan, ...]
    signatures: int  # as the paper counts them: the initial state and every state there is
    search: Search
    remarks: tuple[str, ...] = ()

    @property
    def best(self) -> Plan:
        """The plan to run: of the cheapest, the one with the fewest sorters."""
        return min(self.plans, key=lambda plan: plan.number)

    def signature(self, plan: Plan) -> str:
        """A plan in the paper's notation."""
        return signature(self.space.graph, plan)


def rank(
    graph: Graph,
    model: CostModel,
    constraints: Constraints | None = None,
    top: int = 10,
    search: Search = Search.FAST,
    offered: Offered = Offered.ALL,
) -> Ranking:
    """The cheapest plans. Of equally cheap ones those with fewer sorters are kept, and listed last, as in the paper.

    `offered`: the sorters to begin with.
    """
    constraints = constraints or Constraints()
    constraints.check(graph)
    remarks: list[str] = []
    what = "too many ways to keep the limits" if constraints.parts(graph) else "too many streams"
    for fewer in sorted((one for one in Offered if one <= offered), reverse=True):
        space = Space(graph, model, constraints, offered=fewer)
        try:
            return _ranked(space, top, search, remarks)
        except TooEntangled:
            remarks = [f"{what} meet: {_FEWER[fewer]}; better plans may exist"]
    raise TooLarge(f"the workflow is too entangled to be planned: {what} meet in one place")


# What is said where a search gave up with all or some sorters.
_FEWER = {
    Offered.ALL: "sorters are tried by consumers' first orders only",
    Offered.FIRST: "no sorters are tried",
    Offered.NONE: "",
}


def _ranked(space: Space, top: int, search: Search, said: list[str]) -> Ranking:
    remarks = list(said)
    if search is Search.EXHAUSTIVE and space.states() > EXHAUSTIVE_STATES:
        remarks.append(
            f"the exhaustive search would look at {space.states():,} states, and {EXHAUSTIVE_STATES:,} are the most "
            "it takes on; the fast search finds the same plans"
        )
        search = Search.FAST
    look = exhaustive_ordering if search is Search.EXHAUSTIVE else fast_search
    limits = space.constraints.parts(space.graph)
    found = look(space, top, limits)
    if not found.plans:
        raise BadInput(conflict(space))
    if not found.numbers:
        raise BadInput("; ".join([_limits_conflict(space, limits), *said]))
    plans = tuple(map(space.plan, sorted(found.numbers, key=space.shown)))
    return Ranking(space, plans, found.signatures, search, tuple(remarks))


def only(text: str, graph: Graph, model: CostModel, constraints: Constraints | None = None) -> Ranking:
    """The one plan that a signature stands for. It must keep what is asked of plans."""
    constraints = constraints or Constraints()
    constraints.check(graph)
    space = Space(graph, model, constraints)
    plan = read_signature(text, space)
    for limit in constraints.parts(graph):
        if not _keeps(plan, limit):
            raise BadInput(f"the signature does not keep the limit {limit.name}")
    try:
        signatures = count_plans(space) + 1
    except TooEntangled:
        signatures = 0  # more than can be counted
    return Ranking(space, (plan,), signatures, Search.FAST)


# ---------------------------------------------------------------- limits


def _keeps(plan: Plan, limit: Limit) -> bool:
    return keeps(limit, [(line.node, line.cost) for line in plan.lines])


def _limits_conflict(space: Space, limits: Sequence[Limit]) -> str:
    """A limit that nothing keeps, or the fewest that cannot be kept together."""
    for limit in limits:
        part = Space(space.graph, space.model, space.constraints, limit.nodes, space.offered)
        least = units(part.cost(fast_search(part, 1).numbers[0]))
        if least > limit.cost:
            asked = f"the limit {limit.name} asks for {limit.cost:,.0f} at most"
            return f"{asked}, and the cheapest way costs {least:,.0f}"
    kept = list(limits)
    for limit in limits:
        fewer = [one for one in kept if one is not limit]
        if not fast_search(space, 1, fewer).numbers:
            kept = fewer
    names = "; ".join(f"{limit.name}, at most {limit.cost:,.0f}" for limit in kept)
    return f"no plan keeps all limits, though each can be kept alone; these cannot be kept together: {names}"


# ---------------------------------------------------------------- no plan at all


def conflict(space: Space) -> str:
    """Why there is no plan: the fewest pins and bans that cannot be had together."""
    kept = space.constraints
    for node in space.constraints.pinned:
        kept = _fewer(space, kept, _unpinned(kept, node))
    for node in space.constraints.forbidden:
        kept = _fewer(space, kept, _allowed(kept, node))
    if kept.memory_rows is not None:
        kept = _fewer(space, kept, replace(kept, memory_rows=None))
    parts = [f"`{node}` pinned to `{name}`" for node, name in kept.pinned.items()]
    parts += [f"`{node}` without {', '.join(sorted(names))}" for node, names in kept.forbidden.items()]
    if kept.memory_rows is not None:
        parts.append(f"at most {kept.memory_rows:,} rows in memory")
    if not parts:
        return "no combination of implementations fits this workflow"
    if len(parts) == 1:
        why = ": no sorter gives it the order that it needs" if kept.memory_rows is None else ""
        return f"there is no plan with {parts[0]}{why}"
    return f"these cannot be had together: {'; '.join(parts)}"


def _fewer(space: Space, kept: Constraints, fewer: Constraints) -> Constraints:
    """Fewer constraints if they are still too many, else all that were kept."""
    return kept if count_plans(Space(space.graph, space.model, fewer, offered=space.offered)) else fewer


def _unpinned(constraints: Constraints, node: str) -> Constraints:
    return replace(constraints, pinned={one: name for one, name in constraints.pinned.items() if one != node})


def _allowed(constraints: Constraints, node: str) -> Constraints:
    return replace(constraints, forbidden={one: names for one, names in constraints.forbidden.items() if one != node})
