"""The state of a run at a moment: found in the lanes' running sums, and folded from the rarer events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.events import (
    Event,
    NodeCounted,
    QueueSpilled,
    RunFinished,
    RunPaused,
    RunResumed,
    RunStarted,
    TargetCommitted,
    UnitFailed,
    UnitFinished,
    UnitProgress,
    UnitStarted,
)
from engine.recording.lane import Lane
from engine.recording.state import NodeState, QueueState, RunState, State, UnitState

if TYPE_CHECKING:
    from engine.recording.recording import RunRecording

WINDOW_S = 2.0  # over which a rate is taken
EVERY = 256  # events between two checkpoints
NEVER = float("inf")
Rows = tuple[int | None, int | None, str | None]  # in, out, and how they were counted


@dataclass
class Told:
    """What the events outside the lanes have said so far."""

    status: str = "running"
    reason: str | None = None
    begun: set[str] = field(default_factory=set)
    finished: dict[str, int | None] = field(default_factory=dict)  # unit → its rows
    failed: dict[str, tuple[str | None, str]] = field(default_factory=dict)  # unit → node, reason
    progress: dict[str, float] = field(default_factory=dict)
    counted: dict[str, NodeCounted] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)  # of queues that spill
    emptied: bool = False  # a run that is done has left nothing in its queues

    def copy(self) -> Told:
        """The same, to go on from."""
        return replace(
            self,
            begun=set(self.begun),
            finished=dict(self.finished),
            failed=dict(self.failed),
            progress=dict(self.progress),
            counted=dict(self.counted),
            committed=dict(self.committed),
            capacity=dict(self.capacity),
        )

    def take(self, event: Event) -> None:
        """One event more."""
        match event:
            case UnitProgress():
                self.progress[event.unit] = event.tasks_done / max(1, event.tasks_total)
            case NodeCounted():
                self.counted[event.node] = event
            case UnitStarted():
                self.begun.add(event.unit)
            case UnitFinished():
                self.finished[event.unit] = event.rows
                self.progress.pop(event.unit, None)
            case UnitFailed():
                self.failed[event.unit] = (event.node, event.reason)
            case TargetCommitted():
                self.committed[event.node] = event.rows
            case QueueSpilled():
                self.capacity[event.queue] = event.packs
            case RunPaused():
                self.status = "paused"
            case RunResumed():
                self.status = "running"
            case RunFinished():
                self.status, self.reason = event.status, event.reason
                self.emptied = event.status == "done"
            case RunStarted():
                self.status, self.reason, self.emptied = "running", None, False
                self.failed.clear()


class Checkpoints:
    """What had been told by any moment, from checkpoints."""

    def __init__(self) -> None:
        self._checkpoints: list[Told] = [Told()]

    def after(self, events: list[Event], count: int) -> Told:
        """After the first `count` of these events; they only grow."""
        while len(self._checkpoints) * EVERY <= count:
            last = self._checkpoints[-1].copy()
            done = (len(self._checkpoints) - 1) * EVERY
            for event in events[done : done + EVERY]:
                last.take(event)
            self._checkpoints.append(last)
        place = count // EVERY
        told = self._checkpoints[place].copy()
        for event in events[place * EVERY : count]:
            told.take(event)
        return told


class Moments:
    """A run at any moment. What is as it was at the last one that was asked for is not made again."""

    def __init__(self) -> None:
        self._units: dict[str, tuple[tuple[object, ...], UnitState]] = {}
        self._nodes: dict[str, tuple[tuple[object, ...], NodeState]] = {}
        self._idle: tuple[tuple[object, ...], dict[str, QueueState]] = ((), {})  # queues that hold nothing

    def at(self, recording: RunRecording, at: float) -> RunState:
        """Every node and every queue of a run at a moment."""
        told = recording.told_at(at)
        names = recording.units.names
        units = {
            name: self._unit(lane, name, at, recording, told)
            for name, lane in zip(names, recording.lanes, strict=False)
        }
        shot = recording.snapshot_at(at)
        memory = disk = 0
        if shot >= 0 and not told.emptied:
            memory, disk = int(recording.snapshots["memory"][shot]), int(recording.snapshots["disk"][shot])
        return RunState(
            at,
            told.status,
            told.reason,
            units,
            self._make_nodes(recording, units, told),
            self._queues(recording, shot, told),
            memory,
            disk,
            told.committed,
        )

    def _unit(self, lane: Lane, name: str, at: float, recording: RunRecording, told: Told) -> UnitState:
        ended = lane.ended(at)
        begin = lane.at("begin", ended) if ended < lane.count else recording.open.get(name, NEVER)
        since = begin if begin <= at else None
        message = None
        if name in told.failed:
            state, message = State.FAILED, told.failed[name][1]
        elif name in told.finished or told.status == "done":
            state = State.FINISHED
        elif since is not None:
            state = State.RUNNING
        else:
            state = State.STALLED if lane.at("turns", ended - 1) or name in told.begun else State.WAITING
        running = state is State.RUNNING
        rate = _rate(lane, ended, since, at) if running or state is State.STALLED else 0.0
        known = (ended, state, since if running else None, rate, told.progress.get(name) if running else None, message)
        before = self._units.get(name)
        if before is not None and before[0] == known:
            return before[1]
        turns, packs_in, rows_in, packs_out, rows_out, seconds, _ = lane.sums(ended)
        unit = UnitState(
            state,
            known[2],
            int(turns),
            int(packs_in),
            int(rows_in),
            int(packs_out),
            int(rows_out),
            seconds,
            rate,
            known[4],
            message,
        )
        self._units[name] = (known, unit)
        return unit

    def _make_nodes(self, recording: RunRecording, units: dict[str, UnitState], told: Told) -> dict[str, NodeState]:
        started = recording.started
        if started is None:
            return {}
        nodes = {}
        for node in started.nodes:
            unit = recording.units_of.get(node, "")
            of = units.get(unit)
            known = (started, of, told.counted.get(node), told.finished.get(unit), told.failed.get(unit))
            before = self._nodes.get(node)
            if before is None or before[0] != known:  # mostly the same objects, which is seen at once
                before = self._nodes[node] = (known, _node(recording, node, unit, of, told))
            nodes[node] = before[1]
        return nodes

    def _queues(self, recording: RunRecording, shot: int, told: Told) -> dict[str, QueueState]:
        names = recording.queues.names
        known = (recording.started, len(names), told.capacity)
        if self._idle[0] != known:
            capacity = {**recording.capacities(), **told.capacity}
            idle = {name: QueueState(0, 0, 0, capacity.get(name)) for name in (*capacity, *names)}
            self._idle = (known, idle)
        queues = dict(self._idle[1])
        if told.emptied:
            return queues
        which, held = recording.held_in(shot)
        for number, packs, rows, size in zip(which.tolist(), *held.tolist(), strict=True):
            name = names[int(number)]
            queues[name] = QueueState(int(packs), int(rows), int(size), queues[name].capacity)
        return queues


def _rate(lane: Lane, ended: int, since: float | None, at: float) -> float:
    """The rows a second that a unit took of late; those that it gave, of one that takes none."""
    window = min(WINDOW_S, at) or WINDOW_S
    if since is None and lane.at("end", ended - 1) <= at - window:
        return 0.0  # nothing of late
    taken = "rows_in" if lane.last("rows_in") else "rows_out"
    return (lane.grown_at(taken, at) - lane.grown_at(taken, at - window)) / window


def _node(recording: RunRecording, node: str, unit: str, of: UnitState | None, told: Told) -> NodeState:
    started = recording.started
    if of is None or started is None:
        return NodeState(State.WAITING, None, None, None, None)
    role = str(started.nodes[node].get("role"))
    members = started.units[unit]["nodes"] if unit in started.units else [node]
    rows: Rows = None, None, None
    counted = told.counted.get(node)
    if counted is not None:
        rows = counted.rows_in, counted.rows_out, counted.count
    elif started.queues:
        rows = _passed(recording, unit, of, members, node, role)
    elif started.granularity == "fused":
        rows = _written(told.finished.get(unit), of, members, node, role)
    message = of.message
    if message is not None and told.failed[unit][0] not in (None, node):
        message = None  # another node of the unit is to blame
    state = of.state
    if of.state is State.FAILED and message is None:
        state = State.STALLED
    rate = of.rows_per_second if len(members) == 1 else None
    return NodeState(state, *rows, rate, message, of.progress)


def _passed(recording: RunRecording, unit: str, of: UnitState, members: list[str], node: str, role: str) -> Rows:
    """The rows of a node whose unit has had turns. Of several in a unit: of the only one that rows come or leave by."""
    simulated = recording.started is not None and recording.started.backend == "simulated"
    if not of.turns:
        return None, None, None
    if len(members) == 1:
        # A target gives what it holds, whoever reads it.
        rows_in, rows_out = (0 if role == "source" else of.rows_in), (of.rows_in if role == "target" else of.rows_out)
        return rows_in, rows_out, "simulated" if simulated else "exact"
    nodes = recording.started.nodes if recording.started is not None else {}
    reads = any(nodes.get(member, {}).get("role") == "source" for member in members)
    taken = of.rows_in if recording.takers.get(unit) == {node} and not reads else None
    given = of.rows_out if recording.givers.get(unit) == {node} else None
    exact = taken is not None and given is not None
    return taken, given, "simulated" if simulated else "exact" if exact else "fused"


def _written(written: int | None, of: UnitState, members: list[str], node: str, role: str) -> Rows:
    """The rows of a node of a fused unit: once that has written its result, those of its last node are known."""
    if written is not None and node == members[-1]:
        taken = {"source": 0, "target": written}.get(role)
        return taken, written, "fused" if taken is None else "exact"
    begun = of.state in (State.RUNNING, State.FINISHED)
    return None, None, "fused" if begun and len(members) > 1 else None
