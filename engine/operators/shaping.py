"""Operators that shape rows: which columns they have, what is computed, which rows go on, in which order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from engine.model.expressions import Call, ExpressionError, parse
from engine.model.expressions import columns as columns_in
from engine.model.functions import WINDOW
from engine.model.inference import Scope
from engine.model.operator import (
    OUT,
    REASON,
    Aggregate,
    BuildInputs,
    BuildTools,
    Category,
    Column,
    Condition,
    DataFrame,
    Expression,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
    Port,
    Refusing,
    Settings,
    Split,
    SqlType,
    Way,
    WindowFunction,
    expression_type,
    refused,
)
from engine.model.physical import Key, Known, Physical, black_box, filtering, grouping, sorting
from engine.model.types import (
    UNKNOWN,
    BadType,
    Schema,
    ddl,
    element_type,
    is_numeric,
    normal_type,
    struct_fields,
)
from engine.operators._physical import filtered_key
from engine.operators._sql import (
    OrderBy,
    Scalar,
    accepted_and_refused,
    castable,
    columns_of_both,
    listed,
    literal,
    normal_or_none,
    not_orderable,
    not_text,
    plain,
    quoted,
    repeated,
    rest_of_row,
    shared_type,
    taken,
    type_in,
    typed_literal,
    with_columns,
    without,
)

# ---------------------------------------------------------------- columns


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


# ---------------------------------------------------------------- rows


class Filter(Operator):
    """Rows for which the condition is true leave by `match`, all others (also unknown) by `rest`."""

    name: ClassVar[str] = "filter"
    title: ClassVar[str] = "Filter"
    family: ClassVar[str] = "shaping"
    outputs: ClassVar[tuple[Port, ...]] = (Port("match"), Port("rest", required=False))
    on_sail: ClassVar[bool] = True

    condition: Condition = Field(description="What is true for the rows that leave by `match`.")

    def physical(self, known: Known) -> Physical:
        # One that stops reading early has no rows for the other port.
        key = None if "rest" in known.read else filtered_key(self.condition, known)
        return filtering(known.passing(), key)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Split:
        return Split(
            inputs.first(),
            {
                "match": Way(self.condition),
                "rest": Way(f"NOT coalesce({self.condition}, false)"),
            },
        )


class Sort(Operator):
    """Puts the rows in an order."""

    name: ClassVar[str] = "sort"
    title: ClassVar[str] = "Sort"
    family: ClassVar[str] = "shaping"
    category: ClassVar[Category] = Category.BLOCKING
    keeps_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    by: list[OrderBy] = Field(min_length=1, description="The columns to sort by, the weightiest first.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        return _order_findings(inputs.first(), self.by, "by")

    def physical(self, known: Known) -> Physical:
        return sorting(tuple(Key(known.name(by.column), by.descending) for by in self.by), known.passing())

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        return inputs.first().orderBy(*(by.build(tools) for by in self.by))


class Sample(Operator):
    """Lets a random share of the rows go on."""

    name: ClassVar[str] = "sample"
    title: ClassVar[str] = "Sample"
    family: ClassVar[str] = "shaping"

    fraction: float = Field(ge=0, le=1, description="The share of rows that goes on, 0.1 for about one in ten.")
    seed: int = Field(1, description="Another seed draws other rows; the same seed over the same files the same.")

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing())

    def expected_share(self) -> float:
        return self.fraction

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        return inputs.first().sample(fraction=self.fraction, seed=self.seed)

    def is_repeatable(self) -> bool:
        return False  # which rows are drawn also depends on how Spark divides them among its tasks


class Limit(Operator):
    """Lets the first rows go on, of an order or of any."""

    name: ClassVar[str] = "limit"
    title: ClassVar[str] = "First rows"
    family: ClassVar[str] = "shaping"
    category: ClassVar[Category] = Category.BLOCKING
    on_sail: ClassVar[bool] = True

    rows: int = Field(ge=0, le=2**31 - 1, description="How many rows go on at most.")
    order: list[OrderBy] = Field(
        default_factory=list,
        description="The order in which they are the first; rows that tie go by the rest of their columns. "
        "Without it any rows may be taken.",
    )

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        return _order_findings(inputs.first(), self.order, "order")

    def physical(self, known: Known) -> Physical:
        if not self.order:
            return black_box(known.passing())
        return sorting(tuple(Key(known.name(by.column), by.descending) for by in self.order), known.passing())

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        if self.order:
            order = [by.build(tools) for by in self.order]
            frame = frame.orderBy(*order, *rest_of_row(frame, tools, [by.column for by in self.order]))
        return frame.limit(self.rows)

    def is_repeatable(self) -> bool:
        return bool(self.order)


# ---------------------------------------------------------------- rows and their neighbours


class Sequence(Operator):
    """Numbers the rows in an order, all of them or each group for itself."""

    name: ClassVar[str] = "sequence"
    title: ClassVar[str] = "Sequence"
    family: ClassVar[str] = "shaping"
    category: ClassVar[Category] = Category.BLOCKING
    keeps_rows: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    into: NewColumn = Field("number", description="The new column for the number.")
    order: list[OrderBy] = Field(
        min_length=1,
        description="The order of the numbers; rows that tie are ordered by the rest of their columns.",
    )
    partition: list[Column] = Field(
        default_factory=list,
        description="Numbers start again for each group of these columns. "
        "Without groups one Spark task numbers all rows, which takes its time with very many of them.",
    )
    start: int = Field(1, description="The first number.")
    step: int = Field(1, description="From one number to the next.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": with_columns(inputs.first(), {self.into: "bigint"})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from taken(schema, [self.into], "into")
        yield from repeated(self.partition, "partition")
        yield from not_orderable(schema, self.partition, "partition")
        yield from _order_findings(schema, self.order, "order")

    def physical(self, known: Known) -> Physical:
        order = tuple(Key(known.name(by.column), by.descending) for by in self.order)
        groups = tuple(Key(known.name(name)) for name in self.partition)
        return sorting((*groups, *order), known.passing(lost=[self.into]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        order = [by.build(tools) for by in self.order]
        order += rest_of_row(frame, tools, [*self.partition, *(by.column for by in self.order)])
        window = tools.window.partitionBy(*map(plain, self.partition)).orderBy(*order)
        number = tools.functions.row_number().over(window).cast("bigint")
        if self.step != 1:
            number = (number - 1) * self.step + self.start
        elif self.start != 1:
            number = number + (self.start - 1)
        return frame.withColumn(self.into, number)


class FrameUnit(StrEnum):
    """How the rows around a row are counted: by rows, or by the difference in the ordering column."""

    ROWS = "rows"
    RANGE = "range"


class WindowFrame(Settings):
    """The rows around a row that a function sees."""

    unit: FrameUnit = Field(FrameUnit.ROWS, description="Count rows, or differences in the column of the order.")
    start: int | None = Field(
        None,
        description="Where it starts: -1 is one before the row, 0 the row; without it, the group's start.",
    )
    end: int | None = Field(0, description="Where it ends; empty for the group's end.")

    def sql(self) -> str:
        """The frame as it stands inside `OVER (…)`."""
        start, end = _bound(self.start, "PRECEDING"), _bound(self.end, "FOLLOWING")
        return f"{self.unit.upper()} BETWEEN {start} AND {end}"


def _bound(offset: int | None, beyond: str) -> str:
    if offset is None:
        return f"UNBOUNDED {beyond}"
    return "CURRENT ROW" if offset == 0 else f"{-offset} PRECEDING" if offset < 0 else f"{offset} FOLLOWING"


class Windowed(Settings):
    """A column and the window function that gives it."""

    name: NewColumn = Field(description="The new column.")
    function: WindowFunction = Field(
        description="One function without its `OVER`: `rank()`, `lag(price, 1)`, `sum(amount)`."
    )


# Their own frame is fixed: they look at the whole group, or at one row at a distance.
_FRAMELESS = set(WINDOW) - {"nth_value"}
# With rows that tie in the order, another run may give them other values.
_MINDS_TIES = {
    "row_number", "ntile", "lag", "lead", "nth_value", "first", "first_value", "last", "last_value",
    "any_value", "collect_list", "array_agg", "listagg", "string_agg",
}  # fmt: skip


class Window(Operator):
    """Ranks, sums or compares each row with the others of its group."""

    name: ClassVar[str] = "window"
    title: ClassVar[str] = "Window functions"
    family: ClassVar[str] = "shaping"
    category: ClassVar[Category] = Category.BLOCKING
    keeps_rows: ClassVar[bool] = True

    partition: list[Column] = Field(
        default_factory=list,
        description="The columns that make the groups. Without groups one Spark task sees all rows.",
    )
    order: list[OrderBy] = Field(default_factory=list, description="The order of the rows in their group.")
    functions: list[Windowed] = Field(min_length=1, description="The new columns and their functions.")
    frame: WindowFrame | None = Field(
        None,
        description="The rows that sums, firsts and lasts see. Without it: the whole group; with an order, "
        "from the group's start to the rows that tie with this one.",
    )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        kinds = {item.name: expression_type(f"{item.function} OVER ()", schema) for item in self.functions}
        return {"out": with_columns(schema, kinds)}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated([item.name for item in self.functions], "functions")
        yield from taken(schema, [item.name for item in self.functions], "functions")
        yield from not_orderable(schema, self.partition, "partition")
        yield from _order_findings(schema, self.order, "order")
        for index, item in enumerate(self.functions):
            function = _function_of(item)
            if function in WINDOW and not self.order:
                yield Finding(f"`{item.function}` needs an order", setting=f"functions[{index}].function")
        if self.frame is None:
            return
        start, end = self.frame.start, self.frame.end
        if not self.order:
            yield Finding("a frame needs an order", setting="frame")
        if start is not None and end is not None and start > end:
            yield Finding(f"the frame starts at {start}, behind its end at {end}", setting="frame")
        if self.frame.unit is FrameUnit.RANGE and (start or end):
            kind = type_in(schema, self.order[0].column) if self.order else None
            if len(self.order) > 1 or (kind is not None and kind != "date" and not is_numeric(kind)):
                yield Finding("a range with distances needs an order by one number or date", setting="frame")

    def physical(self, known: Known) -> Physical:
        order = tuple(Key(known.name(by.column), by.descending) for by in self.order)
        groups = tuple(Key(known.name(name)) for name in self.partition)
        return sorting((*groups, *order), known.passing(lost=[item.name for item in self.functions]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        return inputs.first().withColumns(
            {item.name: tools.functions.expr(f"{item.function} OVER ({self._over(item)})") for item in self.functions}
        )

    def is_repeatable(self) -> bool:
        moving = (
            self.frame is not None
            and self.frame.unit is FrameUnit.ROWS
            and (self.frame.start, self.frame.end) != (None, None)
        )
        return super().is_repeatable() and not any(
            _function_of(item) in _MINDS_TIES or (moving and _function_of(item) not in _FRAMELESS)
            for item in self.functions
        )

    def _over(self, item: Windowed) -> str:
        parts = []
        if self.partition:
            parts.append(f"PARTITION BY {listed(self.partition)}")
        if self.order:
            parts.append(f"ORDER BY {', '.join(by.sql() for by in self.order)}")
        if self.frame is not None and _function_of(item) not in _FRAMELESS:
            parts.append(self.frame.sql())
        return " ".join(parts)


def _function_of(item: Windowed) -> str | None:
    """The name of the function, None where it is not one."""
    try:
        tree = parse(f"{item.function} OVER ()")
    except ExpressionError:
        return None
    return tree.name if isinstance(tree, Call) else None


# ---------------------------------------------------------------- columns to rows and back


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
        return black_box(known.passing(renamed={name: name for name in self.keep}, only=True))

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


# ---------------------------------------------------------------- nested values


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
        return black_box(known.passing(lost=[self.into or self.column]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        explode = tools.functions.explode_outer if self.keep_empty else tools.functions.explode
        return inputs.first().withColumn(self.into or self.column, explode(plain(self.column)))


# ---------------------------------------------------------------- small steps


def _order_findings(schema: Schema | None, order: list[OrderBy], setting: str) -> Iterator[Finding]:
    names = [by.column for by in order]
    yield from repeated(names, setting)
    yield from not_orderable(schema, names, setting)
