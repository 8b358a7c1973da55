"""Update jobs on Spark: records of a stream into a base table, and what its sources hold into a view.

An update is one small Spark job. What it reads comes from memory where it is small, each input is one partition, and
so nothing is shuffled; its result is written beside the table and published by one line of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from engine.operators.streams import MICROS, GeneratorStream
from engine.partition.tables import Follow, TablePlan
from engine.spark.compile import CountedRows, NodeBuilder
from engine.spark.failures import NodeFailed, reason_of
from engine.spark.session import activate
from engine.spark.stream_feeds import FUTURE_S, Arrival, Feed
from engine.spark.stream_store import DATA, Change, TableStore, Version, times_us

SMALL_BYTES = 8 * 2**20  # more than this is read by Spark itself, not handed to it

BULK_ROWS = 50_000  # an update over more rows is worth compiling; below, Spark interprets its plan

_SETTINGS = {
    # A plan is run once and over little: looking at it again while it runs costs more than it saves.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",  # a broadcast is a job of its own
    "spark.sql.execution.arrow.pyspark.enabled": "true",
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
        self.bound = bound
        self.plans = plans
        self.stores = stores
        settings = (_SETTINGS | _INTERPRETED, _SETTINGS)
        self._sessions = [_session(spark, one) for one in settings]  # for small updates, and for bulky ones
        self._builders = [NodeBuilder(bound, session, place) for session in self._sessions]
        self._chosen = local()  # by the update that a thread carries out
        self.schemas: dict[str, Any] = {}  # of tables and streams, as Spark has them
        self.arrow: dict[str, pa.Schema] = {}
        self._statics: dict[tuple[str, bool], DataFrame] = {}

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
        for plan in self.plans.values():
            self.prepare_table(plan)

    def prepare_table(self, plan: TablePlan) -> None:
        """Plan one table whose sources are planned."""
        self._read_statics(plan)
        inputs = {}
        if plan.stream is not None:
            stream = self.bound.operators[plan.stream]
            assert hasattr(stream, "declared")
            ddl = ", ".join(f"{quoted(name)} {kind}" for name, kind in (stream.declared() or {}).items())
            frame = self.spark.createDataFrame([], ddl)
            self.arrow[plan.stream] = frame.limit(0).toArrow().schema
            inputs[plan.stream] = frame
        else:
            inputs = {source: self.spark.createDataFrame([], self.schemas[source]) for source in plan.sources}
        result = self._through(plan, inputs, [])
        self.schemas[plan.name] = result.schema
        self.arrow[plan.name] = result.limit(0).toArrow().schema

    def take_over(self, other: Updater) -> None:
        """Know what another one knows of the tables that both have."""
        self.schemas |= other.schemas
        self.arrow |= other.arrow
        for plan in self.plans.values():
            self._read_statics(plan)

    def _read_statics(self, plan: TablePlan) -> None:
        for node in plan.statics:
            if (node, False) not in self._statics:
                rows = port_frame(self._builders[0].build_node(node, {}, []), "out").toArrow()
                for bulky, session in enumerate(self._sessions):
                    self._statics[node, bool(bulky)] = session.createDataFrame(rows).coalesce(1)

    # -- a base table

    def load(self, plan: TablePlan, feed: Feed, arrivals: Sequence[Arrival], now: float) -> Updated:
        """Load the next arrivals of a stream into its table, all of them or none."""
        store = self.stores[plan.name]
        before = store.version
        assert plan.stream is not None
        batches = [arrival for arrival in arrivals if arrival.safe_us is None and arrival.rows]
        counted: list[CountedRows] = []
        rows = None
        self._choose(sum(arrival.rows for arrival in batches))
        if batches:
            raw = self.spark.createDataFrame(feed.read(batches)).coalesce(1)
            stream = self.bound.operators[plan.stream]
            if isinstance(stream, GeneratorStream):
                raw = stream.computed(raw)
            rows = self._through(plan, {plan.stream: raw}, counted).toArrow().cast(self.arrow[plan.name])
        times = [arrival.upto_us for arrival in batches if arrival.upto_us is not None]
        fresh = max([*times, *([before.fresh_us] if before.fresh_us is not None else [])], default=None)
        promised = [arrival.safe_us for arrival in arrivals if arrival.safe_us is not None]
        behind = [] if fresh is None else [fresh - round(plan.operator.lateness_bound_s * MICROS)]
        known = [] if before.safe_us is None else [before.safe_us]
        safe = max([*known, *behind, *promised], default=None)
        add: list[Any] = []
        drop: list[str] = []
        late: list[Any] = []
        written = too_late = 0
        if rows is not None and rows.num_rows:
            micros = times_us(rows, plan.operator.time_column)
            good = pc.less_equal(micros, pa.scalar(round((now + FUTURE_S) * MICROS)))
            if before.safe_us is not None:
                good = pc.and_(good, pc.greater(micros, pa.scalar(before.safe_us)))
            good = pc.fill_null(good, False)
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
        return Updated(store.publish(change), written, too_late, _refused(counted))

    # -- a view

    def follow(self, plan: TablePlan, upto_us: int) -> Updated:
        """Bring a view up to an edge, or as near to it as its sources' buckets allow; nothing beyond it."""
        store = self.stores[plan.name]
        before = store.version
        held = {source: self.stores[source].version for source in plan.sources}
        edge = self.edge(plan, held, upto_us)
        if edge is None or (before.fresh_us is not None and edge <= before.fresh_us):
            return Updated(before, 0)
        column, width = plan.operator.time_column, plan.partition_us
        after = before.fresh_us
        counted: list[CountedRows] = []
        first = None if after is None else after + 1 if plan.follow is not Follow.RECOMPUTE else after // width * width
        files = [self.stores[source].files_between(first, edge, held[source]) for source in plan.sources]
        self._choose(sum(file.rows for some in files for file in some))
        if plan.follow is Follow.APPEND:
            rows = self._between(plan, held, None if after is None else after + 1, edge, counted)
            add, drop = store.compacted(store.stage(rows))
        else:
            begin = None if after is None else after // width * width
            if plan.follow is Follow.MERGE:
                rows = self._merged(plan, held, after, begin, edge, counted)
            else:
                rows = self._between(plan, held, begin, edge, counted)
            drop = [file.name for file in store.files_between(begin, None, before)]
            add = store.stage(rows)
        if pc.any(pc.is_null(rows.column(column))).as_py():
            raise NodeFailed(plan.name, f"`{column}` is empty in some rows; a table has no place for them")
        return Updated(store.publish(Change(edge, edge, add, drop)), rows.num_rows, refused=_refused(counted))

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

    def _between(
        self, plan: TablePlan, held: Mapping[str, Version], first: int | None, last: int, counted: list[CountedRows]
    ) -> pa.Table:
        """The view over its sources' rows of a span."""
        inputs = {source: self._frame(source, held[source], first, last) for source in plan.sources}
        return self._through(plan, inputs, counted).toArrow().cast(self.arrow[plan.name])

    def _merged(
        self,
        plan: TablePlan,
        held: Mapping[str, Version],
        after: int | None,
        begin: int | None,
        edge: int,
        counted: list[CountedRows],
    ) -> pa.Table:
        """The groups that are there and those of the new rows, made one by the second step of the aggregate."""
        first = None if after is None else after + 1
        old = None if begin is None else self.stores[plan.name].read(begin, None)
        if old is None or not old.num_rows:
            return self._between(plan, held, first, edge, counted)
        assert plan.merge is not None
        inputs = {source: self._frame(source, held[source], first, edge) for source in plan.sources}
        both = self._through(plan, inputs, counted).unionByName(self.spark.createDataFrame(old)).coalesce(1)
        aggregates = [F.expr(item.expression).alias(item.name) for item in plan.merge.aggregates]
        merged = both.groupBy(*[quoted(name) for name in plan.merge.group]).agg(*aggregates)
        return merged.toArrow().select(self.arrow[plan.name].names).cast(self.arrow[plan.name])

    def _frame(self, source: str, version: Version, first: int | None, last: int) -> DataFrame:
        """The rows of a source's version with times of a span, as one partition."""
        store, column = self.stores[source], self.plans[source].operator.time_column
        files = store.files_between(first, last, version)
        if sum(file.bytes for file in files) <= SMALL_BYTES:
            rows = store.read(first, last, version)
            if rows is None or not rows.num_rows:
                return self.spark.createDataFrame([], self.schemas[source]).coalesce(1)
            return self.spark.createDataFrame(rows).coalesce(1)
        paths = [str(store.folder / DATA / file.name) for file in files]
        frame = self.spark.read.schema(self.schemas[source]).parquet(*paths)
        conditions = [f"{quoted(column)} <= timestamp_micros({last})"]
        if first is not None:
            conditions.append(f"{quoted(column)} >= timestamp_micros({first})")
        return frame.where(" AND ".join(conditions)).coalesce(1)

    # -- the graph

    def _through(self, plan: TablePlan, inputs: Mapping[str, DataFrame], counted: list[CountedRows]) -> DataFrame:
        """What enters the table: the operators' own plans over these inputs. A failure knows its node."""
        built: dict[str, Built] = {**{node: self._statics[node, self._bulky] for node in plan.statics}, **inputs}
        for node in plan.nodes:
            entering: dict[str, list[DataFrame]] = {}
            for link in self.bound.incoming.get(node, ()):
                entering.setdefault(link.target_port, []).append(self._port(built, link.source, link.source_port))
            built[node] = self._builders[self._bulky].build_node(node, entering, counted)
        node, port = self.bound.producers(plan.name)[0]
        return self._port(built, node, port)

    @staticmethod
    def _port(built: Mapping[str, Built], node: str, port: str) -> DataFrame:
        try:
            return port_frame(built[node], port)
        except Exception as error:
            raise NodeFailed(node, reason_of(error)) from error


def _refused(counted: Sequence[CountedRows]) -> dict[str, int]:
    """The rows that nodes refused, of those that did."""
    found = {one.node: one.get() for one in counted}
    return {node: sum(counts[1].values()) for node, counts in found.items() if counts and any(counts[1].values())}
