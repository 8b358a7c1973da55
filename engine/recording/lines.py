"""The lines of an event log as data, fast: the three kinds that come by the million, and all others as events."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from engine.events import Event, event_from


class Decided(msgspec.Struct, tag_field="event", tag="unit-decided", gc=False):
    """A decision; its candidates stay in the log until somebody asks for them."""

    time: float
    unit: str


class Turn(msgspec.Struct, tag_field="event", tag="unit-activated", gc=False):
    """A turn that is over."""

    time: float
    unit: str
    seconds: float
    packs_in: int = 0
    rows_in: int = 0
    packs_out: int = 0
    rows_out: int = 0


class Snapshot(msgspec.Struct, tag_field="event", tag="queue-snapshot", gc=False):
    """What the queues hold."""

    time: float
    queues: dict[str, tuple[int, int, int]]
    held: tuple[int, int, int] | None = None
    memory_bytes: int = 0
    disk_bytes: int = 0
    running: tuple[str, ...] = ()


FAST = (Decided, Turn, Snapshot)
NEVER = float("-inf")


class Other(msgspec.Struct):
    """An event of any other kind: its line is read once more, in full."""

    time: float


class Unknown(msgspec.Struct):
    """An event of a kind that nobody here knows: it does not move the clock."""

    time: float = NEVER


Entry = Decided | Turn | Snapshot | Other | Unknown


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
        self._known = len(Event.kinds)
        self._decoder = _decoder()

    def read(self, text: bytes, count: int) -> tuple[list[Entry], int | None]:
        """One entry for each of the whole lines of a text, and the number of the damaged line at which they end."""
        if len(Event.kinds) != self._known:  # somebody has brought kinds of their own
            self._known, self._decoder = len(Event.kinds), _decoder()
        try:
            found: list[Entry] = self._decoder.decode_lines(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = []
        if len(found) == count:
            return found, None
        entries: list[Entry] = []
        for line in text.split(b"\n")[:-1]:
            try:
                entries.append(self._single(line))
            except ValueError:
                return entries, len(entries)
        return entries, None

    def full(self, line: bytes) -> Event | None:
        """The event of a line, with all its fields."""
        return event_from(json.loads(line))

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
