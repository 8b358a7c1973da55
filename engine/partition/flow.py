"""A workflow as the partitioning algorithms see it: numbered nodes of a few kinds, and edges."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import TypeVar

from engine.model.binding import Bound, Link
from engine.model.operator import Category, Operator, Role

_Node = TypeVar("_Node", bound=Hashable)
Edge = tuple[int, int]


class Kind(StrEnum):
    """What the algorithms need to know of a node."""

    RECORDSET = "recordset"
    ROW_SYNCHRONIZED = "row-synchronized"
    SEMI_BLOCKING = "semi-blocking"
    BLOCKING = "blocking"
    ROUTER = "router"  # row-synchronized, with rows leaving by several ports


@dataclass(frozen=True)
class Flow:
    """A directed acyclic graph. Its nodes are the numbers from 0 on, in topological order.

    Numbers, for then what is known of the nodes stands in lists, in the order in which it is looked at; dictionaries
    of ten thousands of names do not stay in the processor's cache, and twice the nodes take more than twice the time.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    edges: tuple[Edge, ...]
    # Edges whose rows a row-synchronized activity needs all before its own rows pass: a lookup's reference.
    references: frozenset[Edge] = frozenset()
    # Those, and the edges that such rows take beside others that pass: a lookup of rows in themselves.
    whole: frozenset[Edge] = frozenset()

    @cached_property
    def successors(self) -> list[list[int]]:
        """The nodes behind each node."""
        behind: list[list[int]] = [[] for _ in self.names]
        for source, target in self.edges:
            behind[source].append(target)
        return behind

    @cached_property
    def predecessors(self) -> list[list[int]]:
        """The nodes before each node."""
        before: list[list[int]] = [[] for _ in self.names]
        for source, target in self.edges:
            before[target].append(source)
        return before

    @classmethod
    def of(
        cls,
        kinds: Mapping[str, Kind],
        edges: Iterable[tuple[str, str]],
        references: Iterable[tuple[str, str]] = (),
    ) -> Flow:
        """A flow from names, which stand in topological order."""
        number = {name: index for index, name in enumerate(kinds)}
        by_number = [(number[source], number[target]) for source, target in edges]
        whole = frozenset((number[source], number[target]) for source, target in references)
        return cls(tuple(kinds), tuple(kinds.values()), tuple(by_number), whole, whole)

    def named(self, nodes: Iterable[int]) -> tuple[str, ...]:
        """The names of some nodes."""
        return tuple([self.names[node] for node in nodes])


def flow_of(bound: Bound) -> Flow:
    """A bound workflow as a flow. Several edges between the same two nodes count once."""
    number = dict(zip(bound.order, range(len(bound.order)), strict=True))
    operators = [bound.operators[node] for node in bound.order]
    kinds = [_kind(type(operator)) for operator in operators]
    ends: list[Edge] = []
    whole: set[Edge] = set()
    plain: list[Edge] = []  # links that are no reference, of those between nodes where there are references
    leaves_by: list[str | None] = [None] * len(kinds)  # the port of its first link
    routers = []
    for link in bound.links:
        edge = source, target = number[link.source], number[link.target]
        ends.append(edge)
        if kinds[target] is Kind.ROW_SYNCHRONIZED and link.target_port != _main_port(operators[target]):
            whole.add(edge)
        first = leaves_by[source]
        if first is None:
            leaves_by[source] = link.source_port
        elif first != link.source_port and kinds[source] is Kind.ROW_SYNCHRONIZED:
            routers.append(source)
    for edge, link in zip(ends, bound.links, strict=True) if whole else ():
        if edge in whole and link.target_port == _main_port(operators[edge[1]]):
            plain.append(edge)
    for router in routers:
        kinds[router] = Kind.ROUTER
    edges = tuple(dict.fromkeys(ends))
    return Flow(tuple(bound.order), tuple(kinds), edges, frozenset(whole.difference(plain)), frozenset(whole))


def is_reference(bound: Bound, link: Link) -> bool:
    """Whether all rows of a link are needed before the row-synchronized activity it ends on can begin."""
    operator = bound.operators[link.target]
    return _kind(type(operator)) is Kind.ROW_SYNCHRONIZED and link.target_port != _main_port(operator)


def _main_port(operator: Operator) -> str:
    """The port by which the rows come that an activity works on."""
    return _usual_port(type(operator)) or operator.input_ports()[0].name


@cache
def _usual_port(operator: type[Operator]) -> str | None:
    """The first port of an operator whose ports do not depend on its settings."""
    return operator.inputs[0].name if operator.input_ports is Operator.input_ports and operator.inputs else None


@cache
def _kind(operator: type[Operator]) -> Kind:
    if operator.role is not Role.ACTIVITY:
        return Kind.RECORDSET
    match operator.category:
        case Category.BLOCKING:
            return Kind.BLOCKING
        case Category.SEMI_BLOCKING:
            return Kind.SEMI_BLOCKING
    return Kind.ROW_SYNCHRONIZED


def components(nodes: Sequence[int], pairs: Iterable[Edge]) -> list[list[int]]:
    """Numbers that ascend, joined where two of them are a pair. Each component ascends as well; nearly linear."""
    # A lower one of each node's component, the lowest for the lowest. A list where it can be one.
    lower: list[int] | dict[int, int] = list(nodes) if isinstance(nodes, range) else {node: node for node in nodes}
    for one, other in pairs:
        while lower[one] != one:
            one = lower[one] = lower[lower[one]]
        while lower[other] != other:
            other = lower[other] = lower[lower[other]]
        if one < other:
            lower[other] = one
        else:
            lower[one] = other
    found: dict[int, list[int]] = {}
    for node in nodes:
        lowest = lower[node] = lower[lower[node]]  # those before it know theirs by now
        if lowest == node:
            found[node] = [node]
        else:
            found[lowest].append(node)
    return list(found.values())


def crossing(part_of: Sequence[int], edges: Iterable[Edge]) -> list[Edge]:
    """The edges between parts, each once, where the nodes at their ends belong to different ones."""
    ends = [(part_of[source], part_of[target]) for source, target in edges if part_of[source] != part_of[target]]
    return list(dict.fromkeys(ends))


def levels(nodes: Iterable[_Node], edges: Iterable[tuple[_Node, _Node]]) -> dict[_Node, int]:
    """The length of the longest way to each node. Linear. Nodes on or behind a circle are left out."""
    number = {node: index for index, node in enumerate(nodes)}
    found = numbered_levels(len(number), [(number[source], number[target]) for source, target in edges])
    return {node: level for node, level in zip(number, found, strict=True) if level is not None}


def numbered_levels(count: int, edges: Iterable[Edge]) -> list[int | None]:
    """The length of the longest way to each of the nodes from 0 on; None for those on or behind a circle."""
    waiting = [0] * count
    following: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        following[source].append(target)
        waiting[target] += 1
    highest = [0] * count
    level: list[int | None] = [None] * count
    ready = [node for node in range(count) if waiting[node] == 0]
    while ready:
        node = ready.pop()
        level[node] = highest[node]
        above = highest[node] + 1
        for target in following[node]:
            if highest[target] < above:
                highest[target] = above
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return level
