"""Runs a workflow at the granularity `fused`: units at the same time where they can be, targets all or none."""

from __future__ import annotations

import os
import queue
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession

from engine.errors import BadInput, PapilioError, RunCancelled, RunFailed
from engine.events import (
    EventLog,
    NodeCounted,
    Remark,
    RowsRefused,
    RunFinished,
    RunStarted,
    SparkReady,
    TargetCommitted,
    UnitFailed,
    UnitFinished,
    UnitProgress,
    UnitStarted,
)
from engine.model.binding import Bound
from engine.model.operator import Carries, Meaning, Operator, Source, Target, is_secret_reference, limits_of
from engine.partition.fused import FusedPlan, Held, Unit, fuse
from engine.spark.adbc import databases
from engine.spark.compile import Compiler, CountedRows
from engine.spark.counts import NodeRows, PortRows, spread
from engine.spark.failures import NodeFailed, fragments, reason_of, was_cancelled
from engine.spark.session import SparkSettings, activate, close_session, open_session
from engine.spark.staged import StagedResult
from engine.spark.targets import Delivery, FileDelivery, Journal, delivery

POLL_SECONDS = 0.2
CANCEL_SECONDS = 1.0  # how long a cancelled unit may take to notice


@dataclass(frozen=True)
class RunSettings:
    """How to run: where Spark is, where the run keeps its files, how much may run at the same time."""

    spark: SparkSettings = field(default_factory=SparkSettings)
    folder: Path | None = None  # none given is a folder of its own below Papilio's home
    parallel_units: int | None = None  # none given is one for each core
    trusted: bool = False  # whether operators that run code of the file may


@dataclass
class RunSummary:
    """What a run did, as the command line prints it and the store keeps it."""

    run: str
    status: str
    seconds: float
    granularity: str
    policy: str | None
    nodes: dict[str, NodeRows] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    units: dict[str, dict[str, Any]] = field(default_factory=dict)
    folder: str = ""
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        staged = [unit.get("bytes") or 0 for unit in self.units.values()]
        data = {
            "run": self.run,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "policy": self.policy,
            "granularity": self.granularity,
            "nodes": {
                node: {
                    "rows_in": rows.rows_in,
                    "rows_out": rows.rows_out,
                    "count": rows.count,
                    **({"refused": self.refused[node]} if node in self.refused else {}),
                }
                for node, rows in self.nodes.items()
            },
            "targets": self.targets,
            "units": self.units,
            "queue": dict.fromkeys(("avg_bytes", "max_bytes", "avg_packs", "max_packs", "avg_rows", "max_rows"), 0),
            "staged_bytes": sum(staged),
            "activations": len(self.units),
            "folder": self.folder,
        }
        if self.reason:
            data["reason"] = self.reason
        return data


def _missing_secrets(operator: Operator) -> list[str]:
    """The environment variables that an operator's secrets name and that are not set."""
    names = [
        text[6:-1]
        for _, text, means in operator.texts()
        if means.meaning is Meaning.SECRET and is_secret_reference(text)
    ]
    return [f"the environment variable `{name}` is not set" for name in names if name not in os.environ]


def new_run_id(moment: datetime | None = None) -> str:
    """A run's name: when it began, and enough chance that two begun together differ."""
    moment = moment or datetime.now(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class Run:
    """One run of a bound workflow. `execute` does all of it; `cancel` may be called from anywhere."""

    def __init__(
        self, bound: Bound, settings: RunSettings, folder: Path, run: str, log: EventLog, journal: Journal
    ) -> None:
        self.bound = bound
        self.settings = settings
        self.folder = folder
        self.id = run
        self.log = log
        self.journal = journal
        self.committing = False
        self.plan: FusedPlan = fuse(bound)
        self.place = bound.place(os.environ)
        self.deliveries: dict[str, Delivery] = {}
        self.staged: dict[str, StagedResult] = {}
        self.spark: SparkSession | None = None
        self.cancelled = threading.Event()
        self.rows: PortRows = {}
        self.taken: dict[str, int] = {}
        self.summary = RunSummary(run, "running", 0.0, "fused", None, folder=str(folder))

    # -- before anything starts

    def check(self) -> None:
        """What only a run looks at: sources are there, code is trusted, targets are different places."""
        self.bound.raise_errors()
        problems: list[tuple[str, str]] = []
        written: dict[str, str] = {}
        for node in self.bound.order:
            operator = self.bound.operators[node]
            secrets_missing = _missing_secrets(operator)
            problems += [(node, reason) for reason in secrets_missing]
            if operator.needs_trust and not self.settings.trusted:
                problems.append(
                    (node, f"`{operator.name}` runs code of the file's own; read it, then `papilio trust` the file")
                )
            if isinstance(operator, Source | Target) and not secrets_missing:
                reason = self._out_of_reach(operator)
                if reason:
                    problems.append((node, reason))
            if isinstance(operator, Target):
                identity = operator.identity(self.place)
                for other, place in written.items():
                    if (Path(place) / "x").is_relative_to(identity) or (Path(identity) / "x").is_relative_to(place):
                        problems.append((node, f"`{other}` writes to the same place or one inside it: {place}"))
                written[node] = identity
        if problems:
            raise BadInput("\n".join(self._at(node, reason) for node, reason in problems))

    def _out_of_reach(self, recordset: Source | Target) -> str | None:
        """Why a recordset cannot be read or loaded as the settings say, None where it can."""
        try:
            reason = recordset.missing(self.place)
            if reason is None and isinstance(recordset, Source):
                reason = recordset.drift(self.place)
            return reason
        except BadInput as error:
            return str(error)

    def _at(self, node: str, reason: str) -> str:
        """A reason with the file and the node it is about."""
        return f"{self.bound.file or self.bound.name}: node `{node}`: {reason}"

    # -- the whole run

    def execute(self) -> RunSummary:
        """Run everything; targets show their new rows only if all of it went well."""
        started = time.monotonic()
        self.check()
        self.log.add(self._started_event())
        try:
            fingerprints = self._fingerprints()
            spark = self._open_spark()
            with databases(spark, self.bound.operators.values(), self.place):
                self._run_units()
            self._compare(fingerprints)
            self._check_cancelled()
            self._count_nodes()
            self._commit()
            self._finish("done", started)
        except (RunCancelled, KeyboardInterrupt):
            self.cancel()
            self._give_up()
            self._finish("cancelled", started, "the person stopped the run")
            raise RunCancelled(f"{self.bound.name}: cancelled; the targets are as they were") from None
        except BaseException as error:
            self._give_up()
            self._finish("failed", started, str(error))
            raise
        finally:
            for result in self.staged.values():
                result.delete()
            shutil.rmtree(self.folder / "staged", ignore_errors=True)
        return self.summary

    def cancel(self) -> None:
        """Stop: no unit starts any more, and Spark drops what it is doing."""
        self.cancelled.set()
        if self.spark is not None:
            try:
                self.spark.sparkContext.cancelAllJobs()
            except Exception:
                return  # the JVM is gone already

    def _started_event(self) -> RunStarted:
        bound = self.bound
        return RunStarted(
            run=self.id,
            workflow=bound.name,
            file=str(bound.file) if bound.file else None,
            content_hash=bound.workflow.content_hash(),
            policy=None,
            granularity="fused",
            backend="spark",
            master=self.settings.spark.master,
            nodes={
                id_: {
                    "operator": operator.name,
                    "title": bound.workflow.nodes[id_].title or id_,
                    "role": operator.role.value,
                    "category": operator.category.value,
                }
                for id_, operator in bound.operators.items()
            },
            edges=[[link.source, link.source_port, link.target, link.target_port] for link in bound.links],
            units={
                unit.id: {"nodes": list(unit.nodes), "reads": list(unit.reads), "held": unit.held.value}
                for unit in self.plan.units
            },
        )

    def _open_spark(self) -> SparkSession:
        begun = time.monotonic()
        self.spark = spark = open_session(replace(self.settings.spark, log=self.folder / "spark.log"))
        seconds = time.monotonic() - begun
        self.log.add(SparkReady(version=spark.version, master=self.settings.spark.master, seconds=seconds))
        return spark

    # -- units

    def _run_units(self) -> None:
        assert self.spark is not None
        for unit in self.plan.units:
            operator = self.bound.operators[unit.result]
            if unit.held is Held.TARGET:
                self.deliveries[unit.id] = delivery(operator, unit.result, self.place, self.id)
            else:
                self.staged[unit.id] = StagedResult(self.folder / "staged" / unit.id)
        self.journal.staging([one.record() for one in self.deliveries.values()])
        compiler = Compiler(self.bound, self.plan, self.spark, self.place, self._read_held)
        limit = self.settings.parallel_units or max(2, psutil.cpu_count() or 2)
        waiting = {unit.id: set(unit.reads) for unit in self.plan.units}
        running: dict[str, threading.Thread] = {}
        finished: queue.Queue[tuple[str, BaseException | None]] = queue.Queue()
        seen: dict[str, tuple[int, int]] = {}
        try:
            while waiting or running:
                for id_ in [id_ for id_, reads in waiting.items() if not reads]:
                    if len(running) < limit:
                        del waiting[id_]
                        running[id_] = self._start(self.plan.unit(id_), compiler, finished)
                try:
                    id_, error = finished.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    self._check_cancelled()
                    self._progress(running, seen)
                    continue
                running.pop(id_)
                if error is not None:
                    raise self._failed(self.plan.unit(id_), error)
                for reads in waiting.values():
                    reads.discard(id_)
        except BaseException:
            self.cancel()
            self._wait(running)
            raise

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

        thread = InheritableThread(target=work, name=f"unit-{unit.id}", daemon=True)
        thread.start()
        return thread

    def _run_unit(self, unit: Unit, compiler: Compiler) -> None:
        assert self.spark is not None
        begun = time.monotonic()
        self.log.add(UnitStarted(unit=unit.id))
        activate(self.spark)
        context = self.spark.sparkContext
        context.setJobGroup(self._group(unit.id), unit.id, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", unit.id)
        plan = compiler.compile(unit)
        self._check_cancelled()
        size = None
        if unit.held is Held.TARGET:
            target = self.deliveries[unit.id]
            target.write(next(iter(plan.frames.values())))
            rows = target.rows()
            self.taken[unit.result] = rows
            self.rows[unit.result, unit.ports[0]] = rows
        else:
            staged = self.staged[unit.id]
            staged.write(plan)
            by_port = staged.rows()
            rows, size = sum(by_port.values()), staged.size()
            self.rows.update({(unit.result, port): count for port, count in by_port.items()})
            if unit.held is Held.STAGING:
                self.taken[unit.result] = rows
        for counted in plan.counted:
            self._refused(counted)
        seconds = time.monotonic() - begun
        self.summary.units[unit.id] = {
            "nodes": list(unit.nodes), "held": unit.held.value, "rows": rows, "bytes": size,
            "seconds": round(seconds, 3),
        }  # fmt: skip
        self.log.add(UnitFinished(unit=unit.id, seconds=seconds, rows=rows, bytes=size))

    def _read_held(self, unit: Unit, node: str, port: str) -> DataFrame:
        assert self.spark is not None
        if unit.held is Held.TARGET:
            return self.deliveries[unit.id].read(self.spark)
        return self.staged[unit.id].read(self.spark, port)

    def _refused(self, counted: CountedRows) -> None:
        found = counted.get()
        if found is None:
            return
        total, ports = found
        self.taken.setdefault(counted.node, total)
        for port, rows in ports.items():
            self.rows[counted.node, port] = rows
            if rows:
                self.log.add(RowsRefused(node=counted.node, port=port, rows=rows, total=total))
                self.summary.refused.setdefault(counted.node, {})[port] = rows
        self._enforce(counted.node, sum(ports.values()), total)

    def _enforce(self, node: str, refused: int, total: int, connected: bool = False) -> None:
        limits = limits_of(self.bound.operators[node])
        reason = limits.limit_broken(refused, total, connected) if limits else None
        if reason:
            raise NodeFailed(node, reason)

    def _progress(self, running: Mapping[str, Any], seen: dict[str, tuple[int, int]]) -> None:
        """Tell how many of the running units' tasks are done, where that has changed."""
        assert self.spark is not None
        tracker = self.spark.sparkContext.statusTracker()
        for id_ in running:
            done = total = 0
            try:
                for job in tracker.getJobIdsForGroup(self._group(id_)):
                    info = tracker.getJobInfo(job)
                    for stage in info.stageIds if info else ():
                        detail = tracker.getStageInfo(stage)
                        if detail is not None:
                            done += detail.numCompletedTasks
                            total += detail.numTasks
            except Exception:
                return  # a dead JVM is told by the unit that needs it
            if total and seen.get(id_) != (done, total):
                seen[id_] = (done, total)
                self.log.add(UnitProgress(unit=id_, tasks_done=done, tasks_total=total))

    def _group(self, unit: str) -> str:
        return f"{self.id}/{unit}"

    def _failed(self, unit: Unit, error: BaseException) -> BaseException:
        """The failure of a unit, with its node where that can be told."""
        if self.cancelled.is_set() and (was_cancelled(error) or isinstance(error, RunCancelled)):
            return RunCancelled()
        node = self._blame(unit, error)
        if isinstance(error, PapilioError):  # said in our own words already; the exit code is its own
            kind, reason = type(error), str(error).removeprefix(f"node `{node}`: ")
        else:
            kind, reason = RunFailed, reason_of(error)
        self.log.add(UnitFailed(unit=unit.id, node=node, reason=reason))
        return kind(self._at(node, reason))

    def _blame(self, unit: Unit, error: BaseException) -> str:
        """The node whose settings hold the expression that Spark names, else the unit's only suspect."""
        if isinstance(error, NodeFailed) and error.node is not None:
            return error.node
        for fragment in fragments(error):
            for node in unit.nodes:
                if any(fragment in text for _, text, _ in self.bound.operators[node].texts()):
                    return node
        message = str(error)
        for node in unit.nodes:  # a broken file is named with its path
            for _, text, means in self.bound.operators[node].texts():
                if means.meaning is Meaning.PATH and str(self.place.path(text)) in message:
                    return node
        return unit.result

    def _wait(self, running: Mapping[str, threading.Thread]) -> None:
        deadline = time.monotonic() + CANCEL_SECONDS
        for thread in running.values():
            thread.join(max(0.0, deadline - time.monotonic()))

    def _check_cancelled(self) -> None:
        if self.cancelled.is_set():
            raise RunCancelled(f"{self.bound.name}: cancelled")

    # -- after the units

    def _fingerprints(self) -> dict[str, str]:
        found = {}
        for node in self.bound.order:
            operator = self.bound.operators[node]
            if isinstance(operator, Source):
                mark = operator.fingerprint(self.place)
                if mark is not None:
                    found[node] = mark
        return found

    def _compare(self, before: dict[str, str]) -> None:
        after = self._fingerprints()
        changed = [node for node in before if after.get(node) != before[node]]
        if changed:
            reason = "the source changed while it was read; nothing was loaded"
            raise RunFailed("\n".join(self._at(node, reason) for node in changed))

    def _count_nodes(self) -> None:
        self.summary.nodes = spread(self.bound, self.rows, self.taken)
        for node, rows in self.summary.nodes.items():
            self._enforce_connected(node, rows)
            self.log.add(NodeCounted(node=node, rows_in=rows.rows_in, rows_out=rows.rows_out, count=rows.count))

    def _enforce_connected(self, node: str, rows: NodeRows) -> None:
        """Limits hold for refused rows that leave by a port as well."""
        ports = self.bound.operators[node].output_ports()
        counts = {port.name: self.rows.get((node, port.name)) for port in ports}
        refused = [counts[port.name] or 0 for port in ports if port.carries is Carries.REFUSED]
        read = {link.source_port for link in self.bound.outgoing.get(node, ())}
        connected = any(port.carries is Carries.REFUSED and port.name in read for port in ports)
        total = rows.rows_in
        if not self.bound.incoming.get(node) and None not in counts.values():
            total = sum(count or 0 for count in counts.values())  # of a source: what it gave and what it refused
        if connected and total is not None:
            try:
                self._enforce(node, sum(refused), total, connected=True)
            except NodeFailed as error:
                raise RunFailed(self._at(node, error.reason)) from None

    def _commit(self) -> None:
        """Show the new rows on every target. From the journal's word on, a kill is mended forwards, never back."""
        for target in self.deliveries.values():
            target.check()
        self.journal.committing()
        self.committing = True
        # A database may still refuse, so it goes first: then nothing has changed yet, and nothing will.
        first = sorted(self.deliveries.items(), key=lambda item: isinstance(item[1], FileDelivery))
        for number, (unit, target) in enumerate(first):
            try:
                target.commit()
            except Exception as error:
                self.committing = number > 0
                raise RunFailed(self._at(unit, reason_of(error))) from error
            self.journal.committed(target.node)
            place = self._described(unit)
            rows = self.rows[unit, self.plan.unit(unit).ports[0]]
            self.summary.targets[unit] = {"rows": rows, "path": place}
            self.log.add(TargetCommitted(node=unit, rows=rows, path=place))

    def _described(self, node: str) -> str:
        operator = self.bound.operators[node]
        assert isinstance(operator, Target)
        return operator.identity(self.place)

    def _give_up(self) -> None:
        """Leave nothing behind but the old targets; what had begun to commit is brought forward by the next run."""
        if self.committing:
            self.log.add(Remark(message="some targets show their new rows already; the next run finishes the others"))
            return
        for target in self.deliveries.values():
            try:
                target.discard()
            except Exception as error:
                message = f"what was staged could not be removed: {error}"
                self.log.add(Remark(message=message, node=target.node))
        self.journal.discarded()

    def _finish(self, status: str, started: float, reason: str | None = None) -> None:
        self.summary.status = status
        self.summary.seconds = time.monotonic() - started
        self.summary.reason = reason
        self.log.add(RunFinished(status=status, seconds=self.summary.seconds, reason=reason))

    def close(self) -> None:
        """Give Spark back."""
        if self.spark is not None:
            close_session(self.spark)
            self.spark = None
