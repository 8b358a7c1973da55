"""Operators that steer rows: which way they take, and by how many ways."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Built,
    Column,
    Condition,
    Finding,
    Inputs,
    Operator,
    Port,
    Settings,
    Split,
    Way,
    column_type,
)
from engine.model.physical import Known, Physical, black_box, filtering
from engine.model.types import is_orderable
from engine.operators._sql import listed

REST = "rest"


class Route(Settings):
    """A way out of a router and the rows that take it."""

    port: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")] = Field(
        description="The name of the port; letters, digits, `_` and `-`."
    )
    condition: Condition = Field(description="The rows that leave by it.")


class RouterMode(StrEnum):
    """How many ways a row may take."""

    FIRST = "first"
    ALL = "all"


class Router(Operator):
    """Sends each row by the first route whose condition is true, or by all; others leave by `rest`."""

    name: ClassVar[str] = "router"
    title: ClassVar[str] = "Router"
    family: ClassVar[str] = "flow"
    on_sail: ClassVar[bool] = True

    routes: list[Route] = Field(min_length=1, description="The ways out, in the order they are tried.")
    mode: RouterMode = Field(RouterMode.FIRST, description="A row takes the first way that fits, or all of them.")

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        seen = {REST}
        for route in self.routes:
            if route.port.lower() in seen:
                raise ValueError(f"the port `{route.port}` stands twice; `{REST}` is the port of all other rows")
            seen.add(route.port.lower())
        return self

    def output_ports(self) -> tuple[Port, ...]:
        return (*(Port(route.port) for route in self.routes), Port(REST, required=False))

    def physical(self, known: Known) -> Physical:
        return filtering(known.passing(), None)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        ways: dict[str, Way] = {}
        others: list[str] = []  # what must not hold for a row to come this far
        for route in self.routes:
            if self.mode is RouterMode.FIRST and others:
                ways[route.port] = Way(" AND ".join([f"({route.condition})", *others]))
            else:
                ways[route.port] = Way(route.condition)
            others.append(f"NOT coalesce({route.condition}, false)")
        ways[REST] = Way(" AND ".join(others))
        return Split(inputs.first(), ways, overlapping=self.mode is RouterMode.ALL)


class Copy(Operator):
    """Changes nothing. Any number of nodes may read what it gives."""

    name: ClassVar[str] = "copy"
    title: ClassVar[str] = "Copy"
    family: ClassVar[str] = "flow"
    keeps_rows: ClassVar[bool] = True
    light: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing())

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        return inputs.first()


class Splitter(Operator):
    """Divides the rows over several ports of about the same size; rows with equal values go the same way."""

    name: ClassVar[str] = "splitter"
    title: ClassVar[str] = "Splitter"
    family: ClassVar[str] = "flow"
    on_sail: ClassVar[bool] = True

    parts: int = Field(2, ge=2, le=100, description="How many ports: `part1`, `part2` and so on.")
    by: list[Column] = Field(
        default_factory=list,
        description="The columns whose equal values go together; none named, all columns.",
    )

    def output_ports(self) -> tuple[Port, ...]:
        return tuple(Port(f"part{number}", required=number == 1) for number in range(1, self.parts + 1))

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        for index, name in enumerate(self.by):
            kind = column_type(inputs.first(), name)
            if kind is not None and not is_orderable(kind):
                yield Finding(f"`{name}` is a `{kind}`, by which rows cannot be divided", setting=f"by[{index}]")

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing())

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        rows = inputs.first()
        names = list(self.by)
        if not names:
            names = [name for name, kind in tools.schema(rows).items() if "map<" not in kind]
        part = f"pmod(xxhash64({listed(names)}), {self.parts}) + 1"
        return Split(
            rows.withColumn("_papilio_part", tools.functions.expr(part)),
            {f"part{number}": Way(f"_papilio_part = {number}") for number in range(1, self.parts + 1)},
            working=["_papilio_part"],
        )
