"""Which columns rows have: select, derive, checksum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from engine.model.expression_tree import columns as columns_in
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.inference import Scope
from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Column,
    DataFrame,
    Expression,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
    Settings,
    SqlType,
)
from engine.model.physical import Known, Physical, black_box
from engine.model.types import UNKNOWN, Schema, normal_type
from engine.operators._sql import (
    castable,
    normal_or_none,
    plain,
    quoted,
    repeated,
    taken,
    type_in,
    with_columns,
    without,
)


class SelectedColumn(Settings):
    """A column that stays, perhaps under another name or with another type."""

    column: Column = Field(description="The column.")
    name: NewColumn | None = Field(None, description="Its new name.")
    type: SqlType | None = Field(
        None, description="Its new type; a value that does not fit stops the run (`convert` refuses the row)."
    )

    def sql(self) -> str:
        """The column as it stands behind `SELECT`."""
        value = quoted(self.column)
        if self.type is not None:
            value = f"CAST({value} AS {normal_type(self.type)})"
        named = self.name is not None or self.type is not None
        return f"{value} AS {quoted(self.name or self.column)}" if named else value


class Select(Operator):
    """Chooses the columns that go on, in their order and under their names; or drops and renames some."""

    name: ClassVar[str] = "select"
    title: ClassVar[str] = "Select columns"
    family: ClassVar[str] = "shaping"
    light: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True
    keeps_rows: ClassVar[bool] = True

    columns: list[SelectedColumn] = Field(
        default_factory=list, description="The columns that go on, in this order, all others not."
    )
    drop: list[Column] = Field(default_factory=list, description="Or: the columns that do not go on.")
    rename: dict[Column, NewColumn] = Field(default_factory=dict, description="Or: columns with their new names.")

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Self:
        if bool(self.columns) == bool(self.drop or self.rename):
            raise ValueError("name either the `columns` that go on, or those to `drop` or `rename`")
        return self

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        if self.columns:
            return {
                "out": {
                    item.name or item.column: (normal_or_none(item.type) if item.type else type_in(schema, item.column))
                    or UNKNOWN
                    for item in self.columns
                }
            }
        left = without(schema, self.drop)
        if left is None:
            return {"out": None}
        return {"out": {self._new_name(name): kind for name, kind in left.items()}}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        if self.columns:
            yield from repeated([item.name or item.column for item in self.columns], "columns")
            for index, item in enumerate(self.columns):
                source = type_in(schema, item.column)
                kind = normal_or_none(item.type) if item.type else None
                if kind is not None and not castable(source, kind):
                    yield Finding(
                        f"`{item.column}` is a `{source}`, which cannot become a `{kind}`",
                        setting=f"columns[{index}].type",
                    )
            return
        dropped = {name.lower() for name in self.drop}
        for name in self.rename:
            if name.lower() in dropped:
                yield Finding(f"`{name}` is both dropped and renamed", setting="rename")
        yield from repeated(list(self.rename), "rename")
        left = without(schema, self.drop)
        if left is not None:
            yield from repeated([self._new_name(name) for name in left], "rename")
            if not left:
                yield Finding("no column is left", setting="drop")

    def physical(self, known: Known) -> Physical:
        if self.columns:
            as_they_came = {item.name or item.column: item.column for item in self.columns if item.type is None}
            return black_box(known.passing(renamed=as_they_came, only=True))
        renamed = {new: old for old, new in self.rename.items()}
        return black_box(known.passing(renamed=renamed, lost=[*self.drop, *self.rename]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        if self.columns:
            if all(item.name is None and item.type is None for item in self.columns):
                return frame.select(*(plain(item.column) for item in self.columns))
            return frame.selectExpr(*(item.sql() for item in self.columns))
        if {name.lower() for name in self.rename} & {name.lower() for name in self.rename.values()}:
            # Spark renames one after the other, and would take a column's new name for another's old one.
            dropped = {name.lower() for name in self.drop}
            left = [name for name in tools.columns(frame) if name.lower() not in dropped]
            return frame.select(*map(plain, left)).toDF(*map(self._new_name, left))
        if self.drop:
            frame = frame.drop(*self.drop)
        if self.rename:
            spelled = tools.spelled(frame, self.rename)
            frame = frame.withColumnsRenamed(dict(zip(spelled, self.rename.values(), strict=True)))
        return frame

    def _new_name(self, name: str) -> str:
        lower = name.lower()
        return next((new for old, new in self.rename.items() if old.lower() == lower), name)


class Derived(Settings):
    """A column and how it is computed."""

    name: NewColumn = Field(description="The column; one of that name is replaced.")
    expression: Expression = Field(description="Its value, from the row's columns and those derived above it.")


class Derive(Operator):
    """Computes columns; a later one may use an earlier one."""

    name: ClassVar[str] = "derive"
    title: ClassVar[str] = "Derive columns"
    family: ClassVar[str] = "shaping"
    keeps_rows: ClassVar[bool] = True
    light: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    columns: list[Derived] = Field(min_length=1, description="The columns in the order they are computed.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": self._scopes(inputs)[-1].schema}

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        index = int(place[place.index("[") + 1 : place.index("]")])
        return self._scopes(inputs)[index]

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=[item.name for item in self.columns]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        together: dict[str, Any] = {}
        for item in self.columns:
            uses = {column.names[0].lower() for column in columns_in(parse(item.expression))}
            if (uses | {item.name.lower()}) & {name.lower() for name in together}:
                frame, together = frame.withColumns(together), {}
            together[item.name] = tools.functions.expr(item.expression)
        return frame.withColumns(together)

    def _scopes(self, inputs: Inputs) -> list[Scope]:
        """The columns each expression may use, and those there are once all are computed."""
        return inputs.once(self, lambda: list(self._grow(inputs.first())))

    def _grow(self, schema: Schema | None) -> Iterator[Scope]:
        for item in self.columns:
            yield (scope := Scope(schema))
            try:
                kind = scope.kind(item.expression)
            except ExpressionError:
                kind = None  # told by the check
            schema = with_columns(schema, {item.name: kind})
        yield Scope(schema)


class Algorithm(StrEnum):
    """How a checksum is computed."""

    MD5 = "md5"
    SHA256 = "sha256"
    CRC32 = "crc32"
    XXHASH64 = "xxhash64"


class Checksum(Operator):
    """Computes one checksum over several columns, to see whether a row changed."""

    name: ClassVar[str] = "checksum"
    title: ClassVar[str] = "Checksum"
    family: ClassVar[str] = "shaping"
    keeps_rows: ClassVar[bool] = True

    columns: ManyColumns = Field(description="The columns that count, in this order.")
    algorithm: Algorithm = Field(
        Algorithm.SHA256, description="`md5` and `sha256` give a text, `crc32` and `xxhash64` a number."
    )
    into: NewColumn = Field("checksum", description="The new column for the checksum.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        kind = "string" if self.algorithm in (Algorithm.MD5, Algorithm.SHA256) else "bigint"
        return {"out": with_columns(inputs.first(), {self.into: kind})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated(self.columns, "columns")
        yield from taken(schema, [self.into], "into")
        for name in self.columns:
            kind = type_in(schema, name)
            if kind is not None and "map<" in kind:
                yield Finding(
                    f"`{name}` is a `{kind}`, whose entries have no order to compute a checksum in",
                    setting="columns",
                )

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=[self.into]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        schema = tools.schema(frame)
        # Each value stands behind its length, so that ("a", "bc") is not ("ab", "c"), and null is not empty.
        parts = []
        for name in self.columns:
            text = _canonical_text(quoted(name), type_in(schema, name))
            parts.append(f"coalesce(concat(CAST(length({text}) AS STRING), ':', {text}), '-')")
        whole = f"concat_ws(',', {', '.join(parts)})"
        value = f"sha2({whole}, 256)" if self.algorithm is Algorithm.SHA256 else f"{self.algorithm}({whole})"
        return frame.withColumn(self.into, tools.functions.expr(value))


def _canonical_text(value: str, kind: str | None) -> str:
    """A value as a text that depends on nothing but the value: not on the session's time zone."""
    if kind == "string":
        return value
    if kind == "timestamp":
        return f"CAST(unix_micros({value}) AS STRING)"
    if kind == "binary":
        return f"hex({value})"
    if kind and "<" in kind:
        return f"to_json({value}, map('ignoreNullFields', 'false', 'timeZone', 'UTC'))"
    return f"CAST({value} AS STRING)"
