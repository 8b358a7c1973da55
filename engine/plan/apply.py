"""A plan put to work: the settings that ask for its implementations, and the layouts that its sorters make.

What runs a workflow takes both: settings go over the file's, a layout says in which order a recordset is kept, or rows
are handed from one activity to the next, and by how many columns of it they are divided among tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model.physical import (
    HashBased,
    Implementation,
    Key,
    MergeJoin,
    Order,
    SortBased,
    SortedFilter,
    Sorting,
    SortMergeJoin,
    Step,
    ascending,
    covers,
    divided_by,
    in_common,
    in_step,
    ordered_by,
)
from engine.plan.graph import Activity, Edge, Graph, Recordset
from engine.plan.space import Line, Plan

MANY = 0.7  # of its rows, an aggregate with so many groups makes hardly fewer of them before they are divided
FEW_GROUPS = 1_000  # rows divided by fewer values than that leave tasks idle

Input = tuple[str, str, int]  # rows from a node to another, and the number of the input there
Place = str | Edge  # where rows are divided: a recordset, an activity that sorts, or the edge that a sorter stands on


@dataclass(frozen=True)
class Layout:
    """Rows in an ascending order, those with the same first `by` keys together in one part.

    With 0 they stay in the part that they are in where they are handed on; stored ones are divided into ranges of the
    first key. No consumer on Spark minds the direction, and Spark itself knows the ascending one only.
    """

    order: Order
    by: int
    sorts: bool = True  # false: rows are divided only, for Spark sorts them itself

    def as_data(self) -> list[Any]:
        """The layout as plain data."""
        return [[list(key) for key in self.order], self.by, self.sorts]

    @classmethod
    def from_data(cls, data: list[Any]) -> Layout:
        """The layout that `as_data` wrote down."""
        keys, by, sorts = data
        return cls(tuple(Key(column, descending) for column, descending in keys), by, sorts)


@dataclass(frozen=True)
class Applied:
    """What a plan changes about a run."""

    settings: Mapping[tuple[str, str], Any] = field(default_factory=dict)  # by node and setting, as `bind` takes them
    staged: Mapping[str, Layout] = field(default_factory=dict)  # recordsets, with how their rows are kept
    passed: Mapping[Input, Layout] = field(default_factory=dict)  # inputs whose rows are sorted on their way
    mixed: frozenset[Input] = frozenset()  # inputs whose order is not to be used: groups are hashed all the same
    # inputs whose rows are divided by fewer columns than they are grouped by: a coarser view behind groups by these
    divided: Mapping[Input, tuple[str, ...]] = field(default_factory=dict)
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
            "divided": [[*key, list(columns)] for key, columns in self.divided.items()],
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
            {(source, target, number): tuple(columns) for source, target, number, columns in data["divided"]},
            data["rows"],
        )


def applied(
    graph: Graph, plan: Plan, asked: Iterable[str] | None = None, certain: Collection[str] | None = None
) -> Applied:
    """What a plan asks of a run. A setting that the person chose is never overruled: it left nothing to choose.

    `asked`: only these activities are asked for their implementation, the others are left to Spark; None: all of them.
    `certain`: of these it is known how many rows leave them; None: of all.
    """
    return _Applying(graph, plan, None if asked is None else set(asked), certain).result()


class _Applying:
    """Finds out whose order is really used, and by how many of its keys.

    Rows are divided in places: where a sorter stands, and where an activity sorts them itself. Each is divided by the
    fewest keys that anybody behind it makes use of, and places whose rows meet in step are divided alike.
    """

    def __init__(self, graph: Graph, plan: Plan, asked: set[str] | None, certain: Collection[str] | None) -> None:
        self.graph = graph
        self.plan = plan
        self.asked = asked
        self.certain = graph.nodes if certain is None else certain
        self.lines = {line.node: line for line in plan.lines if not line.is_sorter}
        self.sorters = {
            (position.node if position.edge is None else position.edge): order
            for position, order in plan.sorters.items()
        }
        self._alike: dict[Place, Place] = {}  # a place to another one that is divided alike
        self._met: set[Place] = set()  # places whose rows meet others in step
        self._uses: dict[Place, set[int]] = {}  # numbers of keys; 0: the order is used, but not how rows are divided
        self._behind: dict[str, Place | None] = {}  # where the rows that leave a node were divided
        for id_ in graph.nodes:
            self._behind[id_] = self._walk(id_)

    def result(self) -> Applied:
        settings: dict[tuple[str, str], Any] = {}
        staged: dict[str, Layout] = {}
        passed: dict[Input, Layout] = {}
        mixed: set[Input] = set()
        divided: dict[Input, tuple[str, ...]] = {}
        rows = [0]
        for id_, node in self.graph.nodes.items():
            if isinstance(node, Recordset):
                order = self.kept_order(node)
                used = self.used(id_)
                if order and (used or id_ in self.sorters):
                    # Ranges are best for a filter to skip; finding them reads the rows once more, as a source can be.
                    by_ranges = used == {0} and node.copied
                    staged[id_] = Layout(ascending(order), 0) if by_ranges else _layout(order, used)
                    rows.append(node.rows)
                continue
            for edge in self.graph.incoming[id_]:
                if edge in self.sorters:
                    passed[_key(edge)] = _layout(self.sorters[edge], self.used(edge))
                    rows.append(edge.rows)
            if self.asked is not None and id_ not in self.asked:
                continue
            line, way = self.lines[id_], self.way(id_)
            for setting, value in node.physical.asks.get(way.name, {}).items():
                settings[id_, setting] = value
            if isinstance(way, MergeJoin | SortMergeJoin):
                settings.update(self.arranged(node, way))
                for edge, alike in self.brought_in_step(node, way):
                    passed[_key(edge)] = alike
                    rows.append(edge.rows)
            if isinstance(way, SortBased | Sorting):
                (edge,) = self.graph.incoming[id_]
                layout = self.sorted_here(node, edge)
                if layout is not None:
                    passed[_key(edge)] = layout
                    rows.append(edge.rows if layout.by else 0)
            if isinstance(way, HashBased) and way.mixes(line.takes[0]):
                mixed.update(map(_key, self.graph.incoming[id_]))
            if isinstance(way, HashBased) and (columns := self.divided_here(node, way)):
                divided[_key(self.graph.incoming[id_][0])] = columns
        return Applied(settings, staged, passed, frozenset(mixed), divided, max(rows))

    def divided_here(self, node: Activity, way: HashBased) -> tuple[str, ...]:
        """The columns by which a view's rows are divided for the sake of a coarser view of it; empty where it has none.

        Spark groups twice: before rows are divided by their groups, so that fewer travel, and after. With about as many
        groups as rows the first saves nothing. Divided by the columns of the coarser view, the rows of its groups
        stand together where it reads them, and then its own first grouping leaves few.
        """
        (edge,) = self.graph.incoming[node.id]
        if self.lines[node.id].takes[0] or node.id not in self.certain or node.rows_out < MANY * edge.rows:
            return ()
        coarser = {
            columns: rows
            for columns, rows in self._grouped_behind(node.id)
            if FEW_GROUPS <= rows < MANY * node.rows_out and set(columns) < set(way.columns)
        }
        return max(coarser, key=coarser.__getitem__, default=())

    def _grouped_behind(self, id_: str) -> Iterator[tuple[tuple[str, ...], int]]:
        """By what the rows of a node are grouped next, stored or not, and into how many groups."""
        for edge in self.graph.outgoing[id_] if id_ not in self.sorters else ():
            node = self.graph.nodes[edge.target]
            if isinstance(node, Recordset):
                yield from self._grouped_behind(node.id)
            elif isinstance(way := self.way(node.id), HashBased) and node.id in self.certain:
                yield way.columns, node.rows_out

    def sorted_here(self, node: Activity, edge: Edge) -> Layout | None:
        """How rows are handed to an activity that sorts them for its own sake; None where Spark does all that."""
        line, way = self.lines[node.id], self.way(node.id)
        assert isinstance(way, SortBased | Sorting)
        steps = [step for step, _ in line.steps]
        can_hash = any(isinstance(one, HashBased) for one in node.physical.implementations)
        order = ordered_by(*way.columns)
        if Step.SORT in steps:
            by = min((count for count in self.used(node.id) if count), default=len(order))
            if can_hash:  # what sorts by itself in the paper is sorted on its way in: Spark would hash the groups
                return Layout(order, min(by, len(order)))
            # Spark sorts these itself. It would divide them by all columns of a group where fewer do for all, and into
            # as many parts as it likes where others are to meet them in step.
            divided = by < len(order) or self._first(node.id) in self._met
            return Layout(order[:by], by, sorts=False) if divided else None
        if Step.REORDER not in steps or not can_hash:
            return None
        if edge not in self.sorters:
            return Layout(order, 0)
        sorter = _layout(self.sorters[edge], self.used(edge))
        return Layout(order, sorter.by) if in_common(sorter.order, order) >= sorter.by else sorter

    def arranged(self, node: Activity, way: MergeJoin | SortMergeJoin) -> dict[tuple[str, str], Any]:
        """The keys of a join in the order that rows come in: as they are written, Spark would sort for them again."""
        ready = _ready_side(way, self.lines[node.id])
        if ready is None or not node.physical.keys:
            return {}
        keys = _key_places(way, self.lines[node.id], ready)
        if keys == sorted(keys):
            return {}
        return {(node.id, "keys"): [dict(node.physical.keys[key]) for key in keys]}

    def brought_in_step(self, node: Activity, way: MergeJoin | SortMergeJoin) -> list[tuple[Edge, Layout]]:
        """The side of a join that is sorted for the sake of the other one, which is in order already.

        Left to itself, Spark may find that side divided in a way that serves it too, and divide the one in order anew.
        """
        line = self.lines[node.id]
        ready = _ready_side(way, line)
        if ready is None or Step.SORT not in dict(line.steps):
            return []
        edges = self.graph.incoming[node.id]
        place = self._place(edges[ready])
        if place is None:
            return []
        other = 1 - ready
        own = (way.left, way.right)[other]
        order = ordered_by(*(own[key] for key in _key_places(way, line, ready)))
        return [(edges[other], _layout(order, self.used(place)))]

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

    # -- where rows are divided, and by how many keys

    def used(self, place: Place) -> set[int]:
        """How many keys are used of the order that rows are put in somewhere, by all that get them so."""
        return self._uses.get(self._first(place), set())

    def _first(self, place: Place) -> Place:
        while place in self._alike:
            place = self._alike[place]
        return place

    def _walk(self, id_: str) -> Place | None:
        """Note what a node makes of the orders that come in; gives the place where the rows behind it were divided."""
        node = self.graph.nodes[id_]
        if isinstance(node, Recordset):
            return id_ if self.kept_order(node) else None  # it is divided and sorted where it is stored
        incoming = self.graph.incoming[id_]
        line, way = self.lines[id_], self.way(id_)
        places = [self._place(edge) for edge in incoming]
        for place, count in zip(places, _own_uses(way, line), strict=False):
            if place is not None and count is not None:
                self._uses.setdefault(self._first(place), set()).add(count)
        if isinstance(way, MergeJoin | SortMergeJoin):
            ready = _ready_side(way, line)
            if in_step(line.takes[0], line.takes[1], way.left, way.right):
                self._join(places[0], places[1])
            elif ready is not None:
                self._meet(places[ready])
        if not line.leaves:
            return None
        if isinstance(way, SortBased | Sorting) and any(step is Step.SORT for step, _ in line.steps):
            if way.columns:
                self._uses[id_] = {len(way.columns)}
            return id_
        return places[0]

    def _place(self, edge: Edge) -> Place | None:
        """Where the rows that come by an edge were divided."""
        return edge if edge in self.sorters else self._behind[edge.source]

    def _join(self, one: Place | None, other: Place | None) -> None:
        """Two places are to be divided alike."""
        if one is None or other is None:
            return
        one, other = self._first(one), self._first(other)
        if one != other:
            self._alike[other] = one
            self._uses.setdefault(one, set()).update(self._uses.pop(other, ()))
        self._meet(one)

    def _meet(self, place: Place | None) -> None:
        """Rows of a place meet others in step; a place that is divided like another one is met there."""
        if place is not None:
            self._met.add(self._first(place))


def _ready_side(way: MergeJoin | SortMergeJoin, line: Line) -> int | None:
    """The input of a join that stays in the order it comes in: of two, the one with more rows; None where none is."""
    sides = zip(line.takes, (way.left, way.right), strict=True)
    ready = [number for number, (order, own) in enumerate(sides) if covers(order, own)]
    return max(ready, key=lambda number: line.rows_in[number], default=None)


def _key_places(way: MergeJoin | SortMergeJoin, line: Line, ready: int) -> list[int]:
    """Where the keys stand in the file, in the order that the rows of an input come in."""
    own = (way.left, way.right)[ready]
    return [own.index(key.column) for key in line.takes[ready][: len(own)]]


def _own_uses(way: Implementation, line: Line) -> list[int | None]:
    """By input, how many keys of its order an implementation uses; None where it uses none."""
    if isinstance(way, SortedFilter):
        return [0]
    if isinstance(way, MergeJoin | SortMergeJoin):
        keys = (way.left, way.right)
        return [len(own) if covers(order, own) else None for order, own in zip(line.takes, keys, strict=True)]
    if not isinstance(way, SortBased | HashBased | Sorting):
        return []
    order = line.takes[0]
    if isinstance(way, SortBased) and way.uses(order):
        return [len(way.columns) or None]
    if not way.by_parts:
        return []
    if isinstance(way, Sorting) and way.uses(order):
        return [way.groups]
    if isinstance(way, HashBased) and way.mixes(order):
        return []
    divided = divided_by(order, way.columns)
    if isinstance(way, HashBased):
        return [divided or None]
    return [in_common(order[:divided], ordered_by(*way.columns)) or divided or None]


def _layout(order: Order, used: set[int]) -> Layout:
    """Rows are divided by as many keys as all who use the order can do with."""
    divided = [count for count in used if count]
    return Layout(ascending(order), min(divided, default=1))


def _key(edge: Edge) -> Input:
    return edge.source, edge.target, edge.number
