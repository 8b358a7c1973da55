"""What most commands ask of a store on SQLite, and the one thing that every run writes into it, without SQLAlchemy.

Loading that takes as long as everything else that `papilio check` does. A store of another kind, or one that this
cannot use, is opened as a `MetadataStore`, which answers the same.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.store.home import default_store
from engine.store.plain import digest, escape, to_json, unescape
from engine.store.records import STORE_VERSION, RunRecord, check_record, time_from_text, time_to_text

BUSY_S = 5.0  # another writer is waited for; after that the opened store waits, and says so

_RUN_FIELDS = {field.name: str(field.type) for field in dataclasses.fields(RunRecord)}


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
    query = (
        f"SELECT {', '.join(_RUN_FIELDS)} FROM papilio_runs WHERE 1{where} ORDER BY started DESC, run DESC LIMIT :limit"
    )
    with _opened(_file(url)) as connection:
        rows = connection.execute(query, {**given, "limit": -1 if limit is None else limit}).fetchall()
    return [
        RunRecord(**{name: _read(name, value) for name, value in zip(_RUN_FIELDS, row, strict=True)}) for row in rows
    ]


def put_run(url: str | None, record: RunRecord) -> None:
    """Keep a run; the same run id again replaces what was kept of it. The opened store makes what is not there yet."""
    check_record(record, f"run {record.run!r}")
    row = {"key": digest(record.run), **{name: _written(getattr(record, name)) for name in _RUN_FIELDS}}
    names, values = ", ".join(row), ", ".join(f":{name}" for name in row)
    with _opened(_file(url), "rw") as connection:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"INSERT OR REPLACE INTO papilio_runs ({names}) VALUES ({values})", row)


def _document(url: str | None, query: str, value: str) -> Any:
    file = _file(url)
    if not file.exists():
        return None
    with _opened(file) as connection:
        row = connection.execute(query, (value,)).fetchone()
    return json.loads(row[0]) if row else None


def _file(url: str | None) -> Path:
    named = url or os.environ.get("PAPILIO_STORE") or str(default_store())
    if "://" in named:
        raise CannotPeek
    return Path(named).absolute()


@contextmanager
def _opened(file: Path, mode: str = "ro") -> Iterator[sqlite3.Connection]:
    """A connection to a store of our version. Each statement is a transaction of its own."""
    try:
        place = f"{file.as_uri()}?mode={mode}"
        with closing(sqlite3.connect(place, uri=True, isolation_level=None, timeout=BUSY_S)) as connection:
            if connection.execute("SELECT max(version) FROM papilio_store").fetchone()[0] != STORE_VERSION:
                raise CannotPeek
            yield connection
    except sqlite3.Error as error:
        raise CannotPeek from error  # locked, of another version, broken or not there: opening it says which


def _written(value: str | datetime | dict[str, Any] | None) -> str | None:
    """A field as its table has it."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return time_to_text(value)
    return escape(value) if isinstance(value, str) else to_json(value)


def _read(name: str, value: str | None) -> Any:
    """The field that `_written` was given."""
    if value is None:
        return None
    kind = _RUN_FIELDS[name]
    if kind.startswith("datetime"):
        return time_from_text(value)
    return unescape(value) if kind == "str" else json.loads(value)
