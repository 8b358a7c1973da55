"""Subflows and their strata: BreakIntoSubflows and DeriveSISSets (scheduling, section 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine.partition.flow import Flow, Kind, levels


@dataclass(frozen=True)
class Subflow:
    """Nodes between which rows can be pipelined. A boundary is a subflow of its own."""

    id: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Subflows:
    """The subflows, the edges between them, and their strata from the sources on."""

    subflows: tuple[Subflow, ...]
    edges: tuple[tuple[str, str], ...]
    strata: tuple[tuple[str, ...], ...]


def with_readers_and_writers(flow: Flow) -> Flow:
    """The flow with a reader on each edge out of a recordset and a writer on each edge into one (section 5.1).

    A reader is named after its recordset and its consumer, a writer after its producer and its recordset.
    """
    kinds: dict[str, Kind] = {}
    added: dict[str, list[str]] = {}
    edges: list[tuple[str, str]] = []
    for source, target in flow.edges:
        if flow.kinds[source] is Kind.RECORDSET:
            between = f"read {source} for {target}"
        elif flow.kinds[target] is Kind.RECORDSET:
            between = f"write {source} to {target}"
        else:
            edges.append((source, target))
            continue
        added.setdefault(source, []).append(between)
        edges += [(source, between), (between, target)]
    for node, kind in flow.kinds.items():
        kinds[node] = kind
        for between in added.get(node, ()):
            kinds[between] = Kind.ROW_SYNCHRONIZED
    return Flow(kinds, tuple(edges))


def is_boundary(flow: Flow, node: str) -> bool:
    """Recordsets, blocking activities, routers, and binary activities whose inputs must be staged first.

    A semi-blocking activity combines several inputs that each are staged (and sorted) before it can begin; one
    that takes its second input as a lookup does is row-synchronized, and no boundary.
    """
    return flow.kinds[node] is not Kind.ROW_SYNCHRONIZED


def break_into_subflows(flow: Flow) -> Subflows:
    """Merge adjacent nodes until only boundaries lie between subflows. Linear in nodes and edges.

    `flow` has its readers and writers already, or the workflow's own nodes only, as the caller wants to see it.
    A flow may leave a subflow through a boundary and come back to it, as when an average is looked up by the rows
    it was taken of. Merging alone would make such a subflow wait for itself, so it is cut where it comes back.
    """
    parts = _merged(flow, dict.fromkeys(flow.kinds, 0))
    between = _edges_between(flow, parts)
    level = levels(range(len(parts)), between)
    if len(level) < len(parts):
        circles = _circles(len(parts), between)
        crossings = _crossings(flow)
        cut = {node: crossings[node] for part in circles for node in parts[part]}
        parts = _merged(flow, {node: cut.get(node, 0) for node in flow.kinds})
        between = _edges_between(flow, parts)
    subflows = [Subflow(f"s{number}", tuple(part)) for number, part in enumerate(parts, start=1)]
    edges = tuple((subflows[source].id, subflows[target].id) for source, target in between)
    return Subflows(tuple(subflows), edges, derive_strata(subflows, edges))


def _merged(flow: Flow, marks: Mapping[str, int]) -> list[list[str]]:
    """Boundaries alone, and the others with the neighbours they can be merged with: those of the same mark."""
    position = {node: index for index, node in enumerate(flow.kinds)}
    seen: set[str] = set()
    parts = []
    for start in flow.kinds:
        if start in seen:
            continue
        seen.add(start)
        members = [start]
        if not is_boundary(flow, start):
            for at in members:  # grows while it is walked
                for other in (*flow.successors[at], *flow.predecessors[at]):
                    if other not in seen and not is_boundary(flow, other) and marks[other] == marks[at]:
                        seen.add(other)
                        members.append(other)
            members.sort(key=position.__getitem__)
        parts.append(members)
    return parts


def _edges_between(flow: Flow, parts: list[list[str]]) -> list[tuple[int, int]]:
    part_of = {node: number for number, part in enumerate(parts) for node in part}
    pairs = ((part_of[source], part_of[target]) for source, target in flow.edges)
    return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _circles(size: int, edges: list[tuple[int, int]]) -> set[int]:
    """The parts that wait for themselves."""
    import networkx as nx

    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(size))
    return {part for found in nx.strongly_connected_components(graph) if len(found) > 1 for part in found}


def _crossings(flow: Flow) -> dict[str, int]:
    """The most boundaries that a way from a source to each node passes."""
    crossed: dict[str, int] = {}
    for node in _topological(flow):
        before = (crossed[other] + is_boundary(flow, other) for other in flow.predecessors[node])
        crossed[node] = max(before, default=0)
    return crossed


def _topological(flow: Flow) -> list[str]:
    level = levels(flow.kinds, flow.edges)
    return sorted(flow.kinds, key=level.__getitem__)


def derive_strata(subflows: list[Subflow], edges: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], ...]:
    """Each subflow one stratum above the highest of its providers; those of a stratum are independent."""
    level = levels([subflow.id for subflow in subflows], edges)
    strata: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for subflow in subflows:
        strata[level[subflow.id]].append(subflow.id)
    return tuple(tuple(stratum) for stratum in strata)
