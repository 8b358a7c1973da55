"""What a table of a streaming warehouse holds, version by version, as its journal tells. Reads no rows."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.errors import EnvironmentProblem

DATA, LATE, QUARANTINE = "data", "late", "quarantine"
JOURNAL, STATE = "journal.jsonl", "state.json"
LOOKS = 5  # at a table that is being written, until it is called damaged
LOOK_S = 0.02  # between two of them


@dataclass(frozen=True)
class DataFile:
    """One file of a table: its partition, and the times it holds."""

    name: str
    partition: int
    rows: int
    bytes: int
    first_us: int
    last_us: int


@dataclass(frozen=True)
class Version:
    """What a table holds at a published version."""

    number: int = 0
    fresh_us: int | None = None  # up to when it holds data; of a view, as of when it is consistent with its sources
    safe_us: int | None = None  # no record of this time or an earlier one is taken in any more
    files: Mapping[str, DataFile] = field(default_factory=dict)
    late: Mapping[str, DataFile] = field(default_factory=dict)
    batches: Mapping[str, list[Any] | None] = field(default_factory=dict)  # id → name, size, change of a file
    position: Any = None  # of its stream: what was taken last
    published: float = 0.0
    made: Mapping[str, Any] = field(default_factory=dict)  # what the table is made of, as it was described

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(file.rows for file in self.files.values())

    @property
    def late_rows(self) -> int:
        """How many records came too late for it."""
        return sum(file.rows for file in self.late.values())


@dataclass(frozen=True)
class Change:
    """What the next version changes."""

    fresh_us: int | None
    safe_us: int | None
    add: Sequence[DataFile] = ()
    drop: Sequence[str] = ()
    late: Sequence[DataFile] = ()
    batches: Mapping[str, list[Any] | None] = field(default_factory=dict)
    position: Any = None
    made: Mapping[str, Any] | None = None  # None: what it was


def apply(version: Version, change: Change, number: int, now: float) -> Version:
    """The version behind a change."""
    files = dict(version.files)
    for name in change.drop:
        del files[name]
    files.update({file.name: file for file in change.add})
    return replace(
        version,
        number=number,
        fresh_us=change.fresh_us,
        safe_us=change.safe_us,
        files=files,
        late={**version.late, **{file.name: file for file in change.late}} if change.late else version.late,
        batches={**version.batches, **change.batches} if change.batches else version.batches,
        position=version.position if change.position is None else change.position,
        published=now,
        made=version.made if change.made is None else change.made,
    )


def published(folder: Path) -> Version:
    """The newest version of a table, as any process may ask for."""
    return replayed(folder)[0]


def published_files(folder: Path) -> list[str]:
    """The files of the newest version, to be read by anything that reads Parquet."""
    return [str(folder / DATA / name) for name in published(folder).files]


def replayed(folder: Path) -> tuple[Version, int, int]:
    """The state that checkpoint and journal tell, the journal's whole length, and its lines.

    Its writer may make a checkpoint and begin the journal anew between a look at the one and at the other. Then the
    two do not fit together, and are read again.
    """
    for _ in range(LOOKS - 1):
        try:
            return _replayed(folder)
        except EnvironmentProblem:
            time.sleep(LOOK_S)
    return _replayed(folder)


def _replayed(folder: Path) -> tuple[Version, int, int]:
    version = Version()
    state = folder / STATE
    if state.exists():
        body = _body(state.read_bytes())
        if body is None:
            raise EnvironmentProblem(f"{state} is damaged, so the table cannot be opened")
        version = apply(Version(), _change(body), body["number"], body["published"])
    journal = folder / JOURNAL
    whole = lines = 0
    if journal.exists():
        with journal.open("rb") as file:
            for raw in file:
                body = _body(raw)
                if body is None and raw.endswith(b"\n"):
                    # A kill cuts the last line off; it does not spoil a whole one, and what stands behind it is true.
                    raise EnvironmentProblem(f"{journal}: line {lines + 1} is damaged, so the table cannot be opened")
                if body is None:
                    break
                whole += len(raw)
                lines += 1
                if body["number"] > version.number + 1:
                    raise EnvironmentProblem(
                        f"{journal}: version {body['number']} stands behind version {version.number}; those between "
                        "are lost, so the table cannot be opened"
                    )
                if body["number"] == version.number + 1:
                    version = apply(version, _change(body), body["number"], body["published"])
    return version, whole, lines


def plain_change(change: Change) -> dict[str, Any]:
    """A change as the journal has it."""
    return {
        "fresh_us": change.fresh_us,
        "safe_us": change.safe_us,
        "add": [asdict(file) for file in change.add],
        "drop": list(change.drop),
        "late": [asdict(file) for file in change.late],
        "batches": dict(change.batches),
        "position": change.position,
        **({} if change.made is None else {"made": dict(change.made)}),
    }


def plain_version(version: Version) -> dict[str, Any]:
    """A version as the change that makes all of it."""
    return plain_change(
        Change(
            version.fresh_us,
            version.safe_us,
            list(version.files.values()),
            (),
            list(version.late.values()),
            version.batches,
            version.position,
            version.made,
        )
    )


def _change(body: Mapping[str, Any]) -> Change:
    return Change(
        body["fresh_us"],
        body["safe_us"],
        [DataFile(**file) for file in body["add"]],
        body["drop"],
        [DataFile(**file) for file in body["late"]],
        body["batches"],
        body["position"],
        body.get("made"),
    )


def journal_line(body: Mapping[str, Any]) -> bytes:
    """A line of the journal, which shows whether it is whole."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _body(line: bytes) -> dict[str, Any] | None:
    """A line's content; None where it is not whole."""
    if not line.endswith(b"\n") or len(line) < 10:
        return None
    text = line[9:-1]
    try:
        if int(line[:8], 16) != zlib.crc32(text):
            return None
        body: dict[str, Any] = json.loads(text)
    except ValueError:
        return None
    return body
