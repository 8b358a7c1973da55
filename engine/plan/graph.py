"""A workflow as the planner sees it: recordsets, activities, and the places where a sorter can stand.

Physical design, sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from engine.model.binding import Bound, Link
from engine.model.operator import Mode, PassOn, Role, Target
from engine.model.physical import (
    HashBased,
    Implementation,
    Known,
    Order,
    Physical,
    RowByRow,
    SortBased,
    SortedFilter,
    Sorting,
    ordered_by,
)
from engine.model.types import Schema
from engine.partition.fused import fuse
from engine.plan.rows import Rows


@dataclass(frozen=True, eq=False)
class Edge:
    """Rows from one node to another. `number` tells apart what a node takes in, in the order of its ports."""

    source: str
    target: str
    number: int
    rows: int
    sortable: bool = True  # whether a sorter may stand on it
    row_bytes: int = 0  # how wide its rows are; 0: nobody knows


@dataclass(frozen=True)
class Recordset:
    """Rows that are stored: a source, a staging area or a target."""

    id: str
    rows: int
    stored: bool = True  # rows leave in the order they came in; false where others stand among them
    sortable: bool = True  # whether a sorter may stand on it
    copied: bool = False  # a sorter must store its rows once more: it is a source, which nobody writes
    row_bytes: int = 0  # how wide its rows are; 0: nobody knows


@dataclass(frozen=True)
class Activity:
    """What is done to rows, and the ways to do it."""

    id: str
    physical: Physical
    rows_out: int
    cost_us: float | None = None  # what is known of its cost for one row
    held: bool = False  # several read a stored copy of its rows, which come back in no order


@dataclass(frozen=True)
class Graph:
    """The logical graph, its nodes in topological order; edges stand in the order that signatures name them."""

    nodes: Mapping[str, Recordset | Activity]
    edges: tuple[Edge, ...]
    incoming: Mapping[str, tuple[Edge, ...]] = field(init=False, repr=False)
    outgoing: Mapping[str, tuple[Edge, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        into: dict[str, list[Edge]] = {id_: [] for id_ in self.nodes}
        out: dict[str, list[Edge]] = {id_: [] for id_ in self.nodes}
        for edge in self.edges:
            into[edge.target].append(edge)
            out[edge.source].append(edge)
        by_number = {id_: tuple(sorted(edges, key=lambda edge: edge.number)) for id_, edges in into.items()}
        object.__setattr__(self, "incoming", by_number)
        object.__setattr__(self, "outgoing", {id_: tuple(edges) for id_, edges in out.items()})

    def activity(self, id_: str) -> Activity | None:
        """The activity of that name, None where it is a recordset."""
        node = self.nodes[id_]
        return node if isinstance(node, Activity) else None

    def interesting(self, edge: Edge) -> tuple[Order, ...]:
        """The orders that the consumer at the end of an edge can make use of."""
        consumer = self.activity(edge.target)
        if consumer is None or edge.number >= len(consumer.physical.interesting):
            return ()
        return consumer.physical.interesting[edge.number]


@dataclass(frozen=True, eq=False)
class Position:
    """A place where a sorter can stand: on a recordset that is read, or on an edge between two activities."""

    node: str  # the recordset, or the activity the edge leaves
    edge: Edge | None
    rows: int
    orders: tuple[Order, ...]  # the interesting ones of its direct consumers, each once
    copied: bool = False  # the rows are stored for the sorter's sake
    row_bytes: int = 0

    @property
    def owner(self) -> str:
        """The node that the sorter's cost belongs to: the recordset, or the activity it sorts for."""
        return self.node if self.edge is None else self.edge.target

    @property
    def name(self) -> str:
        """As signatures have it."""
        return f"{self.node}!" if self.edge is None else f"{self.edge.source}_{self.edge.target}"


class Offered(IntEnum):
    """Which sorters are considered: fewer only where all of them are too many to search."""

    NONE = 0
    FIRST = 1  # by the order that a consumer names first
    ALL = 2


def positions(graph: Graph, offered: Offered = Offered.ALL) -> list[Position]:
    """Every place for a sorter that has an order of interest, in the order of the graph."""
    if offered is Offered.NONE:
        return []
    many = None if offered is Offered.ALL else 1
    found = []
    for id_, node in graph.nodes.items():
        out = graph.outgoing[id_]
        if isinstance(node, Recordset):
            orders = tuple(dict.fromkeys(order for edge in out for order in graph.interesting(edge)[:many]))
            if orders and node.sortable:
                found.append(Position(id_, None, node.rows, orders, node.copied, node.row_bytes))
        else:
            for edge in out:
                orders = graph.interesting(edge)[:many]
                if orders and edge.sortable:
                    found.append(Position(id_, edge, edge.rows, orders, row_bytes=edge.row_bytes))
    return found


# ---------------------------------------------------------------- from a workflow


def graph_of(bound: Bound, rows: Rows, sortable: Callable[[str], bool] | None = None, on_spark: bool = False) -> Graph:
    """A bound workflow with its cardinalities as a logical graph.

    `sortable(node)` may refuse sorters on a recordset and behind an activity. `on_spark`: what is stored comes back in
    no order, unless a sorter stored it, and rows in an order are divided by its first keys; in the paper what is stored
    comes back as it came, and there is one part.
    """
    allowed = sortable or (lambda node: True)
    spellings: dict[str, str] = {}
    for schema in bound.schemas.values():
        for name in schema or ():
            spellings.setdefault(name.lower(), name)

    def spelling(name: str) -> str:
        return spellings.setdefault(name.lower(), name)

    copied = {node for node, _ in fuse(bound, there=None).holders} if on_spark else set()
    straight: set[str] = set()  # rows as they are read from files, one by one: a filter behind it can leave some unread
    same: dict[str, Mapping[str, str]] = {}
    nodes: dict[str, Recordset | Activity] = {}
    for id_ in bound.order:
        operator = bound.operators[id_]
        if operator.role is not Role.ACTIVITY:
            producers = bound.producers(id_)
            same[id_] = same[producers[0][0]] if len(producers) == 1 else {}
            straight.add(id_)
            nodes[id_] = Recordset(
                id_,
                rows.out(id_),
                stored=_keeps_order(operator) and not on_spark,
                sortable=allowed(id_) and _can_be_sorted(bound, id_),
                copied=operator.role is Role.SOURCE,
                row_bytes=_row_bytes(bound, id_),
            )
            continue
        physical = operator.physical(_known(bound, id_, same, spelling))
        if on_spark:
            from_files = all(source in straight for source, _ in bound.producers(id_))
            physical = _in_parts(physical, from_files)
            if from_files and all(isinstance(way, RowByRow | SortedFilter) for way in physical.implementations):
                straight.add(id_)
        # Rows that are divided and sorted by one key of a join are not known to Spark to be so by the other one.
        same[id_] = {} if on_spark else physical.same
        cost_us = None if physical.named else _cost_us(bound, id_, rows)
        nodes[id_] = Activity(id_, physical, rows.out(id_), cost_us, held=id_ in copied)
    return Graph(nodes, tuple(_edges(bound, rows, allowed)))


def _cost_us(bound: Bound, id_: str, rows: Rows) -> float | None:
    """What a row costs an activity with one way to do it; of one with several, each way has the price of its steps."""
    hints = bound.workflow.nodes[id_].hints
    return rows.cost_us(id_) if hints is None or hints.cost_us is None else hints.cost_us


def _in_parts(physical: Physical, from_files: bool) -> Physical:
    """A template over rows that are divided among tasks; an order that helps nobody there is of no interest.

    `from_files`: rows come straight from files, of which a sorted filter can leave some unread.
    """
    ways = tuple(_by_parts(way, from_files) for way in physical.implementations)
    if not physical.on_spark:
        return replace(physical, implementations=ways, interesting=(), minds=())
    interesting = physical.interesting
    for way in ways:
        if isinstance(way, Sorting) and not way.uses(way.order):
            # Spark sorts however rows come; that groups come whole in one part saves their way there.
            interesting = ((ordered_by(*way.columns),),) if way.groups else ()
    return replace(physical, implementations=ways, interesting=interesting)


def _by_parts(way: Implementation, from_files: bool) -> Implementation:
    if isinstance(way, SortedFilter):
        return replace(way, reads_all=not from_files)
    return replace(way, by_parts=True) if isinstance(way, HashBased | SortBased | Sorting) else way


def _known(bound: Bound, id_: str, same: Mapping[str, Mapping[str, str]], spelling: Callable[[str], str]) -> Known:
    first: dict[str, tuple[str, str]] = {}
    for port in bound.operators[id_].input_ports():
        producers = bound.producers(id_, port.name)
        if producers:
            first[port.name] = producers[0]
    columns: dict[str, Mapping[str, str] | None] = {}
    for port_name, producer in first.items():
        schema = bound.schemas.get(producer)
        columns[port_name] = None if schema is None else {spelling(name): kind for name, kind in schema.items()}
    return Known(
        {port: same[producer[0]] for port, producer in first.items()},
        columns,
        frozenset(link.source_port for link in bound.outgoing.get(id_, ())),
        spelling,
    )


def input_numbers(bound: Bound) -> dict[Link, int]:
    """The number of every link at its consumer, by the consumer's ports."""
    numbers = {}
    for id_ in bound.order:
        ports = [port.name for port in bound.operators[id_].input_ports()]
        incoming = sorted(bound.incoming.get(id_, ()), key=lambda link: ports.index(link.target_port))
        numbers.update({link: number for number, link in enumerate(incoming)})
    return numbers


def _edges(bound: Bound, rows: Rows, allowed: Callable[[str], bool]) -> list[Edge]:
    """Links as the file has them."""
    numbers = input_numbers(bound)
    return [
        Edge(
            link.source,
            link.target,
            numbers[link],
            rows.of_port(link.source, link.source_port),
            sortable=allowed(link.source),
            row_bytes=row_bytes(bound.schemas.get((link.source, link.source_port))),
        )
        for link in bound.links
    ]


def _can_be_sorted(bound: Bound, id_: str) -> bool:
    """Whether a recordset's rows can be kept in an order: read by one port, and in files that keep it."""
    operator = bound.operators[id_]
    if isinstance(operator, Target):
        return operator.keeps_layout
    return len({link.source_port for link in bound.outgoing.get(id_, ())}) <= 1


def _row_bytes(bound: Bound, id_: str) -> int:
    """How wide the rows of a recordset are: those that are read, else those that are written."""
    read = [(id_, link.source_port) for link in bound.outgoing.get(id_, ())]
    return row_bytes(next((bound.schemas.get(port) for port in (*read, *bound.producers(id_))), None))


_BYTES = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 4, "date": 4}
_TEXT_BYTES = 24  # of a text or anything else whose size the type does not tell
_NUMBERS = ("bigint", "double", "timestamp", "timestamp_ntz")


def row_bytes(schema: Schema | None) -> int:
    """About how many bytes a row takes; 0 where its columns are not known."""
    return sum(_BYTES.get(kind) or (8 if kind in _NUMBERS else _wide(kind)) for kind in (schema or {}).values())


def _wide(kind: str) -> int:
    if kind.startswith("decimal("):
        return 8 if int(kind[8:].split(",")[0].rstrip(")")) <= 18 else 16
    return _TEXT_BYTES


def _keeps_order(operator: object) -> bool:
    """A table that is added to is not in the order of the rows that came last."""
    if not isinstance(operator, Target):
        return True
    return operator.mode is Mode.OVERWRITE or operator.pass_on is PassOn.DELIVERED
