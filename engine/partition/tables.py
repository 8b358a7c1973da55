"""Cuts a streaming workflow into its tables, and tells how each follows its sources (streaming warehouse, section 2).

A view can be kept up to date partition by partition where the rows of a time depend on the rows of that time alone:
row-by-row activities, aggregates and joins whose keys hold the time (or a bucket of it), unions. What cannot is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.expression_tree import Call, Column, Literal
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.operator import Category, Operator, Role, Source
from engine.model.physical import Key, Known, Work
from engine.model.problems import Problem
from engine.operators.columns import Derive
from engine.operators.join import Join, JoinKind
from engine.operators.lookup import Lookup, ParquetLookup
from engine.operators.sets import Union
from engine.operators.streams import MICROS, Stream, StreamTable, TimeBucket
from engine.operators.warehouse import Aggregate, MaterializedView, RefreshMode

NOT_BY_ROW = ("limit", "sample", "sequence", "surrogate_key", "window", "python")  # see other rows, or chance
TRUNCATED_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}

Times = Mapping[str, int]  # columns in lower case that hold the row's time, each with its granule in microseconds


class Follow(StrEnum):
    """How a table takes in what came."""

    APPEND = "append"  # the new rows of its sources make new rows
    MERGE = "merge"  # they are aggregated, and added to the groups that are there
    RECOMPUTE = "recompute"  # the partitions they fall into are computed anew


@dataclass(frozen=True)
class TablePlan:
    """One table: what feeds it, through which nodes, and how it follows."""

    name: str  # of its node
    operator: StreamTable
    stream: str | None  # the node of a base table's stream
    sources: tuple[str, ...]  # tables
    statics: tuple[str, ...]  # nodes that are read once: references of lookups
    nodes: tuple[str, ...]  # the activities in between, in topological order
    follow: Follow
    granule_us: int  # 0: its rows have their own times; else rows of one bucket change until the bucket is over
    merge: Aggregate | None = None  # of `MERGE`: makes one group of two
    step_us: int = 0  # of a view: its sources' buckets end together every so often; 0 where it may end anywhere
    priority: float = 1.0
    period_s: float | None = None
    staleness_bound_s: float | None = None
    stream_time: str | None = None  # of a base table: the stream's column that becomes its time

    @property
    def is_base(self) -> bool:
        """Whether a stream feeds it."""
        return self.stream is not None

    @property
    def partition_us(self) -> int:
        """The width of a partition."""
        return round(self.operator.partition_s * MICROS)


@dataclass
class _Reached:
    """What lies above a table, up to the recordsets that feed it."""

    nodes: list[str] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    statics: list[str] = field(default_factory=list)


class NotByPartition(Exception):
    """A node breaks the tie between the time of its rows and that of its sources' rows."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(reason)
        self.node = node


def tables_of(bound: Bound) -> list[TablePlan]:
    """The tables of a streaming workflow, each behind its sources. Raises with every reason why one cannot be kept."""
    bound.raise_errors()
    plans, problems = cut(bound)
    if not plans and not problems:
        problems = [Problem("the workflow has no streaming table (`stream_table`)")]
    if problems:
        file = str(bound.file) if bound.file else bound.name
        raise BadInput("\n".join(problem.text(file) for problem in problems))
    return plans


def is_streaming(bound: Bound) -> bool:
    """Whether a workflow describes a streaming warehouse."""
    return any(isinstance(operator, StreamTable) for operator in bound.operators.values())


def cut(bound: Bound) -> tuple[list[TablePlan], list[Problem]]:
    """The tables of a workflow without errors, and why some of them cannot be kept."""
    plans: dict[str, TablePlan] = {}
    problems: list[Problem] = []
    for node in bound.order:
        operator = bound.operators[node]
        if isinstance(operator, StreamTable):
            try:
                plans[node] = _plan(bound, node, operator, plans)
            except NotByPartition as problem:
                problems.append(Problem(f"table `{node}`: {problem}", problem.node))
        elif operator.role is Role.TARGET:
            problems.append(Problem("a streaming warehouse has streaming tables alone as targets", node))
    used = {plan.stream for plan in plans.values()}
    for node, operator in bound.operators.items():
        if isinstance(operator, Stream) and node not in used and not problems:
            problems.append(Problem("no streaming table takes this stream in", node))
    return list(plans.values()), problems


def _plan(bound: Bound, name: str, table: StreamTable, plans: Mapping[str, TablePlan]) -> TablePlan:
    above = _above(bound, name)
    if above.streams and above.tables:
        raise NotByPartition(name, f"both a stream (`{above.streams[0]}`) and a table (`{above.tables[0]}`) feed it")
    if len(above.streams) > 1:
        raise NotByPartition(
            name, f"{len(above.streams)} streams feed it; load each into a table of its own, and join these"
        )
    if not above.streams and not above.tables:
        raise NotByPartition(name, "neither a stream nor a streaming table feeds it")
    lost = [source for source in above.tables if source not in plans]
    if lost:
        raise NotByPartition(name, f"its source `{lost[0]}` cannot be kept up to date")
    if above.streams:
        return _base(bound, name, table, above)
    if table.lateness_bound_s:
        raise NotByPartition(name, "lateness_bound_s belongs to base tables; a view takes what is safe of its sources")
    times = _times_into(bound, name, above, {source: plans[source] for source in above.tables})
    granule = times.get(table.time_column.lower())
    if granule is None:
        raise NotByPartition(name, _lost_time(table, times))
    width = round(table.partition_s * MICROS)
    for bucket in (granule, *(plans[source].granule_us for source in above.tables)):
        if bucket and width % bucket:
            raise NotByPartition(
                name, f"a partition of {table.partition_s:g} s is no whole number of buckets of {bucket / MICROS:g} s"
            )
    follow, merge = _follow(bound, name, above, plans)
    buckets = [plans[source].granule_us for source in above.tables if plans[source].granule_us]
    above_it = [bound.operators[node] for node in reversed(above.nodes)]
    view = next((operator for operator in above_it if isinstance(operator, MaterializedView)), None)
    return TablePlan(
        name, table, None, tuple(above.tables), tuple(above.statics), tuple(above.nodes), follow, granule, merge,
        step_us=math.lcm(*buckets) if buckets else 0,
        priority=table.priority or (float(view.priority) if view else 1.0),
        period_s=table.period_s or (view.period_s if view else None),
        staleness_bound_s=table.staleness_bound_s or (view.staleness_bound_s if view else None),
    )  # fmt: skip


def _base(bound: Bound, name: str, table: StreamTable, above: _Reached) -> TablePlan:
    """A base table: what stands between it and its stream works row by row."""
    for node in above.nodes:
        operator = bound.operators[node]
        if not _by_row(operator):
            raise NotByPartition(
                node, f"`{operator.name}` stands between a stream and its table; put it behind the table"
            )
    stream = bound.operators[above.streams[0]]
    assert isinstance(stream, Stream)
    columns = bound.schemas.get((above.streams[0], "out")) or {}
    times: dict[str, dict[str, str]] = {
        above.streams[0]: {c.lower(): c for c, kind in columns.items() if kind == "timestamp"}
    }
    for node in above.nodes:
        main = [times[source] for source, _ in bound.producers(node) if source in times]
        if main:
            times[node] = {name: main[0][old] for old in main[0] for name in _passed(bound.operators[node], {old: 0})}
    time = times[bound.producers(name)[0][0]].get(table.time_column.lower())
    if time is None:
        raise NotByPartition(
            name, f"`{table.time_column}` is no time of the stream's records that reaches the table unchanged"
        )
    return TablePlan(
        name, table, above.streams[0], (), tuple(above.statics), tuple(above.nodes), Follow.APPEND, 0,
        priority=table.priority or 1.0, period_s=table.period_s or stream.usual_period_s(),
        staleness_bound_s=table.staleness_bound_s, stream_time=time,
    )  # fmt: skip


def _above(bound: Bound, name: str) -> _Reached:
    """All that feeds a table, up to the next recordsets."""
    seen: set[str] = set()
    waiting = [source for source, _ in bound.producers(name)]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if bound.role(node) is Role.ACTIVITY:
            waiting += [source for source, _ in bound.producers(node)]
        elif bound.role(node) is Role.STAGING:
            raise NotByPartition(node, "a staging area lasts as long as a run; a streaming warehouse has none")
    found = _Reached()
    for node in bound.order:
        if node in seen:
            operator = bound.operators[node]
            if isinstance(operator, StreamTable):
                found.tables.append(node)
            elif isinstance(operator, Stream):
                found.streams.append(node)
            elif isinstance(operator, Source) and operator.role is Role.SOURCE:
                found.statics.append(node)
            else:
                found.nodes.append(node)
    return found


# ---------------------------------------------------------------- the time of rows on their way


def _times_into(bound: Bound, name: str, above: _Reached, plans: Mapping[str, TablePlan]) -> Times:
    """The columns that hold the time of the rows that enter a table."""
    times: dict[str, Times] = {}
    for source, plan in plans.items():
        times[source] = {plan.operator.time_column.lower(): plan.granule_us}
    for node in above.statics:
        times[node] = {}
    for node in above.nodes:
        entering: dict[str, list[tuple[str, Times]]] = {}
        for link in bound.incoming.get(node, ()):
            entering.setdefault(link.target_port, []).append((link.source, times[link.source]))
        times[node] = _behind(node, bound.operators[node], entering, set(above.statics), bound)
    return times[bound.producers(name)[0][0]]


def _behind(
    node: str, operator: Operator, entering: Mapping[str, list[tuple[str, Times]]], statics: set[str], bound: Bound
) -> Times:
    """The columns that hold the time behind a node."""
    match operator:
        case Join():
            return _behind_join(node, operator, entering)
        case Union():
            if operator.distinct or operator.match.value != "name":
                raise NotByPartition(node, "a union of tables matches columns by name and keeps equal rows")
            every = [times for _, times in entering["in"]]
            shared = set.intersection(*(set(times) for times in every))
            return {column: max(times[column] for times in every) for column in shared}
        case Aggregate():
            (_, times), = entering["in"]  # fmt: skip
            kept = {column.lower(): times[column.lower()] for column in operator.group if column.lower() in times}
            if not kept:
                held = " or ".join(f"`{column}`" for column in times) or "a time"
                raise NotByPartition(
                    node, f"`{node}` groups rows of different times; add {held} (or a `time_bucket` of it) to its group"
                )
            return kept
        case Lookup() if not isinstance(operator, ParquetLookup):
            (reference, _), = entering["reference"]  # fmt: skip
            if not _static(reference, statics, bound):
                raise NotByPartition(node, f"the reference of `{node}` is a table that moves; use a join by time")
            (_, times), = entering["main"]  # fmt: skip
            return _passed(operator, times)
    if not _by_row(operator):
        raise NotByPartition(node, f"a `{operator.name}` cannot be kept up to date partition by partition")
    (_, times), = next(iter(entering.values()))  # fmt: skip
    behind = dict(_passed(operator, times))
    if isinstance(operator, TimeBucket) and operator.column.lower() in times:
        bucket = round(operator.every_s * MICROS)
        own = times[operator.column.lower()]
        if bucket % max(own, 1) == 0:
            behind[operator.into.lower()] = bucket
    if isinstance(operator, Derive):
        for item in operator.columns:
            granule = _truncation(item.expression, times)
            if granule is not None:
                behind[item.name.lower()] = granule
    return behind


def _static(node: str, statics: set[str], bound: Bound) -> bool:
    """Whether only sources that do not move lie above a node."""
    if node in statics:
        return True
    return bound.role(node) is Role.ACTIVITY and all(
        _static(source, statics, bound) for source, _ in bound.producers(node)
    )


def _behind_join(node: str, join: Join, entering: Mapping[str, list[tuple[str, Times]]]) -> Times:
    (_, left), = entering["left"]  # fmt: skip
    (_, right), = entering["right"]  # fmt: skip
    if join.kind in (JoinKind.CROSS, JoinKind.RIGHT, JoinKind.FULL):
        raise NotByPartition(node, f"a `{join.kind}` join cannot be kept up to date; use inner, left, semi or anti")
    timed = {
        key.left.lower(): left[key.left.lower()]
        for key in join.keys
        if key.left.lower() in left and left[key.left.lower()] == right.get(key.right.lower())
    }
    if not timed:
        raise NotByPartition(
            node,
            f"`{node}` joins rows of different times; add the time (or the same `time_bucket` of both) to its keys",
        )
    # A row may find a partner until the bucket that they share is over.
    return {column: max(granule, min(timed.values())) for column, granule in left.items()}


def _passed(operator: Operator, times: Times) -> Times:
    """The time columns that a row-by-row operator leaves as they came, by the names they leave with."""
    known = Known(spelling=str.lower)
    inputs = len(operator.input_ports())
    behind = {}
    for column, granule in times.items():
        for way in operator.physical(known).implementations:
            fit = way.fit(Work((1,) * inputs, 1, ((Key(column),),) * inputs))
            if fit is not None and fit.leaves:
                behind[fit.leaves[0].column] = granule
                break
    return behind


def _by_row(operator: Operator) -> bool:
    return (
        operator.category is Category.ROW_SYNCHRONIZED
        and operator.role is Role.ACTIVITY
        and operator.name not in NOT_BY_ROW
        and operator.is_repeatable()
    )


def _truncation(text: str, times: Times) -> int | None:
    """The granule of `date_trunc('minute', time)`; None where an expression is none."""
    try:
        tree = parse(text)
    except ExpressionError:
        return None
    if not isinstance(tree, Call) or tree.name != "date_trunc" or len(tree.arguments) != 2:
        return None
    unit, column = tree.arguments
    if not isinstance(unit, Literal) or not isinstance(column, Column) or column.names[0].lower() not in times:
        return None
    seconds = TRUNCATED_S.get(str(unit.value).strip("'\"").lower())
    if seconds is None or seconds * MICROS % max(times[column.names[0].lower()], 1):
        return None
    return seconds * MICROS


def _lost_time(table: StreamTable, times: Times) -> str:
    held = ", ".join(f"`{column}`" for column in times)
    reason = f"`{table.time_column}` no longer is the time of its sources' rows, so it cannot follow them by partitions"
    return f"{reason}; {held} is" if held else reason


# ---------------------------------------------------------------- how it follows


def _follow(
    bound: Bound, name: str, above: _Reached, plans: Mapping[str, TablePlan]
) -> tuple[Follow, Aggregate | None]:
    """The cheapest way that gives the same rows as computing the view anew."""
    if any(plans[source].granule_us for source in above.tables):
        return Follow.RECOMPUTE, None  # rows of a bucket that is not over change in their place
    kinds = [bound.operators[node] for node in above.nodes]
    if all(_by_row(kind) or isinstance(kind, Union) for kind in kinds):
        return Follow.APPEND, None
    last, _ = bound.producers(name)[0]
    view = bound.operators[last]
    before = [bound.operators[node] for node in above.nodes if node != last]
    if (
        isinstance(view, MaterializedView)
        and view.refresh is RefreshMode.INCREMENTAL
        and view.having is None
        and all(_by_row(kind) or isinstance(kind, Union) for kind in before)
    ):
        entering = bound.producers(last)[0]
        steps = view.in_two_steps(bound.schemas.get(entering))
        if steps is not None:
            return Follow.MERGE, steps[1]
    return Follow.RECOMPUTE, None
