"""The store's tables. Texts are kept exactly and compare by code point on every database."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Dialect, Float, Integer, MetaData, String, Table, Text, TypeDecorator

from engine.store.plain import escape, to_json, unescape
from engine.store.records import HOMES, time_from_text, time_to_text


class ExactText(TypeDecorator[str]):
    """Text of any characters, even those a database refuses."""

    impl = Text().with_variant(Text(collation="C"), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else escape(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else unescape(value)


class Moment(TypeDecorator[datetime]):
    """A time, kept as text of fixed length so that it sorts and comes back to the microsecond."""

    impl = String(27)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else time_to_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else time_from_text(value)


class PlainDocument(TypeDecorator[dict[str, Any]]):
    """A plain document as JSON text: unlike a JSON column keeps key order, NaN and long numbers."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return to_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return json.loads(value)


def _key() -> Column[Any]:
    # A digest, because a path or a signature can be longer than what a database can index.
    return Column("key", String(64), primary_key=True)


metadata = MetaData()

store = Table("papilio_store", metadata, Column("version", Integer, primary_key=True, autoincrement=False))

schemas = Table(
    "papilio_schemas",
    metadata,
    _key(),
    Column("source", ExactText, nullable=False),
    Column("fingerprint", ExactText, nullable=False),
    Column("seen", Moment, nullable=False),
    Column("columns", PlainDocument, nullable=False),
)

operators = Table(
    "papilio_operators",
    metadata,
    _key(),
    Column("name", ExactText, nullable=False),
    Column("version", ExactText, nullable=False),
    Column("category", ExactText, nullable=False),
    Column("ports", PlainDocument, nullable=False),
    Column("settings", PlainDocument, nullable=False),
)

workflows = Table(
    "papilio_workflows",
    metadata,
    _key(),  # of the name and the version: two writers cannot both make the same version
    Column("name_key", String(64), nullable=False, index=True),
    Column("name", ExactText, nullable=False),
    Column("version", Integer, nullable=False),
    Column("author", ExactText, nullable=False),
    Column("saved", Moment, nullable=False),
    Column("content_hash", ExactText, nullable=False),
    Column("comment", ExactText, nullable=False),
    Column("document", PlainDocument, nullable=False),
    Column("text", ExactText, nullable=False),
)

plans = Table(
    "papilio_plans",
    metadata,
    _key(),
    Column("workflow", ExactText, nullable=False),
    Column("content_hash", ExactText, nullable=False),
    Column("signature", ExactText, nullable=False),
    Column("cost", Float(53), nullable=False),
    Column("made", Moment, nullable=False),
    Column("document", PlainDocument, nullable=False),
)

runs = Table(
    "papilio_runs",
    metadata,
    _key(),
    Column("run", ExactText, nullable=False),
    Column("workflow", ExactText, nullable=False),
    Column("file", ExactText, nullable=False),
    Column("content_hash", ExactText, nullable=False),
    Column("status", ExactText, nullable=False),
    Column("started", Moment, nullable=False, index=True),
    Column("finished", Moment),
    Column("policy", ExactText, nullable=False),
    Column("granularity", ExactText, nullable=False),
    Column("master", ExactText, nullable=False),
    Column("folder", ExactText, nullable=False),
    Column("summary", PlainDocument, nullable=False),
)

# The table of each kind of record.
TABLES: dict[type, Table] = {kind: metadata.tables[name] for kind, (name, _) in HOMES.items()}
