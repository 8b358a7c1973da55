"""An elastic run's folder, log and record: the same for simulated and live ones."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.control import RunControl, driven, is_alive
from engine.elastic.decision import Stage
from engine.errors import BadInput, RunCancelled
from engine.events import Event, EventLog, LimitsSet, Remark, RunFinished, RunStarted
from engine.model.elastic import Elastic, unheeded
from engine.model.file import WorkflowFile, to_yaml
from engine.store import RunRecord
from engine.store.runs import also_to, keep_run, new_run_id, run_folder

POLICY = "elastic"
_FLOW = list(Stage)

# What limits a stage beside its first measure, by the names that events have for it.
TRANSFORMATION_TIME, BUFFER_DISK, QUERY_TIME = "transformation time", "buffer disk", "query time"


def limits_of(file: WorkflowFile) -> Elastic:
    """The limits that a workflow file states and those that follow from them; a file without any is refused."""
    if file.workflow.elastic is None:
        raise BadInput(f"{file.path}: has no `elastic` section, so there are no limits to keep")
    return file.workflow.elastic.completed()


def limits_event(limits: Elastic, moment: float) -> LimitsSet:
    """The limits as a panel draws them: each measure of a stage with its line."""
    warehouse, buffer = limits.warehouse, limits.buffer
    measures: dict[Stage, tuple[str, str, float | None]] = {
        Stage.EXTRACTION: ("extraction time", "s", limits.extraction.longest_s),
        Stage.TRANSFORMATION: ("queue", "MB", limits.transformation.limit_mb),
        Stage.BUFFER: ("memory", "MB", buffer.memory_mb),
        Stage.SWITCH: ("data rate", "rows/s", limits.switch.limit_rows_s),
        Stage.WAREHOUSE: ("load time", "s", warehouse.load_limit_s),
    }
    others: dict[str, tuple[Stage, str, str, float | None]] = {
        TRANSFORMATION_TIME: (Stage.TRANSFORMATION, "time", "s", limits.transformation.limit_s),
        BUFFER_DISK: (Stage.BUFFER, "disk", "MB", buffer.disk_mb * buffer.disk_share),
        QUERY_TIME: (Stage.WAREHOUSE, "query time", "s", warehouse.query_limit_s if warehouse.sessions else None),
    }
    stages = {}
    for stage, (measure, unit, limit) in measures.items():
        nodes = getattr(limits, stage.value).nodes
        stages[stage.value] = {"measure": measure, "unit": unit, "limit": limit, "min": nodes.min, "max": nodes.max}
    more = {
        name: {"stage": stage.value, "measure": measure, "unit": unit, "limit": limit}
        for name, (stage, measure, unit, limit) in others.items()
        if limit is not None
    }
    return LimitsSet(time=moment, pool=limits.pool, stages=stages, more=more)


class ElasticRecord:
    """Keeps what is worth keeping of an elastic run: events, summary, a line in the history."""

    def __init__(
        self,
        file: WorkflowFile,
        *,
        backend: str,
        master: str | None = None,
        folder: Path | None = None,
        store: str | None = None,
        events: str | None = None,
        listener: Callable[[Event], None] | None = None,
        control: RunControl | None = None,
        begun: Callable[[str, Path], None] | None = None,
    ) -> None:
        self.file = file
        self.control = control or RunControl()
        self._told = begun
        self.limits = limits_of(file)
        self.started = datetime.now(UTC)
        self.zero = self.started.timestamp()
        self.run = new_run_id(self.started)
        self.summary: dict[str, Any] = {"run": self.run, "status": "running", "policy": POLICY, "backend": backend}
        self.seconds = 0.0  # how long it took, on its own clock
        self.master = master  # of an existing cluster; none given are Workers of its own
        self._backend = backend
        self._given, self._store, self._events, self._listener = folder, store, events, listener
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> ElasticRecord:
        if self._given is not None and is_alive(self._given):
            raise BadInput(
                f"{self._given}: a run is under way there, and a warehouse has one controller at a time: wait for its "
                "end, or name another folder"
            )
        self.folder = run_folder(self._given, self.run)
        self.log = EventLog(self.folder / "events.jsonl", self._listener)
        self._cleanup.callback(self.log.close)
        self._cleanup.enter_context(driven(self.folder, self.control))
        if self._events:
            self.log.listen(also_to(self._events, self._cleanup))
        workflow = self.file.workflow
        (self.folder / "workflow.butterfly.yaml").write_text(to_yaml(workflow), encoding="utf-8")
        units = {
            stage.value: {"nodes": [], "reads": [_FLOW[number - 1].value] if number else []}
            for number, stage in enumerate(_FLOW)
        }
        self.log.add(
            RunStarted(
                time=self.zero,
                run=self.run,
                workflow=self.name,
                file=str(self.file.path),
                content_hash=workflow.content_hash(),
                policy=POLICY,
                granularity="stage",
                backend=self._backend,
                master=self.master,
                nodes={},
                edges=[],
                units=units,
            )
        )
        self.log.add(limits_event(self.limits, self.zero))
        self.summary["warnings"] = []
        for warning in unheeded(self.limits):
            self.warn(warning)
        self._keep("running", None)
        if self._told is not None:
            self._told(self.run, self.folder)
        return self

    def warn(self, warning: str) -> None:
        """Tell, before anything begins, what in the file is not heeded."""
        self.summary["warnings"].append(warning)
        self.log.add(Remark(time=self.zero, message=f"{self.file.path}: {warning}"))

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.file.workflow.name or self.file.path.name.partition(".")[0]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._cleanup:
            status = "simulated" if self._backend == "simulated" else "done"
            if error is not None:
                cancelled = isinstance(error, (RunCancelled, KeyboardInterrupt))
                status = "cancelled" if cancelled else "failed"
            self.summary |= {"status": status, "seconds": round(self.seconds, 3), "folder": str(self.folder)}
            ended = "done" if error is None else status
            reason = str(error) if error is not None else None
            self.log.add(RunFinished(time=self.zero + self.seconds, status=ended, seconds=self.seconds, reason=reason))
            text = json.dumps(self.summary, indent=2, default=str)
            (self.folder / "summary.json").write_text(text, encoding="utf-8")
            self._keep(status, datetime.now(UTC))

    def _keep(self, status: str, finished: datetime | None) -> None:
        """Write the run down in the store. A store that cannot be written must not stop the run."""
        record = RunRecord(
            run=self.run,
            workflow=self.name,
            file=str(self.file.path),
            content_hash=self.file.workflow.content_hash(),
            status=status,
            started=self.started,
            finished=finished,
            policy=POLICY,
            granularity="stage",
            master=self.master or self._backend,
            folder=str(self.folder),
            summary=json.loads(json.dumps(self.summary, default=str)),
        )
        keep_run(record, self._store)
