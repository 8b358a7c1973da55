"""Runs a workflow whose rows travel in packs: the monitor decides, Spark carries out.

Units, queues and turns are the monitor's (`engine.schedule`), what a turn does is in `pack_turns`. A turn is written
down before what it took is removed, so that a killed run can be finished from where it was.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil
from pyspark import InheritableThread

from engine.errors import RunFailed
from engine.events import QueueSnapshot, UnitFinished, UnitStarted
from engine.schedule import log
from engine.schedule.build import pack_units
from engine.schedule.mixed import scheduled
from engine.schedule.monitor import Monitor
from engine.schedule.policy import MIXED
from engine.schedule.queues import Pack, Queue
from engine.schedule.turn import Activation, Decided, Limits, Outcome, Step
from engine.schedule.unit import Unit
from engine.spark.backend import backend_of
from engine.spark.compile import NodeBuilder
from engine.spark.failures import NodeFailed
from engine.spark.letting_go import letting_go
from engine.spark.pack_frames import PackFrames, Produced
from engine.spark.pack_turns import PackTurns, Turn
from engine.spark.packs import PackStore, default_budget_bytes
from engine.spark.peek import forget_packs, write_packs
from engine.spark.pipelines import Pipelines
from engine.spark.runner import POLL_SECONDS, Run

SNAPSHOT_SECONDS = 0.1
STORE = "packs"  # the folder of the disk tier in the run's folder


class PackRun(Run):
    """A run whose units are scheduled by a policy, pack by pack."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        schedule = self.schedule = self.settings.schedule
        size = None if schedule.queue_mb is None else int(schedule.queue_mb * 2**20)
        self.made = pack_units(self.bound, schedule.granularity, schedule.queue_packs, size)
        graph, policies = scheduled(self.made.units, self.made.queues, schedule.policy, schedule.theta, schedule.thetas)
        self.monitor = Monitor(
            graph,
            policies,
            Limits(schedule.pack_rows, schedule.slot_ms / 1000),
            on_decision=self._decided if schedule.telemetry else None,
            on_spill=self._spilled,
        )
        self.store: PackStore
        self.turns: PackTurns
        self.changing = threading.Lock()  # queues, while a turn's packs leave and enter them
        self.cores = psutil.cpu_count() or 2
        self.running: dict[int, Activation] = {}
        self.started: set[str] = set()
        self.control.drive(self.monitor.pace, self.log.add)

    # -- for the log

    def _units(self) -> dict[str, dict[str, Any]]:
        return log.unit_facts(self.monitor)

    def _queues(self) -> dict[str, dict[str, Any]]:
        return log.queue_facts(self.monitor, self.made)

    def _facts(self) -> dict[str, Any]:
        asked = self.schedule.queue_memory_mb
        return {**super()._facts(), "memory_bytes": default_budget_bytes() if asked is None else asked << 20}

    def _decided(self, decided: Decided) -> None:
        self.log.add(log.decision(decided))

    def _spilled(self, queue: Queue) -> None:
        self.progress.add({"spill": queue.spec.id})
        self.log.add(log.spill(queue))

    def _tell_turn(self, turn: Turn, taken: Mapping[str, list[Pack]]) -> None:
        rows = sum(pack.rows for packs in taken.values() for pack in packs)
        self.log.add(log.turn(turn.activation, rows, turn.outcome))

    def _tell_queues(self) -> None:
        self.log.add(self._snapshot())

    def _snapshot(self) -> QueueSnapshot:
        store = self.store
        with self.changing:
            memory, disk = store.used_bytes, store.disk_bytes
            return log.snapshot(self.monitor, self._in_turn(), memory_bytes=memory, disk_bytes=disk)

    def _in_turn(self) -> list[str]:
        """The units in the middle of a turn."""
        return [activation.unit.id for activation in list(self.running.values())]

    @contextmanager
    def _telemetry(self) -> Iterator[None]:
        """Snapshots of all queues, ten a second, where somebody wants them."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(SNAPSHOT_SECONDS):
                if self.running or not self.monitor.pace.held:  # nothing changes in a run that stands still
                    self._tell_queues()

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
        budget = self.schedule.queue_memory_mb
        self.store = PackStore(self.id, self.folder / STORE, None if budget is None else budget << 20)
        builder = NodeBuilder(self.bound, self.spark, self.place)
        frames = PackFrames(self.bound, self.made, builder, self.store, self.monitor.queues, self.schedule.pack_rows)
        pipelines = Pipelines(self.schedule.degree, self.settings.measures, self.cores)
        self.turns = PackTurns(frames, self.monitor.units, self.deliveries, pipelines, self.log, self._enter)
        self._restore()
        limit = 1
        if self.schedule.policy == MIXED:
            limit = self.settings.parallel_units or max(2, self.cores)
        self._loop(limit)
        if self.schedule.telemetry:
            self._tell_queues()
        self.summary.queue = self.monitor.statistics.summary()
        self.summary.activations = self.monitor.activations
        self.summary.staged_bytes = self.store.max_disk_bytes
        self.summary.spills = self.monitor.spills
        self.summary.measures = pipelines.as_dict()
        self._count_rows()

    def _queue_figures(self) -> dict[str, float]:
        return self.monitor.statistics.summary()  # also of a run that was cancelled or failed

    def _loop(self, limit: int) -> None:
        """Decide, hand out, hear what came of it, until every unit has finished. So many turns at a time."""
        tasks: queue.Queue[Activation | None] = queue.Queue()
        done: queue.Queue[Turn] = queue.Queue()
        workers = [
            InheritableThread(target=self._work, args=(tasks, done), name=f"worker-{number}", daemon=True)
            for number in range(limit)
        ]
        for worker in workers:
            worker.start()
        monitor = self.monitor
        monitor.statistics.clock(self.control.clock())
        try:
            with self._telemetry(), letting_go():
                while not monitor.finished:
                    self.control.take(self._in_turn())
                    if monitor.pace.held and not self.running:
                        self._hold()
                        continue
                    for group in monitor.idle_groups()[: limit - len(self.running)]:
                        activation = monitor.decide(group)
                        self.running[activation.number] = activation
                        if activation.unit.id not in self.started:
                            self.started.add(activation.unit.id)
                            self.log.add(UnitStarted(unit=activation.unit.id))
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
            self._wait(workers)

    def _hold(self) -> None:
        """Paused, and nothing runs: a moment in which the packs of every queue can be looked at."""
        if self.control.still():
            write_packs(self.folder, self.monitor.queues, self.store)
        self.control.hold()
        if self.control.asked:
            forget_packs(self.folder)
        self._check_cancelled()

    def _work(self, tasks: queue.Queue[Activation | None], done: queue.Queue[Turn]) -> None:
        """A worker: carries out one activation after the other."""
        while (activation := tasks.get()) is not None:
            turn = Turn(activation)
            try:
                self._check_cancelled()
                self._enter(activation.unit.id)
                self.turns.carry_out(turn)
            except BaseException as error:
                turn.error = error
            done.put(turn)

    def _enter(self, unit: str) -> None:
        """From here on this thread's jobs are the unit's."""
        assert self.spark is not None
        backend_of(self.spark).enter(self._group(unit), unit)

    def _end_turn(self, turn: Turn) -> None:
        """Write a turn down, let the monitor know, and remove what it took."""
        activation, outcome = turn.activation, turn.outcome
        unit = activation.unit
        taken = turn.taken()
        self.progress.add(self._as_step(turn))
        outbox = len(unit.outbox)
        with self.changing:
            self.monitor.report(activation, outcome, self.control.clock())
        self.store.release(self._took(turn, taken))
        if unit.outbox and len(unit.outbox) != outbox:
            self.store.to_disk(pack for pack, _ in unit.outbox)
        for output in unit.outputs:
            if output.extra and output.capacity is not None and len(output.packs) > output.capacity:
                self.store.to_disk(list(output.packs)[output.capacity :])
        if self.schedule.telemetry:
            self._tell_turn(turn, taken)

    def _took(self, turn: Turn, taken: Mapping[str, list[Pack]]) -> list[Pack]:
        """What a turn changed beside the queues, also one that is replayed. Gives the packs that are let go."""
        gone = self.turns.took(turn, taken)
        for node, total, ports in turn.refused:
            self._add_refused(node, total, ports)
        if turn.delivery is not None:
            self.deliveries[turn.activation.unit.spec.nodes[0]].restore(turn.delivery)
        for unit in self.monitor.units.values():
            if unit.finished and unit.id not in self.summary.units:
                gone += self.turns.forget(unit.references)
                self._end_unit(unit)
        return gone

    def _end_unit(self, unit: Unit) -> None:
        nodes = unit.spec.nodes
        try:
            self._enforce_refused([node for node in nodes if node in self.taken])
        except NodeFailed as error:
            raise self._failed(unit.id, nodes, error) from None
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
        for unit, reader in self.turns.readers.items():
            if self.turns.knows_rows(unit, self.taken):
                self.rows.setdefault((reader.node, "out"), self.monitor.units[unit].rows_read)

    def _clean_up(self) -> None:
        forget_packs(self.folder)
        if hasattr(self, "store"):
            self.store.close()

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
            "kept": [[pack.name, pack.rows, pack.bytes] for pack in turn.kept],
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
                self.monitor.queues[step["spill"]].spill()
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
            kept = [Pack(rows, size, name) for name, rows, size in step["kept"]]
            packs |= {pack.name: pack for pack in kept}
            holders |= {pack.name: 1 for pack in kept}
            turn = Turn(activation, outcome, kept, step["cursor"], refused, step["delivery"])
            taken = turn.taken()
            self.monitor.report(activation, outcome, self.control.clock())
            for pack in self._took(turn, taken):
                holders[pack.name] -= 1
        self.store.restore((packs[name], count) for name, count in holders.items() if count)
