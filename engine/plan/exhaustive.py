"""Exhaustive Ordering: every combination of sorters with every combination of implementations (figure 3)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from engine.model.physical import NO_ORDER, Order
from engine.plan.constraints import Limit
from engine.plan.costs import units
from engine.plan.graph import Position, Recordset
from engine.plan.space import Space


@dataclass(frozen=True)
class Found:
    """What a search found: the numbers of its best plans, the best first, and how many plans there are."""

    numbers: tuple[int, ...]
    plans: int

    @property
    def signatures(self) -> int:
        """As the paper counts: the initial state, then every state that is generated from it."""
        return self.plans + 1 if self.plans else 0


def exhaustive_ordering(space: Space, top: int, limits: Sequence[Limit] = ()) -> Found:
    """Look at every state. The initial one is the first of them, so a dictionary of what was seen is not needed.

    Plans that break a limit are counted, and not among the best.
    """
    if top < 1:
        raise ValueError("at least one plan is asked for")
    generated = 0

    def states() -> Iterator[int]:
        nonlocal generated
        options = [range(len(position.orders) + 1) for position in space.positions]
        for digits in product(*options):
            for number, costs in _implementations(space, dict(zip(space.positions, digits, strict=True))):
                generated += 1
                if all(keeps(limit, costs) for limit in limits):
                    yield number

    best = heapq.nsmallest(top, states())
    return Found(tuple(best), generated)


def keeps(limit: Limit, costs: Sequence[tuple[str, int]]) -> bool:
    """Whether a plan keeps a limit, whose nodes and sorters cost this."""
    return units(sum(cost for node, cost in costs if node in limit.nodes)) <= limit.cost


def _implementations(space: Space, sorters: dict[Position, int]) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """The numbers of all plans that have these sorters, with what each node costs, its sorters as well."""
    graph = space.graph
    nodes = list(graph.nodes.values())
    leaves: dict[str, Order] = {}
    doing = [
        (position.owner, space.sorter_cost(position))
        for position, digit in sorters.items()
        if digit < len(position.orders)
    ]

    def through(position: Position | None, order: Order) -> tuple[Order, int]:
        if position is None:
            return order, 0
        digit = sorters[position]
        if digit == len(position.orders):
            return order, space.number(0, position, digit)
        return position.orders[digit], space.number(space.sorter_cost(position), position, digit)

    def go_on(at: int, number: int) -> Iterator[tuple[int, list[tuple[str, int]]]]:
        if at == len(nodes):
            yield number, doing
            return
        node = nodes[at]
        incoming = graph.incoming[node.id]
        if isinstance(node, Recordset):
            order = leaves[incoming[0].source] if len(incoming) == 1 and node.stored else NO_ORDER
            leaves[node.id], added = through(space.position(node), order)
            yield from go_on(at + 1, number + added)
            return
        orders = []
        for edge in incoming:
            order, added = through(space.position(edge), leaves[edge.source])
            number += added
            orders.append(order if space.minds(node, edge.number) else NO_ORDER)
        for choice in range(len(space.choices[node.id])):
            taken = space.take(node, choice, tuple(orders))
            if taken is not None:
                leaves[node.id] = taken.fit.leaves
                doing.append((node.id, taken.cost))
                yield from go_on(at + 1, number + space.number(taken.cost, node.id, choice))
                doing.pop()

    return go_on(0, 0)
