"""Nested values: JSON texts parsed, structures flattened, lists exploded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from engine.model.operator import (
    OUT,
    REASON,
    BuildInputs,
    BuildTools,
    Column,
    DataFrame,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
    Port,
    Refusing,
    Split,
    SqlType,
    Way,
    refused,
)
from engine.model.physical import Known, Physical, black_box
from engine.model.types import Schema, ddl, element_type, normal_type, struct_fields
from engine.operators._sql import (
    accepted_and_refused,
    columns_of_both,
    literal,
    normal_or_none,
    not_text,
    plain,
    quoted,
    repeated,
    taken,
    type_in,
    with_columns,
)


class ParseJson(Operator, Refusing):
    """Reads a column of JSON text; rows whose text is not of the declared form leave by `reject`."""

    name: ClassVar[str] = "parse_json"
    title: ClassVar[str] = "Parse JSON"
    family: ClassVar[str] = "shaping"
    outputs: ClassVar[tuple[Port, ...]] = (OUT, refused("reject"))

    column: Column = Field(description="The column with the text.")
    type: SqlType = Field(
        description="The form of the text: `struct<id:int, tags:array<string>>`. Fields it lacks are null."
    )
    into: NewColumn | None = Field(
        None, description="A new column for the value; without it each field becomes a column of its own."
    )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        kind = normal_or_none(self.type)
        ports = accepted_and_refused(inputs.first(), "reject")
        made = {self.into: kind} if self.into else struct_fields(kind) or {}
        return {**ports, "out": with_columns(ports["out"], made)}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from not_text(schema, [self.column], "column")
        kind = normal_or_none(self.type)
        if kind is None:
            return
        fields = struct_fields(kind)
        if "<" not in kind:
            yield Finding(f"JSON is read as a struct, an array or a map, not as a `{kind}`", setting="type")
        elif self.into is None and fields is None:
            yield Finding(f"a `{kind}` needs a column to go `into`; only a struct has fields", setting="into")
        made = [self.into] if self.into else list(fields or ())
        yield from repeated(made, "type", "fields")
        setting = "into" if self.into else "type"
        yield from taken(schema, [name for name in made if name.lower() != self.column.lower()], setting)
        if REASON in (name.lower() for name in made):
            yield Finding(f"`{REASON}` says why a row was refused; choose another name", setting=setting)

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=[self.into] if self.into else list(struct_fields(self.type) or ())))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Split:
        frame, functions = inputs.first(), tools.functions
        accepted, refused_ = columns_of_both(tools.columns(frame))
        kind = normal_type(self.type)
        # Inside an object of our own, text behind the JSON's end is an error too, and an array is read like a struct.
        key = self.into or "value"
        text = f"concat({literal('{' + json.dumps(key, ensure_ascii=False) + ':')}, {quoted(self.column)}, '}}')"
        parsed = functions.from_json(
            functions.expr(text),
            f"{ddl({key: kind})}, _papilio_corrupt STRING",
            {"columnNameOfCorruptRecord": "_papilio_corrupt"},
        )
        reason = f"concat({literal(f'{self.column}: no JSON of the form {kind}: ')}, {quoted(self.column)})"
        made = (
            {self.into: f"_papilio_json.{plain(self.into)}"}
            if self.into
            else {name: f"_papilio_json.value.{plain(name)}" for name in struct_fields(kind) or ()}
        )
        out = with_columns({column: plain(column) for column in accepted}, made) or {}
        return Split(
            frame.withColumn("_papilio_json", parsed).withColumn(
                REASON, functions.expr(f"CASE WHEN _papilio_json._papilio_corrupt IS NOT NULL THEN {reason} END")
            ),
            {
                "out": Way(f"{REASON} IS NULL", list(out.values())),
                "reject": Way(f"{REASON} IS NOT NULL", [plain(column) for column in refused_]),
            },
            working=["_papilio_json", REASON],
        )


class Flatten(Operator):
    """Puts the fields of structs in place of the structs, as columns of their own."""

    name: ClassVar[str] = "flatten"
    title: ClassVar[str] = "Flatten"
    family: ClassVar[str] = "shaping"
    keeps_rows: ClassVar[bool] = True

    columns: ManyColumns = Field(description="The struct columns.")
    prefix: str | None = Field(
        None, description="What stands before each field's name; without it, the column's name and `_`."
    )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        if schema is None or any(struct_fields(type_in(schema, name)) is None for name in self.columns):
            return {"out": None}
        return {"out": {made: kind for _, _, made, kind in self._all(schema)}}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated(self.columns, "columns")
        if schema is None:
            return
        for name in self.columns:
            kind = type_in(schema, name)
            if kind is not None and struct_fields(kind) is None:
                yield Finding(f"`{name}` is a `{kind}`, not a struct", setting="columns")
        yield from repeated([made for _, _, made, _ in self._all(schema)], "prefix")

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=self.columns))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        return frame.selectExpr(
            *(
                quoted(name) if field is None else f"{quoted(name)}.{quoted(field)} AS {quoted(made)}"
                for name, field, made, _ in self._all(tools.schema(frame))
            )
        )

    def _all(self, schema: Schema) -> Iterator[tuple[str, str | None, str, str]]:
        """Every column of the result: the column it comes from, its field there, its name and type."""
        chosen = {name.lower() for name in self.columns}
        for name, kind in schema.items():
            fields = struct_fields(kind) if name.lower() in chosen else None
            if fields is None:
                yield name, None, name, kind
                continue
            prefix = f"{name}_" if self.prefix is None else self.prefix
            for field, own in fields.items():
                yield name, field, prefix + field, own


class Explode(Operator):
    """Makes one row of each element of an array."""

    name: ClassVar[str] = "explode"
    title: ClassVar[str] = "Explode array"
    family: ClassVar[str] = "shaping"
    adds_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    column: Column = Field(description="The array column.")
    into: NewColumn | None = Field(None, description="A new column for the element; without it, the column itself.")
    keep_empty: bool = Field(True, description="A row without elements stays, with null; else it goes.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        element = element_type(type_in(schema, self.column))
        return {"out": with_columns(schema, {self.into or self.column: element})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        kind = type_in(schema, self.column)
        if kind is not None and not kind.startswith("array<"):
            yield Finding(f"`{self.column}` is a `{kind}`, not an array", setting="column")
        if self.into and self.into.lower() != self.column.lower():
            yield from taken(schema, [self.into], "into")

    def physical(self, known: Known) -> Physical:
        # Spark no longer knows of an order behind it.
        return black_box(known.passing(lost=[self.into or self.column]), on_spark=False)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        explode = tools.functions.explode_outer if self.keep_empty else tools.functions.explode
        return inputs.first().withColumn(self.into or self.column, explode(plain(self.column)))
