"""How an operator can be carried out: logical templates and the physical ones behind them (physical design, section 2).

An operator says which implementations it has, what order each needs and leaves, and how many rows each step of it
handles. What a step costs is the planner's to know. The functions at the end are the templates most operators share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import permutations, takewhile
from typing import Any, ClassVar, NamedTuple

from engine.model.types import UNKNOWN

BROADCAST_ROWS = 500_000  # a larger input is not copied to every task
ARRANGED = 3  # a grouping of up to so many columns is offered in every arrangement; a longer one as it is written

# ---------------------------------------------------------------- orders


class Key(NamedTuple):
    """A column that rows are ordered by."""

    column: str
    descending: bool = False


Order = tuple[Key, ...]  # the weightiest first; empty: in no known order
NO_ORDER: Order = ()


def ordered_by(*columns: str) -> Order:
    """The ascending order by some columns."""
    return tuple(Key(column) for column in columns)


def ascending(order: Order) -> Order:
    """The order by the same columns, each from its least value up."""
    return tuple(Key(key.column) for key in order)


def starts_with(order: Order, wanted: Order) -> bool:
    """Whether rows in an order are also in a coarser one."""
    return order[: len(wanted)] == wanted


def covers(order: Order, columns: Sequence[str]) -> bool:
    """Whether rows in an order stand together by some columns: its first keys are these, however arranged."""
    return {key.column for key in order[: len(columns)]} == set(columns)


def divided_by(order: Order, columns: Sequence[str]) -> int:
    """How many first keys of an order are among some columns: rows divided by those come whole in one part."""
    inside = [key.column in columns for key in order]
    return inside.index(False) if False in inside else len(inside)


def as_written(order: Order, columns: Sequence[str]) -> bool:
    """Whether the first keys of an order are some columns just as they stand: only so does Spark use it for groups."""
    return tuple(key.column for key in order[: len(columns)]) == tuple(columns)


def in_common(order: Order, other: Order) -> int:
    """How many first columns two orders share."""
    pairs = zip(order, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].column == pair[1].column, pairs))


def in_step(one: Order, other: Order, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether two inputs are in the same order of their keys."""
    pairs = dict(zip(left, right, strict=True))
    size = len(pairs)
    if not covers(one, left):
        return False
    return tuple(Key(pairs[key.column], key.descending) for key in one[:size]) == other[:size]


def arrangements(columns: Sequence[str], prefixes: bool) -> tuple[Order, ...]:
    """The orders that serve a set of columns, as written first; with `prefixes`, those of fewer columns as well."""
    found: dict[Order, None] = {}
    for size in range(len(columns), 0 if prefixes else len(columns) - 1, -1):
        if len(columns) <= ARRANGED:
            found.update(dict.fromkeys(ordered_by(*some) for some in permutations(columns, size)))
        else:
            found[ordered_by(*columns[:size])] = None
    return tuple(order for order in found if order)


# ---------------------------------------------------------------- columns on their way through an operator


@dataclass(frozen=True)
class Passing:
    """Which columns of an input leave as they came, and so which order of the rows is still one behind the operator.

    `same` names the columns of the input that equal another one, as the two keys of a join do.
    """

    same: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)  # new name to old
    lost: frozenset[str] = frozenset()  # leave no more, or with other values
    only: bool = False  # what is not among the renamed is lost

    def order(self, order: Order) -> Order:
        """An order of the input as the output has it: it ends before the first column that is lost."""
        kept = []
        for key in order:
            name = self._behind(key.column)
            if name is None:
                break
            kept.append(Key(name, key.descending))
        return tuple(kept)

    def same_behind(self) -> dict[str, str]:
        """The columns behind the operator that equal another one."""
        result = {}
        for name, other in self.same.items():
            behind = self._behind(other)
            if behind is not None and behind != name and self._stays(name):
                result[name] = behind
        return result

    def _behind(self, column: str) -> str | None:
        names = [column, *(name for name, other in self.same.items() if other == column)]
        for name in names:
            if self._stays(name):
                return name
        return next((new for new, old in self.renamed.items() if old in names), None)

    def _stays(self, name: str) -> bool:
        if name in self.renamed:
            return self.renamed[name] == name
        return not self.only and name not in self.lost


@dataclass(frozen=True)
class Known:
    """What an operator may ask about its inputs and outputs when it says how it can be carried out."""

    same: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by input port
    columns: Mapping[str, Mapping[str, str] | None] = field(default_factory=dict)  # types by port, None: not known
    read: frozenset[str] = frozenset()  # the output ports that something reads
    spelling: Callable[[str], str] = str  # one spelling for a column, however it is written

    def name(self, column: str, port: str = "in") -> str:
        """A column of an input by the one name it has in orders."""
        name = self.spelling(column)
        return self.same.get(port, {}).get(name, name)

    def alike(self, pairs: Iterable[tuple[str, str]], left: str, right: str) -> bool:
        """Whether columns of two inputs have the same types, as far as these are known.

        Spark divides numbers of different types differently, so rows in the order of one are converted and sorted anew.
        """
        one, other = (self.columns.get(port) or {} for port in (left, right))
        types = ((one.get(self.spelling(first)), other.get(self.spelling(second))) for first, second in pairs)
        return all(first == second or {first, second} & {None, UNKNOWN} for first, second in types)

    def passing(
        self,
        port: str = "in",
        renamed: Mapping[str, str] | None = None,
        lost: Sequence[str] = (),
        only: bool = False,
    ) -> Passing:
        """The columns of an input that leave as they came."""
        spelled = {self.spelling(new): self.spelling(old) for new, old in (renamed or {}).items()}
        return Passing(self.same.get(port, {}), spelled, frozenset(map(self.spelling, lost)), only)


# ---------------------------------------------------------------- implementations


class Step(StrEnum):
    """The elementary steps whose rows are counted; a cost model prices each."""

    SCAN = "scan"
    SORT = "sort"
    REORDER = "reorder"  # sorted where they are, in the part that they are in already
    MERGE = "merge"
    HASH = "hash"  # into or against a table of a join
    EMIT = "emit"
    GROUP = "group"  # into a table of groups
    FORM = "form"  # a group that leaves that table
    GATHER = "gather"  # a group whose parts are brought together from all tasks, which the paper does not know
    CLOSE = "close"  # a group of rows in order that is over, which the paper does not count
    PAIR = "pair"
    GIVE = "give"  # rows that leave where the paper does not count them
    STORE = "store"  # rows written and read once more for a sorter's sake, which the paper does not count


Steps = tuple[tuple[Step, int], ...]


@dataclass(frozen=True)
class Work:
    """What an implementation has to do: rows in by input, rows out, and the orders the rows come in."""

    rows_in: tuple[int, ...]
    rows_out: int
    orders: tuple[Order, ...]


@dataclass(frozen=True)
class Fit:
    """An implementation over inputs that it takes: the order it leaves and the steps it makes."""

    leaves: Order
    steps: Steps


@dataclass(frozen=True)
class Implementation(ABC):
    """One way to carry an operator out: a physical template."""

    name: str  # as signatures have it
    title: str
    in_paper: ClassVar[bool] = True  # false: the paper's cost model does not know it

    @abstractmethod
    def fit(self, work: Work) -> Fit | None:
        """What it does with these inputs; None where they are not in the order that it needs."""

    def needs(self) -> str:
        """The order it needs, in words; empty where it takes rows in any order."""
        return ""

    def holds(self, work: Work) -> int:
        """The rows it keeps in memory at once."""
        return 0


@dataclass(frozen=True)
class RowByRow(Implementation):
    """Every row once, in the order it comes in. `passing` is of the first input; None: the order is lost."""

    passing: Passing | None = None

    def fit(self, work: Work) -> Fit:
        leaves = self.passing.order(work.orders[0]) if self.passing is not None else NO_ORDER
        return Fit(leaves, ((Step.SCAN, sum(work.rows_in)),))


@dataclass(frozen=True)
class SortedFilter(Implementation):
    """Reads as long as the rows are those it wants, for which they must be in order of the filtered column."""

    key: Key
    passing: Passing
    reads_all: bool = False  # there is nothing to be left unread: rows do not come straight from files

    def fit(self, work: Work) -> Fit | None:
        if not starts_with(work.orders[0], (self.key,)):
            return None
        rows = sum(work.rows_in) if self.reads_all else work.rows_out
        return Fit(self.passing.order(work.orders[0]), ((Step.SCAN, rows),))

    def needs(self) -> str:
        return f"rows in order of {order_text((self.key,))}"


@dataclass(frozen=True)
class SortBased(Implementation):
    """Rows of a group one after the other: as they come if they are so ordered, else sorted first.

    With `by_parts`, groups that come whole in one part are sorted where they are, and an order serves that has the
    columns as they are written.
    """

    columns: tuple[str, ...]
    passing: Passing
    sorts: bool = True  # false: only over rows that come in order, or whole in one part
    by_parts: bool = False
    anew: bool = False  # Spark orders rows inside their groups by other columns too, so it sorts them however they come

    def fit(self, work: Work) -> Fit | None:
        (order,), (rows,) = work.orders, work.rows_in
        steps: Steps = ((Step.SCAN, rows), (Step.CLOSE, work.rows_out))
        if self.uses(order):
            return Fit(self.passing.order(order[: len(self.columns)]), steps)
        if self.by_parts and divided_by(order, self.columns):
            leaves = behind_parts(order, ordered_by(*self.columns))
            return Fit(self.passing.order(leaves), ((Step.REORDER, rows), *steps))
        if not self.sorts:
            return None
        return Fit(self.passing.order(ordered_by(*self.columns)), ((Step.SORT, rows), *steps))

    def uses(self, order: Order) -> bool:
        """Whether rows in an order need no sorting."""
        if not self.by_parts:
            return covers(order, self.columns)
        return as_written(order, self.columns) and not (self.anew and self.columns)


def behind_parts(order: Order, made: Order) -> Order:
    """What is known of rows that were divided by an order's first keys and put in another order inside their parts.

    Who reads on takes rows to be divided by the first keys of their order, so those must be the same.
    """
    return made if in_common(order, made) else NO_ORDER


@dataclass(frozen=True)
class HashBased(Implementation):
    """All groups in a table in memory.

    With `by_parts`, groups that come whole in one part need not be brought together: on Spark rows in an order are
    divided by its first keys, while the paper knows one machine. Rows in the very order of the groups are mixed first,
    for Spark would not hash them.
    """

    columns: tuple[str, ...] = ()
    by_parts: bool = False

    def fit(self, work: Work) -> Fit:
        steps: Steps = ((Step.GROUP, sum(work.rows_in)), (Step.FORM, work.rows_out))
        order = work.orders[0]
        if self.by_parts and divided_by(order, self.columns) and not self.mixes(order):
            return Fit(NO_ORDER, steps)
        return Fit(NO_ORDER, (*steps, (Step.GATHER, work.rows_out)))

    def mixes(self, order: Order) -> bool:
        """Whether rows come in an order that would keep Spark from hashing."""
        return bool(self.columns) and (as_written if self.by_parts else covers)(order, self.columns)

    def holds(self, work: Work) -> int:
        return work.rows_out


@dataclass(frozen=True)
class Sorting(Implementation):
    """Puts rows in an order that they may have already.

    With `by_parts`, that helps only where rows are ordered within their groups, each in one part: Spark puts all rows
    in an order by itself, whatever order they come in, and leaves them divided in a way that serves nobody.
    """

    order: Order
    passing: Passing
    groups: int = 0  # so many first keys are of a group, in which the others order the rows; 0: all rows are in order
    by_parts: bool = False
    anew: bool = False  # Spark orders rows by other columns too, so it sorts them however they come

    def uses(self, order: Order) -> bool:
        """Whether rows in an order need no sorting."""
        if self.by_parts and (not self.groups or self.anew or self.order != ascending(self.order)):
            return False
        return starts_with(order, self.order)

    def fit(self, work: Work) -> Fit:
        (order,), (rows,) = work.orders, work.rows_in
        if self.uses(order):
            return Fit(self.passing.order(order), ((Step.SCAN, rows),))
        if not self.by_parts:
            return Fit(self.passing.order(self.order), ((Step.SORT, rows), (Step.SCAN, rows)))
        made = self._made()
        if divided_by(order, self.columns):
            return Fit(self.passing.order(behind_parts(order, made)), ((Step.REORDER, rows), (Step.SCAN, rows)))
        return Fit(self.passing.order(made), ((Step.SORT, rows), (Step.SCAN, rows)))

    def _made(self) -> Order:
        """The order of the rows behind it, as far as Spark makes use of it: up to the first column that falls."""
        last = self.groups if self.anew or not self.groups else len(self.order)
        return tuple(takewhile(lambda key: not key.descending, self.order[:last]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a group."""
        return tuple(key.column for key in self.order[: self.groups])


@dataclass(frozen=True)
class NestedLoops(Implementation):
    """Every pair of rows."""

    def fit(self, work: Work) -> Fit:
        left, right = work.rows_in
        return Fit(NO_ORDER, ((Step.PAIR, left * right), (Step.GIVE, work.rows_out)))


@dataclass(frozen=True)
class HashJoin(Implementation):
    """The smaller input in a table in memory. With `passing`, the rows of the first pass one by one, in their order."""

    passing: Passing | None = None

    def fit(self, work: Work) -> Fit:
        leaves = self.passing.order(work.orders[0]) if self.passing is not None else NO_ORDER
        return Fit(leaves, ((Step.HASH, sum(work.rows_in)), (Step.EMIT, work.rows_out)))

    def holds(self, work: Work) -> int:
        return min(work.rows_in) if self.passing is None else work.rows_in[1]


@dataclass(frozen=True)
class BroadcastJoin(Implementation):
    """A small second input in a table that every task has; the rows of the first pass it where they are."""

    in_paper: ClassVar[bool] = False

    passing: Passing

    def fit(self, work: Work) -> Fit | None:
        rows, small = work.rows_in
        if small > BROADCAST_ROWS:
            return None
        steps = ((Step.SCAN, rows), (Step.HASH, small), (Step.EMIT, work.rows_out))
        return Fit(self.passing.order(work.orders[0]), steps)

    def needs(self) -> str:
        return f"a second input of at most {BROADCAST_ROWS:,} rows"

    def holds(self, work: Work) -> int:
        return work.rows_in[1]


@dataclass(frozen=True)
class MergeJoin(Implementation):
    """Both inputs in step, for which both must be in order of their keys."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    passing: Passing

    def fit(self, work: Work) -> Fit | None:
        one, other = work.orders
        if not in_step(one, other, self.left, self.right):
            return None
        return Fit(self.passing.order(one[: len(self.left)]), ((Step.MERGE, sum(work.rows_in)),))

    def needs(self) -> str:
        return f"rows in order of {', '.join(self.left)} on one side and of {', '.join(self.right)} on the other"


@dataclass(frozen=True)
class SortMergeJoin(Implementation):
    """Sorts each input that is not in order of its keys, then goes through both in step.

    It leaves no order to rely on: that is how the paper counts it.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]

    def fit(self, work: Work) -> Fit:
        (one, other), (left, right) = work.orders, work.rows_in
        if in_step(one, other, self.left, self.right):
            to_sort = []
        elif covers(one, self.left) and covers(other, self.right):
            to_sort = [min(left, right)]  # each is in order, but not in the other's
        else:
            ready = (covers(one, self.left), covers(other, self.right))
            to_sort = [rows for rows, is_ready in zip((left, right), ready, strict=True) if not is_ready]
        return Fit(NO_ORDER, (*((Step.SORT, rows) for rows in to_sort), (Step.MERGE, left + right)))


# ---------------------------------------------------------------- templates


@dataclass(frozen=True)
class Physical:
    """A logical template: the implementations an operator has, and the orders that are of interest to its inputs.

    `named`: a signature says which implementation was chosen; else the first in the list that fits is taken.
    `interesting`: by input; an input beyond its end has none, and its order is of no consequence.
    """

    implementations: tuple[Implementation, ...]
    interesting: tuple[tuple[Order, ...], ...] = ()
    named: bool = False
    minds: tuple[bool, ...] = (True,)  # by input: whether its order can make a difference, here or behind it
    same: Mapping[str, str] = field(default_factory=dict)  # columns behind the operator that equal another one
    # By implementation, the operator's own settings that ask Spark for it; none where Spark's choice is as good.
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    on_spark: bool = True  # false: Spark makes no use of the order that rows come in, and leaves them in none
    keys: tuple[Mapping[str, Any], ...] = ()  # a join's own setting of that name, which may be arranged as rows come


def black_box(passing: Passing | None = None, on_spark: bool = True) -> Physical:
    """Rows handled one by one. Without `passing`, nothing is known of the order they leave in."""
    box = RowByRow("box", "row by row", passing)
    same = passing.same_behind() if passing is not None else {}
    return Physical((box,), minds=(passing is not None,), same=same, on_spark=on_spark)


def filtering(passing: Passing, key: Key | None) -> Physical:
    """Some of the rows go on. `key`: the order in which those stand together at the beginning, if there is one."""
    plain = RowByRow("F", "filter", passing)
    if key is None:
        return Physical((plain,), same=passing.same_behind())
    ordered = SortedFilter("SF", "sorted filter", key, passing)
    return Physical((ordered, plain), (((key,),),), same=passing.same_behind())


def grouping(columns: Sequence[str], passing: Passing, hashing: bool = True) -> Physical:
    """Rows of a group become one, or are seen together in an order of their own, for which no hashing will do.

    `passing` says under which names its columns leave.
    """
    own = tuple(dict.fromkeys(columns))
    by_sorting: Implementation = SortBased("SO", "sort-based", own, passing, anew=not hashing)
    ways = (by_sorting, HashBased("HB", "hash-based", own)) if hashing else (by_sorting,)
    return Physical(ways, (arrangements(own, prefixes=True),), named=True, same=passing.same_behind())


def sorting(order: Order, passing: Passing, groups: int = 0, anew: bool = False) -> Physical:
    """Rows are put in an order, all of them or those of each group. `anew`: Spark sorts them however they come."""
    way = Sorting("sort", "sort", order, passing, groups, anew=anew)
    return Physical((way,), ((order,),), same=passing.same_behind())


JOINS = ("MJ", "HJ", "SMJ", "NL", "BJ")


def joining(
    left: Sequence[str],
    right: Sequence[str],
    passing: Passing,
    *,
    ways: Sequence[str] = JOINS,
    keeps_order: bool = False,
    same: Mapping[str, str] | None = None,
    asks: Mapping[str, Mapping[str, Any]] | None = None,
    keys: Sequence[Any] = (),
    on_spark: bool = True,
) -> Physical:
    """Two inputs meet by their keys. `ways` are the implementations that can do it.

    `passing` is of the left input; with `keeps_order`, hashing lets its rows pass one by one. `keys` are the operator's
    own settings for the pairs of columns. `on_spark`: whether Spark can use the order of the inputs.
    """
    one, other = tuple(left), tuple(right)
    library: dict[str, Implementation] = {
        "MJ": MergeJoin("MJ", "merge join", one, other, passing),
        "HJ": HashJoin("HJ", "hash join", passing if keeps_order else None),
        "SMJ": SortMergeJoin("SMJ", "sort-merge join", one, other),
        "NL": NestedLoops("NL", "nested loops"),
        "BJ": BroadcastJoin("BJ", "broadcast join", passing),
    }
    keyed = len(set(one)) == len(one) > 0 and len(set(other)) == len(other)
    usable = [way for way in ways if keyed or way == "NL" or (way in ("HJ", "BJ") and one)]
    interesting = tuple(arrangements(side, prefixes=False) for side in (one, other)) if keyed else ((), ())
    return Physical(
        tuple(library[way] for way in usable),
        interesting,
        named=True,
        minds=(keyed or keeps_order or "BJ" in usable, keyed),
        same={**passing.same_behind(), **(same or {})},
        asks=asks or {},
        on_spark=on_spark,
        keys=tuple(key.model_dump() for key in keys),
    )


def order_text(order: Order) -> str:
    """An order as signatures have it: `A,B`, a descending column as `A desc`; odd names in backquotes."""
    return ",".join(_name(key.column) + (" desc" if key.descending else "") for key in order)


def _name(column: str) -> str:
    plain = column.replace("_", "a").isalnum() and column.isascii()
    return column if plain else "`" + column.replace("`", "``") + "`"
