"""What most commands ask of a store on SQLite, and what they and every run write into it, without SQLAlchemy.

Loading that takes as long as everything else that `papilio check` does. A store of another kind, or one that this
cannot use, is opened as a `MetadataStore`, which answers the same.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from engine.store.home import default_store
from engine.store.plain import digest, escape, to_json, unescape
from engine.store.records import (
    HOMES,
    STORE_VERSION,
    Record,
    RunRecord,
    WorkflowVersion,
    check_record,
    row_of,
    time_from_text,
    time_to_text,
)

_R = TypeVar("_R", bound=Record)

BUSY_S = 5.0  # another writer is waited for; after that the opened store waits, and says so


class CannotPeek(Exception):
    """The store must be opened to be asked."""


def last_schema(url: str | None, source: str) -> dict[str, str] | None:
    """The columns that a source had when it was last seen; None where it was never."""
    query = "SELECT columns FROM papilio_schemas WHERE source = ? ORDER BY seen DESC LIMIT 1"
    return _document(url, query, escape(source))


def last_summary(url: str | None, workflow: str) -> dict[str, Any] | None:
    """The summary of a workflow's last run that was done; None where there is none."""
    query = (
        "SELECT summary FROM papilio_runs WHERE workflow = ? AND status = 'done' "
        "ORDER BY started DESC, run DESC LIMIT 1"
    )
    return _document(url, query, escape(workflow))


def list_runs(
    url: str | None, workflow: str | None = None, status: str | None = None, limit: int | None = None
) -> list[RunRecord]:
    """Runs, newest first. Where there is no store it must be opened, which says what is wrong with its place."""
    asked = {"workflow": workflow, "status": status}
    given = {name: escape(value) for name, value in asked.items() if value is not None}
    where = "".join(f" AND {name} = :{name}" for name in given)
    query = f"{_select(RunRecord)} WHERE 1{where} ORDER BY started DESC, run DESC LIMIT :limit"
    with _opened(_file(url)) as connection:
        rows = connection.execute(query, {**given, "limit": -1 if limit is None else limit}).fetchall()
    return [_record(RunRecord, row) for row in rows]


def put_run(url: str | None, record: RunRecord) -> None:
    """Keep a run; the same run id again replaces what was kept of it. The opened store makes what is not there yet."""
    check_record(record, f"run {record.run!r}")
    with writing(url) as rows:
        rows.upsert(record)


class FileRows:
    """What a store in a file holds, within one writing transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find(self, kind: type[_R], key: str) -> _R | None:
        """The record of a kind with this key."""
        row = self._connection.execute(f"{_select(kind)} WHERE key = ?", (key,)).fetchone()
        return _record(kind, row) if row else None

    def latest(self, name: str) -> WorkflowVersion | None:
        """The latest version of a workflow."""
        query = f"{_select(WorkflowVersion)} WHERE name_key = ? ORDER BY version DESC LIMIT 1"
        row = self._connection.execute(query, (digest(name),)).fetchone()
        return _record(WorkflowVersion, row) if row else None

    def insert(self, record: Record) -> None:
        """Take in a record that must be new."""
        self._add("INSERT", record)

    def upsert(self, record: Record) -> None:
        """Take in a record in place of the one it shares its identity with."""
        self._add("INSERT OR REPLACE", record)

    def _add(self, how: str, record: Record) -> None:
        table, _ = HOMES[type(record)]
        row = {name: _written(value) for name, value in row_of(record).items()}
        values = ", ".join(f":{name}" for name in row)
        self._connection.execute(f"{how} INTO {table} ({', '.join(row)}) VALUES ({values})", row)


@contextmanager
def writing(url: str | None) -> Iterator[FileRows]:
    """A transaction that writes, into a store that is there: done at the end, or not at all where something fails."""
    with _opened(_file(url), "rw") as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")  # waits for another writer at once, so that nobody comes between
        yield FileRows(connection)
        connection.execute("COMMIT")


def named_place(url: str | None) -> str:
    """Where the store is, as the person named it."""
    return url or os.environ.get("PAPILIO_STORE") or str(default_store())


def _document(url: str | None, query: str, value: str) -> Any:
    file = _file(url)
    if not file.exists():
        return None
    with _opened(file) as connection:
        row = connection.execute(query, (value,)).fetchone()
    return json.loads(row[0]) if row else None


def _file(url: str | None) -> Path:
    named = named_place(url)
    if "://" in named:
        raise CannotPeek
    return Path(named).absolute()


@contextmanager
def _opened(file: Path, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    """A connection to a store of our version. Each statement is a transaction of its own, unless one is begun."""
    try:
        place = f"{file.as_uri()}?mode={mode}"
        with closing(sqlite3.connect(place, uri=True, isolation_level=None, timeout=BUSY_S)) as connection:
            if connection.execute("SELECT max(version) FROM papilio_store").fetchone()[0] != STORE_VERSION:
                raise CannotPeek
            yield connection
    except sqlite3.Error as error:
        raise CannotPeek from error  # locked, of another version, broken or not there: opening it says which


def _select(kind: type) -> str:
    table, _ = HOMES[kind]
    return f"SELECT {', '.join(field.name for field in dataclasses.fields(kind))} FROM {table}"


def _record(kind: type[_R], row: Sequence[Any]) -> _R:
    fields = zip(dataclasses.fields(kind), row, strict=True)
    return kind(**{field.name: _read(str(field.type), value) for field, value in fields})


def _written(value: Any) -> Any:
    """A field as its table has it."""
    if isinstance(value, datetime):
        return time_to_text(value)
    if isinstance(value, str):
        return escape(value)
    return to_json(value) if isinstance(value, dict) else value


def _read(kind: str, value: Any) -> Any:
    """The field that `_written` was given."""
    if value is None or kind in ("int", "float"):
        return value
    if kind.startswith("datetime"):
        return time_from_text(value)
    return unescape(value) if kind == "str" else json.loads(value)
