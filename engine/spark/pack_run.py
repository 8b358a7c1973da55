"""Runs a workflow whose rows travel in packs: the monitor decides, Spark carries out.

Units, queues and turns are the monitor's (`engine.schedule`). A turn of a unit is one Spark job over the packs it may
take (two or more jobs where it has several results, or where its input is cut into splits that are worked on side
by side). What it gives becomes packs, and the turn is written down before what it took is removed.
"""

from __future__ import annotations

import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from pyspark import InheritableThread
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from engine.errors import RunFailed
from engine.events import (
    QueueSnapshot,
    QueueSpilled,
    UnitActivated,
    UnitDecided,
    UnitFinished,
    UnitStarted,
)
from engine.model.operator import Built, Source, Split, Target, leaving, port_frame
from engine.operators.files import ColumnarSource
from engine.schedule.build import Port, pack_units
from engine.schedule.mixed import scheduled
from engine.schedule.monitor import Activation, Decided, Limits, Monitor, Outcome, Step, Unit
from engine.schedule.policy import MIXED
from engine.schedule.queues import Pack, Queue
from engine.spark.compile import PORT, CountedRows, NodeBuilder, in_one_job, tagged, writable
from engine.spark.packs import PackStore
from engine.spark.runner import CANCEL_SECONDS, POLL_SECONDS, Run
from engine.spark.session import activate
from engine.spark.slices import Slice, slices_of, write_packs

SNAPSHOT_SECONDS = 0.1
STORE = "packs"  # the folder of the disk tier in the run's folder

_WRITING = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
}

Produced = list[tuple[Pack, tuple[Queue, ...]]]


@dataclass
class Turn:
    """What a worker made of one activation."""

    activation: Activation
    outcome: Outcome = field(default_factory=lambda: Outcome(0.0))
    cursor: int | None = None  # of a source: the slices read so far; -1 for all of it in one go
    refused: list[tuple[str, int, dict[str, int]]] = field(default_factory=list)
    delivery: dict[str, Any] | None = None
    error: BaseException | None = None


@dataclass
class Reader:
    """A source and how far it was read."""

    node: str
    slices: list[Slice] | None
    cursor: int = 0
    schema: StructType | None = None  # of its packs


class PackRun(Run):
    """A run whose units are scheduled by a policy, pack by pack."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        schedule = self.schedule = self.settings.schedule
        self.made = pack_units(self.bound, schedule.granularity, schedule.queue_packs)
        graph, policies = scheduled(self.made.units, self.made.queues, schedule.policy, schedule.theta, schedule.thetas)
        self.monitor = Monitor(
            graph,
            policies,
            Limits(schedule.pack_rows, schedule.slot_ms / 1000),
            on_decision=self._decided if schedule.telemetry else None,
            on_spill=self._spilled,
        )
        self.store: PackStore
        self.builder: NodeBuilder
        self.queue_of = {link: id_ for id_, link in self.made.links.items()}
        self.absorbed: dict[str, list[Pack]] = {id_: [] for id_ in self.made.links}
        self.schemas: dict[Port, StructType] = {}  # as they stand in the packs
        self.splits: dict[str, Split] = {}  # nodes whose ports were written in one job
        self.readers: dict[str, Reader] = {}
        self.ordered = self._ordered_ports()
        self.running: dict[int, Activation] = {}
        self.started: dict[str, float] = {}
        self._schema_lock = threading.RLock()

    # -- for the log

    def _units(self) -> dict[str, dict[str, Any]]:
        return {
            unit.id: {
                "nodes": list(unit.nodes),
                "reads": [queue.spec.producer for queue in self._inputs(self.monitor.units[unit.id])],
                "work": unit.work.value,
                "number": unit.number,
                "group": unit.group,
                "policy": self.monitor.groups[self.monitor.units[unit.id].group.name].policy.name,
            }
            for unit in self.made.units
        }

    def _queues(self) -> dict[str, dict[str, Any]]:
        return {
            id_: {
                "producer": queue.spec.producer,
                "consumer": queue.spec.consumer,
                "capacity_packs": queue.capacity,
                "link": [link.source, link.source_port, link.target, link.target_port],
            }
            for id_, queue in self.monitor.queues.items()
            for link in [self.made.links[id_]]
        }

    @staticmethod
    def _inputs(unit: Unit) -> list[Queue]:
        return [*unit.inputs, *unit.references]

    def _decided(self, decided: Decided) -> None:
        activation = decided.activation
        self.log.add(
            UnitDecided(
                activation=activation.number,
                unit=activation.unit.id,
                step=activation.step.value,
                packs=min(activation.packs, 1 << 20),
                policy=decided.policy,
                group=decided.group,
                candidates=[[unit, round(score, 3)] for unit, score in decided.scores],
            )
        )

    def _spilled(self, queue: Queue) -> None:
        assert queue.capacity is not None
        self.progress.add({"spill": queue.spec.id})
        self.log.add(QueueSpilled(queue=queue.spec.id, packs=queue.capacity + queue.extra))

    def _snapshot(self) -> QueueSnapshot:
        return QueueSnapshot(
            queues={
                id_: [len(queue.packs), queue.rows, queue.bytes]
                for id_, queue in self.monitor.queues.items()
                if queue.packs
            },
            memory_bytes=self.store.memory_bytes,
            disk_bytes=self.store.disk_bytes,
            running=[activation.unit.id for activation in list(self.running.values())],
        )

    @contextmanager
    def _telemetry(self) -> Iterator[None]:
        """Snapshots of all queues, ten a second, where somebody wants them."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(SNAPSHOT_SECONDS):
                self.log.add(self._snapshot())

        thread = threading.Thread(target=watch, name="snapshots", daemon=True)
        if self.schedule.telemetry:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            if thread.is_alive():
                thread.join()

    # -- the loop

    def _run_units(self) -> None:
        assert self.spark is not None
        self.builder = NodeBuilder(self.bound, self.spark, self.place)
        budget = self.schedule.queue_memory_mb
        self.store = PackStore(self.id, self.folder / STORE, None if budget is None else budget << 20)
        for unit in self.made.units:
            for node in unit.nodes:
                operator = self.bound.operators[node]
                if isinstance(operator, Source):
                    self.readers[unit.id] = Reader(node, slices_of(operator, self.place))
        self._restore()
        limit = 1
        if self.schedule.policy == MIXED:
            limit = self.settings.parallel_units or max(2, psutil.cpu_count() or 2)
        tasks: queue.Queue[Activation | None] = queue.Queue()
        done: queue.Queue[Turn] = queue.Queue()
        workers = [
            InheritableThread(target=self._work, args=(tasks, done), name=f"worker-{number}", daemon=True)
            for number in range(limit)
        ]
        for worker in workers:
            worker.start()
        monitor = self.monitor
        monitor.statistics.clock(time.monotonic())
        try:
            with self._telemetry():
                while not monitor.finished:
                    for group in monitor.idle_groups()[: limit - len(self.running)]:
                        activation = monitor.decide(group)
                        self.running[activation.number] = activation
                        tasks.put(activation)
                    if not self.running:
                        if not monitor.unblock():
                            raise RunFailed(f"{self.bound.name}: {monitor.unfinished} units cannot go on")
                        continue
                    try:
                        turn = done.get(timeout=POLL_SECONDS)
                    except queue.Empty:
                        self._check_cancelled()
                        continue
                    del self.running[turn.activation.number]
                    if turn.error is not None:
                        failed = turn.activation.unit
                        raise self._failed(failed.id, failed.spec.nodes, turn.error)
                    self._end_turn(turn)
                    self._check_cancelled()
        except BaseException:
            self.cancel()
            raise
        finally:
            for _ in workers:
                tasks.put(None)
            deadline = time.monotonic() + CANCEL_SECONDS
            for worker in workers:
                worker.join(max(0.0, deadline - time.monotonic()))
        if self.schedule.telemetry:
            self.log.add(self._snapshot())
        self.summary.queue = monitor.statistics.summary()
        self.summary.activations = monitor.activations
        self.summary.staged_bytes = self.store.max_disk_bytes
        self.summary.spills = monitor.spills
        self._count_rows()

    def _work(self, tasks: queue.Queue[Activation | None], done: queue.Queue[Turn]) -> None:
        """A worker: carries out one activation after the other."""
        assert self.spark is not None
        activate(self.spark)
        while (activation := tasks.get()) is not None:
            turn = Turn(activation)
            try:
                self._check_cancelled()
                self._in_group(activation.unit.id)
                self._carry_out(turn)
            except BaseException as error:
                turn.error = error
            done.put(turn)

    def _in_group(self, unit: str) -> None:
        assert self.spark is not None
        context = self.spark.sparkContext
        context.setJobGroup(self._group(unit), unit, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", unit)

    def _end_turn(self, turn: Turn) -> None:
        """Write a turn down, let the monitor know, and remove what it took."""
        activation, outcome = turn.activation, turn.outcome
        unit = activation.unit
        taken = {queue.spec.id: list(queue.packs)[:count] for queue, count in activation.take}
        self.progress.add(self._as_step(turn))
        outbox = len(unit.outbox)
        self.monitor.report(activation, outcome, time.monotonic())
        self.store.release(self._took(turn, taken))
        if unit.outbox and len(unit.outbox) != outbox:
            self.store.to_disk(pack for pack, _ in unit.outbox)
        for output in unit.outputs:
            if output.extra and output.capacity is not None and len(output.packs) > output.capacity:
                self.store.to_disk(list(output.packs)[output.capacity :])
        if self.schedule.telemetry:
            packs = [pack for packs in taken.values() for pack in packs]
            self.log.add(
                UnitActivated(
                    activation=activation.number,
                    unit=unit.id,
                    step=activation.step.value,
                    packs_in=len(packs),
                    rows_in=sum(pack.rows for pack in packs) + outcome.rows_read,
                    packs_out=len(outcome.produced),
                    rows_out=sum(pack.rows for pack, _ in outcome.produced),
                    seconds=outcome.seconds,
                )
            )

    def _took(self, turn: Turn, taken: Mapping[str, list[Pack]]) -> list[Pack]:
        """What a turn did to the packs, also one that is replayed. Gives those that it held and lets go."""
        activation = turn.activation
        unit = activation.unit
        gone: list[Pack] = []
        if activation.step is Step.ABSORB:
            for id_, packs in taken.items():
                self.absorbed[id_] += packs
        else:
            gone += [pack for packs in taken.values() for pack in packs]
        if activation.step is Step.WHOLE:
            gone += self._forget(unit.inputs)
        if turn.cursor is not None:
            self.readers[unit.id].cursor = turn.cursor
        for node, total, ports in turn.refused:
            self._add_refused(node, total, ports)
        if turn.delivery is not None:
            delivery = self.deliveries[unit.spec.nodes[0]]
            delivery.restore(turn.delivery)
        for other in self.monitor.units.values():
            if other.finished and other.id not in self.summary.units:
                gone += self._forget(other.references)
                self._end_unit(other)
        return gone

    def _forget(self, queues: Sequence[Queue]) -> list[Pack]:
        """The packs that a unit absorbed out of these queues, and now lets go."""
        gone = [pack for queue in queues for pack in self.absorbed[queue.spec.id]]
        self.absorbed.update({queue.spec.id: [] for queue in queues})
        return gone

    def _end_unit(self, unit: Unit) -> None:
        nodes = unit.spec.nodes
        self._enforce_refused([node for node in nodes if node in self.taken])
        rows = self.deliveries[nodes[0]].rows() if nodes[0] in self.deliveries else unit.rows_out
        self.summary.units[unit.id] = {
            "nodes": list(nodes), "held": unit.work.value, "rows": rows, "bytes": None,
            "seconds": round(unit.seconds, 3), "activations": unit.activations,
        }  # fmt: skip
        self.log.add(UnitFinished(unit=unit.id, seconds=unit.seconds, rows=rows))

    def _count_rows(self) -> None:
        """Exact rows of every port and node whose packs were counted."""
        for id_, counted in self.monitor.queues.items():
            link = self.made.links[id_]
            port = self.made.sources[id_]
            self.rows[port] = counted.passed_rows
            self.rows[link.source, link.source_port] = counted.passed_rows
        for node, target in self.deliveries.items():
            self.taken[node] = target.rows()
            self.rows[node, self.bound.operators[node].output_ports()[0].name] = target.rows()
        for unit, reader in self.readers.items():
            produced = [port for port in self.made.ports[unit] if port[0] == reader.node]
            if not produced:
                self.rows.setdefault((reader.node, "out"), self.monitor.units[unit].rows_read)

    def _clean_up(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    # -- carrying out one activation

    def _carry_out(self, turn: Turn) -> None:
        activation = turn.activation
        unit, step = activation.unit, activation.step
        if unit.id not in self.started:
            self.started[unit.id] = time.time()
            self.log.add(UnitStarted(unit=unit.id))
        begun = time.monotonic()
        if step is Step.ABSORB:
            self.store.to_disk([pack for queue, count in activation.take for pack in list(queue.packs)[:count]])
        elif step is Step.READ:
            self._read(turn)
        elif step is Step.WHOLE:
            node = unit.spec.nodes[0]
            if isinstance(self.bound.operators[node], Target):
                self._load(turn, node)
            else:
                inputs = {queue.spec.id: self.absorbed[queue.spec.id] for queue in unit.inputs}
                self._process(turn, [inputs])
        elif step is Step.PROCESS:
            taken = {queue.spec.id: list(queue.packs)[:count] for queue, count in activation.take}
            self._process(turn, self._splits(unit, taken))
        turn.outcome.seconds = time.monotonic() - begun

    def _splits(self, unit: Unit, taken: Mapping[str, list[Pack]]) -> list[dict[str, list[Pack]]]:
        """The packs of a turn cut into splits for side-by-side pipelines, in order."""
        return [dict(taken)]

    def _process(self, turn: Turn, splits: Sequence[Mapping[str, list[Pack]]]) -> None:
        """Run the unit's nodes over packs, split by split; what they give stands in the order of the splits."""
        unit = turn.activation.unit
        size = sum(pack.bytes for split in splits for packs in split.values() for pack in packs)
        for produced, counted in self._side_by_side(
            unit,
            [lambda split=split: self._one_split(unit, split, None, size) for split in splits],  # type: ignore[misc]
        ):
            turn.outcome.produced = [*turn.outcome.produced, *produced]
            self._counted(turn, counted)

    def _side_by_side(
        self, unit: Unit, jobs: Sequence[Callable[[], tuple[Produced, list[CountedRows]]]]
    ) -> list[tuple[Produced, list[CountedRows]]]:
        if len(jobs) == 1:
            return [jobs[0]()]
        assert self.spark is not None
        spark = self.spark

        def begin() -> None:
            activate(spark)
            self._in_group(unit.id)

        with ThreadPoolExecutor(self._degree(unit), initializer=begin) as pool:
            return [future.result() for future in [pool.submit(job) for job in jobs]]

    def _degree(self, unit: Unit) -> int:
        return 1

    def _one_split(
        self, unit: Unit, packs: Mapping[str, list[Pack]], source: DataFrame | None, size: int
    ) -> tuple[Produced, list[CountedRows]]:
        counted: list[CountedRows] = []
        frames = {id_: self._frame(id_, found) for id_, found in packs.items()}
        for reference in unit.references:
            frames[reference.spec.id] = self._frame(reference.spec.id, self.absorbed[reference.spec.id])
        built = self._built(unit, frames, source, counted)
        return self._write(unit, built, size), counted

    def _counted(self, turn: Turn, counted: Sequence[CountedRows]) -> None:
        for one in counted:
            found = one.get()
            if found is not None:
                turn.refused.append((one.node, *found))

    def _built(
        self,
        unit: Unit,
        frames: Mapping[str, DataFrame],
        source: DataFrame | None,
        counted: list[CountedRows],
    ) -> dict[str, Built]:
        """The nodes of a unit over the frames of its queues (and of its source, where that was read already)."""
        built: dict[str, Built] = {}
        for node in unit.spec.nodes:
            if source is not None and isinstance(self.bound.operators[node], Source):
                built[node] = source
                continue
            inputs: dict[str, list[DataFrame]] = {}
            for link in self.bound.incoming.get(node, ()):
                id_ = self.queue_of.get(link)
                if id_ is None:
                    frame = port_frame(built[link.source], link.source_port)
                elif id_ in frames:
                    frame = frames[id_]
                else:
                    frame = self._frame(id_, [])
                inputs.setdefault(link.target_port, []).append(frame)
            built[node] = self.builder.build_node(node, inputs, counted)
        return built

    def _write(self, unit: Unit, built: Mapping[str, Built], size: int) -> Produced:
        """Write what a unit gives as packs: one job for each node, for all its ports where they can go together."""
        by_node: dict[str, list[str]] = {}
        for node, port in self.made.ports[unit.id]:
            by_node.setdefault(node, []).append(port)
        produced: Produced = []
        for node, ports in by_node.items():
            result = built[node]
            if isinstance(result, Split) and in_one_job(result, tuple(ports)):
                self._know_split(node, result)
                produced += self._written(unit, tagged(result, tuple(ports)), node, ports, size, by_port=True)
            else:
                for port in ports:
                    frame = port_frame(result, port)
                    produced += self._written(unit, frame, node, [port], size, by_port=False)
        return produced

    def _written(
        self, unit: Unit, frame: DataFrame, node: str, ports: Sequence[str], size: int, by_port: bool
    ) -> Produced:
        frame = writable(frame)
        queues = {port: self._queues_of(unit, node, port) for port in ports}
        staged = all(queue.capacity is None for port in ports for queue in queues[port])
        folder = self.store.new_folder(size, on_disk=staged)
        if not by_port:
            self._know_schema(node, ports[0], frame.schema)
        writer = frame.write.options(**_WRITING).option("maxRecordsPerFile", self.schedule.pack_rows)
        (writer.partitionBy(PORT) if by_port else writer).parquet(str(folder))
        produced: Produced = []
        for port in ports:
            where = folder / f"{PORT}={port}" if by_port else folder
            produced += self._adopted(where, queues[port])
        _remove(folder)
        return produced

    def _queues_of(self, unit: Unit, node: str, port: str) -> tuple[Queue, ...]:
        return tuple(self.monitor.queues[id_] for id_ in self.made.ports[unit.id][node, port])

    def _adopted(self, folder: Path, queues: tuple[Queue, ...]) -> Produced:
        from pyarrow import parquet

        produced: Produced = []
        files = sorted(folder.glob("*.parquet")) if folder.is_dir() else []
        for file in files:
            rows = parquet.read_metadata(file).num_rows
            if rows:
                produced.append((self.store.adopt(file, rows, len(queues)), queues))
        return produced

    # -- what the packs of a queue are

    def _know_schema(self, node: str, port: str, schema: StructType) -> None:
        with self._schema_lock:
            self.schemas.setdefault((node, port), schema)

    def _know_split(self, node: str, split: Split) -> None:
        with self._schema_lock:
            if node not in self.splits:
                self.splits[node] = split
                self.schemas[node, ""] = writable(split.frame).schema

    def _frame(self, id_: str, packs: Sequence[Pack]) -> DataFrame:
        """The rows of packs, as the node at the end of a queue reads them."""
        assert self.spark is not None
        node, port = self.made.sources[id_]
        with self._schema_lock:
            if (node, port) not in self.schemas and node not in self.splits:
                self._find_schema(node)
            split = self.splits.get(node)
            schema = self.schemas[node, port] if split is None else self.schemas[node, ""]
        frame = self._rows_of(packs, schema, (node, port) in self.ordered)
        return frame if split is None else leaving(frame, split, split.ways[port])

    def _rows_of(self, packs: Sequence[Pack], schema: StructType, ordered: bool) -> DataFrame:
        assert self.spark is not None
        if not packs:
            return self.spark.createDataFrame([], schema)
        reader = self.spark.read.schema(schema)
        files = [str(self.store.path(pack)) for pack in packs]
        if not ordered:
            return reader.parquet(*files)
        # Spark reads the largest file first; a union keeps the order of its parts.
        frame = reader.parquet(files[0])
        for file in files[1:]:
            frame = frame.unionAll(reader.parquet(file))
        return frame

    def _find_schema(self, node: str) -> None:
        """Build the unit of a node over no rows, to know what its packs look like."""
        unit = next(unit for unit in self.monitor.units.values() if node in unit.spec.nodes)
        if isinstance(self.bound.operators[node], Target):
            input_ = self._inputs(unit)[0].spec.id
            self._know_schema(node, self.made.sources[next(iter(unit.outputs)).spec.id][1],
                              writable(self._frame(input_, [])).schema)  # fmt: skip
            return
        frames = {queue.spec.id: self._frame(queue.spec.id, []) for queue in self._inputs(unit)}
        built = self._built(unit, frames, None, [])
        ports = [port for name, port in self.made.ports[unit.id] if name == node]
        result = built[node]
        if isinstance(result, Split) and in_one_job(result, tuple(ports)):
            self._know_split(node, result)
        else:
            for port in ports:
                self._know_schema(node, port, writable(port_frame(result, port)).schema)

    def _ordered_ports(self) -> set[Port]:
        """The ports whose rows stand in an order that a person asked for: behind a sort, row by row."""
        ordered: set[Port] = set()
        for node in self.bound.order:
            operator = self.bound.operators[node]
            incoming = self.bound.incoming.get(node, [])
            follows = len(incoming) == 1 or operator.category.value == "row-synchronized"
            main = bool(incoming) and (incoming[0].source, incoming[0].source_port) in ordered
            keeps = follows and main and operator.category.value == "row-synchronized"
            if operator.name == "sort" or keeps or self.bound.workflow.nodes[node].threads:
                ordered |= {(node, port.name) for port in operator.output_ports()}
        return ordered

    # -- sources

    def _read(self, turn: Turn) -> None:
        """A source's turn: as many slices as it may, or all of it in one go by Spark itself."""
        unit = turn.activation.unit
        reader = self.readers[unit.id]
        slices = reader.slices
        allowed = turn.activation.read_packs
        if reader.cursor == 0 and (slices is None or self._packs_in(slices) <= allowed):
            self._read_whole(turn, reader)
            return
        assert slices is not None
        chosen: list[Slice] = []
        packs = 0
        for slice_ in slices[reader.cursor :]:
            packs += self._packs_in([slice_])
            if chosen and packs > allowed:
                break
            chosen.append(slice_)
        self._read_slices(turn, reader, chosen)
        turn.cursor = reader.cursor + len(chosen)
        turn.outcome.exhausted = turn.cursor == len(slices)
        turn.outcome.rows_read = sum(slice_.rows for slice_ in chosen)

    def _packs_in(self, slices: Sequence[Slice]) -> int:
        return sum(-(-slice_.rows // self.schedule.pack_rows) for slice_ in slices)

    def _read_whole(self, turn: Turn, reader: Reader) -> None:
        unit = turn.activation.unit
        self._process(turn, [{}])
        turn.cursor = -1
        turn.outcome.exhausted = True
        if reader.slices is not None:
            turn.outcome.rows_read = sum(slice_.rows for slice_ in reader.slices)
        elif unit.spec.nodes == (reader.node,):
            turn.outcome.rows_read = sum(pack.rows for pack, _ in turn.outcome.produced)

    def _read_slices(self, turn: Turn, reader: Reader, chosen: list[Slice]) -> None:
        """Row groups become packs; where other nodes belong to the unit, Spark works on them at once."""
        unit = turn.activation.unit
        operator = self.bound.operators[reader.node]
        assert isinstance(operator, ColumnarSource)
        size = sum(slice_.rows for slice_ in chosen) * 200
        folder = self.store.new_folder(size)
        files = list(write_packs(operator, chosen, folder, self.schedule.pack_rows))
        if reader.schema is None:
            reader.schema = port_frame(self.builder.build_node(reader.node, {}, []), "out").schema
        if unit.spec.nodes == (reader.node,):
            ports = list(self.made.ports[unit.id])
            assert len(ports) == 1
            self._know_schema(*ports[0], reader.schema)
            queues = self._queues_of(unit, *ports[0])
            turn.outcome.produced = [(self.store.adopt(file, rows, len(queues)), queues) for file, rows in files]
        else:
            assert self.spark is not None
            frame = self.spark.read.schema(reader.schema).parquet(str(folder))
            produced, counted = self._one_split(unit, {}, frame, size)
            turn.outcome.produced = produced
            self._counted(turn, counted)
        _remove(folder)

    # -- targets

    def _load(self, turn: Turn, node: str) -> None:
        """Stage all rows of a target; those who read the table itself get it as packs."""
        assert self.spark is not None
        unit = turn.activation.unit
        input_ = self._inputs(unit)[0].spec.id
        target = self.deliveries[node]
        target.write(self._frame(input_, self.absorbed[input_]))
        turn.delivery = target.state()
        size = sum(pack.bytes for pack in self.absorbed[input_])
        for _, port in self.made.ports[unit.id]:
            turn.outcome.produced = self._written(unit, target.read(self.spark), node, [port], size, by_port=False)

    # -- resuming

    def _as_step(self, turn: Turn) -> dict[str, Any]:
        """A turn as plain data, from which the same state comes out."""
        activation, outcome = turn.activation, turn.outcome
        return {
            "unit": activation.unit.id,
            "step": activation.step.value,
            "take": [[queue.spec.id, count] for queue, count in activation.take],
            "deliver": activation.deliver,
            "produced": [
                [pack.name, pack.rows, pack.bytes, [queue.spec.id for queue in queues]]
                for pack, queues in outcome.produced
            ],
            "seconds": outcome.seconds,
            "rows_read": outcome.rows_read,
            "exhausted": outcome.exhausted,
            "cursor": turn.cursor,
            "refused": turn.refused,
            "delivery": turn.delivery,
        }

    def _restore(self) -> None:
        """Replay the steps of a killed run, then know its packs again."""
        holders: dict[str, int] = {}
        packs: dict[str, Pack] = {}
        for step in self.progress.done():
            if "spill" in step:
                queue = self.monitor.queues[step["spill"]]
                queue.extra += queue.capacity or 0
                self.monitor.spills += 1
                continue
            unit = self.monitor.units[step["unit"]]
            produced: Produced = []
            for name, rows, size, ids in step["produced"]:
                packs[name] = Pack(rows, size, name)
                holders[name] = len(ids)
                produced.append((packs[name], tuple(self.monitor.queues[id_] for id_ in ids)))
            take = [(self.monitor.queues[id_], count) for id_, count in step["take"]]
            activation = self.monitor.replay(unit, Step(step["step"]), take, step["deliver"])
            outcome = Outcome(step["seconds"], produced, step["rows_read"], step["exhausted"])
            refused = [(node, total, ports) for node, total, ports in step["refused"]]
            turn = Turn(activation, outcome, step["cursor"], refused, step["delivery"])
            taken = {queue.spec.id: list(queue.packs)[:count] for queue, count in take}
            self.monitor.report(activation, outcome, time.monotonic())
            for pack in self._took(turn, taken):
                holders[pack.name] -= 1
        self.store.restore((packs[name], count) for name, count in holders.items() if count)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
