"""Units of scheduling at each granularity, and the subflows that the mixed policy runs side by side.

`operator` makes every node a unit, `subflow` the lines between boundaries (BreakIntoSubflows), `tree` the execution
trees; `fused` has units of its own (see `fused`). Where rows are written is always a unit of its own, the writer. A
unit that would wait for its own rows, because an activity in it looks up what was made of them, is cut there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.model.binding import Bound, Link
from engine.model.operator import Category, Role, Source
from engine.partition.flow import Kind, flow_of, is_reference, numbered_levels
from engine.partition.granularity import Granularity
from engine.partition.trees import execution_trees


@dataclass(frozen=True)
class Part:
    """Nodes that are one unit, in topological order, and the subflow they belong to."""

    id: str
    nodes: tuple[str, ...]
    group: str


def divide(bound: Bound, granularity: Granularity) -> list[Part]:
    """The units of a workflow in topological order. Linear in nodes and edges."""
    if granularity is Granularity.OPERATOR:
        groups = _groups(bound)
        return [Part(node, (node,), groups[node]) for node in bound.order]
    flow = flow_of(bound)
    key: Mapping[str, Hashable]
    if granularity is Granularity.TREE:
        key = {node: tree.id for tree in execution_trees(flow).trees for node in tree.nodes}
    else:
        key = {node: _is_line(bound, node, kind) or node for node, kind in zip(flow.names, flow.kinds, strict=True)}
    parts = _joined_parts(bound, key, dict.fromkeys(bound.order, 0))
    cut: dict[str, int] = {}
    while circles := _circles(bound, parts):  # cutting one unit may join others again, so it is looked at once more
        marks = _reference_marks(bound)
        again = {node: marks[node] for part in circles for node in parts[part]}
        cut = marks if again.items() <= cut.items() else {**cut, **again}
        parts = _joined_parts(bound, key, {node: cut.get(node, 0) for node in bound.order})
    return [Part(nodes[0], nodes, nodes[0]) for nodes in _in_order(bound, parts)]


def _joined_parts(bound: Bound, key: Mapping[str, Hashable], marks: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Nodes of one key and one mark, joined along the links by which rows can be pipelined."""

    written = {node for node in bound.order if _is_written(bound, node)}
    together = [
        (link.source, link.target)
        for link in bound.links
        if key[link.source] == key[link.target]
        and marks[link.source] == marks[link.target]
        and link.source not in written
        and link.target not in written
        and not is_reference(bound, link)
    ]
    return [inner for part in _components(bound.order, together) for inner in _computed_once(bound, part)]


def _circles(bound: Bound, parts: list[tuple[str, ...]]) -> set[int]:
    """The parts that wait for themselves: rows leave them and come back as something that is needed whole."""
    part_of = {node: number for number, part in enumerate(parts) for node in part}
    edges: dict[tuple[int, int], None] = {}
    alone = set()
    for link in bound.links:
        source, target = part_of[link.source], part_of[link.target]
        if source != target:
            edges[source, target] = None
        elif is_reference(bound, link):
            alone.add(source)
    if None not in numbered_levels(len(parts), edges):
        return alone  # there is an order: nobody waits for itself by way of others
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph(list(edges))
    return alone | {part for found in nx.strongly_connected_components(graph) if len(found) > 1 for part in found}


def memory_intensive(bound: Bound, nodes: Iterable[str]) -> int:
    """How many of the nodes hold rows: blocking and semi-blocking activities."""
    return sum(bound.operators[node].category is not Category.ROW_SYNCHRONIZED for node in nodes)


def _is_written(bound: Bound, node: str) -> bool:
    return bound.role(node) in (Role.TARGET, Role.STAGING)


def _is_line(bound: Bound, node: str, kind: Kind) -> bool:
    """Whether rows can be pipelined through a node: row-synchronized, or the reader of one line."""
    if bound.role(node) is Role.SOURCE:
        return len(bound.outgoing.get(node, ())) == 1
    return kind is Kind.ROW_SYNCHRONIZED


def _reference_marks(bound: Bound) -> dict[str, int]:
    """The most inputs needed whole that a way from a source to each node passes."""
    marks: dict[str, int] = {}
    for node in bound.order:
        before = (marks[link.source] + is_reference(bound, link) for link in bound.incoming.get(node, ()))
        marks[node] = max(before, default=0)
    return marks


def _components(nodes: Sequence[str], pairs: Iterable[tuple[str, str]]) -> list[tuple[str, ...]]:
    """The nodes, joined where two of them are a pair; each component in the order of the nodes."""
    number = {node: index for index, node in enumerate(nodes)}
    neighbours: list[list[int]] = [[] for _ in nodes]
    for one, other in pairs:
        first, second = number[one], number[other]
        neighbours[first].append(second)
        neighbours[second].append(first)
    seen = [False] * len(nodes)
    found = []
    for start in range(len(nodes)):
        if seen[start]:
            continue
        seen[start] = True
        members = [start]
        for at in members:  # grows while it is walked
            for near in neighbours[at]:
                if not seen[near]:
                    seen[near] = True
                    members.append(near)
        members.sort()
        found.append(tuple([nodes[member] for member in members]))
    return found


def _computed_once(bound: Bound, nodes: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A unit with several results computes each from its inputs again; where that is dear or wrong, it is cut."""
    if len(nodes) == 1:
        return [nodes]
    inside = set(nodes)
    results = [node for node in nodes if any(link.target not in inside for link in bound.outgoing.get(node, ()))]
    if len(results) <= 1 or all(_cheap(bound, node) for node in nodes):
        return [nodes]
    only = [links[0] for node in nodes if len(links := bound.outgoing.get(node, [])) == 1]
    return _components(nodes, [(link.source, link.target) for link in only if link.target in inside])


def _cheap(bound: Bound, node: str) -> bool:
    operator = bound.operators[node]
    if isinstance(operator, Source):
        return operator.columnar
    return operator.category is Category.ROW_SYNCHRONIZED and operator.is_repeatable() and not operator.needs_trust


def _in_order(bound: Bound, parts: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The parts, each behind all that feed it; as near to the order of the nodes as that allows."""
    part_of = {node: number for number, part in enumerate(parts) for node in part}
    edges = {(part_of[link.source], part_of[link.target]) for link in bound.links}
    following: list[list[int]] = [[] for _ in parts]
    waiting = [0] * len(parts)
    for source, target in sorted(edges):
        if source != target:
            following[source].append(target)
            waiting[target] += 1
    ready = deque([number for number, count in enumerate(waiting) if count == 0])
    ordered = []
    while ready:
        number = ready.popleft()
        ordered.append(parts[number])
        for target in following[number]:
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    assert len(ordered) == len(parts), "units wait for each other in a circle"
    return ordered


# ---------------------------------------------------------------- subflows of single operators


def _groups(bound: Bound) -> dict[str, str]:
    """The subflow of each node, for units that are single operators.

    Lines are as BreakIntoSubflows has them, with their readers and writers. The boundaries that follow each other
    are the core of the workflow, and one subflow: there the memory-intensive activities stand that `theta` counts.
    A subflow that would wait for itself is cut.
    """
    flow = flow_of(bound)
    kinds = {}
    for node, kind in zip(flow.names, flow.kinds, strict=True):
        if _is_line(bound, node, kind):
            kinds[node] = "line"
        elif bound.role(node) is Role.ACTIVITY:
            kinds[node] = "core"
        else:
            kinds[node] = "writer" if _is_written(bound, node) else "reader"
    marks: dict[str, int] = {}
    for node in bound.order:
        marks[node] = max(
            (marks[link.source] + (not _joined(kinds, link)) for link in bound.incoming.get(node, ())), default=0
        )
    joined = [
        (link.source, link.target)
        for link in bound.links
        if marks[link.source] == marks[link.target] and _joined(kinds, link)
    ]
    return {node: part[0] for part in _components(bound.order, joined) for node in part}


def _joined(kinds: Mapping[str, str], link: Link) -> bool:
    pair = kinds[link.source], kinds[link.target]
    return pair in (("line", "line"), ("core", "core"), ("line", "writer"))
