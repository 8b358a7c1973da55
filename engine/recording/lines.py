"""The lines of an event log as data, fast: the three kinds that come by the million, and all others as events."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, compress
from operator import attrgetter
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from engine.events import Event, event_from
from engine.recording.columns import Floats, Ints, Names

DECIDED, TURN, SNAPSHOT, OTHER, UNKNOWN = range(5)


class Decided(msgspec.Struct, tag_field="event", tag="unit-decided", gc=False):
    """A decision; its candidates stay in the log until somebody asks for them."""

    sort: ClassVar[int] = DECIDED
    time: float
    unit: str


class Turn(msgspec.Struct, tag_field="event", tag="unit-activated", gc=False):
    """A turn that is over."""

    sort: ClassVar[int] = TURN
    time: float
    unit: str
    seconds: float
    packs_in: int = 0
    rows_in: int = 0
    packs_out: int = 0
    rows_out: int = 0


class Snapshot(msgspec.Struct, tag_field="event", tag="queue-snapshot", gc=False):
    """What the queues hold."""

    sort: ClassVar[int] = SNAPSHOT
    time: float
    queues: dict[str, tuple[int, int, int]]
    held: tuple[int, int, int] | None = None
    memory_bytes: int = 0
    disk_bytes: int = 0
    running: tuple[str, ...] = ()


FAST = (Decided, Turn, Snapshot)
NEVER = float("-inf")


class Other(msgspec.Struct, gc=False):
    """An event of any other kind: its line is read once more, in full."""

    sort: ClassVar[int] = OTHER
    time: float


class Unknown(msgspec.Struct, gc=False):
    """An event of a kind that nobody here knows: it does not move the clock."""

    sort: ClassVar[int] = UNKNOWN
    time: float = NEVER


Entry = Decided | Turn | Snapshot | Other | Unknown
SORT, TIME, UNIT = attrgetter("sort"), attrgetter("time"), attrgetter("unit")
FIGURES = attrgetter("packs_in", "rows_in", "packs_out", "rows_out", "seconds")  # of a turn, as a lane takes them


def _only(*sorts: int) -> bytes:
    """Translates sorts to whether they are among these."""
    return bytes(sort in sorts for sort in range(256))


UNITED, TURNS, SNAPSHOTS = _only(DECIDED, TURN), _only(TURN), _only(SNAPSHOT)


@dataclass(frozen=True)
class Lines:
    """Lines of a log as columns, in its order. Where a line is damaged, only `ends` goes on behind it."""

    names: Names  # of units
    sorts: NDArray[np.uint8]
    times: Floats
    units: Ints  # of decisions and turns
    figures: Floats  # of turns
    snapshots: list[Snapshot]
    others: list[tuple[int, bytes]]  # the events of all other kinds: which line, and the line
    starts: Ints
    ends: Ints


def _decoder() -> msgspec.json.Decoder[Any]:
    fast = {kind.__struct_config__.tag for kind in FAST}
    others = [
        msgspec.defstruct(f"Other_{number}", [], bases=(Other,), tag_field="event", tag=kind)
        for number, kind in enumerate(sorted(Event.kinds))
        if kind not in fast
    ]
    kinds: Any = FAST[0]
    for more in (*FAST[1:], *others):
        kinds = kinds | more
    return msgspec.json.Decoder(kinds)


class LineReader:
    """Turns whole lines into data. Kinds it does not know are counted in `skipped`."""

    def __init__(self) -> None:
        self.skipped: dict[str, int] = {}
        self._names = Names()
        self._known = len(Event.kinds)
        self._decoder = _decoder()

    def read(self, texts: Iterable[bytes]) -> Lines:
        """All lines of texts that follow each other, or those up to the first that is damaged.

        A text should not be long: what stays near the processor is read in half the time.
        """
        if len(Event.kinds) != self._known:  # somebody has brought kinds of their own
            self._known, self._decoder = len(Event.kinds), _decoder()
        sorts = bytearray()
        times, figures, units = [np.empty(0)], [np.empty(0)], [np.empty(0, np.int64)]
        snapshots: list[Snapshot] = []
        others: list[tuple[int, bytes]] = []
        places, at = [np.array([-1])], 0
        for text in texts:
            ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
            entries: Any = self._read_text(text, len(ends))
            some = bytes(map(SORT, entries))
            times.append(np.fromiter(map(TIME, entries), np.float64, len(some)))
            united = map(UNIT, compress(entries, some.translate(UNITED)))
            units.append(np.fromiter(map(self._names.numbers.__getitem__, united), np.int64))
            turns = compress(entries, some.translate(TURNS))
            figures.append(np.fromiter(chain.from_iterable(map(FIGURES, turns)), np.float64))
            snapshots += compress(entries, some.translate(SNAPSHOTS))
            number = some.find(OTHER)
            while number >= 0:
                start = int(ends[number - 1]) + 1 if number else 0
                others.append((len(sorts) + number, text[start : ends[number]]))
                number = some.find(OTHER, number + 1)
            sorts += some
            places.append(ends + at)
            at += len(text)
            if len(some) < len(ends):
                break
        lines = np.concatenate(places)
        return Lines(
            self._names,
            np.frombuffer(bytes(sorts), np.uint8),
            np.concatenate(times),
            np.concatenate(units),
            np.concatenate(figures).reshape(-1, 5).T,
            snapshots,
            others,
            lines[:-1] + 1,
            lines[1:],
        )

    def _read_text(self, text: bytes, count: int) -> list[Entry]:
        """As many entries as there are lines, or those in front of the damaged one."""
        try:
            found: list[Entry] = self._decoder.decode_lines(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = []
        if len(found) == count:
            return found
        entries: list[Entry] = []
        for line in text.split(b"\n")[:-1]:
            try:
                entries.append(self._single(line))
            except ValueError:
                break
        return entries

    def _single(self, line: bytes) -> Entry:
        """One line; raises ValueError where it is damaged."""
        try:
            data: Entry = self._decoder.decode(line)
            return data
        except msgspec.ValidationError:
            plain = json.loads(line)
        if not isinstance(plain, dict):
            raise ValueError(line)
        kind = str(plain.get("event"))
        self.skipped[kind] = self.skipped.get(kind, 0) + 1
        return Unknown()


def full(line: bytes) -> Event | None:
    """The event of a line, with all its fields."""
    return event_from(json.loads(line))
