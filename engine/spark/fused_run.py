"""Runs a workflow at the granularity `fused`: each unit is one Spark plan, its result is written once.

Under the mixed policy independent units run at the same time, and the cores are first of all for those with the most
others one behind the other: a run is over no sooner than the longest of its ways. A single policy runs one unit after
the other, in the order it picks them.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import psutil
from pyspark.sql import DataFrame

from engine.events import Remark, UnitDecided, UnitFinished, UnitProgress, UnitStarted
from engine.partition.fused import FusedPlan, Held, Unit, fuse
from engine.schedule.graph import QueueSpec, ScheduleGraph, UnitSpec, Work
from engine.schedule.pace import Pace
from engine.schedule.policy import MIXED, policy_named
from engine.spark.backend import Backend, backend_of
from engine.spark.compile import Compiler
from engine.spark.planned import Planned
from engine.spark.runner import POLL_SECONDS, Run
from engine.spark.staged import StagedResult
from engine.spark.targets import FileDelivery

UNITS_PER_CORE = (
    2  # while one of them is planned, or its files are moved into place, the others have work for the cores
)
NO_THREADS = "its `threads` are heeded where rows travel in packs; in fused units Spark's own tasks work side by side"
PROGRESS_SECONDS = 0.5  # between two questions to Spark, which take from the cores that do the work


@dataclass(frozen=True)
class _Waiting:
    """A fused unit as a policy sees it: nothing of it was measured, for it runs once."""

    id: str
    number: int
    queue_rows: int
    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0


def _schedule_graph(plan: FusedPlan) -> ScheduleGraph:
    """Fused units as a policy sees them beforehand: each works once all that it reads is staged."""
    units = [
        UnitSpec(unit.id, number, Work.BLOCK if unit.reads else Work.SOURCE, unit.nodes)
        for number, unit in enumerate(plan.units)
    ]
    queues = [QueueSpec(f"{read}>{unit.id}", read, unit.id, None) for unit in plan.units for read in unit.reads]
    return ScheduleGraph(tuple(units), tuple(queues))


class FusedRun(Run):
    """A run whose units are fused."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        done = [step["unit"] for step in self.progress.done()]  # by a killed run that this one finishes
        applied = self.settings.applied
        self.plan: FusedPlan = fuse(self.bound, kept=applied.staged, there=done)
        self.ways = self.plan.ways()
        self.first: set[str] = set()  # units that others should not keep from the cores
        self.staged: dict[str, StagedResult] = {}
        policy = self.settings.schedule.policy
        self.policy = None if policy == MIXED else policy_named(policy)()
        if self.policy is not None:
            self.policy.begin(_schedule_graph(self.plan))
        self.last = -1
        self._backend: Backend | None = None  # which remembers whose tasks are done
        self.pace = Pace()
        self.control.drive(self.pace, self.log.add)

    def _units(self) -> dict[str, dict[str, Any]]:
        return {
            unit.id: {"nodes": list(unit.nodes), "reads": list(unit.reads), "held": unit.held.value}
            for unit in self.plan.units
        }

    def _clean_up(self) -> None:
        for result in self.staged.values():
            result.delete()
        stages = [result.stage for result in self.staged.values()]
        stages += [target.stage for target in self.deliveries.values() if isinstance(target, FileDelivery)]
        with contextlib.suppress(Exception):  # a catalogue dies with its JVM
            for stage in stages:
                if stage is not None and self.spark is not None:
                    stage.forget(self.spark)
        shutil.rmtree(self.folder / "staged", ignore_errors=True)

    def _run_units(self) -> None:
        assert self.spark is not None
        for node, described in self.bound.workflow.nodes.items():
            if described.threads:
                self.log.add(Remark(node=node, message=NO_THREADS))
        planned = Planned(self.id, self.bound, self.settings.applied, self.spark)
        for unit in self.plan.units:
            if unit.held is not Held.TARGET:
                folder = self.folder / "staged" / unit.id
                self.staged[unit.id] = StagedResult(folder, planned.stage(unit.id, folder / "sorted"))
            elif isinstance(target := self.deliveries[unit.id], FileDelivery):
                target.stage = planned.stage(unit.id, target.staged / "rows")
        with planned.settings():
            self._run_all(Compiler(self.bound, self.plan, self.spark, self.place, self._read_held, planned))

    def _run_all(self, compiler: Compiler) -> None:
        """Every unit that no killed run had finished, each once those it reads are done."""
        waiting = {unit.id: set(unit.reads) for unit in self.plan.units}
        for step in self.progress.done():
            self._restore(self.plan.unit(step["unit"]), step, compiler)
            del waiting[step["unit"]]
            for reads in waiting.values():
                reads.discard(step["unit"])
        for id_ in waiting:
            if id_ in self.staged:
                self.staged[id_].delete()  # a killed run had begun it
        running: dict[str, threading.Thread] = {}
        finished: queue.Queue[tuple[str, BaseException | None]] = queue.Queue()
        seen: dict[str, tuple[int, int]] = {}
        told = time.monotonic()
        try:
            while waiting or running:
                self.control.take(list(running))
                if self.pace.held and not running:
                    self.control.still()
                    self.control.hold()
                    self._check_cancelled()
                    continue
                for unit in self._picked(waiting, running):
                    del waiting[unit.id]
                    self.pace.decided()
                    running[unit.id] = self._start(unit, compiler, finished)
                try:
                    id_, error = finished.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    self._check_cancelled()
                    if time.monotonic() - told >= PROGRESS_SECONDS:
                        self._tell_progress(running, seen)
                        told = time.monotonic()
                    continue
                running.pop(id_)
                if error is not None:
                    unit = self.plan.unit(id_)
                    raise self._failed(id_, unit.nodes, error)
                for reads in waiting.values():
                    reads.discard(id_)
        except BaseException:
            self.cancel()
            self._wait(running.values())
            raise

    def _picked(self, waiting: Mapping[str, set[str]], running: Collection[str]) -> list[Unit]:
        """The units to start now: as many as there is room for, or the one that the policy picks."""
        ready = [unit for unit in self.plan.units if unit.id in waiting and not waiting[unit.id]]
        numbers = {unit.id: number for number, unit in enumerate(self.plan.units)}
        if self.policy is None:
            ready.sort(key=lambda unit: -self.ways[unit.id])
            limit = self.settings.parallel_units or UNITS_PER_CORE * (psutil.cpu_count() or 1)
            picked = ready[: max(0, limit - len(running))][: self.pace.left]
            left = {self.ways[id_] for id_ in (*waiting, *running)}
            for place, unit in enumerate(picked):  # each is a group of its own
                if len(left) > 1 and self.ways[unit.id] == max(left):
                    self.first.add(unit.id)
                scores = [[one.id, self.ways[one.id]] for one in ready[place:]]
                self._tell_decision(unit.id, place, MIXED, unit.id, scores)
            return picked
        if running or not ready or self.pace.held:
            return []
        candidates = [
            _Waiting(unit.id, numbers[unit.id], sum(self.summary.units[id_]["rows"] for id_ in unit.reads))
            for unit in ready
        ]
        chosen = self.policy.pick(candidates, self.last)
        scores = [[candidate.id, self.policy.score(candidate, self.last)] for candidate in candidates]
        self._tell_decision(chosen.id, 0, self.policy.name, "", scores)
        self.last = chosen.number
        return [self.plan.unit(chosen.id)]

    def _tell_decision(self, unit: str, place: int, policy: str, group: str, scores: list[list[Any]]) -> None:
        """A unit goes next, `place` more before it; `scores` are all that could have."""
        self.log.add(
            UnitDecided(
                activation=self.summary.activations + place + 1,
                unit=unit,
                step="whole",
                packs=0,
                policy=policy,
                group=group,
                candidates=scores,
            )
        )

    def _start(
        self, unit: Unit, compiler: Compiler, finished: queue.Queue[tuple[str, BaseException | None]]
    ) -> threading.Thread:
        def work() -> None:
            try:
                self._run_unit(unit, compiler)
            except BaseException as error:
                finished.put((unit.id, error))
            else:
                finished.put((unit.id, None))

        assert self.spark is not None
        self.summary.activations += 1
        thread = backend_of(self.spark).thread(work, f"unit-{unit.id}")
        thread.start()
        return thread

    def _run_unit(self, unit: Unit, compiler: Compiler) -> None:
        assert self.spark is not None
        begun = time.monotonic()
        self.log.add(UnitStarted(unit=unit.id))
        backend_of(self.spark).enter(self._group(unit.id), unit.id, first=unit.id in self.first)
        plan = compiler.compile(unit)
        self._check_cancelled()
        size = None
        if unit.held is Held.TARGET:
            target = self.deliveries[unit.id]
            target.write(next(iter(plan.frames.values())))
            by_port = dict.fromkeys(unit.ports, target.rows())
        else:
            staged = self.staged[unit.id]
            staged.write(plan)
            by_port, size = staged.rows(), staged.size()
        refused = {counted.node: counted.get() for counted in plan.counted}
        self._took(unit, by_port, size, refused, time.monotonic() - begun)
        step: dict[str, Any] = {"unit": unit.id, "by_port": by_port, "bytes": size, "refused": refused}
        if unit.held is Held.TARGET:
            step["delivery"] = self.deliveries[unit.id].state()
        self.progress.add(step)

    def _took(
        self,
        unit: Unit,
        by_port: Mapping[str, int],
        size: int | None,
        refused: Mapping[str, tuple[int, Mapping[str, int]]],
        seconds: float,
    ) -> None:
        """A unit has written its result: count its rows, and hold its nodes to their limits."""
        rows = by_port[unit.ports[0]] if unit.held is Held.TARGET else sum(by_port.values())
        self.rows.update({(unit.result, port): count for port, count in by_port.items()})
        if unit.held is not Held.STAGED:
            self.taken[unit.result] = rows
        for node, (total, ports) in refused.items():
            self._add_refused(node, total, ports)
        self._enforce_refused(refused)
        with self._counting:
            self.summary.staged_bytes += size or 0
        self.summary.units[unit.id] = {
            "nodes": list(unit.nodes), "held": unit.held.value, "rows": rows, "bytes": size,
            "seconds": round(seconds, 3),
        }  # fmt: skip
        self.log.add(UnitFinished(unit=unit.id, seconds=seconds, rows=rows, bytes=size))

    def _restore(self, unit: Unit, step: Mapping[str, Any], compiler: Compiler) -> None:
        """A unit that a killed run had finished: its result is there."""
        if unit.held is Held.TARGET:
            target = self.deliveries[unit.id]
            target.restore(step["delivery"])
            if isinstance(target, FileDelivery):
                target.sort_again(compiler.spark)
        else:
            self.staged[unit.id].restore(compiler.compile(unit))
        self._took(unit, step["by_port"], step["bytes"], step["refused"], 0.0)

    def _read_held(self, unit: Unit, node: str, port: str) -> DataFrame:
        assert self.spark is not None
        if unit.held is Held.TARGET:
            return self.deliveries[unit.id].read(self.spark)
        return self.staged[unit.id].read(self.spark, port)

    def _tell_progress(self, running: Mapping[str, Any], seen: dict[str, tuple[int, int]]) -> None:
        """Tell how many of the running units' tasks are done, where that has changed."""
        assert self.spark is not None
        if self._backend is None:
            self._backend = backend_of(self.spark)
        for id_ in running:
            try:
                done, total = self._backend.tasks(self._group(id_))
            except Exception:
                return  # a dead JVM is told by the unit that needs it
            if total and seen.get(id_) != (done, total):
                seen[id_] = (done, total)
                self.log.add(UnitProgress(unit=id_, tasks_done=done, tasks_total=total))
