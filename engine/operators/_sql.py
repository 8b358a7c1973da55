"""What operators share: names and values as Spark SQL writes them, orders, schemas with columns changed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from engine.model.operator import REASON, BuildTools, Column, DataFrame, Finding, Settings, column_type, has_column
from engine.model.types import (
    UNKNOWN,
    BadType,
    Schema,
    common_type,
    is_integral,
    is_numeric,
    is_orderable,
    normal_type,
)

Scalar = str | int | float | bool | None


# ---------------------------------------------------------------- names and values as text


def quoted(name: str) -> str:
    """A column's name in backquotes, so that spaces, dots and keywords do no harm."""
    return f"`{name.replace('`', '``')}`"


def listed(names: Iterable[str]) -> str:
    """Columns' names with commas between them."""
    return ", ".join(quoted(name) for name in names)


def plain(name: str) -> str:
    """A column's name as the DataFrame API takes it: bare where it can be."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else quoted(name)


def literal(value: Scalar) -> str:
    """A value as a literal."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def literal_type(value: Scalar) -> str:
    """The type Spark gives to `literal(value)`."""
    if value is None:
        return "void"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        size = abs(value)
        return "int" if size < 2**31 else "bigint" if size < 2**63 else f"decimal({len(str(size))},0)"
    return "double" if isinstance(value, float) else "string"


def typed_literal(text: str, kind: str) -> str | None:
    """A text as a literal to compare with a column of a type; None where it is no value of that type."""
    if kind == "string":
        return literal(text)
    if is_numeric(kind):
        number = r"-?\d+" if is_integral(kind) else r"-?\d+(\.\d+)?([eE][-+]?\d+)?"
        return text if re.fullmatch(number, text, re.ASCII) else None
    if kind == "boolean":
        return text.lower() if text.lower() in ("true", "false") else None
    if kind in ("date", "timestamp", "timestamp_ntz"):
        try:
            (date if kind == "date" else datetime).fromisoformat(text)
        except ValueError:
            return None
        return f"{kind.upper()} {literal(text)}"
    return None


def castable(source: str | None, target: str) -> bool:
    """Whether ANSI mode knows a cast from a type to another; what is not known is let through."""
    if source is None or source in (UNKNOWN, "void", "variant", "interval", target):
        return True
    holds = re.match(r"(array|map|struct)<", source)
    if holds:
        return target == "string" or target.startswith(holds.group())
    if "<" in target:
        return False
    if "string" in (source, target):
        return True
    times = {"date", "timestamp", "timestamp_ntz"}
    if source in times and target in times:
        return True
    if is_numeric(source):
        return is_numeric(target) or target in ("boolean", "timestamp")
    return is_numeric(target) and source in ("boolean", "timestamp")


def normal_or_none(kind: str) -> str | None:
    """A type in Spark's writing, None where it is none: that is told where the setting is checked."""
    try:
        return normal_type(kind)
    except BadType:
        return None


def shared_type(kinds: Iterable[str | None]) -> str | None:
    """The common type of several, None where one is not known; raises `BadType` where there is none."""
    shared: str | None = "void"
    for kind in kinds:
        shared = common_type(shared, kind)
    return shared


# ---------------------------------------------------------------- orders


class Nulls(StrEnum):
    """Where rows without a value stand in an order."""

    FIRST = "first"
    LAST = "last"


class OrderBy(Settings):
    """One column of an order."""

    column: Column = Field(description="The column to order by.")
    descending: bool = Field(False, description="From the greatest value down.")
    nulls: Nulls | None = Field(
        None, description="Where rows without a value stand; by default they count as the smallest."
    )

    def reversed(self) -> OrderBy:
        """The same order from its other end."""
        other = {Nulls.FIRST: Nulls.LAST, Nulls.LAST: Nulls.FIRST, None: None}[self.nulls]
        return OrderBy(column=self.column, descending=not self.descending, nulls=other)

    def sql(self) -> str:
        """The order as it stands behind `ORDER BY`."""
        direction = " DESC" if self.descending else ""
        return quoted(self.column) + direction + (f" NULLS {self.nulls.upper()}" if self.nulls else "")

    def build(self, tools: BuildTools) -> Any:
        """The order as `orderBy` takes it."""
        if not self.descending and self.nulls is None:
            return plain(self.column)
        column = tools.functions.col(plain(self.column))
        direction = "desc" if self.descending else "asc"
        return getattr(column, f"{direction}_nulls_{self.nulls}" if self.nulls else direction)()


def rest_of_row(frame: DataFrame, tools: BuildTools, besides: Iterable[str], descending: bool = False) -> list[Any]:
    """An order by all other columns that can be ordered by: rows that still tie are the same row."""
    done = {name.lower() for name in besides}
    rest = [
        OrderBy(column=name, descending=descending)
        for name, kind in tools.schema(frame).items()
        if name.lower() not in done and is_orderable(kind)
    ]
    return [by.build(tools) for by in rest]


# ---------------------------------------------------------------- schemas


def with_columns(schema: Schema | None, changed: Mapping[str, str | None]) -> Schema | None:
    """A schema with columns added, or replaced where they stand, as `withColumns` does it."""
    if schema is None:
        return None
    new = {name.lower(): (name, kind or UNKNOWN) for name, kind in changed.items()}
    result = [new.pop(name.lower(), (name, kind)) for name, kind in schema.items()]
    return dict([*result, *new.values()])


def without(schema: Schema | None, names: Iterable[str]) -> Schema | None:
    """A schema without some columns, whatever their case."""
    if schema is None:
        return None
    gone = {name.lower() for name in names}
    return {name: kind for name, kind in schema.items() if name.lower() not in gone}


def accepted_and_refused(schema: Schema | None, port: str) -> dict[str, Schema | None]:
    """The schemas of `out` and of the port for refused rows, which have a reason more."""
    return {"out": without(schema, [REASON]), port: with_columns(schema, {REASON: "string"})}


def columns_of_both(columns: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns of accepted and of refused rows, in their order."""
    both = accepted_and_refused(dict.fromkeys(columns, UNKNOWN), "refused")
    return list(both["out"] or ()), list(both["refused"] or ())


def type_in(schema: Schema | None, name: str) -> str | None:
    """The type of a column, None where the column or its type is not known."""
    kind = column_type(schema, name)
    return None if kind == UNKNOWN else kind


# ---------------------------------------------------------------- findings that many operators have


def repeated(names: Sequence[str], setting: str, what: str = "columns") -> Iterator[Finding]:
    """Names that stand twice; Spark's columns do not mind their case."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name.lower()] = seen.get(name.lower(), 0) + 1
        if seen[name.lower()] == 2:
            yield Finding(f"two {what} are called `{name}`", setting=setting)


def taken(schema: Schema | None, names: Iterable[str], setting: str) -> Iterator[Finding]:
    """New columns whose names the input already has."""
    for name in names:
        if schema is not None and has_column(schema, name):
            yield Finding(f"there is already a column `{name}`; choose another name", setting=setting)


def not_orderable(schema: Schema | None, names: Iterable[str], setting: str) -> Iterator[Finding]:
    """Columns that rows cannot be ordered or grouped by."""
    for name in names:
        kind = type_in(schema, name)
        if kind is not None and not is_orderable(kind):
            yield Finding(f"`{name}` is a `{kind}`, by which rows cannot be ordered or grouped", setting=setting)


def not_text(schema: Schema | None, names: Iterable[str], setting: str) -> Iterator[Finding]:
    """Columns that hold something other than text."""
    for name in names:
        kind = type_in(schema, name)
        if kind not in (None, "string"):
            yield Finding(f"`{name}` is a `{kind}`, and this is for text", setting=setting)


def order_findings(schema: Schema | None, order: list[OrderBy], setting: str) -> Iterator[Finding]:
    """What keeps rows from being put in an order."""
    names = [by.column for by in order]
    yield from repeated(names, setting)
    yield from not_orderable(schema, names, setting)
