"""Subflows and their strata: BreakIntoSubflows and DeriveSISSets (scheduling, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

from engine.partition.flow import Edge, Flow, Kind, components, crossing, numbered_levels


@dataclass(frozen=True, slots=True)
class Subflow:
    """Nodes between which rows can be pipelined. A boundary is a subflow of its own."""

    id: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subflows:
    """The subflows, the edges between them, and their strata from the sources on."""

    subflows: tuple[Subflow, ...]
    edges: tuple[tuple[str, str], ...]
    strata: tuple[tuple[str, ...], ...]


def with_readers_and_writers(flow: Flow) -> Flow:
    """The flow with a reader on each edge out of a recordset and a writer on each edge into one (section 5.1).

    A reader is named after its recordset and its consumer, a writer after its producer and its recordset. Both stand
    behind the node that the edge leaves.
    """
    recordset = [kind is Kind.RECORDSET for kind in flow.kinds]
    names: list[str] = []
    kinds: list[Kind] = []
    now: list[int] = []  # the number that each node has now
    for node, name in enumerate(flow.names):
        now.append(len(names))
        names.append(name)
        kinds.append(flow.kinds[node])
        for target in flow.successors[node]:
            if recordset[node] or recordset[target]:
                other = flow.names[target]
                names.append(f"read {name} for {other}" if recordset[node] else f"write {name} to {other}")
                kinds.append(Kind.ROW_SYNCHRONIZED)
    edges: list[Edge] = []
    for node, source in enumerate(now):
        between = source
        for target in flow.successors[node]:
            if recordset[node] or recordset[target]:
                between += 1
                edges += ((source, between), (between, now[target]))
            else:
                edges.append((source, now[target]))
    return Flow(tuple(names), tuple(kinds), tuple(edges))


def is_boundary(kind: Kind) -> bool:
    """Recordsets, blocking activities, routers, and binary activities whose inputs must be staged first.

    A semi-blocking activity combines several inputs that each are staged (and sorted) before it can begin; one
    that takes its second input as a lookup does is row-synchronized, and no boundary.
    """
    return kind is not Kind.ROW_SYNCHRONIZED


def break_into_subflows(flow: Flow) -> Subflows:
    """Merge adjacent nodes until only boundaries lie between subflows. Linear in nodes and edges.

    `flow` has its readers and writers already, or the workflow's own nodes only, as the caller wants to see it.
    A flow may leave a subflow through a boundary and come back to it, as when an average is looked up by the rows
    it was taken of. Merging alone would make such a subflow wait for itself, so it is cut where it comes back.
    """
    marks = [0] * len(flow.names)
    parts, edges = _merged(flow, marks)
    level = numbered_levels(len(parts), edges)
    if None in level:
        crossings = _crossings(flow)
        for part in _circles(len(parts), edges):
            for node in parts[part]:
                marks[node] = crossings[node]
        parts, edges = _merged(flow, marks)
        level = numbered_levels(len(parts), edges)
    subflows = tuple([Subflow(f"s{number}", flow.named(part)) for number, part in enumerate(parts, start=1)])
    between = tuple([(subflows[source].id, subflows[target].id) for source, target in edges])
    return Subflows(subflows, between, _strata(subflows, level))


def _merged(flow: Flow, marks: list[int]) -> tuple[list[list[int]], list[Edge]]:
    """Boundaries alone, the others with the neighbours of the same mark; and the edges between these parts."""
    inner = [not is_boundary(kind) for kind in flow.kinds]
    adjacent = [
        (source, target)
        for source, target in flow.edges
        if inner[source] and inner[target] and marks[source] == marks[target]
    ]
    parts = components(range(len(flow.names)), adjacent)
    part_of = [0] * len(flow.names)
    for number, members in enumerate(parts):
        for node in members:
            part_of[node] = number
    return parts, crossing(part_of, flow.edges)


def _circles(size: int, edges: list[Edge]) -> set[int]:
    """The parts that wait for themselves."""
    import networkx as nx

    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(size))
    return {part for found in nx.strongly_connected_components(graph) if len(found) > 1 for part in found}


def _crossings(flow: Flow) -> list[int]:
    """The most boundaries that a way from a source to each node passes."""
    crossed = [0] * len(flow.names)
    for node, feeding in enumerate(flow.predecessors):
        crossed[node] = max((crossed[other] + is_boundary(flow.kinds[other]) for other in feeding), default=0)
    return crossed


def _strata(subflows: tuple[Subflow, ...], level_of: list[int | None]) -> tuple[tuple[str, ...], ...]:
    """DeriveSISSets: each subflow one above the highest of its providers; those of a stratum are independent."""
    strata: dict[int, list[str]] = {}
    for subflow, level in zip(subflows, level_of, strict=True):
        assert level is not None, "a subflow waits for itself"
        strata.setdefault(level, []).append(subflow.id)
    return tuple([tuple(strata[level]) for level in sorted(strata)])
