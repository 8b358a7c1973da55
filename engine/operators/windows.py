"""Values that depend on neighbouring rows: sequence numbers and window functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from engine.model.expression_tree import Call
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.functions import WINDOW
from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Category,
    Column,
    DataFrame,
    Finding,
    Inputs,
    NewColumn,
    Operator,
    Settings,
    WindowFunction,
    expression_type,
)
from engine.model.physical import Key, Known, Order, Physical, sorting
from engine.model.types import Schema, is_numeric
from engine.operators._sql import (
    OrderBy,
    listed,
    not_orderable,
    order_findings,
    plain,
    repeated,
    rest_of_row,
    taken,
    type_in,
    with_columns,
)


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
        yield from order_findings(schema, self.order, "order")

    def physical(self, known: Known) -> Physical:
        groups, order = _grouped_order(self.partition, self.order, known)
        return sorting((*groups, *order), known.passing(lost=[self.into]), len(groups), anew=True)

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


def _grouped_order(partition: list[str], order: list[OrderBy], known: Known) -> tuple[Order, Order]:
    """The order by groups and that inside them, in which a group's own columns say nothing."""
    groups = tuple(dict.fromkeys(Key(known.name(name)) for name in partition))
    seen = {key.column for key in groups}
    inside = []
    for by in order:
        key = Key(known.name(by.column), by.descending)
        if key.column not in seen:
            inside.append(key)
            seen.add(key.column)
    return groups, tuple(inside)


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
        yield from order_findings(schema, self.order, "order")
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
        groups, order = _grouped_order(self.partition, self.order, known)
        as_written = len(order) == len(self.order) and all(by.nulls is None for by in self.order)
        passing = known.passing(lost=[item.name for item in self.functions])
        return sorting((*groups, *order), passing, len(groups), anew=not as_written)

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
