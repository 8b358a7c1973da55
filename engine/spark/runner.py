"""One run of a workflow: what holds at every granularity. Its targets change all together, or not at all."""

from __future__ import annotations

import json
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engine.control import RunControl
from engine.errors import BadInput, PapilioError, RunCancelled, RunFailed
from engine.events import (
    EventLog,
    NodeCounted,
    PlanChosen,
    Remark,
    RowsRefused,
    RunFinished,
    RunStarted,
    SparkReady,
    TargetCommitted,
    UnitFailed,
)
from engine.model.binding import Bound
from engine.model.meanings import Meaning
from engine.model.operator import Carries, Operator, Source, Target, is_secret_reference, limits_of
from engine.operators.streams import StreamTable
from engine.partition.fused import counted_ports
from engine.plan.apply import Applied
from engine.plan.choice import BEST
from engine.schedule.facts import edge_facts, node_facts
from engine.schedule.queues import QueueStatistics
from engine.schedule.settings import ScheduleSettings
from engine.spark.adbc import databases
from engine.spark.backend import backend_of, cores_of
from engine.spark.counts import NodeRows, PortRows, spread
from engine.spark.failures import NodeFailed, fragments, reason_of, was_cancelled
from engine.spark.jobs import WAIT_SECONDS, JobsTold
from engine.spark.journal import Journal
from engine.spark.progress import Progress
from engine.spark.session import SparkSettings, close_session, open_session
from engine.spark.targets import Delivery, FileDelivery, delivery
from engine.store.trust import untrusted

POLL_SECONDS = 0.2
CANCEL_SECONDS = 1.0  # so long the units and Spark's last word may take together, once a run is cancelled
LAST_WORD_SECONDS = 0.1  # of that, at least for Spark's


@dataclass(frozen=True)
class RunSettings:
    """How to run: where Spark is, where the run keeps its files, how much may run at the same time."""

    spark: SparkSettings = field(default_factory=SparkSettings)
    schedule: ScheduleSettings = field(default_factory=ScheduleSettings)
    folder: Path | None = None  # none given is a folder of its own below Papilio's home
    parallel_units: int | None = None  # none given is two for each core, or one where rows travel in packs
    trusted: bool = False  # whether operators that run code of the file may
    resume: str | None = None  # the killed run that is to be finished
    measures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of an earlier run's units
    plan: str = BEST  # the physical plan: the best, none, or the one of a signature
    applied: Applied = field(default_factory=Applied)  # what that plan asks of the run
    refreshed: Mapping[str, float | None] = field(default_factory=dict)  # target → as of when it holds data


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
    queue: dict[str, float] = field(default_factory=lambda: QueueStatistics().summary())
    staged_bytes: int = 0  # on disk: staged copies together, or the most that packs took
    activations: int = 0
    spills: int = 0
    measures: dict[str, dict[str, float]] = field(default_factory=dict)  # of units whose degree was asked for
    plan: dict[str, Any] | None = None  # the physical plan: its signature, what it costs by which model
    resumed: bool = False
    paused_seconds: float = 0.0  # beside its seconds
    folder: str = ""
    reason: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
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
            "queue": self.queue,
            "staged_bytes": self.staged_bytes,
            "activations": self.activations,
            "spills": self.spills,
            "folder": self.folder,
            "plan": self.plan,
        }
        if self.measures:
            data["measures"] = self.measures
        if self.resumed:
            data["resumed"] = True
        if self.paused_seconds:
            data["paused_seconds"] = round(self.paused_seconds, 3)
        if self.reason:
            data["reason"] = self.reason
        return data


SUMMARY = "summary.json"


def write_summary(folder: Path, summary: RunSummary) -> None:
    """Write a run's summary into its folder."""
    text = json.dumps(summary.as_dict(), indent=2, default=str)
    (folder / f"{SUMMARY}.new").write_text(text, encoding="utf-8")
    (folder / f"{SUMMARY}.new").replace(folder / SUMMARY)


def _missing_secrets(operator: Operator) -> list[str]:
    """The environment variables that an operator's secrets name and that are not set."""
    names = [
        text[6:-1]
        for _, text, means in operator.texts()
        if means.meaning is Meaning.SECRET and is_secret_reference(text)
    ]
    return [f"the environment variable `{name}` is not set" for name in names if name not in os.environ]


def _end(jobs: JobsTold | None, seconds: float = WAIT_SECONDS) -> None:
    """Hear Spark's last word, for a moment at most: nothing stands behind the line that says how a run ended."""
    if jobs is not None:
        jobs.stop()
        jobs.wait(seconds)


class Run(ABC):
    """One run of a bound workflow. `execute` does all of it; `cancel` may be called from anywhere."""

    def __init__(
        self,
        bound: Bound,
        settings: RunSettings,
        folder: Path,
        run: str,
        log: EventLog,
        journal: Journal,
        progress: Progress,
        control: RunControl,
    ) -> None:
        self.bound = bound
        self.settings = settings
        self.folder = folder
        self.id = run
        self.log = log
        self.journal = journal
        self.progress = progress
        self.control = control
        self.committing = False
        self.place = bound.place(os.environ)
        self.deliveries: dict[str, Delivery] = {}
        self.spark: SparkSession | None = None
        self.cancelled = control.cancelled
        self.cancelled_at: float | None = None
        self.rows: PortRows = {}
        self.taken: dict[str, int] = {}
        self._counting = threading.Lock()
        schedule = settings.schedule
        self.summary = RunSummary(
            run, "running", 0.0, schedule.granularity.value, schedule.policy, folder=str(folder),
            resumed=progress.is_resumed,
        )  # fmt: skip

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
                problems.append((node, untrusted(operator)))
            if isinstance(operator, StreamTable):
                problems.append((node, "a table of a streaming warehouse is kept by `papilio stream run`"))
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
        started = self.control.clock()
        jobs: JobsTold | None = None
        self.check()
        self.log.add(self._started_event())
        if self.summary.plan is not None:
            self.log.add(PlanChosen(**self.summary.plan))
        try:
            fingerprints = self.progress.begin(
                self._fingerprints(),
                self.settings.schedule.as_dict(),
                self.bound.values,
                {"applied": self.settings.applied.as_data(), "told": self.summary.plan},
            )
            spark = self._open_spark()
            self._make_deliveries()
            if self.settings.schedule.telemetry:
                jobs = JobsTold(spark, self.id, self.log.add)
            with databases(spark, self.bound.operators.values(), self.place):
                self._run_units()
            if jobs is not None:
                jobs.stop()
            self._compare(fingerprints)
            self._check_cancelled()
            self._count_nodes()
            self._commit()
            _end(jobs)
            self._finish("done", started)
        except (RunCancelled, KeyboardInterrupt):
            self.cancel()
            self._give_up()
            _end(jobs, max(LAST_WORD_SECONDS, self._cancel_until() - time.monotonic()))
            self._finish("cancelled", started, "the person stopped the run")
            raise RunCancelled(f"{self.bound.name}: cancelled; the targets are as they were") from None
        except BaseException as error:
            if not self.committing:
                self.summary.targets = {}
            self._give_up()
            _end(jobs)
            self._finish("failed", started, str(error))
            raise
        finally:
            if jobs is not None:
                jobs.stop()
            self._clean_up()
        return self.summary

    @abstractmethod
    def _run_units(self) -> None:
        """Run every unit; all deliveries are staged when this returns."""

    @abstractmethod
    def _clean_up(self) -> None:
        """Remove what only the run itself needed."""

    @abstractmethod
    def _units(self) -> dict[str, dict[str, Any]]:
        """The units for the log: their nodes, and what they read."""

    def _queues(self) -> dict[str, dict[str, Any]]:
        """The queues for the log."""
        return {}

    def _make_deliveries(self) -> None:
        for node, operator in self.bound.operators.items():
            if isinstance(operator, Target):
                self.deliveries[node] = delivery(operator, node, self.place, self.id)
        if not self.journal.knows_deliveries:  # a resumed run may have been killed before it came to this
            self.journal.staging([one.record() for one in self.deliveries.values()])

    def cancel(self) -> None:
        """Stop: no unit starts any more, and Spark drops what it is doing."""
        if self.cancelled_at is None:
            self.cancelled_at = time.monotonic()
        self.cancelled.set()
        if self.spark is not None:
            try:
                backend_of(self.spark).cancel()
            except Exception:
                return  # the JVM is gone already

    def _cancel_until(self) -> float:
        """The moment from which on nothing that is cancelled is waited for; in a run that is not, counted from now."""
        return (self.cancelled_at or time.monotonic()) + CANCEL_SECONDS

    def _wait(self, threads: Iterable[threading.Thread]) -> None:
        """Wait until they end. A cancelled one that was still planning only then asks for its job: dropped as well."""
        until = self._cancel_until()
        for thread in threads:
            while thread.is_alive() and (left := until - time.monotonic()) > 0:
                thread.join(min(left, POLL_SECONDS))
                if thread.is_alive() and self.cancelled.is_set():
                    self.cancel()

    def _started_event(self) -> RunStarted:
        bound = self.bound
        return RunStarted(
            run=self.id,
            workflow=bound.name,
            file=str(bound.file) if bound.file else None,
            content_hash=bound.workflow.content_hash(),
            policy=self.settings.schedule.policy,
            granularity=self.settings.schedule.granularity.value,
            backend="spark",
            master=self.settings.spark.master,
            nodes=node_facts(bound),
            edges=edge_facts(bound),
            units=self._units(),
            queues=self._queues(),
            resumed=self.progress.is_resumed,
            settings=self._facts(),
            refreshed=dict(self.settings.refreshed),
        )

    def _facts(self) -> dict[str, Any]:
        """What the run was begun with, for the log."""
        return {**self.settings.schedule.as_dict(), "cores": cores_of(self.settings.spark.master)}

    def _open_spark(self) -> SparkSession:
        begun = time.monotonic()
        self.spark = spark = open_session(replace(self.settings.spark, log=self.folder / "spark.log"))
        seconds = time.monotonic() - begun
        master, cores = self.settings.spark.master, backend_of(spark).cores()
        self.log.add(SparkReady(version=spark.version, master=master, seconds=seconds, cores=cores))
        return spark

    def _add_refused(self, node: str, total: int, ports: Mapping[str, int]) -> None:
        """Rows that a node saw and refused in one job; the limit on their number holds at once."""
        with self._counting:
            self.taken[node] = self.taken.get(node, 0) + total
            for port, rows in ports.items():
                self.rows[node, port] = self.rows.get((node, port), 0) + rows
                if rows:
                    self.summary.refused.setdefault(node, {})
                    self.summary.refused[node][port] = self.summary.refused[node].get(port, 0) + rows

    def _enforce_refused(self, nodes: Iterable[str]) -> None:
        """The limits on what these nodes refused, once all of it is known."""
        for node in nodes:
            for port, rows in self.summary.refused.get(node, {}).items():
                self.log.add(RowsRefused(node=node, port=port, rows=rows, total=self.taken[node]))
            refused = sum(self.rows.get((node, port), 0) for port in counted_ports(self.bound, node))
            if node in self.taken:
                self._enforce(node, refused, self.taken[node])

    def _enforce(self, node: str, refused: int, total: int, connected: bool = False) -> None:
        limits = limits_of(self.bound.operators[node])
        reason = limits.limit_broken(refused, total, connected) if limits else None
        if reason:
            raise NodeFailed(node, reason)

    def _group(self, unit: str) -> str:
        return f"{self.id}/{unit}"

    def _failed(self, unit: str, nodes: Sequence[str], error: BaseException) -> BaseException:
        """The failure of a unit, with its node where that can be told."""
        if self.cancelled.is_set() and (was_cancelled(error) or isinstance(error, RunCancelled)):
            return RunCancelled()
        node = self._blame(nodes, error)
        if isinstance(error, PapilioError):  # said in our own words already; the exit code is its own
            kind, reason = type(error), str(error).removeprefix(f"node `{node}`: ")
        else:
            kind, reason = RunFailed, reason_of(error)
        self.log.add(UnitFailed(unit=unit, node=node, reason=reason))
        return kind(self._at(node, reason))

    def _blame(self, nodes: Sequence[str], error: BaseException) -> str:
        """The node whose settings hold the expression that Spark names, else the unit's only suspect."""
        if isinstance(error, NodeFailed) and error.node is not None:
            return error.node
        for fragment in fragments(error):
            for node in nodes:
                if any(fragment in text for _, text, _ in self.bound.operators[node].texts()):
                    return node
        message = str(error)
        for node in nodes:  # a broken file is named with its path
            for _, text, means in self.bound.operators[node].texts():
                if means.meaning is Meaning.PATH and str(self.place.path(text)) in message:
                    return node
        return nodes[-1]

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
        total = self.taken.get(node, rows.rows_in)
        if connected and total is not None:
            try:
                self._enforce(node, sum(refused), total, connected=True)
            except NodeFailed as error:
                raise RunFailed(self._at(node, error.reason)) from None

    def _commit(self) -> None:
        """Show the new rows on every target. From the journal's word on, a kill is mended forwards, never back."""
        for target in self.deliveries.values():
            target.check()
        self.summary.targets = {
            node: {"rows": target.rows(), "path": self._described(node)} for node, target in self.deliveries.items()
        }
        write_summary(self.folder, self.summary)  # whoever finishes this after a kill tells it
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
            self.log.add(TargetCommitted(node=unit, **self.summary.targets[unit]))

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
        self.summary.seconds = self.control.clock() - started
        self.summary.paused_seconds = self.control.paused_seconds
        self.summary.reason = reason
        queue = self._queue_figures()
        self.log.add(RunFinished(status=status, seconds=self.summary.seconds, reason=reason, queue=queue))

    def _queue_figures(self) -> dict[str, float]:
        """What the queues held over the run; a run without queues held nothing."""
        return self.summary.queue

    def close(self) -> None:
        """Give Spark back."""
        if self.spark is not None:
            close_session(self.spark, at_once=self.cancelled.is_set())
            self.spark = None
