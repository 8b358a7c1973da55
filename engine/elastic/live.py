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

from engine.elastic.actuators import Actuator
from engine.elastic.decision import Stage
from engine.elastic.distribution import Parcel, distribution
from engine.elastic.queries import SQL
from engine.elastic.rates import DataRate
from engine.elastic.record import ElasticRecord
from engine.elastic.replay import Replay
from engine.elastic.scaler import Sample, Scaler, Start, Stop, Unreachable
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
from engine.spark.failures import reason_of
from engine.spark.letting_go import letting_go
from engine.spark.packs import PackStore
from engine.spark.session import activate
from engine.spark.star import StarWarehouse
from engine.spark.star_flow import StarFlow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MB = 1e6
_ALLOCATED = "Spark's dynamic allocation"
_TICK_S = 0.05
_DRAIN_S = 1800.0  # until everything that was generated must be loaded
_RECENT = 6  # queries whose average counts
_MOST_PACKS = 64  # of one activation of a transformation node


def live_limits(limits: Elastic) -> Elastic:
    """Live, extraction, buffers and switches are one each, in the driver; Workers scale the rest."""
    if limits.transformation.distribution == "copy":
        raise BadInput("`elastic.transformation.distribution`: live, `copy` would load every row once for each node")
    one = {"nodes": StageNodes(min=1, max=1)}
    return limits.model_copy(
        update={name: getattr(limits, name).model_copy(update=one) for name in ("extraction", "buffer", "switch")}
    )


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
    load_s: float | None = None
    loaded_s: float = 0.0  # the same, kept while the nodes change
    switch_rows_s: float = 0.0
    queries: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))


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
        self.scaler = Scaler(self.limits, followed)
        self._rate = rate
        self._stop = threading.Event()
        self._orders: queue.Queue[Start | Stop | None] = queue.Queue()
        self._error: BaseException | None = None
        self._lock = threading.RLock()
        self._measured = _Measured()
        self._deal = distribution(self.limits.transformation.distribution)
        self._waiting: list[deque[tuple[Pack, float]]] = [deque() for _ in range(self._nodes(Stage.TRANSFORMATION))]
        self._peaks = [0.0] * len(self._waiting)
        self._busy = 0  # packs that are being transformed or loaded
        self._buffered: list[Pack] = []
        self._switched_at = time.monotonic()
        self.taken_rows = self.transformed_rows = 0  # into and out of the transformation
        self.most_workers = max(self._nodes(Stage.TRANSFORMATION), self._nodes(Stage.WAREHOUSE))
        self._rebalanced: list[Rebalanced] = []
        self._unreachable: set[str] = set()
        self._begun = 0.0

    # -- the whole run

    def run(self) -> dict[str, Any]:
        """Generate for as long as the rate lasts, load all of it, and tell what came of it."""
        live = self.limits.live
        folder = self.record.folder
        limits = self.limits.buffer
        budget = int(limits.memory_mb * _MB)
        self.raw = PackStore(f"{self.record.run}-raw", folder / "raw")
        self.buffer = PackStore(f"{self.record.run}-buffer", folder / "buffer", budget, limits.swap_share)
        try:
            replay = Replay(self.flow.source_path(), self.raw, live.pack_rows)
            self._set_up_warehouse(folder / "warehouse")
            self._begun = time.monotonic()
            threads = self._threads()
            try:
                with letting_go():
                    self._extract(replay)
                    self._drain()
            finally:
                self._stop.set()
                self._orders.put(None)
                if self._error is not None or self._unfinished():
                    self.spark.sparkContext.cancelAllJobs()
                for thread in threads:
                    thread.join()
            self._raise()
            return self._told(replay)
        finally:
            self.record.seconds = time.time() - self.record.zero
            self.raw.close()
            self.buffer.close()
            shutil.rmtree(folder / "batch", ignore_errors=True)

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
        self._facts = self.flow.batches(self.record.folder / "batch")
        # What facts are joined with is read and kept, and Java warmed, before the clock begins.
        facts.limit(1000).write.format("noop").mode("overwrite").save()

    def _threads(self) -> list[threading.Thread]:
        from pyspark import InheritableThread

        works: list[tuple[str, Callable[[], None]]] = [
            ("transformation", self._transform),
            ("load", self._load),
            ("orders", self._carry_out),
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
        self._measured.extraction_s = [time.monotonic() - begun]

    def _drain(self) -> None:
        """No more rows come; those on their way are loaded. The scaler goes on meanwhile."""
        begun = time.monotonic()
        next_sample = 0.0
        while not self._stop.is_set() and self._unfinished():
            self._check_cancelled()
            if self._now() >= next_sample:
                next_sample = self._now() + self.limits.sample_s
                self._sample()
            if time.monotonic() - begun > _DRAIN_S:
                raise RunFailed(f"rows that were generated are not loaded after {_DRAIN_S:g} s")
            time.sleep(_TICK_S)

    def _unfinished(self) -> bool:
        with self._lock:
            return bool(self._busy or self._buffered or any(self._waiting)) or not self._orders.empty()

    def _sample(self) -> None:
        """Look at the stages, let the scaler decide, and hand its orders on."""
        measured = self._measured
        with self._lock:
            for name in self.actuator.lost():
                self._lost(name)
            self._follow()
            seen = Sample(
                extraction_s=measured.extraction_s,
                queues_mb=list(self._peaks),
                memory_mb=[self.buffer.memory_bytes / _MB],
                disk_mb=[self.buffer.disk_bytes / _MB],
                switch_rows_s=[measured.switch_rows_s],
                load_s=measured.load_s,
                query_s=sum(measured.queries) / len(measured.queries) if measured.queries else None,
            )
            self._peaks = [sum(pack.bytes for pack, _ in waiting) / _MB for waiting in self._waiting]
            self._tell_sample(seen)
            for order in self.scaler.sample(self._now(), seen):
                self._order(order)

    def _tell_sample(self, seen: Sample) -> None:
        measured = self._measured
        by_query = self.limits.warehouse.load_limit_s is None and seen.query_s is not None
        measures = {
            Stage.EXTRACTION: max(seen.extraction_s, default=0.0),
            Stage.TRANSFORMATION: max(seen.queues_mb),
            Stage.BUFFER: seen.memory_mb[0],
            Stage.SWITCH: seen.switch_rows_s[0],
            Stage.WAREHOUSE: seen.query_s if by_query and seen.query_s is not None else measured.loaded_s,
        }
        self.record.log.add(
            StagesSampled(
                rows_s=round(self._rate.at(self._now()) if self._now() < self._rate.seconds else 0.0, 1),
                ready=self.scaler.ready,
                nodes=self.scaler.nodes(),
                measures={stage.value: round(value, 3) for stage, value in measures.items()},
                memory_bytes=self.buffer.memory_bytes,
                disk_bytes=self.buffer.disk_bytes,
                etl_seconds=round(measures[Stage.EXTRACTION] + measured.transformation_s + measured.loaded_s, 3),
            )
        )

    def _follow(self) -> None:
        """Tell who came and went where somebody else decides that, and deal the queues to those who are there."""
        there = self.actuator.there()
        if there is None or there == self._there:
            return
        before, self._there = self._there, there
        nodes = max(1, len(there))
        self.scaler.follow(Stage.TRANSFORMATION, nodes)
        self._resized(Stage.TRANSFORMATION, nodes)
        self.most_workers = max(self.most_workers, len(there))
        here = len(before)  # several may come or go between two looks; each is told by itself
        for name in there:
            if name not in before:
                here += 1
                self._tell_node(Stage.TRANSFORMATION, "started", name, reason=_ALLOCATED, nodes=here)
        for name in before:
            if name not in there:
                here -= 1
                self._tell_node(Stage.TRANSFORMATION, "stopped", name, reason=_ALLOCATED, nodes=max(1, here))

    def _lost(self, name: str) -> None:
        """A Worker died. It hosted a node of every stage that has as many as there are Workers."""
        nodes = self.scaler.nodes()
        stage = max((Stage.TRANSFORMATION, Stage.WAREHOUSE), key=lambda stage: nodes[stage.value])
        order = self.scaler.lost(stage, f"{name} died")
        self._tell_node(stage, "lost", name, reason="its process ended")
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
        else:
            self._orders.put(order)

    # -- transformation

    def _transform(self) -> None:
        while not self._stop.is_set():
            with self._lock:
                taken = [waiting.popleft() for waiting in self._waiting for _ in range(min(len(waiting), _MOST_PACKS))]
                self._busy += len(taken)
            if not taken:
                time.sleep(_TICK_S)
                continue
            packs = [pack for pack, _ in taken]
            oldest = min(arrived for _, arrived in taken)
            made = self._transformed(packs)
            self._measured.transformation_s = time.monotonic() - oldest
            with self._lock:
                self._buffered += made
                self.taken_rows += sum(pack.rows for pack in packs)
                self.transformed_rows += sum(pack.rows for pack in made)
                self._busy -= len(taken)
            self.raw.release(packs)

    def _transformed(self, packs: list[Pack]) -> list[Pack]:
        from pyarrow import parquet

        facts = self._facts([self.raw.path(pack) for pack in packs])
        folder = self.buffer.new_folder(sum(pack.bytes for pack in packs))
        writer = facts.write.option("compression", "none").option("maxRecordsPerFile", self.limits.live.pack_rows)
        writer.parquet(str(folder))
        counted = [(file, parquet.read_metadata(file).num_rows) for file in sorted(folder.glob("*.parquet"))]
        made = [self.buffer.adopt(file, rows, 1) for file, rows in counted if rows]
        shutil.rmtree(folder, ignore_errors=True)
        return made

    # -- the switch and the load

    def _load(self) -> None:
        next_load = 0.0
        while not self._stop.is_set():
            if self._now() < next_load:
                time.sleep(_TICK_S)
                continue
            next_load = self._now() + self.limits.warehouse.every_s
            with self._lock:
                packs, self._buffered = self._buffered, []
                self._busy += len(packs)
            if not packs:
                continue
            rows = sum(pack.rows for pack in packs)
            begun = time.monotonic()
            self._measured.switch_rows_s = rows / max(begun - self._switched_at, _TICK_S)
            self._switched_at = begun
            for batch in in_batches(packs, self.limits.warehouse.batch_mb * _MB * self.star.current.nodes):
                manifest = self.star.load([self.buffer.path(pack) for pack in batch], sum(pack.rows for pack in batch))
            seconds = time.monotonic() - begun
            with self._lock:
                self._measured.load_s = self._measured.loaded_s = seconds
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

    # -- queries

    def _ask(self) -> None:
        chance = random.Random(threading.current_thread().name)
        while not self._stop.is_set():
            if not self.star.current.rows:
                time.sleep(_TICK_S)
                continue
            name = chance.choice(self.limits.warehouse.queries)
            begun = time.monotonic()
            answer, version = self.star.query(SQL[name])
            seconds = time.monotonic() - begun
            with self._lock:
                self._measured.queries.append(seconds)
            digest = hashlib.sha256(repr(answer).encode()).hexdigest()[:16]
            self.record.log.add(
                QueryAnswered(query=name, seconds=round(seconds, 3), version=version, rows=len(answer), digest=digest)
            )

    # -- orders

    def _carry_out(self) -> None:
        while (order := self._orders.get()) is not None:
            if self._stop.is_set():
                return
            if isinstance(order, Start):
                self._start(order)
            else:
                self._take_out(order)

    def _start(self, order: Start) -> None:
        begun = time.monotonic()
        with self._lock:
            wanted = self._workers(order.stage, self._nodes(order.stage) + order.number)
        try:
            started, _ = self.actuator.resize(wanted)
        except EnvironmentProblem as problem:
            with self._lock:
                self.scaler.failed(order.stage, self._now(), order.number)
            self._tell_node(order.stage, "failed", None, begun, str(problem))
            return
        self.most_workers = max(self.most_workers, wanted)
        self._resized(order.stage, self._nodes(order.stage) + order.number)
        with self._lock:
            self.scaler.started(order.stage, self._now(), order.number)
            self._forget(order.stage)
        self._tell_node(order.stage, "started", ", ".join(started) or None, begun)

    def _take_out(self, order: Stop) -> None:
        begun = time.monotonic()
        self._resized(order.stage, self._nodes(order.stage) - order.number)
        with self._lock:
            self.scaler.stopped(order.stage, self._now(), order.number)
            self._forget(order.stage)
            wanted = self._workers(order.stage, self._nodes(order.stage))
        try:
            _, stopped = self.actuator.resize(wanted)
        except EnvironmentProblem as problem:
            self.record.log.add(Remark(message=f"a node could not be stopped: {problem}"))
            return
        self._tell_node(order.stage, "stopped", ", ".join(stopped) or None, begun)

    def _resized(self, stage: Stage, nodes: int) -> None:
        """What a stage does with more or fewer nodes: queues are dealt anew, facts are rebalanced."""
        if stage is Stage.WAREHOUSE and nodes != self.star.current.nodes:
            moved = self.star.rebalance(nodes)
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
        elif stage is Stage.TRANSFORMATION:
            with self._lock:
                items = [item for waiting in self._waiting for item in waiting]
                self._waiting = [deque(items[node::nodes]) for node in range(nodes)]
                self._peaks = [0.0] * nodes

    def _workers(self, stage: Stage, nodes: int) -> int:
        """The Workers that are needed when a stage has so many nodes: stages share them."""
        others = [self._nodes(other) for other in (Stage.TRANSFORMATION, Stage.WAREHOUSE) if other is not stage]
        return max(nodes, *others)

    def _forget(self, stage: Stage) -> None:
        """What was measured with other nodes says nothing about these."""
        if stage is Stage.WAREHOUSE:
            self._measured.load_s = None
            self._measured.queries.clear()

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
