"""From a workflow's parts to the units and queues that are scheduled."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.model.binding import Bound, Link
from engine.model.operator import Category, Mode, PassOn, Role, Target
from engine.partition.flow import is_reference
from engine.partition.granularity import Granularity
from engine.partition.units import Part, divide, memory_intensive
from engine.schedule.graph import QueueSpec, UnitSpec, Work

Port = tuple[str, str]  # node, port


@dataclass
class PackUnits:
    """The units of a workflow whose rows travel in packs, and who reads what from whom."""

    parts: dict[str, Part] = field(default_factory=dict)
    units: tuple[UnitSpec, ...] = ()
    queues: tuple[QueueSpec, ...] = ()
    links: dict[str, Link] = field(default_factory=dict)  # queue → the link whose end it feeds
    sources: dict[str, Port] = field(default_factory=dict)  # queue → the node and port whose packs it holds
    ports: dict[str, dict[Port, list[str]]] = field(default_factory=dict)  # unit → its outputs and their queues


def passes_on(bound: Bound, node: str) -> bool:
    """Whether those behind a recordset read the very rows that enter it, so that they need not wait for it."""
    operator = bound.operators[node]
    if operator.role is Role.ACTIVITY or operator.role is Role.SOURCE:
        return False
    if operator.role is Role.STAGING:
        return True
    if not isinstance(operator, Target) or not operator.lossless:
        return False
    return operator.mode is Mode.OVERWRITE or operator.pass_on is PassOn.DELIVERED


def packs_of(bound: Bound, link: Link) -> Port:
    """The node and port whose packs travel over a link: behind a recordset that passes them on, its producer's."""
    node, port = link.source, link.source_port
    while passes_on(bound, node):
        node, port = bound.producers(node)[0]
    return node, port


def pack_units(
    bound: Bound, granularity: Granularity, queue_packs: int | None, queue_bytes: int | None = None
) -> PackUnits:
    """Units and bounded queues at a granularity whose rows travel in packs. Linear in nodes and edges."""
    made = PackUnits()
    part_of: dict[str, Part] = {}
    for part in divide(bound, granularity):
        if bound.role(part.nodes[0]) is Role.STAGING:
            continue  # nothing is done there: its packs are read where they come from
        made.parts[part.id] = part
        part_of.update(dict.fromkeys(part.nodes, part))
    links = [(link, packs_of(bound, link), is_reference(bound, link)) for link in bound.links if link.target in part_of]
    made.parts = _references_first(links, made.parts, part_of)
    work = {id_: _work(bound, part) for id_, part in made.parts.items()}
    made.units = tuple(
        UnitSpec(
            part.id,
            number,
            work[part.id],
            part.nodes,
            memory_intensive(bound, part.nodes),
            part.group,
            any(bound.operators[node].adds_rows for node in part.nodes),
        )
        for number, part in enumerate(made.parts.values())
    )
    made.ports = {id_: {} for id_ in made.parts}
    queues = []
    for link, (node, port), reference in links:
        producer, consumer = part_of[node], part_of[link.target]
        if producer is consumer and (node, port) == (link.source, link.source_port):
            continue
        id_ = f"{link.source}.{link.source_port} > {link.target}.{link.target_port}"
        whole = work[consumer.id] is not Work.BLOCK and reference
        queues.append(QueueSpec(id_, producer.id, consumer.id, queue_packs, queue_bytes, whole))
        made.links[id_] = link
        made.sources[id_] = node, port
        made.ports[producer.id].setdefault((node, port), []).append(id_)
    made.queues = tuple(queues)
    return made


def _references_first(
    links: list[tuple[Link, Port, bool]], parts: dict[str, Part], part_of: dict[str, Part]
) -> dict[str, Part]:
    """The units in a topological order in which what is needed whole comes before the rows that wait for it.

    Where no queue holds anything, a policy takes the first of the sources: main rows that were read before their
    reference would only lie in the queues.
    """
    reads: dict[str, list[str]] = {id_: [] for id_ in parts}
    read = set()
    whole = [one for one in links if one[2]]
    for link, (node, _), _ in [*whole, *[one for one in links if not one[2]]]:
        producer, consumer = part_of[node].id, part_of[link.target].id
        if producer != consumer:
            reads[consumer].append(producer)
            read.add(producer)
    ordered: dict[str, Part] = {}
    for last in parts:
        if last in read:
            continue
        path = [(last, iter(reads[last]))]
        while path:
            id_, producers = path[-1]
            before = next(producers, None)
            if before is None:
                ordered[id_] = parts[id_]
                path.pop()
            elif before not in ordered:
                path.append((before, iter(reads[before])))
    return ordered


def _work(bound: Bound, part: Part) -> Work:
    for node in part.nodes:
        operator = bound.operators[node]
        if operator.category is not Category.ROW_SYNCHRONIZED or operator.role is Role.TARGET:
            return Work.BLOCK
    return Work.SOURCE if bound.role(part.nodes[0]) is Role.SOURCE else Work.STREAM
