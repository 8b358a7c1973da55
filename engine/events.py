"""Every event of a run, typed, and the JSON-lines log that panels, history and replay read.

An event is a frozen dataclass; its class name in lower case with dashes is its `event` in the log. A reader
skips events it does not know, and stops at the first damaged line, telling where.
"""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

PROTOCOL_VERSION = 1


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Event:
    """Something that happened in a run, at a time in seconds since 1970."""

    time: float = field(default_factory=time.time)

    kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls) -> None:
        Event.kinds[cls.kind()] = cls

    # Once for all: made anew for each kind of event, they would be half of what loading this file takes.

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    @classmethod
    @cache
    def kind(cls) -> str:
        """The event's name in the log: `UnitStarted` is `unit-started`."""
        return _dashed(cls.__name__)

    def as_dict(self) -> dict[str, Any]:
        """The event as plain data; what lies in its fields is the event's own."""
        return {"event": self.kind(), **vars(self)}

    def line(self) -> str:
        """The event as the log has it; nothing is copied for it, for a run writes many."""
        return _encode({"event": self.kind(), **vars(self)})


@cache
def _dashed(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else str(value)  # type: ignore[arg-type]


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain).encode


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunStarted(Event):
    """A run begins: what runs, how, and the graph it runs over."""

    run: str
    workflow: str
    file: str | None
    content_hash: str
    policy: str | None
    granularity: str
    backend: str
    master: str | None
    nodes: dict[str, dict[str, Any]]  # id → operator, title, role, category
    edges: list[list[str]]  # [node, port, node, port]
    units: dict[str, dict[str, Any]]  # id → nodes, reads, result
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)  # id → producer, consumer, capacity_packs, link
    resumed: bool = False  # the log goes on after a kill
    settings: dict[str, Any] = field(default_factory=dict)  # pack_rows, queue_packs, slot_ms, theta, memory_bytes …
    refreshed: dict[str, float | None] = field(default_factory=dict)  # target → as of when it holds data, before this
    protocol: int = PROTOCOL_VERSION


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PlanChosen(Event):
    """The physical plan that the run is carried out by."""

    signature: str
    cost: float
    unit: str
    model: str
    choice: str  # best, or signature
    implementations: dict[str, str]  # that Spark is asked for, by node
    sorters: list[dict[str, Any]]  # position, node, to, order
    left: list[str] = field(default_factory=list)  # activities whose rows nobody knows: Spark chooses
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SparkReady(Event):
    """Spark answers."""

    version: str
    master: str
    seconds: float
    cores: int | None = None  # that its tasks may use at a time; None where nobody says


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitStarted(Event):
    """A unit begins to run."""

    unit: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitProgress(Event):
    """How many of a unit's Spark tasks are done."""

    unit: str
    tasks_done: int
    tasks_total: int


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitFinished(Event):
    """A unit has written its result."""

    unit: str
    seconds: float
    rows: int | None
    bytes: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitDecided(Event):
    """The monitor picked the next unit: the candidates with their scores, and what the unit may do in its turn."""

    activation: int
    unit: str
    step: str
    packs: int
    policy: str
    group: str
    candidates: list[list[Any]]  # [unit, score], by number


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitActivated(Event):
    """A turn is over: what the unit took and gave."""

    activation: int
    unit: str
    step: str
    packs_in: int
    rows_in: int
    packs_out: int
    rows_out: int
    seconds: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class QueueSnapshot(Event):
    """What every queue that is not empty holds: [packs, rows, bytes]."""

    queues: dict[str, list[int]]
    held: list[int] | None = None  # by all together: a pack that waits in several queues is held once
    memory_bytes: int = 0  # in the memory tier, with the room that is kept for what is being written
    disk_bytes: int = 0
    running: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class QueueSpilled(Event):
    """A queue goes beyond its capacity, to disk, because nothing else could go on."""

    queue: str
    packs: int  # that it may hold now


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DegreeMeasured(Event):
    """What was measured of a unit on a sample, to know how many pipelines it should have."""

    unit: str
    staggering: str  # the slowest activity
    rows: int  # of the sample, that it took
    misc_seconds: float
    net_seconds: float
    row_seconds: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitFailed(Event):
    """A unit could not be run."""

    unit: str
    node: str | None
    reason: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RowsRefused(Event):
    """Rows left a node by no port; they were counted instead."""

    node: str
    port: str
    rows: int
    total: int


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NodeCounted(Event):
    """How many rows a node took and gave. `count` says whether that is exact, sampled, or fused away."""

    node: str
    rows_in: int | None
    rows_out: int | None
    count: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TargetCommitted(Event):
    """A target shows its new rows."""

    node: str
    rows: int
    path: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LimitsSet(Event):
    """An elastic run begins: the limit of each stage's measure, how many nodes it may have, and the pool."""

    pool: int
    stages: dict[str, dict[str, Any]]  # stage → measure, unit, limit (or None), min, max
    more: dict[str, dict[str, Any]] = field(default_factory=dict)  # another measure → stage, measure, unit, limit


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StagesSampled(Event):
    """The scaler looked at all stages: their nodes, and the measure that decides on each."""

    rows_s: float  # that the sources give
    ready: int
    nodes: dict[str, int]
    measures: dict[str, float]  # stage, or another measure's name → the worst node's
    memory_bytes: int = 0  # of the buffers
    disk_bytes: int = 0
    etl_seconds: float | None = None  # extraction, transformation and load together


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ScalingDecided(Event):
    """A stage is to scale out or in, or cannot: `unreachable`."""

    stage: str
    action: str
    number: int
    nodes: int  # at work at this moment
    ready: int
    reason: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NodeChanged(Event):
    """What became of a node: started, stopped, failed to start, or lost."""

    stage: str
    change: str
    nodes: int  # at work from now on
    node: str | None = None
    seconds: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Rebalanced(Event):
    """The warehouse's facts are distributed over other nodes, and each node has the dimensions."""

    nodes_before: int
    nodes_after: int
    bytes: int
    seconds: float
    version: int | None = None  # of the manifest that readers see from now on
    rows: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LoadFinished(Event):
    """Rows came into the warehouse."""

    rows: int
    bytes: int
    seconds: float
    version: int
    total_rows: int


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class QueryAnswered(Event):
    """A query on the warehouse was answered from one version of it."""

    query: str
    seconds: float
    version: int
    rows: int
    digest: str = ""  # of the answer: two that are equal have the same


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunFinished(Event):
    """A run ends: done, failed, or cancelled. `queue` is what all queues held, as the monitor summed it up."""

    status: str
    seconds: float
    reason: str | None = None
    queue: dict[str, float] | None = None  # average and peak of bytes, packs and rows, exact


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunPaused(Event):
    """No unit is picked any more. `running` are still in their turns; the event comes again once they have ended."""

    running: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunStepped(Event):
    """A paused run may take one decision more; it stays paused."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunResumed(Event):
    """A paused run goes on."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SpeedChanged(Event):
    """A simulated run goes at another pace: simulated seconds in one of ours, None is as fast as it can."""

    speed: float | None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SparkJob(Event):
    """A Spark job of a unit began (`running`) or ended (`succeeded`, `failed`), with its stages."""

    job: int
    unit: str
    status: str
    started: float | None  # seconds since 1970
    ended: float | None
    # Of each stage: stage, name, tasks, tasks_done, tasks_running, status, started, ended, and busy_s: how long its
    # tasks that are done have kept a core.
    stages: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TableStaleness(Event):
    """How stale a table is at this moment, after a refresh or at the start (streaming warehouse, section 2.3).

    Until the next event of the table its staleness grows as time passes.
    """

    table: str
    staleness: float  # seconds
    bound: float | None = None  # seconds, that it should not exceed


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UpdateStarted(Event):
    """An update job begins on a track (streaming warehouse, section 3)."""

    job: int
    track: int
    tables: list[str]
    expected_s: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UpdateFinished(Event):
    """An update job is done: what it brought into its table, and how long that took."""

    job: int
    track: int
    tables: list[str]
    seconds: float
    rows: int
    late: int = 0  # records that came too late; they are in the late-data table
    failed: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Remark(Event):
    """Something worth telling that no other event says."""

    message: str
    node: str | None = None


def event_from(data: Mapping[str, Any]) -> Event | None:
    """An event from plain data; None for a kind this version does not know."""
    kind = Event.kinds.get(str(data.get("event")))
    if kind is None:
        return None
    known = {item.name for item in dataclasses.fields(kind)}
    try:
        return kind(**{key: value for key, value in data.items() if key in known})
    except TypeError:
        return None  # a kind of a later version that needs more than we were given


class EventLog:
    """Appends events to a file, one JSON line each, and hands them to whoever listens."""

    def __init__(self, path: Path | None = None, listener: Callable[[Event], None] | None = None) -> None:
        self.path = path
        if path is not None and path.exists():
            _drop_cut_off(path)
        self._file: BinaryIO | None = path.open("ab") if path else None
        self._listeners = [listener] if listener else []
        self._lock = threading.Lock()

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event from now on."""
        self._listeners.append(listener)

    def add(self, event: Event) -> None:
        """Write an event down; it is on its way to the disk when this returns."""
        line = f"{event.line()}\n".encode() if self.path is not None else b""
        with self._lock:
            if self._file is not None:
                self._file.write(line)
                self._file.flush()
            for listener in self._listeners:
                listener(event)

    def close(self) -> None:
        """No more events."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def _drop_cut_off(path: Path) -> None:
    """A kill may have cut the last line of a log off; the log goes on without it."""
    with path.open("rb+") as file:
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


class LogTail:
    """Reads what a log grows by, whole lines only: the last one of a run under way may not be all there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = 0

    def lines(self, most: int = -1) -> list[bytes]:
        """The lines that were added since the last look, so many bytes of them at most, but one at least.

        A log that is not there yet has none.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.at)
                added = file.read(most)
                if b"\n" not in added:
                    added += file.read()
        except FileNotFoundError:
            return []
        whole = added.rfind(b"\n") + 1
        self.at += whole
        return added[:whole].splitlines()


@dataclass
class LogReader:
    """Reads an event log, also one that was cut off: `damage` then says where."""

    path: Path
    damage: str | None = None
    skipped: dict[str, int] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Event]:
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    data = json.loads(line)
                    if not isinstance(data, dict):
                        raise ValueError
                except ValueError:
                    self.damage = f"{self.path}: line {number} is damaged; the events before it are good"
                    return
                event = event_from(data)
                if event is None:
                    kind = str(data.get("event"))
                    self.skipped[kind] = self.skipped.get(kind, 0) + 1
                else:
                    yield event
