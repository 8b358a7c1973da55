"""A workflow as the partitioning algorithms see it: nodes of a few kinds, and edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from engine.model.binding import Bound, Link
from engine.model.operator import Category, Role

_Node = TypeVar("_Node", str, int)


class Kind(StrEnum):
    """What the algorithms need to know of a node."""

    RECORDSET = "recordset"
    ROW_SYNCHRONIZED = "row-synchronized"
    SEMI_BLOCKING = "semi-blocking"
    BLOCKING = "blocking"
    ROUTER = "router"  # row-synchronized, with rows leaving by several ports


@dataclass(frozen=True)
class Flow:
    """A directed acyclic graph whose nodes stand in topological order."""

    kinds: Mapping[str, Kind]
    edges: tuple[tuple[str, str], ...]
    # Edges whose rows a row-synchronized activity needs all before its own rows pass: a lookup's reference.
    references: frozenset[tuple[str, str]] = frozenset()
    successors: Mapping[str, list[str]] = field(init=False, repr=False)
    predecessors: Mapping[str, list[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        forwards: dict[str, list[str]] = {node: [] for node in self.kinds}
        backwards: dict[str, list[str]] = {node: [] for node in self.kinds}
        for source, target in self.edges:
            forwards[source].append(target)
            backwards[target].append(source)
        object.__setattr__(self, "successors", forwards)
        object.__setattr__(self, "predecessors", backwards)


def flow_of(bound: Bound) -> Flow:
    """A bound workflow as a flow. Several edges between the same two nodes count once."""
    edges = dict.fromkeys((link.source, link.target) for link in bound.links)
    main = {(link.source, link.target) for link in bound.links if not is_reference(bound, link)}
    kinds = {node: _kind(bound, node) for node in bound.order}
    return Flow(kinds, tuple(edges), frozenset(edge for edge in edges if edge not in main))


def is_reference(bound: Bound, link: Link) -> bool:
    """Whether all rows of a link are needed before the row-synchronized activity it ends on can begin."""
    operator = bound.operators[link.target]
    if operator.role is not Role.ACTIVITY or operator.category is not Category.ROW_SYNCHRONIZED:
        return False
    return link.target_port != operator.input_ports()[0].name


def _kind(bound: Bound, node: str) -> Kind:
    operator = bound.operators[node]
    if operator.role is not Role.ACTIVITY:
        return Kind.RECORDSET
    if operator.category is Category.BLOCKING:
        return Kind.BLOCKING
    if operator.category is Category.SEMI_BLOCKING:
        return Kind.SEMI_BLOCKING
    ports = {link.source_port for link in bound.outgoing.get(node, ())}
    return Kind.ROUTER if len(ports) > 1 else Kind.ROW_SYNCHRONIZED


def levels(nodes: Iterable[_Node], edges: Iterable[tuple[_Node, _Node]]) -> dict[_Node, int]:
    """The length of the longest way to each node. Linear. Nodes on or behind a circle are left out."""
    waiting = dict.fromkeys(nodes, 0)
    following: dict[_Node, list[_Node]] = {node: [] for node in waiting}
    for source, target in edges:
        following[source].append(target)
        waiting[target] += 1
    highest = dict.fromkeys(waiting, 0)
    level = {}
    ready = [node for node, count in waiting.items() if count == 0]
    while ready:
        node = ready.pop()
        level[node] = highest[node]
        for target in following[node]:
            highest[target] = max(highest[target], level[node] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    return level
