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
    activation: int = 0


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
Line = Decided | Turn | Snapshot | Event


class Other(msgspec.Struct):
    """An event of any other kind: its line is read once more, in full."""

    time: float


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

    def read(self, text: bytes) -> tuple[list[Line | Other | None], int | None]:
        """One entry for each whole line of a text, and the number of the damaged line at which they end.

        An entry is None where nobody knows its kind; one of `Other` is read in full by `full`.
        """
        if len(Event.kinds) != self._known:  # somebody has brought kinds of their own
            self._known, self._decoder = len(Event.kinds), _decoder()
        try:
            found = self._decoder.decode_lines(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            found = []
        if len(found) == text.count(b"\n"):
            return found, None
        entries: list[Line | Other | None] = []
        for line in text.split(b"\n")[:-1]:
            try:
                entries.append(self._single(line))
            except ValueError:
                return entries, len(entries)
        return entries, None

    def full(self, line: bytes) -> Event | None:
        """The event of a line, with all its fields."""
        return event_from(json.loads(line))

    def _single(self, line: bytes) -> Line | Other | None:
        """One line; raises ValueError where it is damaged."""
        try:
            data: Line | Other = self._decoder.decode(line)
            return data
        except msgspec.ValidationError:
            plain = json.loads(line)
        if not isinstance(plain, dict):
            raise ValueError(line)
        kind = str(plain.get("event"))
        self.skipped[kind] = self.skipped.get(kind, 0) + 1
        return None
