"""What the metadata store keeps, one frozen record each, and their plain form for export."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine.errors import BadInput
from engine.store.plain import Document, check_plain, content_hash, digest

STORE_VERSION = 1  # of the tables that hold these records


@dataclass(frozen=True, kw_only=True)
class SourceSchema:
    """The columns a source had when it had this fingerprint, in order: column to Spark type."""

    source: str
    fingerprint: str
    seen: datetime
    columns: Document


@dataclass(frozen=True, kw_only=True)
class OperatorSpecification:
    """What one version of an operator says about itself: its ports and the JSON Schema of its settings."""

    name: str
    version: str
    category: str
    ports: Document
    settings: Document


@dataclass(frozen=True, kw_only=True)
class WorkflowInfo:
    """One saved version of a workflow, without its content."""

    name: str
    version: int
    author: str
    saved: datetime
    content_hash: str
    comment: str


@dataclass(frozen=True, kw_only=True)
class WorkflowVersion(WorkflowInfo):
    """One saved version of a workflow: the plain document and the exact text of its file."""

    document: Document
    text: str


@dataclass(frozen=True, kw_only=True)
class PlanRecord:
    """A physical plan that was found for a workflow's content."""

    workflow: str
    content_hash: str
    signature: str
    cost: float
    made: datetime
    document: Document


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run of a workflow, under way or over, with its summary."""

    run: str
    workflow: str
    file: str
    content_hash: str
    status: str
    started: datetime
    finished: datetime | None
    policy: str
    granularity: str
    master: str
    folder: str
    summary: Document

    @property
    def seconds(self) -> float | None:
        """How long the run took, once it is over: on its own clock, which knows no pauses, where that is known."""
        if self.finished is None:
            return None
        own = self.summary.get("seconds")
        if isinstance(own, int | float) and own and not self.summary.get("resumed"):
            return float(own)
        return (self.finished - self.started).total_seconds()


Record = SourceSchema | OperatorSpecification | WorkflowVersion | PlanRecord | RunRecord
KINDS: tuple[type[Record], ...] = (
    SourceSchema,
    OperatorSpecification,
    WorkflowVersion,
    PlanRecord,
    RunRecord,
)

# For each kind of record the table that holds it and the fields that make it one of a kind.
HOMES: dict[type, tuple[str, tuple[str, ...]]] = {
    SourceSchema: ("papilio_schemas", ("source", "fingerprint")),
    OperatorSpecification: ("papilio_operators", ("name", "version")),
    WorkflowVersion: ("papilio_workflows", ("name", "version")),
    PlanRecord: ("papilio_plans", ("workflow", "content_hash", "signature")),
    RunRecord: ("papilio_runs", ("run",)),
}

_R = TypeVar("_R", bound=Record)


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


def time_to_text(moment: datetime) -> str:
    """ISO 8601 in UTC, always 27 characters, so that the order of texts is the order of times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def time_from_text(text: str) -> datetime:
    """The moment that `time_to_text` wrote."""
    return datetime.fromisoformat(text)


def check_record(record: Record, what: str) -> None:
    """Refuse a record the store could not give back unchanged."""
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        _CHECKS[str(field.type)](value, f"{what}: {field.name}")
    if isinstance(record, WorkflowVersion) and record.version < 1:
        raise BadInput(f"{what}: versions start at 1, found {record.version}.")
    if isinstance(record, WorkflowVersion) and record.content_hash != content_hash(record.document):
        raise BadInput(f"{what}: the content hash is not that of the document, which was changed by hand.")
    if isinstance(record, SourceSchema):
        for column, kind in record.columns.items():
            _check_type(str)(kind, f"{what}: columns: {column}")


def key_of(record: Record) -> str:
    """What a record is known by in its table."""
    _, identity = HOMES[type(record)]
    return digest(*(getattr(record, field) for field in identity))


def name_of(record: Record) -> str:
    """What a record is called in a complaint."""
    _, identity = HOMES[type(record)]
    words = {
        SourceSchema: "schema of source",
        OperatorSpecification: "operator",
        WorkflowVersion: "workflow",
        PlanRecord: "plan of",
        RunRecord: "run",
    }
    first, *rest = (getattr(record, field) for field in identity)
    version = f" version {rest[0]}" if isinstance(record, WorkflowVersion | OperatorSpecification) else ""
    return f"{words[type(record)]} {first!r}{version}"


def row_of(record: Record) -> dict[str, Any]:
    """A record as its table has it, by column."""
    row = {"key": key_of(record)} | {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}
    if isinstance(record, WorkflowVersion):
        row["name_key"] = digest(record.name)
    return row


def record_to_plain(record: Record) -> Document:
    """A record as a plain document, in the order of its fields."""
    plain = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        plain[field.name] = time_to_text(value) if isinstance(value, datetime) else value
    return plain


def record_from_plain(kind: type[_R], plain: object, what: str) -> _R:
    """The record a plain document describes; a missing, unknown or wrong field is named."""
    if not isinstance(plain, dict):
        raise BadInput(f"{what}: expected a record with named fields.")
    fields = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    for name in plain.keys() - fields.keys():
        raise BadInput(f"{what}: unknown field {name!r}.")
    values: dict[str, Any] = {}
    for name, hint in fields.items():
        if name not in plain:
            raise BadInput(f"{what}: the field {name!r} is missing.")
        value = plain[name]
        if hint.startswith("datetime") and isinstance(value, str):
            try:
                value = time_from_text(value)
            except ValueError:
                raise BadInput(f"{what}: {name}: {value!r} is not a time like 2026-01-31T12:00:00.000000Z.") from None
        values[name] = value
    record = kind(**values)
    check_record(record, what)
    return record


def _check_type(kind: type) -> Callable[[Any, str], None]:
    def check(value: Any, what: str) -> None:
        if type(value) is not kind:
            raise BadInput(f"{what}: expected {kind.__name__}, found {value!r:.60}.")

    return check


def _check_time(value: Any, what: str) -> None:
    _check_type(datetime)(value, what)
    if value.tzinfo is None:
        raise BadInput(f"{what}: the time {value.isoformat()} has no time zone.")


def _check_cost(value: Any, what: str) -> None:
    if type(value) is not float or math.isnan(value):
        raise BadInput(f"{what}: expected a float that is a number, found {value!r:.60}.")


def _check_version(value: Any, what: str) -> None:
    _check_type(int)(value, what)
    if not -(2**31) <= value < 2**31:
        raise BadInput(f"{what}: {value} is out of range.")


_CHECKS: dict[str, Callable[[Any, str], None]] = {
    "str": _check_type(str),
    "int": _check_version,
    "float": _check_cost,
    "datetime": _check_time,
    "datetime | None": lambda value, what: None if value is None else _check_time(value, what),
    "Document": check_plain,
}
