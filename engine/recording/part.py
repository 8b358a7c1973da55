"""One part of a log on its way into the recording: its events are taken as columns, all of a kind at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
from engine.recording.columns import Floats, Ints
from engine.recording.lines import DECIDED, SNAPSHOT, TURN, UNKNOWN, Lines, Snapshot, full
from engine.recording.state import Spill

if TYPE_CHECKING:
    from engine.recording.recording import RunRecording

SIZES = attrgetter("memory_bytes", "disk_bytes")  # of a snapshot


class Part:
    """Takes lines, which stand so far into a log, and adds them to its recording."""

    def __init__(self, recording: RunRecording, lines: Lines, offset: int) -> None:
        self.of = recording
        self.lines = lines
        self.offset = offset
        self.count = len(lines.sorts)  # of the lines that are taken
        self.clock = self._clock()
        self.here = 0  # the line that is looked at
        self.paired = 0  # up to which line the turns have their beginnings
        self.units: list[Ints] = []  # of turns that have their beginnings: those of one unit in the order of the log
        self.turns: list[Floats] = []  # as a lane takes them

    def take(self) -> int | None:
        """Add all that is not damaged to the recording; returns the number of the line that is."""
        for number, line in self.lines.others:
            self.here = number
            try:
                event = full(line)
                if event is not None:
                    self._other(float(self.clock[number]), event)
            except (AttributeError, KeyError, TypeError, ValueError):  # an event by its name only
                self.count = number
                break
        self.here = self.count
        self._pair()
        self._hand_over()
        return self.count if self.count < len(self.lines.ends) else None

    def _clock(self) -> Floats:
        """When each event was, in seconds since the first; never before the one in front of it."""
        known = self.lines.sorts != UNKNOWN
        if not self.of.count:
            self.of.begin = float(self.lines.times[known.argmax()]) if known.any() else 0.0
        # Threads may write in another order than that in which they looked at the clock.
        return np.maximum.accumulate(np.maximum(self.lines.times - self.of.begin, self.of.end))

    # -- turns

    def _pair(self) -> None:
        """Give the turns up to here their beginnings: the last decision on their unit, if no turn came in between."""
        before, sorts = self.lines.sorts[: self.paired], self.lines.sorts[self.paired : self.here]
        mine = sorts <= TURN
        clock = self.clock[self.paired : self.here][mine]
        self.paired = self.here
        if not len(clock):
            return
        units = self.lines.units[int((before <= TURN).sum()) :][: len(clock)]
        order = _sorted(units)
        units, turn, clock = units[order], (sorts[mine] == TURN)[order], clock[order]
        begins = self._begins(units, turn, clock)
        which = int((before == TURN).sum()) + np.cumsum(sorts[mine] == TURN)[order[turn]] - 1
        turns = np.empty((8, len(which)))
        turns[0], turns[1], turns[2] = begins[turn], clock[turn], 1.0
        turns[3:] = self.lines.figures[:, which]
        untold = np.isnan(turns[0])
        turns[0, untold] = np.maximum(turns[1, untold] - turns[7, untold], 0.0)
        self.units.append(units[turn])
        self.turns.append(turns)

    def _begins(self, units: Ints, turn: NDArray[np.bool_], clock: Floats) -> Floats:
        """When turns began, sorted by unit; not a number where nobody knows. What has not ended stays open."""
        begins = np.empty(len(units))
        begins[1:] = np.where(turn[:-1], np.nan, clock[:-1])  # the decision in front of it
        open_ = self.of.open
        for name, first, last in self._by_unit(units):
            begins[first] = open_.pop(name, np.nan)
            if not turn[last - 1]:
                open_[name] = float(clock[last - 1])
        return begins

    def _by_unit(self, units: Ints) -> Iterator[tuple[str, int, int]]:
        """The units that a sorted column has, and from where to where each stands."""
        edges = (np.flatnonzero(np.diff(units)) + 1).tolist()
        for first, last in pairwise([0, *edges, len(units)] if len(units) else ()):
            yield self.lines.names.names[units[first]], first, last

    def _under_way(self) -> dict[str, float]:
        """The turns that have not ended by the event that is looked at, and when they began."""
        self._pair()
        return self.of.open

    def _add_turn(
        self, unit: str, begun: float, at: float, turns: int = 0, rows_out: int = 0, seconds: float = 0.0
    ) -> None:
        """A turn that other events tell of; one that came to nothing counts as none."""
        self.units.append(np.array([self.lines.names.number(unit)]))
        self.turns.append(np.array([[begun], [at], [turns], [0], [0], [0], [rows_out], [seconds]], dtype=np.float64))

    # -- all other events

    def _other(self, at: float, event: Event) -> None:
        recording = self.of
        match event:
            case RunStarted():
                self._begin(at, event)
            case UnitStarted():
                self._under_way().setdefault(event.unit, at)
                recording.units.number(event.unit)
            case UpdateStarted():
                for table in event.tables:
                    self._under_way().setdefault(table, at)
                    recording.units.number(table)
            case UpdateFinished():
                for table in event.tables:
                    begun = self._under_way().pop(table, None)
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
        begun = self._under_way().pop(event.unit, None)
        if begun is not None and isinstance(event, UnitFinished):
            self._add_turn(event.unit, begun, at, 1, event.rows or 0, event.seconds)
        elif begun is not None:
            self._add_turn(event.unit, begun, at)

    def _lose_turns(self, at: float) -> None:
        open_ = self._under_way()
        for unit, begun in open_.items():
            self._add_turn(unit, begun, at)
        open_.clear()

    # -- into the columns

    def _hand_over(self) -> None:
        recording = self.of
        if self.turns:
            self._hand_over_turns()
        for unit in recording.open:
            recording.units.number(unit)
        recording.make_lanes()
        sorts, clock = self.lines.sorts[: self.count], self.clock[: self.count]
        places = np.flatnonzero(sorts == DECIDED)
        if len(places):
            starts, ends = self.lines.starts[places], self.lines.ends[places]
            recording.decisions.add(np.array((clock[places], self.offset + starts, ends - starts)))
        shots = clock[sorts == SNAPSHOT]
        if len(shots):
            self._hand_over_snapshots(shots, self.lines.snapshots[: len(shots)])
        recording.count += int((sorts != UNKNOWN).sum())
        recording.end = float(clock[-1]) if len(clock) else recording.end

    def _hand_over_turns(self) -> None:
        """The turns to the lanes of their units."""
        units, turns = self.units[0], self.turns[0]
        if len(self.units) > 1:  # each is sorted by unit
            units, turns = np.concatenate(self.units), np.concatenate(self.turns, axis=1)
            order = _sorted(units)
            units, turns = units[order], turns[:, order]
        for name, first, last in self._by_unit(units):
            number = self.of.units.number(name)
            self.of.make_lanes()
            self.of.lanes[number].add_turns(turns[:, first:last])

    def _hand_over_snapshots(self, clock: Floats, shots: list[Snapshot]) -> None:
        count, before = len(shots), self.of.held.count
        queues = [shot.queues for shot in shots]
        sizes = np.fromiter(map(len, queues), np.int64, count)
        lasts = np.cumsum(sizes)
        held = np.empty((4, int(lasts[-1])))
        held[0] = _floats(map(self.of.queues.numbers.__getitem__, chain.from_iterable(queues)), held.shape[1])
        amounts = chain.from_iterable(chain.from_iterable(map(dict.values, queues)))
        held[1:] = _floats(amounts, held[1:].size).reshape(-1, 3).T
        table = np.empty((9, count))
        table[0] = clock
        which = np.repeat(np.arange(count), sizes)
        for measure in (1, 2, 3):
            table[measure] = np.bincount(which, held[measure], count)
        told = [number for number, shot in enumerate(shots) if shot.held is not None]
        table[1:4, told] = np.array([shots[number].held for number in told], dtype=np.float64).reshape(-1, 3).T
        table[4:6] = _floats(chain.from_iterable(map(SIZES, shots)), 2 * count).reshape(-1, 2).T
        table[6] = [len(shot.running) for shot in shots]
        table[7], table[8] = before + lasts - sizes, before + lasts
        self.of.held.add(held)
        self.of.snapshots.add(table)


def _floats(values: Iterable[float], count: int) -> Floats:
    return np.fromiter(values, np.float64, count)


def _sorted(units: Ints) -> Ints:
    """The places of units by their number; those of one unit stay in their order."""
    small = units.astype(np.uint16) if units.max() < 1 << 16 else units  # numpy sorts them in a fourth of the time
    return np.argsort(small, kind="stable")
