"""A plan put to work: the settings that ask for its implementations, and the layouts that its sorters make.

What runs a workflow takes both: settings go over the file's, a layout says in which order a recordset is kept, or rows
are handed from one activity to the next, and by how many columns of it they are divided among tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model.physical import (
    BroadcastJoin,
    HashBased,
    HashJoin,
    Implementation,
    Key,
    MergeJoin,
    Order,
    RowByRow,
    SortBased,
    SortedFilter,
    Sorting,
    SortMergeJoin,
    Step,
    ascending,
    covers,
    divided_by,
    in_step,
    ordered_by,
)
from engine.plan.graph import Edge, Graph, Recordset
from engine.plan.space import Line, Plan

Input = tuple[str, str, int]  # rows from a node to another, and the number of the input there


@dataclass(frozen=True)
class Layout:
    """Rows in an ascending order, those with the same first `by` keys together in one part.

    With 0 they stay in the part that they are in where they are handed on; stored ones are divided into ranges of the
    first key. No consumer on Spark minds the direction, and Spark itself knows the ascending one only.
    """

    order: Order
    by: int

    def as_data(self) -> list[Any]:
        """The layout as plain data."""
        return [[list(key) for key in self.order], self.by]

    @classmethod
    def from_data(cls, data: list[Any]) -> Layout:
        """The layout that `as_data` wrote down."""
        return cls(tuple(Key(column, descending) for column, descending in data[0]), data[1])


@dataclass(frozen=True)
class Applied:
    """What a plan changes about a run."""

    settings: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # by node and setting, as `bind` takes them
    staged: Mapping[str, Layout] = field(default_factory=dict)  # recordsets, with how their rows are kept
    passed: Mapping[Input, Layout] = field(default_factory=dict)  # inputs whose rows are sorted on their way
    mixed: frozenset[Input] = frozenset()  # inputs whose order is not to be used: groups are hashed all the same
    rows: int = 0  # the most that any sorter has to sort

    @property
    def has_sorters(self) -> bool:
        """Whether rows are kept or handed on in an order."""
        return bool(self.staged or self.passed)

    def as_data(self) -> dict[str, Any]:
        """What a plan changes, as plain data: a run that goes on after a kill goes on with the same."""
        return {
            "settings": [[node, setting, value] for (node, setting), value in self.settings.items()],
            "staged": {node: layout.as_data() for node, layout in self.staged.items()},
            "passed": [[*key, layout.as_data()] for key, layout in self.passed.items()],
            "mixed": [list(key) for key in sorted(self.mixed)],
            "rows": self.rows,
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Applied:
        """What `as_data` wrote down."""
        return cls(
            {(node, setting): value for node, setting, value in data["settings"]},
            {node: Layout.from_data(layout) for node, layout in data["staged"].items()},
            {(source, target, number): Layout.from_data(layout) for source, target, number, layout in data["passed"]},
            frozenset((source, target, number) for source, target, number in data["mixed"]),
            data["rows"],
        )


def applied(graph: Graph, plan: Plan, asked: Iterable[str] | None = None) -> Applied:
    """What a plan asks of a run. A setting that the person chose is never overruled: it left nothing to choose.

    `asked`: only these activities are asked for their implementation, the others are left to Spark; None: all of them.
    """
    return _Applying(graph, plan, None if asked is None else set(asked)).result()


class _Applying:
    """Finds out whose order is really used, and by how many of its keys."""

    def __init__(self, graph: Graph, plan: Plan, asked: set[str] | None) -> None:
        self.graph = graph
        self.plan = plan
        self.asked = asked
        self.lines = {line.node: line for line in plan.lines if not line.is_sorter}
        self.sorters = {
            (position.node if position.edge is None else position.edge): order
            for position, order in plan.sorters.items()
        }
        self._used: dict[str, frozenset[int]] = {}

    def result(self) -> Applied:
        settings: dict[tuple[str, str], Any] = {}
        staged: dict[str, Layout] = {}
        passed: dict[Input, Layout] = {}
        mixed: set[Input] = set()
        rows = [0]
        for id_, node in self.graph.nodes.items():
            if isinstance(node, Recordset):
                order = self.kept_order(node)
                used = self.used_behind(id_)
                if order and (used or id_ in self.sorters):
                    # Ranges are best for a filter to skip; finding them reads the rows once more, as a source can be.
                    by_ranges = used == {0} and node.copied
                    staged[id_] = Layout(ascending(order), 0) if by_ranges else _layout(order, used)
                    rows.append(node.rows)
                continue
            for edge in self.graph.incoming[id_]:
                if edge in self.sorters:
                    passed[_key(edge)] = _layout(self.sorters[edge], self.used_at(edge))
                    rows.append(edge.rows)
            if self.asked is not None and id_ not in self.asked:
                continue
            line, way = self.lines[id_], self.way(id_)
            for setting, value in node.physical.asks.get(way.name, {}).items():
                settings[id_, setting] = value
            can_hash = any(isinstance(one, HashBased) for one in node.physical.implementations)
            if can_hash and isinstance(way, SortBased):
                # What sorts by itself in the paper is sorted on its way in: Spark would hash the groups.
                (edge,) = self.graph.incoming[id_]
                steps = [step for step, _ in line.steps]
                if Step.SORT in steps:
                    passed[_key(edge)] = Layout(ordered_by(*way.columns), len(way.columns))
                    rows.append(edge.rows)
                elif Step.REORDER in steps:
                    passed[_key(edge)] = Layout(ascending(way.reordered(line.takes[0])), 0)
            if isinstance(way, HashBased) and covers(line.takes[0], way.columns):
                mixed.update(map(_key, self.graph.incoming[id_]))
        return Applied(settings, staged, passed, frozenset(mixed), max(rows))

    def way(self, id_: str) -> Implementation:
        activity = self.graph.activity(id_)
        assert activity is not None
        name = self.plan.implementations[id_]
        return next(way for way in activity.physical.implementations if way.name == name)

    def kept_order(self, node: Recordset) -> Order:
        """The order in which a recordset's rows stand in this plan."""
        if node.id in self.sorters:
            return self.sorters[node.id]
        incoming = self.graph.incoming[node.id]
        if len(incoming) != 1 or not (node.stored and node.sortable):
            return ()
        before = self.graph.nodes[incoming[0].source]
        return self.kept_order(before) if isinstance(before, Recordset) else self.lines[before.id].leaves

    # -- how many keys of an order are used; 0: the order is, but not that equal keys stand in one part

    def used_behind(self, id_: str) -> frozenset[int]:
        """By all that read a node."""
        if id_ not in self._used:
            found = (self.used_at(edge) for edge in self.graph.outgoing[id_] if edge not in self.sorters)
            self._used[id_] = frozenset().union(*found)
        return self._used[id_]

    def used_at(self, edge: Edge) -> frozenset[int]:
        """By the consumer at the end of an edge, and by those behind it that see the same order."""
        if isinstance(self.graph.nodes[edge.target], Recordset):
            return frozenset()  # it is divided and sorted where it is stored
        line, way = self.lines[edge.target], self.way(edge.target)
        order = line.takes[edge.number] if edge.number < len(line.takes) else ()
        if not order:
            return frozenset()
        own = _own_use(way, line)
        passes = isinstance(way, RowByRow | SortedFilter | BroadcastJoin | HashJoin | SortBased)
        passes = passes or (isinstance(way, Sorting) and way.uses(order))
        if own is None and not (passes and edge.number == 0 and line.leaves):
            return frozenset()
        behind = self.used_behind(edge.target) if passes and edge.number == 0 and line.leaves else frozenset()
        return behind if own is None else behind | {own}


def _own_use(way: Implementation, line: Line) -> int | None:
    """How many keys of its inputs' order an implementation uses; None where it uses none."""
    if isinstance(way, SortBased) and covers(line.takes[0], way.columns):
        return len(way.columns)
    if isinstance(way, MergeJoin | SortMergeJoin):
        return len(way.left) if in_step(line.takes[0], line.takes[1], way.left, way.right) else None
    if isinstance(way, HashBased | SortBased) and way.by_parts:
        return divided_by(line.takes[0], way.columns) or None
    if isinstance(way, Sorting) and way.by_parts:
        return way.groups if way.uses(line.takes[0]) else None
    return 0 if isinstance(way, SortedFilter) else None


def _layout(order: Order, used: frozenset[int]) -> Layout:
    """Rows are divided by as many keys as all who use the order can do with."""
    divided = [count for count in used if count]
    return Layout(ascending(order), min(divided, default=1))


def _key(edge: Edge) -> Input:
    return edge.source, edge.target, edge.number
