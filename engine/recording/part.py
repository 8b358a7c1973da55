"""One part of a log on its way into the recording: taken event by event, handed over as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.events import (
    Event,
    QueueSpilled,
    RunFinished,
    RunStarted,
    SparkJob,
    SparkReady,
    TableStaleness,
    TargetCommitted,
    UnitFailed,
    UnitFinished,
    UnitStarted,
    UpdateFinished,
    UpdateStarted,
)
from engine.recording.lane import Lane
from engine.recording.lines import Decided, Line, LineReader, Other, Snapshot, Turn
from engine.recording.state import Spill

if TYPE_CHECKING:
    from engine.recording.recording import RunRecording


class Part:
    """Takes the events of one part of a log, in order, and adds them to the columns together at its end."""

    def __init__(self, recording: RunRecording, text: bytes) -> None:
        self.of = recording
        self.text = text
        self.now = recording.end
        self.turns: list[float] = []  # 9 numbers each: the unit, then as a lane takes them
        self.decided: list[float] = []  # 4 each: time, unit, activation, line
        self.shots: list[float] = []  # 9 each, as `snapshots` has them
        self.held: list[float] = []  # 4 each

    def take(self, entries: Sequence[Line | Other | None], reader: LineReader) -> int | None:
        """The events in their order; the number of the line that turned out to be none."""
        # By the million: what stands inside the loop counts.
        recording, turns, decided = self.of, self.turns, self.decided
        open_, units = recording.open, recording.units.numbers
        lines: list[bytes] = []
        now, begin, count = self.now, recording.begin, recording.count
        for number, line in enumerate(entries):
            if line is None:
                continue
            if not count:
                begin = recording.begin = line.time
            count += 1
            at = line.time - begin
            if at < now:  # threads may write in another order than that in which they looked at the clock
                at = now
            now = at
            if type(line) is Turn:
                unit, seconds = line.unit, line.seconds
                begun = open_.pop(unit, None)
                if begun is None:
                    begun = max(0.0, at - seconds)
                turns += (units[unit], begun, at, 1, line.packs_in, line.rows_in,
                          line.packs_out, line.rows_out, seconds)  # fmt: skip
            elif type(line) is Decided:
                unit = line.unit
                open_[unit] = at
                decided += (at, units[unit], line.activation, number)
            elif type(line) is Snapshot:
                self._snapshot(at, line)
            else:
                recording.count = count
                lines = lines or self.text.split(b"\n")
                try:
                    event = reader.full(lines[number])
                    if event is not None:
                        self._other(at, event)
                except (AttributeError, KeyError, TypeError, ValueError):
                    self.now = now
                    return number  # an event by its name only
        self.now, recording.count = now, count
        return None

    def _snapshot(self, at: float, line: Snapshot) -> None:
        before, held = self.of.held.count, self.held
        first = before + len(held) // 4
        number = self.of.queues.number
        packs = rows = size = 0
        for queue, (some_packs, some_rows, some_bytes) in line.queues.items():
            packs, rows, size = packs + some_packs, rows + some_rows, size + some_bytes
            held += (number(queue), some_packs, some_rows, some_bytes)
        if line.held is not None:
            packs, rows, size = line.held
        last = before + len(held) // 4
        self.shots += (at, packs, rows, size, line.memory_bytes, line.disk_bytes, len(line.running), first, last)

    def _other(self, at: float, event: Event) -> None:
        recording = self.of
        match event:
            case RunStarted():
                self._begin(at, event)
            case UnitStarted():
                recording.open.setdefault(event.unit, at)
                recording.units.number(event.unit)
            case UpdateStarted():
                for table in event.tables:
                    recording.open.setdefault(table, at)
                    recording.units.number(table)
            case UpdateFinished():
                for table in event.tables:
                    begun = recording.open.pop(table, None)
                    if begun is not None:
                        self._add_turn(table, begun, at, int(event.failed is None), event.rows, event.seconds)
            case UnitFinished() | UnitFailed():
                self._end_turn(at, event)
            case RunFinished():
                recording.finished = event
                self._lose_turns(at)
            case QueueSpilled():
                recording.spills.append(Spill(at, event.queue, event.packs))
            case SparkReady():
                recording.ready = event
            case SparkJob():
                recording.jobs[event.job] = event
            case TableStaleness():
                self._stale(at, event.table, event.staleness, event.bound)
                return
            case TargetCommitted() if recording.started is not None and event.node in recording.started.refreshed:
                self._stale(at, event.node, at, None)  # its rows are as of the run's start
        recording.events.append(event)  # before its time, by which it is found
        recording.event_times.append(at)

    def _stale(self, at: float, table: str, staleness: float, bound: float | None) -> None:
        self.of.staleness.add_row(at, self.of.tables.number(table), staleness)
        if bound is not None:
            self.of.bounds[table] = bound

    def _begin(self, at: float, event: RunStarted) -> None:
        recording = self.of
        for facts in (event.nodes, event.units, event.queues, {"": event.settings, "refreshed": event.refreshed}):
            if not isinstance(facts, dict) or not all(isinstance(fact, dict) for fact in facts.values()):
                raise TypeError("not what a run starts with")
        if recording.started is not None:  # it goes on after a kill: what ran then came to nothing
            self._lose_turns(at)
            recording.finished = None
        recording.started = event
        for unit, facts in event.units.items():
            recording.units.number(unit)
            for node in facts.get("nodes", ()):
                recording.units_of[node] = unit
        for queue, known in event.queues.items():
            recording.queues.number(queue)
            source, _, target, _ = known.get("link") or ("", "", "", "")
            recording.givers.setdefault(known.get("producer", ""), set()).add(source)
            recording.takers.setdefault(known.get("consumer", ""), set()).add(target)
        for table, as_of in event.refreshed.items():
            if as_of is not None and not event.resumed:
                self._stale(at, table, max(0.0, event.time - as_of), None)

    def _end_turn(self, at: float, event: UnitFinished | UnitFailed) -> None:
        started = self.of.started
        if isinstance(event, UnitFinished) and started and "work" in started.units.get(event.unit, ()):
            return  # the monitor's units have turns, and the event of the last one may come after this
        begun = self.of.open.pop(event.unit, None)
        if begun is not None and isinstance(event, UnitFinished):
            self._add_turn(event.unit, begun, at, 1, event.rows or 0, event.seconds)
        elif begun is not None:
            self._add_turn(event.unit, begun, at)

    def _lose_turns(self, at: float) -> None:
        for unit, begun in self.of.open.items():
            self._add_turn(unit, begun, at)
        self.of.open.clear()

    def _add_turn(
        self, unit: str, begun: float, at: float, turns: int = 0, rows_out: int = 0, seconds: float = 0.0
    ) -> None:
        self.turns += (self.of.units.number(unit), begun, at, turns, 0, 0, 0, rows_out, seconds)

    def close(self) -> None:
        """Hand everything over."""
        recording = self.of
        while len(recording.lanes) < len(recording.units):
            recording.lanes.append(Lane())
        if self.turns:
            turns = np.array(self.turns, dtype=np.float64).reshape(-1, 9)
            turns = turns[np.argsort(turns[:, 0], kind="stable")]
            units, starts = np.unique(turns[:, 0], return_index=True)
            stops = (*starts[1:].tolist(), len(turns))
            for unit, first, last in zip(units.astype(int).tolist(), starts.tolist(), stops, strict=True):
                recording.lanes[unit].add_turns(turns[first:last, 1:].T)
        if self.decided:
            decided = np.array(self.decided, dtype=np.float64).reshape(-1, 4)
            line = decided[:, 3].astype(np.int64)
            ends = np.flatnonzero(np.frombuffer(self.text, np.uint8) == ord("\n"))
            starts = np.concatenate(([0], ends[:-1] + 1))
            rows = np.empty((5, len(decided)))
            rows[:3] = decided[:, :3].T
            rows[3], rows[4] = recording.bytes_read + starts[line], (ends - starts)[line]
            recording.decisions.add(rows)
        if self.held:
            recording.held.add(np.array(self.held, dtype=np.float64).reshape(-1, 4).T)
        if self.shots:
            recording.snapshots.add(np.array(self.shots, dtype=np.float64).reshape(-1, 9).T)
        recording.end = self.now
