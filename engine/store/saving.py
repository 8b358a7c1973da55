"""How workflows and whole exports are saved, in a store of any kind; in a SQLite file without loading SQLAlchemy."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from typing import Protocol

from engine.errors import BadInput
from engine.store.peek import CannotPeek, named_place, writing
from engine.store.plain import Document, check_plain, content_hash, to_json
from engine.store.records import (
    KINDS,
    Record,
    WorkflowVersion,
    check_record,
    key_of,
    name_of,
    now,
    record_to_plain,
)


class Rows(Protocol):
    """What the store holds, within one writing transaction."""

    def find(self, kind: type[Record], key: str) -> Record | None:
        """The record of a kind with this key."""

    def latest(self, name: str) -> WorkflowVersion | None:
        """The latest version of a workflow."""

    def insert(self, record: Record) -> None:
        """Take in a record that must be new."""

    def upsert(self, record: Record) -> None:
        """Take in a record in place of the one it shares its identity with."""


class Saver:
    """Saves what `MetadataStore` saves, as it does; opens one only where the store is no SQLite file that is there."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url

    def put_workflow(
        self, name: str, document: Document, text: str, *, author: str = "", comment: str = ""
    ) -> tuple[WorkflowVersion, bool]:
        """Save a workflow; gives the version that holds it and whether that is a new one."""
        version = draft(name, document, text, author, comment)
        with contextlib.suppress(CannotPeek), writing(self._url) as rows:
            return save_version(rows, version)
        from engine.store.store import MetadataStore

        with MetadataStore(self._url) as store:
            return store.put_workflow(name, document, text, author=author, comment=comment)

    def add(self, records: Iterable[Record]) -> dict[type[Record], int]:
        """Take all of these records, or none on any problem; gives how many of each kind were news."""
        given = checked(records)
        with contextlib.suppress(CannotPeek), writing(self._url) as rows:
            return take_in(rows, given, named_place(self._url))
        from engine.store.store import MetadataStore

        with MetadataStore(self._url) as store:
            return store.add(given)


def draft(name: str, document: Document, text: str, author: str, comment: str) -> WorkflowVersion:
    """What is to be saved of a workflow, as its first version. A secret written out is refused."""
    from engine.model.secrets import refuse_secrets

    if not name.strip():
        raise BadInput("A workflow needs a name to be saved in the store.")
    what = f"workflow {name!r}"
    check_plain(document, what)
    made = WorkflowVersion(
        name=name,
        version=1,
        author=author,
        saved=now(),
        content_hash=content_hash(document),
        comment=comment,
        document=document,
        text=text,
    )
    check_record(made, what)
    refuse_secrets(document, what)
    return made


def save_version(rows: Rows, made: WorkflowVersion) -> tuple[WorkflowVersion, bool]:
    """Save a draft as the next version, unless the latest one has the same document and text."""
    latest = rows.latest(made.name)
    if latest and (latest.content_hash, latest.text) == (made.content_hash, made.text):
        return latest, False
    record = dataclasses.replace(made, version=latest.version + 1 if latest else 1)
    rows.insert(record)
    return record, True


def checked(records: Iterable[Record]) -> list[Record]:
    """The records, once each was seen to be one that the store can give back; a secret written out is refused."""
    from engine.model.secrets import refuse_secrets

    given = list(records)
    for record in given:
        check_record(record, name_of(record))
        if isinstance(record, WorkflowVersion):
            refuse_secrets(record.document, name_of(record))
    return given


def take_in(rows: Rows, given: Iterable[Record], place: str) -> dict[type[Record], int]:
    """Take in records that were checked; one that is here already with other content is replaced, but no version is."""
    changed = dict.fromkeys(KINDS, 0)
    for record in given:
        kept = rows.find(type(record), key_of(record))
        if kept is not None and _same(kept, record):
            continue
        if kept is not None and isinstance(record, WorkflowVersion):
            raise BadInput(f"{place}: {name_of(record)} is here already, with other content.")
        rows.upsert(record)
        changed[type(record)] += 1
    return changed


def _same(one: Record, other: Record) -> bool:
    return to_json(record_to_plain(one)) == to_json(record_to_plain(other))
