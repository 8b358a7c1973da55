"""How many rows each node took and gave, from the few counts that a fused run knows for certain."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.binding import Bound

PortRows = dict[tuple[str, str], int]


@dataclass(frozen=True)
class NodeRows:
    """A node's rows; `count` is `exact` where both numbers were counted, `fused` where Spark melted it away."""

    rows_in: int | None
    rows_out: int | None
    count: str


def spread(bound: Bound, known: PortRows, inputs: dict[str, int]) -> dict[str, NodeRows]:
    """Carry exact counts along the graph as far as they determine others.

    `known` holds the rows that left by a port, `inputs` the rows a node took. A node that keeps its rows gives
    as many as it takes; nothing else is assumed.
    """
    rows = dict(known)
    taken = dict(inputs)
    for _ in range(2):  # once forwards and once backwards reaches everything that a line can carry
        for node in bound.order:
            _carry(bound, node, rows, taken)
        for node in reversed(bound.order):
            _carry(bound, node, rows, taken)
    return {node: _summary(bound, node, rows, taken) for node in bound.order}


def _carry(bound: Bound, node: str, rows: PortRows, taken: dict[str, int]) -> None:
    producers = bound.producers(node)
    if node not in taken and producers and all(producer in rows for producer in producers):
        taken[node] = sum(rows[producer] for producer in producers)
    elif node in taken and len(producers) == 1:
        rows.setdefault(producers[0], taken[node])
    operator = bound.operators[node]
    ports = operator.output_ports()
    if operator.keeps_rows and len(producers) == 1 and len(ports) == 1:
        if node in taken:
            rows.setdefault((node, ports[0].name), taken[node])
        elif (node, ports[0].name) in rows:
            taken[node] = rows[node, ports[0].name]


def _summary(bound: Bound, node: str, rows: PortRows, taken: dict[str, int]) -> NodeRows:
    has_inputs = bool(bound.incoming.get(node))
    ports = {link.source_port for link in bound.outgoing.get(node, ())}
    rows_in = taken.get(node) if has_inputs else 0
    if ports and all((node, port) in rows for port in ports):
        rows_out: int | None = sum(rows[node, port] for port in ports)
    elif ports:
        rows_out = None
    else:
        rows_out = rows.get((node, bound.operators[node].output_ports()[0].name))
    exact = rows_in is not None and rows_out is not None
    return NodeRows(rows_in, rows_out, "exact" if exact else "fused")
