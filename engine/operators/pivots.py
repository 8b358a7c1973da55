"""Columns to rows and back: pivot and unpivot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from engine.model.operator import (
    Aggregate,
    BuildInputs,
    BuildTools,
    Category,
    Column,
    DataFrame,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
    Settings,
    SqlType,
    expression_type,
)
from engine.model.physical import Known, Physical, black_box, grouping
from engine.model.types import UNKNOWN, BadType, Schema, normal_type
from engine.operators._sql import (
    Scalar,
    castable,
    literal,
    normal_or_none,
    not_orderable,
    plain,
    quoted,
    repeated,
    shared_type,
    type_in,
    typed_literal,
)


class PivotValue(Settings):
    """A value that becomes a column."""

    value: Scalar = Field(description="The value, as it stands in the pivot column.")
    name: NewColumn | None = Field(None, description="What its column is called; without it, like the value.")

    def text(self) -> str:
        """The value as a text."""
        return self.value if isinstance(self.value, str) else literal(self.value).lower().removesuffix("d")


class PivotAggregate(Settings):
    """What is computed for each group and value."""

    name: NewColumn = Field(description="Its name; with several, it stands behind the value: `q1_total`.")
    expression: Aggregate = Field(description="An aggregate: `sum(amount)`.")


class Pivot(Operator):
    """Makes columns of the values of a column: one row for each group, aggregates for each value."""

    name: ClassVar[str] = "pivot"
    title: ClassVar[str] = "Pivot"
    family: ClassVar[str] = "shaping"
    category: ClassVar[Category] = Category.BLOCKING

    group: list[Column] = Field(default_factory=list, description="The columns that stay and make the groups.")
    column: Column = Field(description="The column whose values become columns.")
    values: list[PivotValue] = Field(min_length=1, description="The values; rows with others do not count.")
    aggregates: list[PivotAggregate] = Field(
        min_length=1, description="What is computed; null where a group has no row with the value."
    )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        kinds = [expression_type(item.expression, schema) or UNKNOWN for item in self.aggregates]
        made = {name: type_in(schema, name) or UNKNOWN for name in self.group}
        return {"out": {**made, **dict(zip(self._made(), kinds * len(self.values), strict=True))}}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated([*self.group, *self._made()], "values")
        yield from repeated([item.name for item in self.aggregates], "aggregates", "aggregates")
        yield from not_orderable(schema, [*self.group, self.column], "group")
        kind = type_in(schema, self.column)
        for index, item in enumerate(self.values):
            if kind is not None and item.value is not None and typed_literal(item.text(), kind) is None:
                yield Finding(f"`{item.value}` is no `{kind}`, as `{self.column}` is", setting=f"values[{index}].value")

    def physical(self, known: Known) -> Physical:
        passing = known.passing(renamed={name: name for name in self.group}, only=True)
        return grouping([known.name(name) for name in self.group], passing)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        grouped = inputs.first().groupBy(*map(plain, self.group))
        aggregates = [tools.functions.expr(item.expression).alias(item.name) for item in self.aggregates]
        pivoted = grouped.pivot(plain(self.column), [item.value for item in self.values]).agg(*aggregates)
        return pivoted.toDF(*self.group, *self._made())

    def _made(self) -> list[str]:
        """The names of the new columns."""
        if len(self.aggregates) == 1:
            return [value.name or value.text() for value in self.values]
        return [f"{value.name or value.text()}_{item.name}" for value in self.values for item in self.aggregates]


class Unpivot(Operator):
    """Makes rows of columns: for each row and column one row with the column's name and value."""

    name: ClassVar[str] = "unpivot"
    title: ClassVar[str] = "Unpivot"
    family: ClassVar[str] = "shaping"
    adds_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    keep: list[Column] = Field(default_factory=list, description="The columns that every new row keeps.")
    columns: ManyColumns = Field(description="The columns that become rows.")
    name_into: NewColumn = Field("name", description="The new column for the names.")
    value_into: NewColumn = Field("value", description="The new column for the values.")
    type: SqlType | None = Field(None, description="The type of the values; without it, their common type.")
    nulls: bool = Field(True, description="Also make a row where there is no value.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        made = {name: type_in(schema, name) or UNKNOWN for name in self.keep}
        return {"out": {**made, self.name_into: "string", self.value_into: self._kind(schema) or UNKNOWN}}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated([*self.keep, *self.columns], "columns")
        yield from repeated([*self.keep, self.name_into, self.value_into], "name_into")
        for name in self.columns:
            if "`" in name:
                yield Finding(f"Spark cannot unpivot `{name}`, for its backquote; rename it first", setting="columns")
        kinds = {type_in(schema, name) for name in self.columns} - {None}
        if self.type is not None:
            target = normal_or_none(self.type)
            for kind in sorted(filter(None, kinds)):
                if target is not None and not castable(kind, target):
                    yield Finding(f"a `{kind}` cannot become a `{target}`", setting="type")
        elif "string" in kinds and len(kinds - {"void"}) > 1:
            yield Finding("the columns mix text with other types; say which `type` is meant", setting="type")
        else:
            try:
                shared_type(kinds)
            except BadType as error:
                yield Finding(f"the columns do not go together: {error}", setting="columns")

    def physical(self, known: Known) -> Physical:
        # Spark no longer knows of an order behind it.
        return black_box(known.passing(renamed={name: name for name in self.keep}, only=True), on_spark=False)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        if self.type is not None:
            kind = normal_type(self.type)
            frame = frame.withColumns(
                {name: tools.functions.expr(f"CAST({quoted(name)} AS {kind})") for name in self.columns}
            )
        rows = frame.unpivot([*map(plain, self.keep)], [*map(plain, self.columns)], self.name_into, self.value_into)
        return rows if self.nulls else rows.where(f"{quoted(self.value_into)} IS NOT NULL")

    def _kind(self, schema: Schema | None) -> str | None:
        if self.type is not None:
            return normal_or_none(self.type)
        try:
            return shared_type([type_in(schema, name) for name in self.columns])
        except BadType:
            return None
