"""Update jobs on Spark: records of a stream into a base table, and what its sources hold into a view.

An update is one small Spark job. What it reads comes from memory where it is small, each input is one partition, and
so nothing is shuffled; its plan is kept for the next one; its result is written beside the table and published by one
line of the journal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Thread, local
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.model.binding import Bound
from engine.model.operator import Built, Place, port_frame
from engine.operators._sql import quoted
from engine.operators.streams import GeneratorStream
from engine.partition.tables import Follow, TablePlan
from engine.spark.compile import CountedRows, NodeBuilder
from engine.spark.failures import NodeFailed, reason_of
from engine.spark.session import activate
from engine.spark.stream_edges import edges_with, in_time
from engine.spark.stream_feeds import Arrival, Feed
from engine.spark.stream_plans import KeptPlans, Make, collect_anew
from engine.spark.stream_store import TableStore, between, times_us
from engine.spark.stream_together import one_result, parts
from engine.spark.stream_versions import DATA, Change, Version

SMALL_BYTES = 8 * 2**20  # more than this is read by Spark itself, not handed to it

LOADED, BETWEEN, MERGED = "loaded", "between", "merged"  # kinds of plans that are kept

BULK_ROWS = 50_000  # an update over more rows is worth compiling; below, Spark interprets its plan

_SETTINGS = {
    # A plan is run once and over little: looking at it again while it runs costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a broadcast is a job of its own
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.ui.explainMode": "simple",  # Spark tells every plan to its listeners; nobody reads these at length
}
# Measured: a small update takes half the time where Spark makes no Java of its plan first.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def _session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session beside another one in the same Spark."""
    session = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    return session


def start_track(spark: SparkSession, name: str, work: Callable[[], None]) -> Thread:
    """A thread whose Spark jobs are in a FAIR pool of their own."""

    def in_pool() -> None:
        activate(spark)
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        work()

    thread = InheritableThread(target=in_pool, name=name, daemon=True)
    thread.start()
    return thread


@dataclass(frozen=True)
class Updated:
    """What an update did to a table."""

    version: Version
    rows: int  # that it wrote
    late: int = 0  # records that came too late
    refused: Mapping[str, int] = field(default_factory=dict)  # by node: rows that left by a port nobody reads


@dataclass(frozen=True)
class _Way:
    """A view's way to an edge."""

    plan: TablePlan
    before: Version
    held: Mapping[str, Version]
    edge: int
    first: int | None  # of the sources' rows that it takes in
    begin: int | None  # of its own rows, where they are made anew; None: all of them
    old: pa.Table | None  # the groups that are there, of a view that merges

    @property
    def kind(self) -> str:
        """Which of a view's plans it takes."""
        return BETWEEN if self.old is None else MERGED


@dataclass(frozen=True)
class _Described:
    """A table as the workflow described it when it came: that holds as long as it is kept."""

    bound: Bound
    builders: Sequence[NodeBuilder]
    number: int  # a table that left and came back may be another one, with other plans
    statics: Mapping[tuple[str, bool], DataFrame]


class Updater:
    """Carries out the updates of a warehouse's tables in one Spark session."""

    def __init__(
        self,
        bound: Bound,
        plans: Mapping[str, TablePlan],
        stores: Mapping[str, TableStore],
        spark: SparkSession,
        place: Place,
    ) -> None:
        self.stores = stores
        settings = (_SETTINGS | _INTERPRETED, _SETTINGS)
        self._sessions = [_session(spark, one) for one in settings]  # for small updates, and for bulky ones
        self._chosen = local()  # by the update that a thread carries out
        self.kept = KeptPlans(self._sessions[0])
        self.plans: dict[str, TablePlan] = {}
        self.schemas: dict[str, Any] = {}  # of tables and streams, as Spark has them
        self.arrow: dict[str, pa.Schema] = {}
        self._described: dict[str, _Described] = {}  # each table as it was when it came
        self._came = 0
        self._workflow(bound, place)
        self._first = plans

    def _workflow(self, bound: Bound, place: Place) -> None:
        """The workflow that describes the tables that come next; those that are there keep theirs."""
        self._bound, self._builders = bound, [NodeBuilder(bound, session, place) for session in self._sessions]
        self._references: dict[str, pa.Table] = {}

    @property
    def _bulky(self) -> bool:
        return getattr(self._chosen, "bulky", False)

    def _choose(self, rows: int) -> None:
        """The session for an update over so many rows, in this thread."""
        self._chosen.bulky = rows > BULK_ROWS

    @property
    def spark(self) -> SparkSession:
        """The session of this thread's update."""
        return self._sessions[self._bulky]

    def prepare(self) -> None:
        """Plan every table over nothing: Spark's analyser confirms them, and their columns are known."""
        for plan in self._first.values():
            self._enter(plan)

    def enter(self, bound: Bound, plan: TablePlan, place: Place) -> None:
        """A table joins, as another workflow describes it. Where Spark refuses it, nothing has changed."""
        self._workflow(bound, place)
        try:
            self._enter(plan)
        except BaseException:
            self.leave(plan.name)
            raise

    def leave(self, name: str) -> None:
        """A table is not updated any more."""
        for known in (self.plans, self.schemas, self.arrow, self._described):
            known.pop(name, None)

    def _enter(self, plan: TablePlan) -> None:
        """Plan one table whose sources are planned."""
        self._came += 1
        self._described[plan.name] = _Described(self._bound, self._builders, self._came, self._statics(plan))
        inputs = {}
        if plan.stream is not None:
            stream = self._bound.operators[plan.stream]
            assert hasattr(stream, "declared")
            ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in (stream.declared() or {}).items())
            frame = self.spark.createDataFrame([], ddl)
            self.arrow[plan.stream] = frame.limit(0).toArrow().schema
            inputs[plan.stream] = frame
        else:
            inputs = {source: self.spark.createDataFrame([], self.schemas[source]) for source in plan.sources}
        result = self._through(plan, inputs, [])
        schema = result.limit(0).toArrow().schema
        self.schemas[plan.name], self.arrow[plan.name], self.plans[plan.name] = result.schema, schema, plan

    def _statics(self, plan: TablePlan) -> dict[tuple[str, bool], DataFrame]:
        """The references of a table's lookups, read once."""
        found = {}
        for node in plan.statics:
            if node not in self._references:
                self._references[node] = port_frame(self._builders[0].build_node(node, {}, []), "out").toArrow()
            rows = self._references[node]
            for bulky, session in enumerate(self._sessions):
                found[node, bool(bulky)] = session.createDataFrame(rows).coalesce(1)
        return found

    # -- a base table

    def load(self, plan: TablePlan, feed: Feed, arrivals: Sequence[Arrival], now: float) -> Updated:
        """Load the next arrivals of a stream into its table, all of them or none."""
        store = self.stores[plan.name]
        before = store.version
        assert plan.stream is not None
        arrivals = [arrival for arrival in arrivals if not (arrival.gone or _is_in(before, arrival))]
        batches = [arrival for arrival in arrivals if arrival.safe_us is None and arrival.rows]
        counted: list[CountedRows] = []
        rows = None
        self._choose(sum(arrival.rows for arrival in batches))
        if batches:
            rows, counted = self._collect(
                self._key(plan, LOADED), {plan.stream: feed.read(batches)}, self._loading(plan)
            )
            rows = rows.cast(self.arrow[plan.name])
        arrivals = [arrival for arrival in arrivals if not arrival.gone]
        fresh, safe = edges_with(before, arrivals, plan.operator.lateness_bound_s)
        add: list[Any] = []
        drop: list[str] = []
        late: list[Any] = []
        written = too_late = 0
        if rows is not None and rows.num_rows:
            good = in_time(times_us(rows, plan.operator.time_column), before.safe_us, now)
            kept = rows.filter(good)
            written, too_late = kept.num_rows, rows.num_rows - kept.num_rows
            if too_late:
                late = store.stage_late(rows.filter(pc.invert(good)))
            add, drop = store.compacted(store.stage(kept))
        positions = [arrival.position for arrival in arrivals if arrival.position is not None]
        change = Change(
            fresh,
            safe,
            add,
            drop,
            late,
            {arrival.id: arrival.facts for arrival in arrivals if arrival.facts is not None},
            positions[-1] if positions else None,
        )
        refused = _refused(counted)  # first: what is published must not fail any more, or it would be loaded again
        return Updated(store.publish(change), written, too_late, refused)

    def _loading(self, plan: TablePlan) -> Make:
        """What becomes of a stream's records on their way into its table."""

        def make(inputs: Mapping[str, DataFrame], counted: list[CountedRows]) -> DataFrame:
            assert plan.stream is not None
            raw, stream = inputs[plan.stream], self._described[plan.name].bound.operators[plan.stream]
            if isinstance(stream, GeneratorStream):
                raw = stream.computed(raw)
            return self._through(plan, {plan.stream: raw}, counted)

        return make

    # -- a view

    def follow(self, plan: TablePlan, upto_us: int) -> Updated:
        """Bring a view up to an edge, or as near to it as its sources' buckets allow; nothing beyond it."""
        with self._reading([plan]):
            return self._follow(plan, upto_us)

    def _follow(self, plan: TablePlan, upto_us: int) -> Updated:
        way = self._way(plan, upto_us)
        if way is None:
            return Updated(self.stores[plan.name].version, 0)
        self._choose(self._rows_of([way]))
        inputs = {source: self._read(source, way.held[source], way.first, way.edge) for source in plan.sources}
        if way.old is not None:
            inputs[plan.name] = way.old
        rows, counted = self._collect(self._key(plan, way.kind), inputs, partial(self._made, way))
        return self._publish(way, rows, counted)

    def follow_together(self, plans: Sequence[TablePlan], upto_us: int) -> Iterator[tuple[str, Updated]]:
        """Bring views of the same sources up to an edge by one job, which reads these sources once.

        Each is published by itself, and whole: a kill in between leaves the others as they were, and they follow later.
        """
        with self._reading(plans):
            yield from self._follow_together(plans, upto_us)

    def _follow_together(self, plans: Sequence[TablePlan], upto_us: int) -> Iterator[tuple[str, Updated]]:
        found = {plan.name: self._way(plan, upto_us) for plan in plans}
        ways = [way for way in found.values() if way is not None]
        alike = {(way.plan.sources, way.edge, tuple(version.number for version in way.held.values())) for way in ways}
        if len(ways) < 2 or len(alike) > 1:  # somebody moved since the job was made
            yield from ((plan.name, self.follow(plan, upto_us)) for plan in plans)
            return
        yield from ((name, Updated(self.stores[name].version, 0)) for name, way in found.items() if way is None)
        self._choose(self._rows_of(ways))
        spans = sorted({way.first for way in ways}, key=lambda first: -1 if first is None else first)
        place = {way.plan.name: spans.index(way.first) for way in ways}

        def make(inputs: Mapping[str, DataFrame], counted: list[CountedRows]) -> DataFrame:
            frames = []
            for way in ways:
                name = way.plan.name
                mine = {source: inputs[f"{source} {place[name]}"] for source in way.plan.sources}
                if way.old is not None:
                    mine[name] = inputs[f"{name} old"]
                frames.append(self._made(way, mine, counted).select(*map(quoted, self.arrow[name].names)))
            return one_result(frames)

        with self._read_once(ways[0], spans) as inputs:
            olds = {f"{way.plan.name} old": way.old for way in ways if way.old is not None}
            key = tuple((self._key(way.plan, way.kind), place[way.plan.name]) for way in ways)
            rows, counted = self._collect(key, {**inputs, **olds}, make)
        names = [self.arrow[way.plan.name].names for way in ways]
        for number, (way, part) in enumerate(zip(ways, parts(rows, names), strict=True)):
            yield way.plan.name, self._publish(way, part, [] if number else counted)

    @contextlib.contextmanager
    def _reading(self, plans: Sequence[TablePlan]) -> Iterator[None]:
        """While this lasts, the sources of these views keep the files of the versions that are read."""
        with contextlib.ExitStack() as reading:
            for source in {source for plan in plans for source in plan.sources}:
                reading.enter_context(self.stores[source].reading())
            yield

    def _way(self, plan: TablePlan, upto_us: int) -> _Way | None:
        """How a view gets to an edge; None where it is there."""
        store = self.stores[plan.name]
        before = store.version
        held = {source: self.stores[source].version for source in plan.sources}
        edge = self.edge(plan, held, upto_us)
        after = before.fresh_us
        if edge is None or (after is not None and edge <= after):
            return None
        begin = None if after is None else after // plan.partition_us * plan.partition_us
        first = begin if plan.follow is Follow.RECOMPUTE or after is None else after + 1
        old = store.read(begin, None) if plan.follow is Follow.MERGE and begin is not None else None
        return _Way(plan, before, held, edge, first, begin, old if old is not None and old.num_rows else None)

    def _rows_of(self, ways: Sequence[_Way]) -> int:
        """How many rows the widest of these ways reads at most."""
        return max(
            sum(
                file.rows
                for source, version in way.held.items()
                for file in self.stores[source].files_between(way.first, way.edge, version)
            )
            for way in ways
        )

    def _made(self, way: _Way, inputs: Mapping[str, DataFrame], counted: list[CountedRows]) -> DataFrame:
        """The view over its sources' rows; where it merges, with the groups that are there, by its second step."""
        plan = way.plan
        new = self._through(plan, {source: inputs[source] for source in plan.sources}, counted)
        if way.old is None:
            return new
        assert plan.merge is not None
        both = new.unionByName(inputs[plan.name]).coalesce(1)
        aggregates = [F.expr(item.expression).alias(item.name) for item in plan.merge.aggregates]
        return both.groupBy(*[quoted(name) for name in plan.merge.group]).agg(*aggregates)

    def _publish(self, way: _Way, rows: pa.Table, counted: Sequence[CountedRows]) -> Updated:
        plan, store = way.plan, self.stores[way.plan.name]
        rows = rows.select(self.arrow[plan.name].names).cast(self.arrow[plan.name])
        column = plan.operator.time_column
        if pc.any(pc.is_null(rows.column(column))).as_py():
            raise NodeFailed(plan.name, f"`{column}` is empty in some rows; a table has no place for them")
        if plan.follow is Follow.APPEND:
            add, drop = store.compacted(store.stage(rows))
        else:
            drop, before = store.cut_from(way.begin, way.before)
            add = store.stage(rows if before is None else pa.concat_tables([before, rows]))
        refused = _refused(counted)
        return Updated(store.publish(Change(way.edge, way.edge, add, drop)), rows.num_rows, refused=refused)

    def edge(self, plan: TablePlan, held: Mapping[str, Version], upto_us: int) -> int | None:
        """The safe trailing edge of a view's sources (section 2.2), where all of them can be cut off.

        A row of a bucket that is not over stands for all that came until the table's own edge, and for no time
        before. So a view takes such a bucket only if it goes up to that very edge; else it ends where buckets end.
        """
        safes = [version.safe_us for version in held.values()]
        if None in safes:
            return None
        edge = min([upto_us, *(safe for safe in safes if safe is not None)])
        while True:
            cuts = [edge]
            for source, version in held.items():
                granule = self.plans[source].granule_us
                if granule and version.fresh_us != edge:
                    cuts.append((edge + 1) // granule * granule - 1)
            if min(cuts) == edge:
                return edge
            edge = min(cuts)

    def _read(self, source: str, version: Version, first: int | None, last: int) -> pa.Table | DataFrame:
        """The rows of a source's version with times of a span; Spark reads them by itself where they are many."""
        store, column = self.stores[source], self.plans[source].operator.time_column
        files = store.files_between(first, last, version)
        if sum(file.bytes for file in files) <= SMALL_BYTES:
            rows = store.read(first, last, version)
            return self.arrow[source].empty_table() if rows is None else rows
        paths = [str(store.folder / DATA / file.name) for file in files]
        frame = self.spark.read.schema(self.schemas[source]).parquet(*paths)
        return _after(frame, column, first).where(f"{quoted(column)} <= timestamp_micros({last})").coalesce(1)

    @contextlib.contextmanager
    def _read_once(self, way: _Way, spans: Sequence[int | None]) -> Iterator[dict[str, pa.Table | DataFrame]]:
        """The sources' rows for several views: read once from where the first span begins, and cut for the others."""
        inputs: dict[str, pa.Table | DataFrame] = {}
        scans: list[DataFrame] = []
        try:
            for source in way.plan.sources:
                column = self.plans[source].operator.time_column
                widest = self._read(source, way.held[source], spans[0], way.edge)
                if isinstance(widest, DataFrame):
                    widest = widest.persist()
                    scans.append(widest)
                for number, first in enumerate(spans):
                    if isinstance(widest, DataFrame):
                        inputs[f"{source} {number}"] = _after(widest, column, first) if number else widest
                    else:
                        inputs[f"{source} {number}"] = between(widest, column, first, None) if number else widest
            yield inputs
        finally:
            for scan in scans:
                scan.unpersist()

    def _collect(
        self, key: Hashable, inputs: Mapping[str, pa.Table | DataFrame], make: Make
    ) -> tuple[pa.Table, list[CountedRows]]:
        """The rows of a plan over its inputs, and what was counted on the way."""
        rows = {name: one for name, one in inputs.items() if isinstance(one, pa.Table)}
        frames = {name: one for name, one in inputs.items() if isinstance(one, DataFrame)}
        if frames or self._bulky:
            return collect_anew(self.spark, rows, make, frames)
        return self.kept.collect(key, rows, make)

    def _key(self, plan: TablePlan, kind: str) -> Hashable:
        return plan.name, self._described[plan.name].number, kind

    # -- the graph

    def _through(self, plan: TablePlan, inputs: Mapping[str, DataFrame], counted: list[CountedRows]) -> DataFrame:
        """What enters the table: the operators' own plans over these inputs. A failure knows its node."""
        described = self._described[plan.name]
        bound = described.bound
        built: dict[str, Built] = {**{node: described.statics[node, self._bulky] for node in plan.statics}, **inputs}
        for node in plan.nodes:
            entering: dict[str, list[DataFrame]] = {}
            for link in bound.incoming.get(node, ()):
                entering.setdefault(link.target_port, []).append(self._port(built, link.source, link.source_port))
            built[node] = described.builders[self._bulky].build_node(node, entering, counted)
        node, port = bound.producers(plan.name)[0]
        return self._port(built, node, port)

    @staticmethod
    def _port(built: Mapping[str, Built], node: str, port: str) -> DataFrame:
        try:
            return port_frame(built[node], port)
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error


def _after(frame: DataFrame, column: str, first: int | None) -> DataFrame:
    """The rows of a frame from a time on."""
    return frame if first is None else frame.where(f"{quoted(column)} >= timestamp_micros({first})")


def _is_in(version: Version, arrival: Arrival) -> bool:
    """Whether a table has an arrival already: an update that failed once it was published is tried again."""
    if arrival.position is not None and version.position is not None:
        return bool(arrival.position <= version.position)
    return arrival.id in version.batches


def _refused(counted: Sequence[CountedRows]) -> dict[str, int]:
    """The rows that nodes refused, of those that did."""
    found = {one.node: one.get() for one in counted}
    return {node: sum(counts[1].values()) for node, counts in found.items() if counts and any(counts[1].values())}
