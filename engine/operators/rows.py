"""Which rows go on, and in which order: filter, sort, sample, limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Category,
    Condition,
    DataFrame,
    Finding,
    Inputs,
    Operator,
    Port,
    Split,
    Way,
)
from engine.model.physical import Key, Known, Physical, black_box, filtering, sorting
from engine.operators._physical import filtered_key
from engine.operators._sql import OrderBy, order_findings, rest_of_row


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
        return order_findings(inputs.first(), self.by, "by")

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
        return black_box(known.passing(), on_spark=False)  # which no longer knows of an order behind it

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
        return order_findings(inputs.first(), self.order, "order")

    def physical(self, known: Known) -> Physical:
        if not self.order:
            return black_box(known.passing(), on_spark=False)  # all rows go into one part
        return sorting(tuple(Key(known.name(by.column), by.descending) for by in self.order), known.passing())

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        if self.order:
            order = [by.build(tools) for by in self.order]
            frame = frame.orderBy(*order, *rest_of_row(frame, tools, [by.column for by in self.order]))
        return frame.limit(self.rows)

    def is_repeatable(self) -> bool:
        return bool(self.order)
