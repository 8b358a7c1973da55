"""Units of scheduling at each granularity, and the subflows that the mixed policy runs side by side.

`operator` makes every node a unit, `subflow` the lines between boundaries (BreakIntoSubflows), `tree` the execution
trees; `fused` has units of its own (see `fused`). Where rows are written is always a unit of its own, the writer. A
unit that would wait for its own rows, because an activity in it looks up what was made of them, is cut there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from engine.model.binding import Bound
from engine.model.operator import Category, Role, Source
from engine.partition.flow import Flow, Kind, components, crossing, flow_of, numbered_levels
from engine.partition.granularity import Granularity
from engine.partition.trees import grown


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that are one unit, in topological order, and the subflow they belong to."""

    id: str
    nodes: tuple[str, ...]
    group: str


def divide(bound: Bound, granularity: Granularity) -> list[Part]:
    """The units of a workflow in topological order. Linear in nodes and edges."""
    if granularity is Granularity.OPERATOR:
        return [Part(node, (node,), group) for node, group in zip(bound.order, _groups(bound), strict=True)]
    flow = flow_of(bound)
    if granularity is Granularity.TREE:
        _, key = grown(flow)
    else:
        key = [-1 if line else node for node, line in enumerate(_lines(bound, flow))]
    marks = [0] * len(flow.names)
    parts = _joined_parts(bound, flow, key, marks)
    while circles := _circles(flow, parts):  # cutting one unit may join others again, so it is looked at once more
        passed = _wholes_passed(flow)
        again = [node for part in circles for node in parts[part]]
        if all(marks[node] == passed[node] for node in again):
            again = list(range(len(marks)))
        for node in again:
            marks[node] = passed[node]
        parts = _joined_parts(bound, flow, key, marks)
    named = [flow.named(part) for part in _in_order(flow, parts)]
    return [Part(nodes[0], nodes, nodes[0]) for nodes in named]


def _joined_parts(bound: Bound, flow: Flow, key: list[int], marks: list[int]) -> list[list[int]]:
    """Nodes of one key and one mark, joined along the edges by which rows can be pipelined."""
    roles = [bound.operators[name].role for name in flow.names]
    written = [role is Role.TARGET or role is Role.STAGING for role in roles]
    together = [
        (source, target)
        for source, target in flow.edges
        if key[source] == key[target]
        and marks[source] == marks[target]
        and not (written[source] or written[target])
        and not (flow.references and (source, target) in flow.references)
    ]
    parts = components(range(len(flow.names)), together)
    return [inner for part in parts for inner in _computed_once(bound, flow, part)]


def _part_of(flow: Flow, parts: list[list[int]]) -> list[int]:
    part_of = [0] * len(flow.names)
    for number, part in enumerate(parts):
        for node in part:
            part_of[node] = number
    return part_of


def _circles(flow: Flow, parts: list[list[int]]) -> set[int]:
    """The parts that wait for themselves: rows leave them and come back as something that is needed whole."""
    part_of = _part_of(flow, parts)
    edges = crossing(part_of, flow.edges)
    alone = {part_of[source] for source, target in flow.whole if part_of[source] == part_of[target]}
    if None not in numbered_levels(len(parts), edges):
        return alone  # there is an order: nobody waits for itself by way of others
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph(edges)
    return alone | {part for found in nx.strongly_connected_components(graph) if len(found) > 1 for part in found}


def memory_intensive(bound: Bound, nodes: Iterable[str]) -> int:
    """How many of the nodes hold rows: blocking and semi-blocking activities."""
    return sum(bound.operators[node].category is not Category.ROW_SYNCHRONIZED for node in nodes)


def _lines(bound: Bound, flow: Flow) -> list[bool]:
    """Whether rows can be pipelined through each node: row-synchronized, or the reader of one line."""
    lines = [kind is Kind.ROW_SYNCHRONIZED for kind in flow.kinds]
    fed = [False] * len(lines)
    for _, target in flow.edges:
        fed[target] = True
    for name, node, behind_others in zip(flow.names, range(len(lines)), fed, strict=True):
        if not behind_others and bound.role(name) is Role.SOURCE:
            lines[node] = len(bound.outgoing.get(name, ())) == 1
    return lines


def _wholes_passed(flow: Flow) -> list[int]:
    """The most inputs needed whole that a way from a source to each node passes."""
    passed = [0] * len(flow.names)
    for node, feeding in enumerate(flow.predecessors):
        passed[node] = max((passed[other] + ((other, node) in flow.whole) for other in feeding), default=0)
    return passed


def _computed_once(bound: Bound, flow: Flow, nodes: list[int]) -> list[list[int]]:
    """A unit with several results computes each from its inputs again; where that is dear or wrong, it is cut."""
    if len(nodes) == 1:
        return [nodes]
    inside = set(nodes)
    results = [node for node in nodes if not inside.issuperset(flow.successors[node])]
    if len(results) <= 1 or all(_cheap(bound, flow.names[node]) for node in nodes):
        return [nodes]
    once = [node for node in nodes if len(bound.outgoing.get(flow.names[node], ())) == 1]
    only = [(node, flow.successors[node][0]) for node in once]
    return components(nodes, [edge for edge in only if edge[1] in inside])


def _cheap(bound: Bound, node: str) -> bool:
    operator = bound.operators[node]
    if isinstance(operator, Source):
        return operator.columnar
    return operator.category is Category.ROW_SYNCHRONIZED and operator.is_repeatable() and not operator.needs_trust


def _in_order(flow: Flow, parts: list[list[int]]) -> list[list[int]]:
    """The parts, each behind all that feed it; as near to the order of the nodes as that allows."""
    part_of = _part_of(flow, parts)
    following: list[list[int]] = [[] for _ in parts]
    waiting = [0] * len(parts)
    for source, target in sorted(crossing(part_of, flow.edges)):
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


def _groups(bound: Bound) -> list[str]:
    """The subflow of each node in topological order, for units that are single operators.

    Lines are as BreakIntoSubflows has them, with their readers and writers. The boundaries that follow each other
    are the core of the workflow, and one subflow: there the memory-intensive activities stand that `theta` counts.
    A subflow that would wait for itself is cut.
    """
    flow = flow_of(bound)
    names = flow.names
    places = [_place_of(bound.role(name), line) for name, line in zip(names, _lines(bound, flow), strict=True)]
    marks = [0] * len(names)  # the most edges between subflows that a way from a source to each node passes
    for node, behind in enumerate(flow.successors):
        joined, mark = _JOINED[places[node]], marks[node]
        for target in behind:
            passed = mark if places[target] in joined else mark + 1
            if marks[target] < passed:
                marks[target] = passed
    together = [
        edge for edge in flow.edges if marks[edge[0]] == marks[edge[1]] and places[edge[1]] in _JOINED[places[edge[0]]]
    ]
    group_of = [""] * len(names)
    for part in components(range(len(names)), together):
        group = names[part[0]]
        for node in part:
            group_of[node] = group
    return group_of


_JOINED = {"line": ("line", "writer"), "core": ("core",), "reader": (), "writer": ()}  # who follows in one subflow


def _place_of(role: Role, line: bool) -> str:
    if line:
        return "line"
    if role is Role.ACTIVITY:
        return "core"
    return "reader" if role is Role.SOURCE else "writer"
