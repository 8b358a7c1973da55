"""Operators of a warehouse: aggregates, materialized views, dimensions with a history, the date dimension."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from engine.model.expression_tree import Call, aggregates, columns
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.inference import Scope, infer
from engine.model.operator import (
    IN,
    OUT,
    BuildInputs,
    BuildTools,
    Built,
    Category,
    Column,
    Condition,
    Expression,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
    Place,
    Port,
    Refusing,
    Settings,
    Source,
    Split,
    Way,
    column_type,
    expression_type,
    has_column,
    refused,
)
from engine.model.operator import (
    Aggregate as AggregateText,
)
from engine.model.physical import Known, Physical, grouping
from engine.model.problems import did_you_mean
from engine.model.types import UNKNOWN, BadType, Schema, common_type, comparable, is_numeric, is_orderable
from engine.operators._sql import listed, literal, plain, quoted

# ---------------------------------------------------------------- aggregates


class Measure(Settings):
    """A column that an aggregate computes."""

    name: NewColumn = Field(description="The name of the new column.")
    expression: AggregateText = Field(description="What is computed, such as `sum(price)` or `count(*)`.")


class Aggregate(Operator):
    """One row for each group, with what was computed over its rows. Without a group, one row for all."""

    name: ClassVar[str] = "aggregate"
    title: ClassVar[str] = "Aggregate"
    family: ClassVar[str] = "warehouse"
    category: ClassVar[Category] = Category.BLOCKING
    on_sail: ClassVar[bool] = True

    group: list[Column] = Field(default_factory=list, description="The columns whose equal values make a group.")
    aggregates: list[Measure] = Field(default_factory=list, description="What is computed over each group.")
    having: Condition | None = Field(
        None, description="Which groups leave, over the columns of the group and those that were computed."
    )

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.group and not self.aggregates:
            raise ValueError(f"`{self.name}` needs the columns of a group, or something to compute")
        return self

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        return Scope(self._grouped(inputs.first())) if place == "having" else None

    def _grouped(self, schema: Schema | None) -> Schema | None:
        if schema is None:
            return None
        result = {name: column_type(schema, name) or UNKNOWN for name in self.group}
        for measure in self.aggregates:
            result[measure.name] = expression_type(measure.expression, schema) or UNKNOWN
        return result

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        seen: set[str] = set()
        for place, name in (
            *((f"group[{index}]", name) for index, name in enumerate(self.group)),
            *((f"aggregates[{index}].name", item.name) for index, item in enumerate(self.aggregates)),
        ):
            if name.lower() in seen:
                yield Finding(f"two columns would be called `{name}`", setting=place)
            seen.add(name.lower())
        for index, name in enumerate(self.group):
            kind = column_type(inputs.first(), name)
            if kind is not None and not is_orderable(kind):
                yield Finding(f"`{name}` is a `{kind}`, by which rows cannot be grouped", setting=f"group[{index}]")
        grouped = {name.lower() for name in self.group}
        for index, measure in enumerate(self.aggregates):
            for name in _outside_aggregates(measure.expression):
                if name.lower() not in grouped:
                    yield Finding(
                        f"`{name}` stands outside of an aggregate function and is no column of the group",
                        setting=f"aggregates[{index}].expression",
                    )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": self._grouped(inputs.first())}

    def in_two_steps(self, schema: Schema | None) -> tuple[Aggregate, Aggregate] | None:
        """The same over some rows at a time, and what makes one result of theirs; None where that is not exact.

        Sums of whole numbers and decimals, counts, smallest and largest values can be taken of such values again.
        """
        again = []
        for item in self.aggregates:
            try:
                call = parse(item.expression)
            except ExpressionError:
                return None
            if not isinstance(call, Call) or call.window is not None or call.distinct or call.filter is not None:
                return None
            kind = expression_type(item.expression, schema)
            match call.name:
                case "sum" if kind == "bigint" or (kind or "").startswith("decimal"):
                    text = f"sum({quoted(item.name)})"
                case "count":
                    text = f"coalesce(sum({quoted(item.name)}), 0)"
                case "min" | "max":
                    text = f"{call.name}({quoted(item.name)})"
                case _:
                    return None
            again.append({"name": item.name, "expression": text})
        group = list(self.group)
        first = Aggregate.model_validate({"group": group, "aggregates": [m.model_dump() for m in self.aggregates]})
        return first, Aggregate.model_validate({"group": group, "aggregates": again, "having": self.having})

    def physical(self, known: Known) -> Physical:
        passing = known.passing(renamed={name: name for name in self.group}, only=True)
        return grouping([known.name(name) for name in self.group], passing)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        rows = inputs.first()
        group = [plain(name) for name in self.group]
        measures = [tools.functions.expr(item.expression).alias(item.name) for item in self.aggregates]
        if not measures:
            result = rows.select(*group).distinct()
        elif not group:
            result = rows.agg(*measures)
        else:
            result = rows.groupBy(*group).agg(*measures)
        return result.where(self.having) if self.having else result


def _outside_aggregates(text: str) -> list[str]:
    """The columns an expression names outside of its aggregate functions."""
    try:
        tree = parse(text)
    except ExpressionError:
        return []  # told already
    inside = {column.position for call in aggregates(tree) for column in columns(call)}
    return [column.names[0] for column in columns(tree) if column.position not in inside]


class RefreshMode(StrEnum):
    """How a view is brought up to date."""

    FULL = "full"
    INCREMENTAL = "incremental"


class MaterializedView(Aggregate):
    """An aggregate that the warehouse keeps and brings up to date, with how urgent that is."""

    name: ClassVar[str] = "materialized_view"
    title: ClassVar[str] = "Materialized view"
    on_sail: ClassVar[bool] = True

    refresh: RefreshMode = Field(RefreshMode.FULL, description="Computed anew, or brought up to date by what came.")
    priority: int = Field(1, ge=1, description="How much its staleness weighs; larger is more urgent.")
    staleness_bound_s: float | None = Field(None, gt=0, description="How many seconds it may lag behind.")
    period_s: float | None = Field(None, gt=0, description="Every how many seconds new rows arrive.")


# ---------------------------------------------------------------- slowly changing dimension


class Deleted(StrEnum):
    """What becomes of the current version of a key that the source no longer has."""

    KEEP = "keep"
    CLOSE = "close"


_HELD = "_papilio_held"  # whether a row comes from the dimension as it stands
_REFUSED = "_papilio_refused"


class SlowlyChangingDimension(Operator, Refusing):
    """Brings a dimension up to date and keeps its history: the whole new dimension leaves by `out`.

    A change in a type 2 column closes the current version and opens a new one; a change in a type 1 column
    overwrites the value in all versions of the key. Rows whose key comes more than once in one load are
    refused, and the versions of that key stay as they are. Empty (null) values equal each other.
    """

    name: ClassVar[str] = "slowly_changing_dimension"
    title: ClassVar[str] = "Slowly changing dimension"
    family: ClassVar[str] = "warehouse"
    category: ClassVar[Category] = Category.BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (IN, Port("current", required=False))
    outputs: ClassVar[tuple[Port, ...]] = (OUT, refused("duplicate"))
    on_sail: ClassVar[bool] = True

    key: ManyColumns = Field(description="The columns of the natural key.")
    types: dict[Column, Literal[1, 2]] = Field(
        default_factory=dict, description="1 overwrites a column, 2 keeps its history."
    )
    default_type: Literal[1, 2] = Field(2, description="The type of the columns that `types` does not name.")
    effective: Expression = Field(
        "current_date()",
        description="From when the new versions hold: a date or a timestamp, one for the load.",
    )
    deleted: Deleted = Field(
        Deleted.KEEP,
        description="Keys that the source no longer has stay current, or their version is closed.",
    )
    surrogate_key: NewColumn = Field("surrogate_key", description="The column that numbers all versions.")
    valid_from: NewColumn = Field("valid_from", description="The column that says from when a version holds.")
    valid_to: NewColumn = Field(
        "valid_to", description="The column that says until when (exclusive); empty in the current version."
    )
    is_current: NewColumn = Field("is_current", description="The column that is true in the current version.")
    version: NewColumn = Field("version", description="The column that counts the versions of a key.")

    def _added(self) -> list[str]:
        return [self.surrogate_key, self.valid_from, self.valid_to, self.is_current, self.version]

    def _of_type(self, kind: int, names: list[str]) -> list[str]:
        """The columns of type 1 or 2 among the names."""
        types = {name.lower(): value for name, value in self.types.items()}
        keys = {name.lower() for name in self.key}
        return [
            name for name in names if name.lower() not in keys and types.get(name.lower(), self.default_type) == kind
        ]

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        return Scope({}) if place == "effective" else None

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        rows, current = inputs.of("in"), inputs.of("current")
        try:
            when = infer(parse(self.effective), Scope({})) or "not known"
        except ExpressionError:
            when = "date"  # what is wrong with it is told already
        if when not in ("date", "timestamp", "timestamp_ntz"):
            yield Finding(
                f"its type is {when}; write a date or a timestamp, such as `date'2026-01-31'`",
                setting="effective",
            )
        for name in self.types:
            if name.lower() in {key.lower() for key in self.key}:
                yield Finding(f"`{name}` belongs to the key, which never changes", setting=f"types.{name}")
        added = [name.lower() for name in self._added()]
        for name in self._added():
            if added.count(name.lower()) > 1 or (rows is not None and has_column(rows, name)):
                yield Finding(f"two columns would be called `{name}`", setting=None)
                break
        for name, kind in (rows or {}).items():
            if not is_orderable(kind):
                yield Finding(f"`{name}` is a `{kind}`, whose changes cannot be seen; make it a text first", "in")
        if rows is not None and current is not None:
            yield from self._check_current(rows, current)

    def _check_current(self, rows: Schema, current: Schema) -> Iterator[Finding]:
        for name in (*rows, *self._added()):
            if not has_column(current, name):
                yield Finding(f"the dimension has no column `{name}`{did_you_mean(name, current)}", "current")
        for name, kind in current.items():
            if not has_column(rows, name) and name.lower() not in [added.lower() for added in self._added()]:
                yield Finding(f"the dimension has a column `{name}`, and the new rows have not", "current")
            other = column_type(rows, name)
            if UNKNOWN not in (kind, other) and not comparable(kind, other):
                yield Finding(f"`{name}` is a `{other}` and in the dimension a `{kind}`", "current")
        number = column_type(current, self.surrogate_key)
        if number not in (None, UNKNOWN) and not is_numeric(number or ""):
            yield Finding(f"`{self.surrogate_key}` is a `{number}`, not a number", "current")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows, current = inputs.of("in"), inputs.of("current")
        if rows is None:
            return {"out": None, "duplicate": None}
        connected = inputs.connected("current")
        when = _either(expression_type(self.effective, {}), current, self.valid_from, connected)
        result = {self.surrogate_key: "bigint"}
        for name, kind in rows.items():
            result[name] = _either(None if kind == UNKNOWN else kind, current, name, connected)
        until = _either(expression_type(self.effective, {}), current, self.valid_to, connected)
        last = {self.valid_from: when, self.valid_to: until, self.is_current: "boolean", self.version: "int"}
        return {"out": {**result, **last}, "duplicate": rows}

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        rows, current = inputs.of("in"), inputs.of("current")
        names = tools.columns(rows)
        key, expr = listed(self.key), tools.functions.expr
        whole = [quoted(name) for name in (self.surrogate_key, *names)]
        whole += [quoted(name) for name in (self.valid_from, self.valid_to, self.is_current, self.version)]
        if current is None:
            arrived = rows.withColumn("_papilio_arrived", expr(f"count(*) OVER (PARTITION BY {key})"))
            opened = arrived.where("_papilio_arrived = 1").selectExpr(
                f"CAST(row_number() OVER (ORDER BY {key}) AS BIGINT) AS {quoted(self.surrogate_key)}",
                *(quoted(name) for name in names),
                *self._opening("1"),
                f"false AS {_REFUSED}",
            )
            again = arrived.where("_papilio_arrived > 1").selectExpr(
                *(quoted(name) for name in names), f"true AS {_REFUSED}"
            )
            return self._split(opened.unionByName(again, allowMissingColumns=True), names, whole)

        # All rows of a key side by side: the versions there are, and the row that arrived.
        attributes = [name for name in names if name.lower() not in {own.lower() for own in self.key}]
        row = f"struct({listed(attributes) or 'true AS _papilio_row'})"
        window = f"OVER (PARTITION BY {key})"
        is_current = f"coalesce({quoted(self.is_current)}, false)"
        together = (
            current.selectExpr(*whole, f"true AS {_HELD}")
            .unionByName(
                rows.selectExpr(*(quoted(name) for name in names), f"false AS {_HELD}"),
                allowMissingColumns=True,
            )
            .withColumns(
                {
                    "_papilio_arrived": expr(f"count_if(NOT {_HELD}) {window}"),
                    "_papilio_next": expr(f"first(CASE WHEN NOT {_HELD} THEN {row} END, true) {window}"),
                    "_papilio_now": expr(f"first(CASE WHEN {_HELD} AND {is_current} THEN {row} END, true) {window}"),
                    "_papilio_last": expr(f"max({quoted(self.version)}) {window}"),
                }
            )
        )
        same = " AND ".join(
            f"_papilio_now.{quoted(name)} <=> _papilio_next.{quoted(name)}" for name in self._of_type(2, names)
        )
        changed = f"_papilio_arrived = 1 AND NOT ({same})" if same else "false"
        closing = f"({changed}) OR _papilio_arrived = 0" if self.deleted is Deleted.CLOSE else changed
        kept = together.where(_HELD).selectExpr(*self._kept(names, f"{is_current} AND ({closing})"))
        highest = current.agg(
            expr(f"coalesce(max(CAST({quoted(self.surrogate_key)} AS BIGINT)), 0)").alias("_papilio_highest")
        )
        opened = (
            together.where(f"NOT {_HELD} AND _papilio_arrived = 1 AND (_papilio_now IS NULL OR {changed})")
            .crossJoin(highest)
            .selectExpr(
                f"row_number() OVER (ORDER BY {key}) + _papilio_highest AS {quoted(self.surrogate_key)}",
                *(quoted(name) for name in names),
                *self._opening("CAST(coalesce(_papilio_last, 0) + 1 AS INT)"),
                f"false AS {_REFUSED}",
            )
        )
        again = together.where(f"NOT {_HELD} AND _papilio_arrived > 1").selectExpr(
            *(quoted(name) for name in names), f"true AS {_REFUSED}"
        )
        return self._split(kept.unionByName(opened).unionByName(again, allowMissingColumns=True), names, whole)

    def _opening(self, version: str) -> list[str]:
        """What a new version has besides the columns that arrived."""
        return [
            f"{self.effective} AS {quoted(self.valid_from)}",
            f"CAST(NULL AS {expression_type(self.effective, {})}) AS {quoted(self.valid_to)}",
            f"true AS {quoted(self.is_current)}",
            f"{version} AS {quoted(self.version)}",
        ]

    def _kept(self, names: list[str], closing: str) -> list[str]:
        """A version that was there: type 1 columns as they arrived, the current one closed if need be."""
        overwritten = set(self._of_type(1, names))
        chosen = [f"CAST({quoted(self.surrogate_key)} AS BIGINT) AS {quoted(self.surrogate_key)}"]
        for name in names:
            if name in overwritten:
                arrived = f"_papilio_next.{quoted(name)}"
                own = quoted(name)
                chosen.append(f"CASE WHEN _papilio_arrived = 1 THEN {arrived} ELSE {own} END AS {own}")
            else:
                chosen.append(quoted(name))
        began, ended, own = quoted(self.valid_from), quoted(self.valid_to), quoted(self.is_current)
        message = literal(f"the new versions begin before the ones they follow; {self.effective} is too early")
        until = f"CASE WHEN ({self.effective}) < {began} THEN raise_error({message}) ELSE {self.effective} END"
        return [
            *chosen,
            began,
            f"CASE WHEN {closing} THEN {until} ELSE {ended} END AS {ended}",
            f"coalesce({own}, false) AND NOT ({closing}) AS {own}",
            f"CAST({quoted(self.version)} AS INT) AS {quoted(self.version)}",
            f"false AS {_REFUSED}",
        ]

    def _split(self, frame: Any, names: list[str], whole: list[str]) -> Split:
        return Split(
            frame.selectExpr(*whole, _REFUSED),
            {"out": Way(f"NOT {_REFUSED}"), "duplicate": Way(_REFUSED, [plain(name) for name in names])},
            working=[_REFUSED],
        )


def _either(kind: str | None, current: Schema | None, name: str, connected: bool) -> str:
    """The type of a column that takes values from the new rows and from the dimension as it stands."""
    if not connected:
        return kind or UNKNOWN
    other = column_type(current, name)
    try:
        return common_type(kind, None if other == UNKNOWN else other) or UNKNOWN
    except BadType:
        return UNKNOWN


# ---------------------------------------------------------------- date dimension


class DateDimension(Source):
    """One row for each day between two dates, with what reports ask of a day."""

    name: ClassVar[str] = "date_dimension"
    title: ClassVar[str] = "Date dimension"
    family: ClassVar[str] = "warehouse"
    columnar: ClassVar[bool] = True

    first_day: datetime.date = Field(description="The first day.")
    last_day: datetime.date = Field(description="The last day, which is included.")
    fiscal_year_start: int = Field(
        1,
        ge=1,
        le=12,
        description="The month a fiscal year begins with; it is named after the year it ends in.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.last_day < self.first_day:
            raise ValueError(f"the last day, {self.last_day}, is before the first, {self.first_day}")
        return self

    def declared(self) -> Schema | None:
        return {name: kind for name, kind, _ in self._columns()}

    def identity(self, place: Place) -> str:
        return f"{self.name} {self.first_day} to {self.last_day}"

    def fingerprint(self, place: Place) -> str | None:
        return self.identity(place)

    def held_rows(self, place: Place) -> int | None:
        return (self.last_day - self.first_day).days + 1

    def _columns(self) -> list[tuple[str, str, str]]:
        """The columns with their types and how they follow from the day."""
        shift = (13 - self.fiscal_year_start) % 12
        fiscal = f"add_months(`date`, {shift})" if shift else "`date`"
        return [
            ("date_key", "int", "year(`date`) * 10000 + month(`date`) * 100 + day(`date`)"),
            ("date", "date", "`date`"),
            ("year", "int", "year(`date`)"),
            ("quarter", "int", "quarter(`date`)"),
            ("month", "int", "month(`date`)"),
            ("month_name", "string", "date_format(`date`, 'MMMM')"),
            ("week", "int", "weekofyear(`date`)"),  # as ISO counts them
            ("day_of_month", "int", "day(`date`)"),
            ("day_of_week", "int", "weekday(`date`) + 1"),  # Monday is 1
            ("day_of_year", "int", "dayofyear(`date`)"),
            ("day_name", "string", "date_format(`date`, 'EEEE')"),
            ("is_weekend", "boolean", "weekday(`date`) >= 5"),
            ("fiscal_year", "int", f"year({fiscal})"),
            ("fiscal_quarter", "int", f"quarter({fiscal})"),
        ]

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        days = (self.last_day - self.first_day).days + 1
        day = f"date_add(date'{self.first_day.isoformat()}', CAST(id AS INT)) AS `date`"
        return (
            tools.spark.range(days)
            .selectExpr(day)
            .selectExpr(*(f"{text} AS {quoted(name)}" if name != "date" else text for name, _, text in self._columns()))
        )
