"""One part of a log on its way into the recording: taken event by event, handed over as columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from operator import attrgetter
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
from engine.recording.columns import Floats
from engine.recording.lines import Decided, Entry, LineReader, Snapshot, Turn, Unknown
from engine.recording.state import Spill

if TYPE_CHECKING:
    from engine.recording.recording import RunRecording

FIGURES = attrgetter("packs_in", "rows_in", "packs_out", "rows_out", "seconds")  # of a turn, as a lane takes them


class Part:
    """Takes the events of one part of a log, in order, and adds them to the columns together at its end."""

    def __init__(self, recording: RunRecording) -> None:
        self.of = recording
        self.now = recording.end
        self.turns: list[Turn] = []
        self.begins: list[float] = []  # of those turns
        self.ends: list[float] = []
        self.lost: list[int] = []  # those of them that came to nothing
        self.decided: list[Floats] = []  # as `decisions` has them
        self.shots: list[float] = []  # 9 each, as `snapshots` has them
        self.held: list[float] = []  # 4 each

    def take(self, text: bytes, offset: int, reader: LineReader) -> tuple[int, int | None]:
        """Whole lines, which stand so far into the log: how many they are, and which of them is damaged."""
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        starts = np.concatenate(([0], ends[:-1] + 1))
        entries, damaged = reader.read(text, len(ends))
        clock = self._clock(entries)
        # By the million: what stands inside the loop counts, and what can be done for all at once is done in `close`.
        turns, begins, finishes, open_ = self.turns, self.begins, self.ends, self.of.open
        decided: list[int] = []
        unknown = 0
        for number, (line, at) in enumerate(zip(entries, clock.tolist(), strict=True)):
            if type(line) is Turn:
                begun = open_.pop(line.unit, None)
                turns.append(line)
                begins.append(max(0.0, at - line.seconds) if begun is None else begun)
                finishes.append(at)
            elif type(line) is Decided:
                open_[line.unit] = at
                decided.append(number)
            elif type(line) is Snapshot:
                self._snapshot(at, line)
            elif type(line) is Unknown:
                unknown += 1
            else:
                try:
                    event = reader.full(text[starts[number] : ends[number]])
                    if event is not None:
                        self._other(at, event)
                except (AttributeError, KeyError, TypeError, ValueError):  # an event by its name only
                    entries, clock, damaged = entries[:number], clock[:number], number
                    break
        self.of.count += len(entries) - unknown
        self.now = float(clock[-1]) if len(clock) else self.now
        if decided:
            self.decided.append(np.array((clock[decided], offset + starts[decided], (ends - starts)[decided])))
        return len(ends), damaged

    def _clock(self, entries: Sequence[Entry]) -> Floats:
        """When each event was, in seconds since the first; never before the one in front of it."""
        times = np.fromiter(map(attrgetter("time"), entries), np.float64, len(entries))
        if not self.of.count:
            self.of.begin = next((line.time for line in entries if type(line) is not Unknown), 0.0)
        # Threads may write in another order than that in which they looked at the clock.
        return np.maximum.accumulate(np.maximum(times - self.of.begin, self.now))

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
        if not turns:
            self.lost.append(len(self.turns))
        self.turns.append(Turn(at, unit, seconds, rows_out=rows_out))
        self.begins.append(begun)
        self.ends.append(at)

    def close(self) -> None:
        """Hand everything over."""
        recording = self.of
        if self.turns:
            self._close_turns()
        for unit in recording.open:
            recording.units.number(unit)
        recording.make_lanes()
        if self.decided:
            recording.decisions.add(np.concatenate(self.decided, axis=1))
        if self.held:
            recording.held.add(np.array(self.held, dtype=np.float64).reshape(-1, 4).T)
        if self.shots:
            recording.snapshots.add(np.array(self.shots, dtype=np.float64).reshape(-1, 9).T)
        recording.end = self.now

    def _close_turns(self) -> None:
        """The turns to the lanes of their units."""
        recording, count = self.of, len(self.turns)
        names = map(attrgetter("unit"), self.turns)
        units = np.fromiter(map(recording.units.numbers.__getitem__, names), np.int64, count)
        recording.make_lanes()
        figures = chain.from_iterable(map(FIGURES, self.turns))
        turns = np.empty((8, count))
        turns[0], turns[1], turns[2] = self.begins, self.ends, 1.0
        turns[2, self.lost] = 0.0
        turns[3:] = np.fromiter(figures, np.float64, 5 * count).reshape(count, 5).T
        order = np.argsort(units, kind="stable")
        units, turns = units[order], turns[:, order]
        edges = [0, *(np.flatnonzero(np.diff(units)) + 1).tolist(), count]
        for first, last in pairwise(edges):
            recording.lanes[units[first]].add_turns(turns[:, first:last])
