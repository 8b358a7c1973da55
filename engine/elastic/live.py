"""Elastic ETL+Q, live on Spark: rows come at a rate, are transformed, buffered, switched and loaded while queries
are asked, and the scaler keeps the limits (elastic, figure 2).

Stages run side by side, each in a thread: extraction and the scaler's look at the stages in the caller's, then
transformation, load, query sessions, and one that carries the scaler's orders out, one at a time.
"""

from __future__ import annotations

import hashlib
import math
import queue
import random
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.control import is_alive
from engine.elastic.actuators import Actuator, NotOurs, Resized
from engine.elastic.decision import Stage
from engine.elastic.distribution import Parcel, distribution
from engine.elastic.queries import asked
from engine.elastic.rates import DataRate
from engine.elastic.record import BUFFER_DISK, QUERY_TIME, TRANSFORMATION_TIME, ElasticRecord
from engine.elastic.replay import Replay
from engine.elastic.scaler import Sample, Scaler, Start, Stop, Unreachable
from engine.elastic.total import TotalTime
from engine.errors import BadInput, EnvironmentProblem, RunCancelled, RunFailed
from engine.events import (
    LoadFinished,
    NodeChanged,
    QueryAnswered,
    Rebalanced,
    Remark,
    ScalingDecided,
    StagesSampled,
)
from engine.model.elastic import Elastic, StageNodes
from engine.schedule.queues import Pack
from engine.spark.failures import is_full, reason_of
from engine.spark.letting_go import letting_go
from engine.spark.pack_frames import MARGIN
from engine.spark.packs import PackStore, remove_ownerless, tell_owner
from engine.spark.session import activate, is_loopback
from engine.spark.star import StarWarehouse
from engine.spark.star_flow import StarFlow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MB = 1e6
_QUERIES = "papilio-elastic-queries"
_ALLOCATED = "Spark's dynamic allocation"
_IN_DRIVER = ("extraction", "buffer", "switch")
_TICK_S = 0.05
_STILL_S = 1800.0  # after the last rows came: when nothing moves for so long, nothing will
_RECENT = 6  # queries whose average counts
_MOST_PACKS = 64  # of one activation of a transformation node


def live_limits(limits: Elastic) -> Elastic:
    """Live, extraction, buffers and switches are one each, in the driver; Workers scale the rest."""
    one = {"nodes": StageNodes(min=1, max=1)}
    return limits.model_copy(update={name: getattr(limits, name).model_copy(update=one) for name in _IN_DRIVER})


def not_live(limits: Elastic) -> list[str]:
    """The numbers of nodes in a file that a live run does not heed."""
    return [
        f"`elastic.{name}.nodes` is not heeded live: the driver is the one node of the {name}"
        for name in _IN_DRIVER
        if (getattr(limits, name).nodes.min, getattr(limits, name).nodes.max or 1) != (1, 1)
    ]


def in_batches(packs: Sequence[Pack], most_bytes: float) -> list[list[Pack]]:
    """Packs in their order, as many together as fit into a batch; one that is larger by itself."""
    batches: list[list[Pack]] = []
    size = 0
    for pack in packs:
        if not batches or size + pack.bytes > most_bytes:
            batches.append([])
            size = 0
        batches[-1].append(pack)
        size += pack.bytes
    return batches


@dataclass
class _Measured:
    """What the stages measured last."""

    extraction_s: list[float] = field(default_factory=list)
    transformation_s: float = 0.0
    waited_s: float | None = None  # the same, of rows that came since the transformation's nodes changed
    load_s: float | None = None
    loaded_s: float = 0.0  # the same, kept while the nodes change
    changes: int = 0  # of the warehouse's nodes: what began before the last one says nothing of these
    switch_rows_s: float = 0.0
    queries: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))


def pack_budgets(master: str | None, memory_mb: float) -> tuple[int | None, int]:
    """Bytes of memory for extracted packs and for the buffer; none given: as many as fit.

    Memory is this machine's alone. Executors elsewhere read packs in the run's folder, which they share.
    """
    if master is not None and not is_loopback(master):
        return 0, 0
    return None, int(memory_mb * _MB)


class LiveRun:
    """One live run on an open Spark session."""

    def __init__(
        self,
        record: ElasticRecord,
        rate: DataRate,
        spark: SparkSession,
        flow: StarFlow,
        actuator: Actuator,
    ) -> None:
        self.record = record
        self.limits = live_limits(record.limits)
        self.spark, self.flow, self.actuator = spark, flow, actuator
        self._there: list[str] = []  # the nodes that somebody else gave us, at the last look
        followed = frozenset() if actuator.there() is None else frozenset({Stage.TRANSFORMATION})
        fixed = {} if actuator.fixed is None else {Stage.TRANSFORMATION: actuator.fixed}
        hosted = frozenset() if followed or fixed else frozenset({Stage.TRANSFORMATION, Stage.WAREHOUSE})
        self.scaler = Scaler(self.limits, followed, fixed, hosted)
        self._rate = rate
        self._stop = threading.Event()
        self._orders: queue.Queue[Start | Stop | None] = queue.Queue()
        self._replacements: queue.Queue[Start | Stop | None] = queue.Queue()
        self._resizing = threading.Lock()  # nodes are counted, started and stopped by one at a time
        self._rebalancing = False
        self._error: BaseException | None = None
        self._lock = threading.RLock()
        self._measured = _Measured()
        self._deal = distribution(self.limits.transformation.distribution)
        self._waiting: list[deque[tuple[Pack, float]]] = [deque() for _ in range(self._nodes(Stage.TRANSFORMATION))]
        self._peaks = [0.0] * len(self._waiting)
        self._dealt_at = 0.0  # when the transformation's nodes changed last
        self._worked_on: float | None = None  # when the oldest of the packs that are being transformed came
        self._busy = 0  # packs that are being transformed or loaded
        self._buffered: list[Pack] = []
        self._growth = 0.0  # how many times as large as its rows a batch of facts was at most; 0: none was made yet
        self._switched_at = time.monotonic()
        self.taken_rows = self.transformed_rows = 0  # into and out of the transformation
        self.most_workers = 0 if isinstance(actuator, NotOurs) else self._wanted()
        self.total = TotalTime(self.limits.limit_s)
        self._queries = asked(self.limits.warehouse)
        self._query_max_s: float | None = None
        self._moved_at = 0.0  # when rows went on last
        self._rebalanced: list[Rebalanced] = []
        self._unreachable: set[str] = set()
        self._begun = 0.0

    # -- the whole run

    def run(self) -> dict[str, Any]:
        """Generate for as long as the rate lasts, load all of it, and tell what came of it."""
        live = self.limits.live
        folder = self.record.folder
        limits = self.limits.buffer
        remove_ownerless(is_alive)
        extracted, buffered = pack_budgets(self.record.master, limits.memory_mb)
        self.raw = PackStore(f"{self.record.run}-raw", folder / "raw", extracted)
        self.buffer = PackStore(f"{self.record.run}-buffer", folder / "buffer", buffered, limits.swap_share)
        for store in (self.raw, self.buffer):
            tell_owner(store, folder)
        try:
            replay = Replay(self.flow.source_path(), self.raw, live.pack_rows)
            self._set_up_warehouse(folder / "warehouse")
            self._begun = time.monotonic()
            threads = self._threads()
            loaded = False
            try:
                with letting_go():
                    self._extract(replay)
                    self._drain()
                loaded = self._error is None
            finally:
                self._end(threads, loaded)
            self._raise()
            return self._told(replay)
        finally:
            self.record.seconds = time.time() - self.record.zero
            self.raw.close()
            self.buffer.close()
            shutil.rmtree(folder / "batch", ignore_errors=True)

    def _end(self, threads: Sequence[threading.Thread], loaded: bool) -> None:
        """Let the threads end. When all is loaded nothing but queries is under way; else all of it is dropped."""
        self._stop.set()
        self._orders.put(None)
        self._replacements.put(None)
        if loaded:
            self.spark.sparkContext.cancelJobGroup(_QUERIES)
        else:
            self.spark.sparkContext.cancelAllJobs()
        for thread in threads:
            thread.join()

    def _set_up_warehouse(self, folder: Path) -> None:
        facts = self.flow.transform(self.flow.source_path())
        table = self.flow.table_name(self.limits.live.facts)
        if self.limits.live.key not in facts.columns:
            raise BadInput(
                f"{self.record.file.path}: `elastic.live.key`: the facts have no column `{self.limits.live.key}`"
            )
        self.star = StarWarehouse(self.spark, folder, table, self.limits.live.key)
        self.star.set_up(self._nodes(Stage.WAREHOUSE), facts.schema)
        for name, rows in self.flow.dimensions().items():
            self.star.put_dimension(name, rows)
        self._check_queries()
        self._facts = self.flow.batches(self.record.folder / "batch")
        # What facts are joined with is read and kept, and Java warmed, before the clock begins.
        facts.limit(1000).write.format("noop").mode("overwrite").save()

    def _check_queries(self) -> None:
        """Let Spark look at the queries before rows come: it knows the columns."""
        for name, sql in self._queries.items() if self.limits.warehouse.sessions else ():
            try:
                self.star.check(sql)
            except Exception as error:
                where = f"{self.record.file.path}: `elastic.warehouse.queries`"
                raise BadInput(f"{where}: query `{name}`: {reason_of(error)}") from error

    def _threads(self) -> list[threading.Thread]:
        from pyspark import InheritableThread

        works: list[tuple[str, Callable[[], None]]] = [
            ("transformation", self._transform),
            ("load", self._load),
            ("orders", lambda: self._carry_out(self._orders)),
            ("replacements", lambda: self._carry_out(self._replacements)),
        ]
        works += [(f"session-{number + 1}", self._ask) for number in range(self.limits.warehouse.sessions)]
        threads: list[threading.Thread] = []
        for name, work in works:
            thread = InheritableThread(target=self._guarded, args=(work,), name=f"elastic-{name}", daemon=True)
            thread.start()
            threads.append(thread)
        return threads

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            activate(self.spark)
            self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
            work()
        except BaseException as error:
            if self._error is None and not self._stop.is_set():
                self._error = error
            self._stop.set()

    def _check_cancelled(self) -> None:
        if self.record.control.cancelled.is_set():
            raise RunCancelled("cancelled")

    def _raise(self) -> None:
        if self._error is not None:
            raise RunFailed(reason_of(self._error)) from self._error

    def _told(self, replay: Replay) -> dict[str, Any]:
        warehouse = self.star.frame(self.star.current).count()
        told = {
            "rows": {
                "generated": replay.generated,
                "transformed": self.transformed_rows,
                "warehouse": warehouse,
                "refused": replay.generated - self.transformed_rows,
            },
            "warehouse": {
                "nodes": self.star.current.nodes,
                "version": self.star.current.version,
                "bytes": self.star.current.bytes,
                "folder": str(self.star.folder),
            },
            "nodes": self.scaler.nodes(),
            "most_workers": self.most_workers,
            "times": self.total.summary() | {"query_max_s": self._query_max_s},
            "rebalancings": [
                {
                    "nodes_before": one.nodes_before,
                    "nodes_after": one.nodes_after,
                    "moved_mb": round(one.bytes / _MB, 1),
                    "seconds": one.seconds,
                }
                for one in self._rebalanced
            ],
            "unreachable": sorted(self._unreachable),
            "replayed": replay.rounds,
        }
        if self.taken_rows != replay.generated:
            raise RunFailed(f"of {replay.generated:,} generated rows {self.taken_rows:,} were transformed")
        if warehouse != self.transformed_rows:
            raise RunFailed(f"the warehouse has {warehouse:,} facts where {self.transformed_rows:,} were transformed")
        if self.transformed_rows != replay.generated:
            made = self._facts_of(replay)
            if made != self.transformed_rows:
                raise RunFailed(
                    f"of {replay.generated:,} generated rows the workflow makes {made:,} facts, and "
                    f"{self.transformed_rows:,} were loaded"
                )
        return told

    def _facts_of(self, replay: Replay) -> int:
        """The facts that the workflow itself makes of the generated rows, all at once: the rest it filters out."""
        found = 0
        for rows, times in replay.given().items():
            file = self.raw.new_folder(0).with_suffix(".parquet")
            replay.write_first(rows, file)
            found += times * self.flow.transform(file).count()
            file.unlink()
        return found

    # -- extraction, and the scaler's look at the stages

    def _extract(self, replay: Replay) -> None:
        limits = self.limits
        owed, last = 0.0, 0.0
        next_extraction = next_sample = 0.0
        while not self._stop.is_set():
            self._check_cancelled()
            now = self._now()
            # The rate is followed from tick to tick, and no further than it lasts.
            until = min(now, self._rate.seconds)
            owed += self._rate.at(last) * max(until - last, 0.0)
            last = until
            ended = now >= self._rate.seconds
            if now >= next_extraction or ended:
                next_extraction = max(next_extraction + limits.extraction.every_s, now)
                rows = round(owed) if ended else math.floor(owed)
                owed -= rows
                self._queue(replay, rows)
            if now >= next_sample:
                next_sample = max(next_sample + limits.sample_s, now)
                self._sample()
            if ended:
                return
            time.sleep(_TICK_S)

    def _queue(self, replay: Replay, rows: int) -> None:
        """Extract rows and deal their packs to the queues of the transformation nodes."""
        begun = time.monotonic()
        for pack, place in replay.take(rows, self._nodes(Stage.TRANSFORMATION)):
            with self._lock:
                sizes = [float(sum(item.bytes for item, _ in waiting)) for waiting in self._waiting]
                for node in self._deal.choose(Parcel(pack.bytes, place), sizes):
                    self._waiting[node].append((pack, time.monotonic()))
                    self._peaks[node] = max(self._peaks[node], (sizes[node] + pack.bytes) / _MB)
        with self._lock:
            self._measured.extraction_s = [time.monotonic() - begun]
            if not rows and not self._busy and not any(self._waiting):
                self._measured.transformation_s = self._measured.waited_s = 0.0

    def _drain(self) -> None:
        """No more rows come; those on their way are loaded, and orders under way carried out.

        The scaler decides as long as there are rows; after that only nodes that die are replaced, which a rebalancing
        may need.
        """
        self._moved_at = time.monotonic()
        next_sample = 0.0
        told = False
        while not self._stop.is_set() and ((left := self._rows_left()) or self._ordered()):
            self._check_cancelled()
            if self._rebalancing and not left and not told:
                told = True
                self.record.log.add(Remark(message="all rows are loaded; the rebalancing under way is finished first"))
            if self._now() >= next_sample:
                next_sample = self._now() + self.limits.sample_s
                self._sample(decides=left)
            if left and time.monotonic() - self._moved_at > _STILL_S:
                raise RunFailed(f"rows that were generated are not loaded, and nothing has moved for {_STILL_S:g} s")
            time.sleep(_TICK_S)

    def _rows_left(self) -> bool:
        with self._lock:
            return bool(self._busy or self._buffered or any(self._waiting))

    def _ordered(self) -> int:
        """The orders that are not carried out yet."""
        return self._orders.unfinished_tasks + self._replacements.unfinished_tasks

    def _sample(self, decides: bool = True) -> None:
        """Look at the stages, let the scaler decide, and hand its orders on."""
        measured = self._measured
        with self._lock:
            for name in self.actuator.lost():
                self._lost(name)
            self._follow()
            seen = Sample(
                extraction_s=measured.extraction_s,
                queues_mb=list(self._peaks),
                transformation_s=self._waited_s(),
                memory_mb=[self.buffer.memory_bytes / _MB],
                disk_mb=[self.buffer.disk_bytes / _MB],
                switch_rows_s=[measured.switch_rows_s],
                load_s=measured.load_s,
                query_s=sum(measured.queries) / len(measured.queries) if measured.queries else None,
            )
            self._peaks = [sum(pack.bytes for pack, _ in waiting) / _MB for waiting in self._waiting]
            self._tell_sample(seen)
            for order in self.scaler.sample(self._now(), seen if decides else Sample()):
                self._order(order)

    def _waited_s(self) -> float | None:
        """How long rows wait and are transformed by the nodes that there are, also those that are not done yet."""
        came = [arrived for waiting in self._waiting for _, arrived in waiting]
        if self._worked_on is not None:
            came.append(self._worked_on)
        now = time.monotonic()
        found = [now - arrived for arrived in came if arrived >= self._dealt_at]
        if self._measured.waited_s is not None:
            found.append(self._measured.waited_s)
        return max(found, default=None)

    def _tell_sample(self, seen: Sample) -> None:
        measured = self._measured
        extraction_s = max(seen.extraction_s, default=0.0)
        seconds = seen.transformation_s
        measures = {
            Stage.EXTRACTION.value: extraction_s,
            Stage.TRANSFORMATION.value: max(seen.queues_mb, default=0.0),
            Stage.BUFFER.value: seen.memory_mb[0],
            Stage.SWITCH.value: seen.switch_rows_s[0],
            Stage.WAREHOUSE.value: measured.loaded_s,
            TRANSFORMATION_TIME: measured.transformation_s if seconds is None else seconds,
            BUFFER_DISK: seen.disk_mb[0],
            QUERY_TIME: seen.query_s or 0.0,
        }
        self.record.log.add(
            StagesSampled(
                rows_s=round(self._rate.at(self._now()) if self._now() < self._rate.seconds else 0.0, 1),
                ready=self.scaler.ready,
                nodes=self.scaler.nodes(),
                measures={name: round(value, 3) for name, value in measures.items()},
                memory_bytes=self.buffer.memory_bytes,
                disk_bytes=self.buffer.disk_bytes,
                etl_seconds=round(extraction_s + measured.transformation_s + measured.loaded_s, 3),
            )
        )
        late = self.total.look(extraction_s, measured.transformation_s, measured.loaded_s)
        if late is not None:
            self.record.log.add(Remark(message=late))

    def _follow(self) -> None:
        """Tell who came and went where somebody else decides that, and deal the queues to those who are there."""
        there = self.actuator.there()
        if there is None or there == self._there:
            return
        before, self._there = self._there, there
        nodes = max(1, len(there))
        self.scaler.follow(Stage.TRANSFORMATION, nodes)
        self._dealt_anew()
        self.most_workers = max(self.most_workers, len(there))
        who = _ALLOCATED if self.actuator.fixed is None else None
        here = len(before)  # several may come or go between two looks; each is told by itself
        for name in there:
            if name not in before:
                here += 1
                self._tell_node(Stage.TRANSFORMATION, "started", name, reason=who, nodes=here)
        for name in before:
            if name not in there:
                here -= 1
                self._tell_node(Stage.TRANSFORMATION, "stopped", name, reason=who, nodes=max(1, here))

    def _lost(self, name: str) -> None:
        """A Worker died. It hosted a node of every stage that has as many as there are Workers.

        Its loss is that of the stage which needs most of them; there, of one that is to leave, where one is.
        """
        leaving = {stage: self.scaler.leaving(stage) for stage in (Stage.TRANSFORMATION, Stage.WAREHOUSE)}
        stage = max(leaving, key=lambda stage: (self._nodes(stage) - leaving[stage], leaving[stage]))
        order = self.scaler.lost(stage, f"{name} died")
        left = "" if order is not None else "; a node was to leave, so it is not replaced"
        self._tell_node(stage, "lost", name, reason=f"its process ended{left}")
        if order is not None:
            self._order(order)

    def _order(self, order: Start | Stop | Unreachable) -> None:
        kinds = {Start: "scale out", Stop: "scale in", Unreachable: "unreachable"}
        self.record.log.add(
            ScalingDecided(
                stage=order.stage.value,
                action=kinds[type(order)],
                number=0 if isinstance(order, Unreachable) else order.number,
                nodes=self.scaler.stages[order.stage].nodes,
                ready=self.scaler.ready,
                reason=order.reason,
            )
        )
        if isinstance(order, Unreachable):
            self._unreachable.add(order.stage.value)
        elif isinstance(order, Start) and order.replaces:
            # A rebalancing may itself wait for the nodes that are replaced.
            self._replacements.put(order)
        else:
            self._orders.put(order)

    # -- transformation

    def _transform(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                taken = [waiting.popleft() for waiting in self._waiting for _ in range(min(len(waiting), _MOST_PACKS))]
                self._busy += len(taken)
                self._worked_on = oldest = min((arrived for _, arrived in taken), default=None)
            if oldest is None:
                time.sleep(_TICK_S)
                continue
            packs = [pack for pack, _ in taken]
            made = self._transformed(packs)
            seconds = time.monotonic() - oldest
            with self._lock:
                self._measured.transformation_s = seconds
                if oldest >= self._dealt_at:
                    self._measured.waited_s = seconds
                self._worked_on = None
                self._buffered += made
                self.taken_rows += sum(pack.rows for pack in packs)
                self.transformed_rows += sum(pack.rows for pack in made)
                self._busy -= len(taken)
            self._moved_at = time.monotonic()
            self.raw.release(packs)

    def _transformed(self, packs: list[Pack]) -> list[Pack]:
        from pyarrow import parquet

        facts = self._facts([self.raw.path(pack) for pack in packs])
        taken = sum(pack.bytes for pack in packs)
        # How large facts are is known when some were made: the first are written to disk.
        folder = self.buffer.new_folder(int(taken * self._growth * MARGIN), on_disk=not self._growth)
        try:
            folder = self._save_somewhere(facts, folder)
            counted = [(file, parquet.read_metadata(file).num_rows) for file in sorted(folder.glob("*.parquet"))]
            made = [self.buffer.adopt(file, rows, 1) for file, rows in counted if rows]
        finally:
            self.buffer.remove_folder(folder)
        self._growth = max(self._growth, 1.0, sum(pack.bytes for pack in made) / taken)
        return made

    def _save_somewhere(self, facts: DataFrame, folder: Path) -> Path:
        """Write facts; where the machine's memory turns out to be full, as others use it too, to disk."""
        writer = facts.write.option("compression", "none").option("maxRecordsPerFile", self.limits.live.pack_rows)
        try:
            writer.parquet(str(folder))
        except Exception as error:
            if not self.buffer.is_in_memory(folder) or not is_full(error):
                raise
            self.buffer.remove_folder(folder)
            folder = self.buffer.new_folder(on_disk=True)
            writer.parquet(str(folder))
        return folder

    # -- the switch and the load

    def _load(self) -> None:
        next_load = 0.0
        while not self._stop.is_set():
            if self._now() < next_load:
                if self._buffered:
                    self._moved_at = time.monotonic()  # rows that wait for their turn are not stuck
                time.sleep(_TICK_S)
                continue
            next_load = self._now() + self.limits.warehouse.every_s
            with self._lock:
                packs, self._buffered = self._buffered, []
                self._busy += len(packs)
                changes = self._measured.changes
            if not packs:
                self._nothing_to_load()
                continue
            rows = sum(pack.rows for pack in packs)
            begun = time.monotonic()
            self._measured.switch_rows_s = rows / max(begun - self._switched_at, _TICK_S)
            self._switched_at = begun
            for batch in in_batches(packs, self.limits.warehouse.batch_mb * _MB * self.star.current.nodes):
                manifest = self.star.load([self.buffer.path(pack) for pack in batch], sum(pack.rows for pack in batch))
                self._moved_at = time.monotonic()
            seconds = time.monotonic() - begun
            with self._lock:
                self._measured.loaded_s = seconds
                if changes == self._measured.changes:
                    self._measured.load_s = seconds
                self._busy -= len(packs)
            self.record.log.add(
                LoadFinished(
                    rows=rows,
                    bytes=sum(pack.bytes for pack in packs),
                    seconds=round(seconds, 3),
                    version=manifest.version,
                    total_rows=manifest.rows,
                )
            )
            self.buffer.release(packs)

    def _nothing_to_load(self) -> None:
        """No rows are a load too, one that takes no time: from when rows should have come again."""
        turn_s = max(self.limits.warehouse.every_s, self.limits.extraction.every_s)
        if time.monotonic() - self._switched_at >= turn_s and not self._rows_left():
            with self._lock:
                self._measured.load_s, self._measured.loaded_s, self._measured.switch_rows_s = 0.0, 0.0, 0.0

    # -- queries

    def _ask(self) -> None:
        chance = random.Random(threading.current_thread().name)
        self.spark.sparkContext.setJobGroup(_QUERIES, "queries of an elastic run")
        while not self._stop.is_set():
            if not self.star.current.rows:
                time.sleep(_TICK_S)
                continue
            name = chance.choice(list(self._queries))
            begun, changes = time.monotonic(), self._measured.changes
            answer, version = self.star.query(self._queries[name])
            seconds = time.monotonic() - begun
            with self._lock:
                self._query_max_s = round(max(seconds, self._query_max_s or 0.0), 3)
                if changes == self._measured.changes:
                    self._measured.queries.append(seconds)
            digest = hashlib.sha256(repr(answer).encode()).hexdigest()[:16]
            self.record.log.add(
                QueryAnswered(query=name, seconds=round(seconds, 3), version=version, rows=len(answer), digest=digest)
            )

    # -- orders

    def _carry_out(self, orders: queue.Queue[Start | Stop | None]) -> None:
        while (order := orders.get()) is not None:
            if self._stop.is_set():
                return
            if isinstance(order, Start):
                self._start(order)
            else:
                self._take_out(order)
            self._moved_at = time.monotonic()
            orders.task_done()

    def _start(self, order: Start) -> None:
        stage, begun = order.stage, time.monotonic()
        with self._resizing:
            done = self._resize()
            with self._lock:
                came = order.number
                if done.problem is not None:
                    came = max(0, min(order.number, (done.there or 0) - self._nodes(stage)))
                    self.scaler.failed(stage, self._now(), order.number - came, order.replaces)
                parts = self._parts()
        if done.problem is not None:
            self._tell_node(stage, "failed", None, begun, done.problem)
            if not came:
                return
        if stage is Stage.WAREHOUSE and not order.replaces:  # whose facts have a place already
            self._rebalance(parts)
        with self._lock:
            self.scaler.started(stage, self._now(), came)
            self._changed(stage)
        self._tell_node(stage, "started", ", ".join(done.started) or None, begun)

    def _take_out(self, order: Stop) -> None:
        stage, begun = order.stage, time.monotonic()
        with self._lock:
            parts = self._parts() - self.scaler.leaving(Stage.WAREHOUSE)
        if stage is Stage.WAREHOUSE:
            self._rebalance(max(1, parts))
        with self._resizing:
            with self._lock:
                left = self.scaler.leaving(stage)  # others died, and were told
                self.scaler.stopped(stage, self._now())
                self._changed(stage)
            done = self._resize()
        if done.problem is not None:
            self.record.log.add(Remark(message=f"a node could not be stopped: {done.problem}"))
        elif left:
            self._tell_node(stage, "stopped", ", ".join(done.stopped) or None, begun)

    def _resize(self) -> Resized:
        with self._lock:
            wanted = self._wanted()
        try:
            done = self.actuator.resize(wanted)
        except EnvironmentProblem as problem:
            return Resized(problem=str(problem))
        self.most_workers = max(self.most_workers, done.there or 0)
        return done

    def _wanted(self) -> int:
        """The Workers that are needed for the nodes that there are and that begin: stages share them."""
        states = [self.scaler.stages[stage] for stage in (Stage.TRANSFORMATION, Stage.WAREHOUSE)]
        return max(state.nodes + state.starting for state in states)

    def _parts(self) -> int:
        """How many nodes the facts are for: those that died come again."""
        state = self.scaler.stages[Stage.WAREHOUSE]
        return max(1, state.nodes + state.starting + state.missing)

    def _rebalance(self, nodes: int) -> None:
        if nodes == self.star.current.nodes:
            return
        self._rebalancing = True
        try:
            moved = self.star.rebalance(nodes)
        finally:
            self._rebalancing = False
        told = Rebalanced(
            nodes_before=moved.nodes_before,
            nodes_after=moved.nodes_after,
            bytes=moved.bytes,
            seconds=round(moved.seconds, 3),
            version=moved.version,
            rows=moved.rows,
        )
        self._rebalanced.append(told)
        self.record.log.add(told)

    def _dealt_anew(self) -> None:
        """The queues of as many transformation nodes as there are now; rows wait also while there is none."""
        nodes = max(1, self._nodes(Stage.TRANSFORMATION))
        with self._lock:
            items = [item for waiting in self._waiting for item in waiting]
            self._waiting = [deque(items[node::nodes]) for node in range(nodes)]
            self._peaks = [0.0] * nodes
            self._dealt_at, self._measured.waited_s = time.monotonic(), None

    def _changed(self, stage: Stage) -> None:
        """A stage has other nodes: queues are dealt anew; what was measured with the old ones says nothing of these."""
        if stage is Stage.TRANSFORMATION:
            self._dealt_anew()
        elif stage is Stage.WAREHOUSE:
            self._measured.load_s = None
            self._measured.queries.clear()
            self._measured.changes += 1

    def _nodes(self, stage: Stage) -> int:
        return self.scaler.stages[stage].nodes

    def _now(self) -> float:
        return time.monotonic() - self._begun

    def _tell_node(
        self,
        stage: Stage,
        change: str,
        node: str | None,
        begun: float | None = None,
        reason: str | None = None,
        nodes: int | None = None,
    ) -> None:
        seconds = 0.0 if begun is None else time.monotonic() - begun
        self.record.log.add(
            NodeChanged(
                stage=stage.value,
                change=change,
                node=node,
                nodes=self._nodes(stage) if nodes is None else nodes,
                seconds=round(seconds, 3),
                reason=reason,
            )
        )
