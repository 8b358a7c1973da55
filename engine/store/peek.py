"""Two questions that commands ask of a store on SQLite before they do anything else, without loading SQLAlchemy.

Loading it takes as long as everything else that `papilio check` does. A store of another kind, or one that this cannot
read, is opened as a `MetadataStore`, which answers the same.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from engine.store.home import default_store
from engine.store.plain import escape


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


def _document(url: str | None, query: str, value: str) -> Any:
    named = url or os.environ.get("PAPILIO_STORE") or str(default_store())
    if "://" in named:
        raise CannotPeek
    file = Path(named).absolute()
    if not file.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(query, (value,)).fetchone()
    except sqlite3.Error as error:
        raise CannotPeek from error  # locked, of another version, or broken: opening it says which
    return json.loads(row[0]) if row else None
