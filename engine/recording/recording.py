"""The recording of a run: read from its event log as that grows, asked about any moment of it."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from engine.events import Event, RunFinished, RunStarted, SparkJob, SparkReady
from engine.recording.columns import Columns, Floats, Names
from engine.recording.lane import Lane
from engine.recording.lines import LineReader
from engine.recording.moment import Checkpoints, Moments, Told
from engine.recording.part import Part
from engine.recording.state import Decision, RunState, Spill

PART_BYTES = 1 << 20  # read at a time: some milliseconds, so that a window stays alive beside it
TEXT_BYTES = 1 << 16  # of it decoded at a time: what stays near the processor is read in half the time
TURN_BYTES = 250  # of a log for each turn: a line for the decision and one for its end are seldom shorter


class RunRecording:
    """A run as its log tells it. Times are seconds since its first event, in the order of the log.

    `read` takes what the log has grown by; one thread may read while another asks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started: RunStarted | None = None
        self.finished: RunFinished | None = None
        self.damage: str | None = None  # where the log ends to make sense
        self.cut_off = False  # the last line is not whole, or not whole yet
        self.over = False  # nobody writes it any more, as whoever opened it has found out
        self.count = 0  # events
        self.begin = 0.0  # seconds since 1970
        self.end = 0.0  # of the newest event
        self.units = Names()
        self.queues = Names()
        self.tables = Names()
        self.lanes: list[Lane] = []  # by unit
        self.decisions = Columns("time", "offset", "bytes")  # the last two: where its line stands in the log
        self.snapshots = Columns("time", "packs", "rows", "bytes", "memory", "disk", "running", "first", "last")
        self.held = Columns("queue", "packs", "rows", "bytes")  # of snapshots, from `first` to `last`
        self.staleness = Columns("time", "table", "staleness")
        self.bounds: dict[str, float] = {}  # table → the staleness that it should not exceed
        self.spills: list[Spill] = []
        self.events: list[Event] = []  # all that no column holds, in order
        self.event_times: list[float] = []
        self.jobs: dict[int, SparkJob] = {}
        self.ready: SparkReady | None = None
        self.open: dict[str, float] = {}  # unit → when its turn began that has not ended
        self.units_of: dict[str, str] = {}  # node → unit
        self.takers: dict[str, set[str]] = {}  # unit → the nodes of it that rows come in by
        self.givers: dict[str, set[str]] = {}  # unit → the nodes of it that rows leave by
        self._reader = LineReader()
        self._checkpoints = Checkpoints()
        self._moments = Moments()
        self._offset = 0
        self._lines = 0
        self._turns_expected = 0
        self._titles: tuple[RunStarted | None, dict[str, str]] = (None, {})  # of all units, and whose they are
        self._shown: tuple[float, int, RunState] | None = None  # the last moment that was asked for

    @classmethod
    def load(cls, path: Path) -> RunRecording:
        """All that a log holds now; `path` is a log or the folder of a run."""
        recording = cls(path / "events.jsonl" if path.is_dir() else path)
        while recording.read():
            pass
        return recording

    @property
    def skipped(self) -> dict[str, int]:
        """Events of kinds that nobody here knows, and how many of each."""
        return self._reader.skipped

    @property
    def status(self) -> str:
        """running, or how the run ended."""
        return self.finished.status if self.finished else "interrupted" if self.over else "running"

    @property
    def flaw(self) -> str | None:
        """Why not all of the run is shown: a damaged line, or a log that breaks off although the run is over."""
        if self.damage is not None or not self.over:
            return self.damage
        if self.cut_off:
            return f"{self.path}: the last line is cut off; the events before it are good"
        if self.started is None or self.finished is not None or self.started.granularity == "streaming":
            return None  # whether a streaming warehouse goes on is not to be seen from its folder
        return f"{self.path}: the log has no end: the run was killed, or the log was cut off"

    @property
    def policy(self) -> str:
        """The policy it runs under."""
        return (self.started.policy if self.started else None) or "none"

    @property
    def name(self) -> str:
        """The run's own name."""
        return self.started.run if self.started else self.path.parent.name

    def title_of(self, unit: str) -> str:
        """A unit as a person knows it: the title of its node, or of its last one; its id where several have that."""
        if self.started is None:
            return unit
        if self._titles[0] is not self.started:
            self._titles = (self.started, _titles(self.started))
        return self._titles[1].get(unit, unit)

    def places(self) -> dict[str, int]:
        """Nodes, units and tables by number, for their colours: a unit and a table have the number of their node.

        So a node has one colour at each granularity; a unit of several has that of the last one.
        """
        started = self.started
        found = {node: number for number, node in enumerate(started.nodes)} if started else {}
        for name in (*self.units.names, *self.tables.names):
            nodes = started.units.get(name, {}).get("nodes") if started else None
            found.setdefault(name, found.get(nodes[-1], len(found)) if nodes else len(found))
        return found

    def titles(self) -> list[str]:
        """The titles of all units, in the order of their lanes."""
        return [self.title_of(unit) for unit in self.units.names]

    @property
    def bytes_read(self) -> int:
        """How far into the log."""
        return self._offset

    # -- reading

    def read(self, most: int = PART_BYTES) -> int:
        """Take the next whole lines of the log; returns how many. 0: nothing new, or a damaged line."""
        if self.damage is not None:
            return 0
        try:
            with self.path.open("rb", buffering=0) as file:
                if not self._offset:
                    self._reserve(os.fstat(file.fileno()).st_size)
                return self._take(self._texts(file, self._offset + most))
        except FileNotFoundError:
            return 0

    def _texts(self, file: FileIO, until: int) -> Iterator[bytes]:
        """The next texts of a log, one after the other."""
        while self._offset < until:
            text = self._lines_of(file)
            if not text:
                return
            self._offset += len(text)
            yield text

    def _lines_of(self, file: FileIO) -> bytes:
        """The whole lines of the next text of a log; nothing where there are none yet."""
        size = TEXT_BYTES
        while True:
            file.seek(self._offset)
            text = file.read(size)
            whole = text.rfind(b"\n") + 1
            if whole or len(text) < size:
                break
            size *= 2  # a line that is longer
        if len(text) < size:
            self.cut_off = whole < len(text)
        return text[:whole]

    def _reserve(self, size: int) -> None:
        """Room for what a log of this size usually holds; memory that nothing is written to costs nothing."""
        self._turns_expected = size // TURN_BYTES
        self.decisions.reserve(size // TURN_BYTES)
        self.held.reserve(size // 100)
        self.snapshots.reserve(size // 2000)

    def make_lanes(self) -> None:
        """A lane for each unit that has been heard of, with room for twice its share of the turns."""
        for _ in range(len(self.lanes), len(self.units)):
            self.lanes.append(Lane())
            self.lanes[-1].reserve(2 * self._turns_expected // len(self.units))

    def feed(self, text: bytes) -> int:
        """Take whole lines; returns how many."""
        taken = self._take([text])
        self._offset += len(text)
        return taken

    def _take(self, texts: Iterable[bytes]) -> int:
        offset = self._offset
        lines = self._reader.read(texts)
        if not len(lines.ends):
            return 0
        damaged = Part(self, lines, offset).take()
        if damaged is not None:
            place = self._lines + damaged + 1
            self.damage = f"{self.path}: line {place} is damaged; the events before it are good"
        self._lines += len(lines.ends)
        return len(lines.ends)

    # -- asking

    def state(self, at: float | None = None) -> RunState:
        """The run at a moment; left out, now. All who show a moment ask for it, so the last one is kept."""
        at = self.end if at is None else at
        if self._shown is None or self._shown[:2] != (at, self.count):
            self._shown = (at, self.count, self._moments.at(self, at))
        return self._shown[2]

    def snapshot_at(self, at: float) -> int:
        """The number of the last snapshot up to a moment; -1 before the first."""
        return int(np.searchsorted(self.snapshots["time"], at, side="right")) - 1

    def held_in(self, snapshot: int) -> tuple[Floats, Floats]:
        """The queues that a snapshot tells about, and what they hold: a line each for packs, rows, bytes."""
        if snapshot < 0:
            return np.empty(0), np.empty((3, 0))
        first, last = int(self.snapshots["first"][snapshot]), int(self.snapshots["last"][snapshot])
        held = self.held
        return held["queue"][first:last], np.array([held[name][first:last] for name in ("packs", "rows", "bytes")])

    def decision(self, number: int) -> Decision:
        """A decision with its candidates, read from the log."""
        table = self.decisions
        offset, length = int(table["offset"][number]), int(table["bytes"][number])
        with self.path.open("rb", buffering=0) as file:
            file.seek(offset)
            data: dict[str, Any] = json.loads(file.read(length))
        return Decision(
            number,
            float(table["time"][number]),
            int(data.get("activation", 0)),
            str(data["unit"]),
            str(data.get("step", "")),
            int(data.get("packs", 0)),
            str(data.get("policy", "")),
            str(data.get("group", "")),
            [(str(unit), float(score)) for unit, score in data.get("candidates", ())],
        )

    def decision_at(self, at: float) -> int:
        """The number of the last decision up to a moment; -1 before the first."""
        return int(np.searchsorted(self.decisions["time"], at, side="right")) - 1

    def told_at(self, at: float) -> Told:
        """What the events outside the columns had said by a moment."""
        return self._checkpoints.after(self.events, bisect_right(self.event_times, at))

    def capacities(self) -> dict[str, int | None]:
        """How many packs each queue may hold, spills aside."""
        queues = self.started.queues if self.started else {}
        return {id_: facts.get("capacity_packs") for id_, facts in queues.items()}

    @property
    def budget_bytes(self) -> int | None:
        """How much memory all packs may take; None where the log does not say."""
        given = self.started.settings.get("memory_bytes") if self.started else None
        return int(given) if given else None

    @property
    def full_bytes(self) -> int | None:
        """What all queues hold when they are full; None where nothing limits them or the log does not say."""
        given = self.started.settings.get("full_bytes") if self.started else None
        return int(given) if given else None

    @property
    def cores(self) -> int | None:
        """The cores that the run has: as Spark says, else as its settings do."""
        if self.ready is not None and self.ready.cores:
            return self.ready.cores
        given = self.started.settings.get("cores") if self.started else None
        return int(given) if given else None


def _titles(started: RunStarted) -> dict[str, str]:
    """Every unit and node as a person knows it."""
    many = Counter(facts.get("title") for facts in started.nodes.values())
    titles = {}
    for unit in (*started.nodes, *started.units):
        nodes = started.units.get(unit, {}).get("nodes") or [unit]
        title = str(started.nodes.get(nodes[-1], {}).get("title") or unit)
        if len(nodes) > 1:
            titles[unit] = f"{title} +{len(nodes) - 1}"
        else:
            titles[unit] = unit if many[title] > 1 else title
    return titles
