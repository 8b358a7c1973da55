"""The same plans without looking at every state: dynamic programming over the orders in which rows can come.

Each stream of rows is a variable whose values are its possible orders. What an activity, a recordset or a sorter costs
depends on the orders beside it alone, so streams are eliminated one by one, each time keeping for every combination of
the neighbouring orders the best few partial plans. A butterfly is nearly a tree, which keeps the combinations few.
Where parts have limits, a partial plan is kept as long as it may be a cheaper way to keep them than any other.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Generic, TypeVar

from engine.model.physical import NO_ORDER, Order
from engine.plan.constraints import Limit
from engine.plan.exhaustive import Found
from engine.plan.graph import Activity, Edge, Position, Recordset
from engine.plan.limited import Label, Labels, TooEntangled
from engine.plan.space import Space

COMBINATIONS = 20_000  # of the orders of streams that meet; a butterfly has some hundreds

_T = TypeVar("_T")
Variable = Hashable  # a node's id: the rows that leave it; an edge: the rows that its sorter position lets through


@dataclass
class Factor(Generic[_T]):
    """For combinations of the orders of some streams, the partial plans that give them."""

    scope: tuple[Variable, ...]
    table: dict[tuple[Order, ...], _T]
    made_of: frozenset[int] = frozenset()  # the numbers of the first factors that went into it


@dataclass(frozen=True)
class Algebra(Generic[_T]):
    """How partial plans are made, put together and chosen from."""

    one: Callable[[int, str, int], _T]  # of a decision's number, the node that it belongs to, and what it costs
    times: Callable[[_T, _T], _T]
    best: Callable[[list[_T]], _T]
    nothing: _T


def fast_search(space: Space, top: int, limits: Sequence[Limit] = ()) -> Found:
    """The best plans that keep the limits, the same as the exhaustive search finds."""
    if top < 1:
        raise ValueError("at least one plan is asked for")
    if limits:
        return Found(tuple(_within(space, top, limits)), count_plans(space))
    numbers = _eliminate(_factors(space, _best(top)), _best(top))
    return Found(tuple(numbers), count_plans(space))


def _within(space: Space, top: int, limits: Sequence[Limit]) -> list[int]:
    """The numbers of the best plans that keep all limits."""
    labels = Labels(limits, top)
    algebra: Algebra[list[Label]] = Algebra(labels.one, labels.times, labels.best, [])
    factors = _factors(space, algebra)
    counted: list[set[int]] = [set() for _ in limits]  # for each limit, the factors in which something counts for it
    for number, factor in enumerate(factors):
        factor.made_of = frozenset({number})
        least = labels.least(factor.table.values())
        factor.table = {orders: labels.beyond(some, least) for orders, some in factor.table.items()}
        for index in labels.counting(factor.table.values()):
            counted[index].add(number)

    def settled(factor: Factor[list[Label]]) -> Factor[list[Label]]:
        """What all is known of no longer tells plans apart: it was kept."""
        done = [index for index, numbers in enumerate(counted) if numbers and numbers <= factor.made_of]
        if not done:
            return factor
        return replace(factor, table={orders: labels.without(some, done) for orders, some in factor.table.items()})

    return [number for number, _ in _eliminate(factors, algebra, settled)][:top]


def count_plans(space: Space) -> int:
    """How many plans there are, all of which fit."""
    counting: Algebra[int] = Algebra(lambda *_: 1, lambda one, other: one * other, sum, 0)
    return _eliminate(_factors(space, counting), counting)


def _best(top: int) -> Algebra[list[int]]:
    """Keep the smallest numbers: of the sums of two sorted lists only those near both beginnings can be among them."""

    def times(one: list[int], other: list[int]) -> list[int]:
        if len(one) == 1 and len(other) == 1:
            return [one[0] + other[0]]
        sums = [
            first + second
            for index, first in enumerate(one)
            for second in other[: top // (index + 1)]
        ]  # fmt: skip
        sums.sort()
        return sums[:top]

    def best(lists: list[list[int]]) -> list[int]:
        if len(lists) == 1:
            return lists[0]
        return sorted(number for some in lists for number in some)[:top]

    return Algebra(lambda number, *_: [number], times, best, [])


# ---------------------------------------------------------------- factors


def _factors(space: Space, algebra: Algebra[_T]) -> list[Factor[_T]]:
    """One factor for each recordset, each activity and each place for a sorter on an edge."""
    graph = space.graph
    domains: dict[Variable, list[Order]] = {}
    factors: list[Factor[_T]] = []

    def add(owner: str, scope: tuple[Variable, ...], entries: Iterable[tuple[tuple[Order, ...], int, int]]) -> None:
        lists: dict[tuple[Order, ...], list[_T]] = {}
        for orders, number, cost in entries:
            lists.setdefault(orders, []).append(algebra.one(number, owner, cost))
        table = {orders: algebra.best(some) for orders, some in lists.items()}
        made = scope[-1]
        domains[made] = list(dict.fromkeys(orders[-1] for orders in table))
        factors.append(Factor(scope, table))

    def sorted_or_not(position: Position | None, order: Order) -> Iterable[tuple[Order, int, int]]:
        if position is None:
            yield order, 0, 0
            return
        cost = space.sorter_cost(position)
        for digit, wanted in enumerate(position.orders):
            yield wanted, space.number(cost, position, digit), cost
        yield order, space.number(0, position, len(position.orders)), 0

    for id_, node in graph.nodes.items():
        incoming = graph.incoming[id_]
        if isinstance(node, Recordset):
            position = space.position(node)
            if len(incoming) == 1 and node.stored:
                before = incoming[0].source
                add(
                    id_,
                    (before, id_),
                    (
                        ((order, after), number, cost)
                        for order in domains[before]
                        for after, number, cost in sorted_or_not(position, order)
                    ),
                )
            else:
                entries = sorted_or_not(position, NO_ORDER)
                add(id_, (id_,), (((after,), number, cost) for after, number, cost in entries))
            continue
        for edge in incoming:
            position = space.position(edge)
            if position is not None:
                add(
                    position.owner,
                    (edge.source, edge),
                    (
                        ((order, after), number, cost)
                        for order in domains[edge.source]
                        for after, number, cost in sorted_or_not(position, order)
                    ),
                )
        add(id_, *_activity(space, node, incoming, domains))
    return factors


def _activity(
    space: Space, node: Activity, incoming: tuple[Edge, ...], domains: dict[Variable, list[Order]]
) -> tuple[tuple[Variable, ...], list[tuple[tuple[Order, ...], int, int]]]:
    """The scope and the entries of an activity: its inputs whose order matters, each once, and what leaves it."""
    streams: list[Variable | None] = []
    for edge in incoming:
        if not space.minds(node, edge.number):
            streams.append(None)
        else:
            streams.append(edge if space.position(edge) is not None else edge.source)
    scope = tuple(dict.fromkeys(stream for stream in streams if stream is not None))
    entries: list[tuple[tuple[Order, ...], int, int]] = []
    for values in product(*(domains[stream] for stream in scope)):
        by_stream = dict(zip(scope, values, strict=True))
        orders = tuple(NO_ORDER if stream is None else by_stream[stream] for stream in streams)
        for choice in range(len(space.choices[node.id])):
            taken = space.take(node, choice, orders)
            if taken is not None:
                entries.append(((*values, taken.fit.leaves), space.number(taken.cost, node.id, choice), taken.cost))
    return (*scope, node.id), entries


# ---------------------------------------------------------------- elimination


def _eliminate(
    factors: list[Factor[_T]], algebra: Algebra[_T], settled: Callable[[Factor[_T]], Factor[_T]] = lambda one: one
) -> _T:
    """Eliminate the variables, that with the fewest neighbours first, until nothing but plans is left.

    `settled` may simplify a factor whenever others went into it.
    """
    by_variable: dict[Variable, list[Factor[_T]]] = {}
    for factor in factors:
        for variable in factor.scope:
            by_variable.setdefault(variable, []).append(factor)
    result = algebra.one(0, "", 0)
    for factor in factors:
        if not factor.scope:
            result = algebra.times(result, factor.table.get((), algebra.nothing))
    efforts: dict[Variable, tuple[int, int]] = {}
    queue: list[tuple[tuple[int, int], int, Variable]] = []
    turn = 0

    def wait(variable: Variable) -> None:
        nonlocal turn
        turn += 1
        efforts[variable] = _effort(by_variable[variable])
        heapq.heappush(queue, (efforts[variable], turn, variable))

    for variable in by_variable:
        wait(variable)
    while queue:
        effort, _, variable = heapq.heappop(queue)
        if efforts.get(variable) != effort:
            continue  # it is done, or waits with what its neighbours made of it
        del efforts[variable]
        joined = sorted(by_variable.pop(variable), key=lambda factor: len(factor.table))
        product_ = joined[0]
        for factor in joined[1:]:
            product_ = _multiply(product_, factor, algebra)
        left = _sum_out(settled(product_), variable, algebra)
        if not left.scope:
            result = algebra.times(result, left.table.get((), algebra.nothing))
        gone = {id(factor) for factor in joined}
        for other in left.scope:
            by_variable[other] = [*(one for one in by_variable[other] if id(one) not in gone), left]
            wait(other)
    return result


def _effort(factors: list[Factor[_T]]) -> tuple[int, int]:
    """How many streams meet where a variable is eliminated, and over how many combinations."""
    return len({name for factor in factors for name in factor.scope}), sum(len(factor.table) for factor in factors)


def _multiply(one: Factor[_T], other: Factor[_T], algebra: Algebra[_T]) -> Factor[_T]:
    """Two factors as one: combinations that agree on the streams they share."""
    shared = [name for name in one.scope if name in other.scope]
    new = [index for index, name in enumerate(other.scope) if name not in one.scope]
    in_one = [one.scope.index(name) for name in shared]
    in_other = [other.scope.index(name) for name in shared]
    matching: dict[tuple[Order, ...], list[tuple[tuple[Order, ...], _T]]] = {}
    for orders, plans in other.table.items():
        key = tuple(orders[index] for index in in_other)
        matching.setdefault(key, []).append((tuple(orders[index] for index in new), plans))
    table = {}
    for orders, plans in one.table.items():
        for rest, others in matching.get(tuple(orders[index] for index in in_one), ()):
            table[orders + rest] = algebra.times(plans, others)
        if len(table) > COMBINATIONS:
            raise TooEntangled
    return Factor((*one.scope, *(other.scope[index] for index in new)), table, one.made_of | other.made_of)


def _sum_out(factor: Factor[_T], variable: Variable, algebra: Algebra[_T]) -> Factor[_T]:
    """A factor without one of its streams: the best over all its orders."""
    at = factor.scope.index(variable)
    lists: dict[tuple[Order, ...], list[_T]] = {}
    for orders, plans in factor.table.items():
        lists.setdefault(orders[:at] + orders[at + 1 :], []).append(plans)
    table = {orders: algebra.best(some) for orders, some in lists.items()}
    return Factor(factor.scope[:at] + factor.scope[at + 1 :], table, factor.made_of)
