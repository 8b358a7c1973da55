"""Operators that clean rows: they refuse some, convert values, tell duplicates apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from engine.model.operator import (
    OUT,
    REASON,
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
    expression_type,
    refused,
)
from engine.model.physical import Key, Known, Physical, black_box, filtering, grouping
from engine.model.types import BadType, Schema, is_integral, is_numeric, normal_type
from engine.operators._sql import (
    OrderBy,
    Scalar,
    accepted_and_refused,
    castable,
    columns_of_both,
    literal,
    literal_type,
    normal_or_none,
    not_orderable,
    plain,
    quoted,
    repeated,
    rest_of_row,
    shared_type,
    taken,
    type_in,
    typed_literal,
    with_columns,
)

# ---------------------------------------------------------------- checks that refuse rows


class NotNull(Operator, Refusing):
    """Rows that have a value in every named column go on; the others leave by `quarantine`."""

    name: ClassVar[str] = "not_null"
    title: ClassVar[str] = "Not null"
    family: ClassVar[str] = "cleansing"
    outputs: ClassVar[tuple[Port, ...]] = (OUT, refused("quarantine"))
    light: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    columns: ManyColumns = Field(description="The columns that must have a value.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        return {"out": schema, "quarantine": with_columns(schema, {REASON: "string"})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        return repeated(self.columns, "columns")

    def physical(self, known: Known) -> Physical:
        one = len(self.columns) == 1 and "quarantine" not in known.read
        return filtering(known.passing(), Key(known.name(self.columns[0])) if one else None)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Split:
        names = ", ".join(f"CASE WHEN {quoted(name)} IS NULL THEN {literal(name)} END" for name in self.columns)
        reason = tools.functions.expr(f"concat('no value in ', concat_ws(', ', {names}))")
        return Split(
            inputs.first(),
            {
                "out": Way(" AND ".join(f"{quoted(name)} IS NOT NULL" for name in self.columns)),
                "quarantine": Way(" OR ".join(f"{quoted(name)} IS NULL" for name in self.columns), reason=reason),
            },
        )


class Rule(Settings):
    """Something that must hold for every row."""

    name: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="What the rule is called in the reason of a refused row."
    )
    condition: Condition = Field(description="What must hold.")
    null_is_fine: bool = Field(False, description="A condition that is neither true nor false counts as kept.")

    def sql(self) -> str:
        """True where the rule is kept, false or unknown where it is not."""
        return f"coalesce({self.condition}, true)" if self.null_is_fine else f"({self.condition})"


class Validate(Operator, Refusing):
    """Rows that keep every rule go on; the others leave by `reject` with the names of those they broke."""

    name: ClassVar[str] = "validate"
    title: ClassVar[str] = "Validate"
    family: ClassVar[str] = "cleansing"
    outputs: ClassVar[tuple[Port, ...]] = (OUT, refused("reject"))
    on_sail: ClassVar[bool] = True

    rules: list[Rule] = Field(min_length=1, description="What must hold for every row.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        return {"out": schema, "reject": with_columns(schema, {REASON: "string"})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        return repeated([rule.name for rule in self.rules], "rules", "rules")

    def physical(self, known: Known) -> Physical:
        return filtering(known.passing(), None)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Split:
        broken = ", ".join(
            f"CASE WHEN NOT coalesce({rule.sql()}, false) THEN {literal(rule.name)} END" for rule in self.rules
        )
        kept = " AND ".join(rule.sql() for rule in self.rules)
        reason = tools.functions.expr(f"concat_ws(', ', {broken})")
        return Split(inputs.first(), {"out": Way(kept), "reject": Way(f"NOT coalesce({kept}, false)", reason=reason)})


class Conversion(Settings):
    """What a column is turned into."""

    type: SqlType = Field(description="The type the column shall have.")
    format: str | None = Field(
        None,
        min_length=1,
        description="How the text is written: `dd.MM.yyyy` for a date or a time, `9,999.99` for a number; "
        "for a date that becomes text, how it shall be written.",
    )

    def sql(self, column: str) -> str:
        """The converted value, NULL where the conversion fails."""
        name, kind = quoted(column), normal_type(self.type)
        if self.format is None:
            return f"try_cast({name} AS {kind})"
        pattern = literal(self.format)
        if kind == "string":
            return f"date_format({name}, {pattern})"
        if kind == "date":
            return f"try_to_date({name}, {pattern})"
        if kind == "timestamp":
            return f"try_to_timestamp({name}, {pattern})"
        inner = "try_to_timestamp" if kind == "timestamp_ntz" else "try_to_number"
        return f"try_cast({inner}({name}, {pattern}) AS {kind})"


class Convert(Operator, Refusing):
    """Changes columns' types; a row with a value that cannot be converted leaves by `reject` as it came."""

    name: ClassVar[str] = "convert"
    title: ClassVar[str] = "Convert types"
    family: ClassVar[str] = "cleansing"
    outputs: ClassVar[tuple[Port, ...]] = (OUT, refused("reject"))

    columns: dict[Column, Conversion] = Field(min_length=1, description="The columns with their new types.")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        kinds = {name: normal_or_none(to.type) for name, to in self.columns.items()}
        ports = accepted_and_refused(inputs.first(), "reject")
        return {**ports, "out": with_columns(ports["out"], kinds)}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from repeated(list(self.columns), "columns")
        schema = inputs.first()
        for name, to in self.columns.items():
            setting = f"columns.{name}"
            if name.lower() == REASON:
                yield Finding(f"`{REASON}` says why a row was refused and cannot be converted", setting=setting)
            source, kind = type_in(schema, name), normal_or_none(to.type)
            if kind is None:
                continue  # told already, as the setting is marked as a type
            if to.format is None:
                if not castable(source, kind):
                    yield Finding(f"`{name}` is a `{source}`, which cannot become a `{kind}`", setting=setting)
            elif kind == "string":
                if source not in (None, "date", "timestamp", "timestamp_ntz"):
                    yield Finding(f"a format writes a date or a time, and `{name}` is a `{source}`", setting=setting)
            elif kind not in ("date", "timestamp", "timestamp_ntz") and not is_numeric(kind):
                yield Finding(f"there is no format for a `{kind}`", setting=setting)
            elif source not in (None, "string"):
                yield Finding(f"a format is for text, and `{name}` is a `{source}`", setting=setting)

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=list(self.columns)))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Split:
        frame, functions = inputs.first(), tools.functions
        converted = [functions.expr(to.sql(name)).alias(name) for name, to in self.columns.items()]
        reasons = ", ".join(_conversion_reason(name, normal_type(to.type)) for name, to in self.columns.items())
        accepted, refused_ = columns_of_both(tools.columns(frame))
        new = {name.lower(): name for name in self.columns}
        return Split(
            frame.withColumn("_papilio_to", functions.struct(*converted)).withColumn(
                REASON, functions.expr(f"nullif(concat_ws('; ', {reasons}), '')")
            ),
            {
                "out": Way(
                    f"{REASON} IS NULL",
                    [
                        f"_papilio_to.{plain(new[name.lower()])}" if name.lower() in new else plain(name)
                        for name in accepted
                    ],
                ),
                "reject": Way(f"{REASON} IS NOT NULL", [plain(name) for name in refused_]),
            },
            working=["_papilio_to", REASON],
        )


def _conversion_reason(name: str, kind: str) -> str:
    """Names column, value and type where a value was lost in the conversion."""
    before, behind = literal(f"{name}: '"), literal(f"' is no {kind}")
    return (
        f"CASE WHEN {quoted(name)} IS NOT NULL AND _papilio_to.{quoted(name)} IS NULL "
        f"THEN concat({before}, CAST({quoted(name)} AS STRING), {behind}) END"
    )


# ---------------------------------------------------------------- values replaced


class ReplaceNull(Operator):
    """Puts a value where a column has none."""

    name: ClassVar[str] = "replace_null"
    title: ClassVar[str] = "Replace null"
    family: ClassVar[str] = "cleansing"
    keeps_rows: ClassVar[bool] = True
    light: ClassVar[bool] = True
    on_sail: ClassVar[bool] = True

    values: dict[Column, Expression] = Field(
        min_length=1,
        description="For each column what stands where nothing is: an expression, a text in quotes.",
    )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        return {"out": with_columns(schema, {name: type_in(schema, name) for name in self.values})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from repeated(list(self.values), "values")
        schema = inputs.first()
        for name, value in self.values.items():
            kind, given = type_in(schema, name), expression_type(value, schema)
            if kind is not None and given is not None and not _fits(given, kind):
                hint = "; a text stands in quotes" if kind == "string" else ""
                yield Finding(
                    f"`{value}` is a `{given}`, which does not fit into `{name}`, a `{kind}`{hint}",
                    setting=f"values.{name}",
                )

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=list(self.values)))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        schema = tools.schema(frame)

        def filled(name: str, value: str) -> str:
            kind = type_in(schema, name)
            same = kind is None or expression_type(value, schema) == kind
            return f"coalesce({quoted(name)}, {value if same else f'CAST({value} AS {kind})'})"

        return frame.withColumns(
            {name: tools.functions.expr(filled(name, value)) for name, value in self.values.items()}
        )


def _fits(given: str, kind: str) -> bool:
    """Whether values of a type can stand in a column of another without surprise."""
    if given in (kind, "void"):
        return True
    if is_numeric(kind):
        return is_integral(given) or (is_numeric(given) and not is_integral(kind))
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return given in ("string", "date", "timestamp", "timestamp_ntz")
    return False


class Otherwise(StrEnum):
    """What becomes of a value that a mapping does not name."""

    KEEP = "keep"
    CLEAR = "clear"
    DEFAULT = "default"


class ValueMap(Operator):
    """Replaces values by others, as a list of pairs says."""

    name: ClassVar[str] = "value_map"
    title: ClassVar[str] = "Value map"
    family: ClassVar[str] = "cleansing"
    keeps_rows: ClassVar[bool] = True

    column: Column = Field(description="The column whose values are replaced.")
    mapping: dict[str, Scalar] = Field(min_length=1, description="From a value to the value that stands for it.")
    otherwise: Otherwise = Field(
        Otherwise.KEEP, description="What becomes of other values: kept, cleared (null), or the default."
    )
    default: Scalar = Field(None, description="The value for all others, with `otherwise: default`.")
    type: SqlType | None = Field(None, description="The type of the result; without it, the common type of its values.")
    into: NewColumn | None = Field(None, description="A new column for the result; without it, the column itself.")

    @model_validator(mode="after")
    def _default_has_its_word(self) -> Self:
        if (self.default is not None) != (self.otherwise is Otherwise.DEFAULT):
            raise ValueError("a `default` goes with `otherwise: default`, each needs the other")
        return self

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schema = inputs.first()
        return {"out": with_columns(schema, {self.into or self.column: self._result(schema)})}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        if self.into and self.into.lower() != self.column.lower():
            yield from taken(schema, [self.into], "into")
        kind = type_in(schema, self.column)
        if kind is not None:
            for value in self.mapping:
                if typed_literal(value, kind) is None:
                    yield Finding(f"`{value}` is no `{kind}`, as `{self.column}` is", setting=f"mapping.{value}")
        kinds = self._kinds(schema)
        if self.type is None:
            if "string" in kinds and kinds - {"string", "void", None}:
                yield Finding("the results mix text with other types; say which `type` is meant", setting="mapping")
            else:
                try:
                    shared_type(kinds)
                except BadType as error:
                    yield Finding(f"the results do not go together: {error}", setting="mapping")
        elif (target := normal_or_none(self.type)) is not None:
            for source in sorted(kind for kind in kinds if not castable(kind, target) and kind):
                yield Finding(f"a `{source}` cannot become a `{target}`", setting="type")

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing(lost=[self.into or self.column]))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> DataFrame:
        frame = inputs.first()
        kind = type_in(tools.schema(frame), self.column) or "string"
        result = normal_type(self.type) if self.type else None

        def typed(text: str, own: str) -> str:
            return text if result in (None, own) else f"CAST({text} AS {result})"

        cases = " ".join(
            f"WHEN {typed_literal(source, kind)} THEN {typed(literal(to), literal_type(to))}"
            for source, to in self.mapping.items()
        )
        rest = {
            Otherwise.KEEP: f" ELSE {typed(quoted(self.column), kind)}",
            Otherwise.CLEAR: "",
            Otherwise.DEFAULT: f" ELSE {typed(literal(self.default), literal_type(self.default))}",
        }[self.otherwise]
        return frame.withColumn(
            self.into or self.column, tools.functions.expr(f"CASE {quoted(self.column)} {cases}{rest} END")
        )

    def _kinds(self, schema: Schema | None) -> set[str | None]:
        kinds: set[str | None] = {literal_type(value) for value in self.mapping.values()}
        if self.otherwise is Otherwise.DEFAULT:
            kinds.add(literal_type(self.default))
        if self.otherwise is Otherwise.KEEP:
            kinds.add(type_in(schema, self.column))
        return kinds

    def _result(self, schema: Schema | None) -> str | None:
        if self.type is not None:
            return normal_or_none(self.type)
        try:
            return shared_type(self._kinds(schema))
        except BadType:
            return None


# ---------------------------------------------------------------- duplicates


class Keep(StrEnum):
    """Which of several rows with one key stays."""

    FIRST = "first"
    LAST = "last"


class Deduplicate(Operator):
    """Of the rows with the same key one leaves by `unique`, all others by `duplicate`."""

    name: ClassVar[str] = "deduplicate"
    title: ClassVar[str] = "Deduplicate"
    family: ClassVar[str] = "cleansing"
    category: ClassVar[Category] = Category.BLOCKING
    outputs: ClassVar[tuple[Port, ...]] = (Port("unique"), Port("duplicate", required=False))
    on_sail: ClassVar[bool] = True

    keys: list[Column] = Field(
        default_factory=list,
        description="The columns that make two rows the same (null is like null); without any, all columns.",
    )
    order: list[OrderBy] = Field(
        default_factory=list,
        description="Which row is the first; rows that tie are ordered by the rest of their columns.",
    )
    keep: Keep = Field(Keep.FIRST, description="Keep the first or the last row of each key.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schema = inputs.first()
        yield from repeated(self.keys, "keys")
        yield from not_orderable(schema, self.keys or schema or (), "keys")
        yield from not_orderable(schema, [by.column for by in self.order], "order")

    def physical(self, known: Known) -> Physical:
        columns = self.keys or known.columns.get("in")
        if not columns:
            return black_box()
        return grouping([known.name(name) for name in columns], known.passing(), hashing=False)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Split:
        frame = inputs.first()
        last = self.keep is Keep.LAST
        keys = self.keys or tools.columns(frame)
        order = [(by.reversed() if last else by).build(tools) for by in self.order]
        order += rest_of_row(frame, tools, [*keys, *(by.column for by in self.order)], last)
        window = tools.window.partitionBy(*map(plain, keys)).orderBy(*order or [plain(keys[0])])
        ranked = tools.functions.row_number().over(window)
        return Split(
            frame.withColumn("_papilio_rank", ranked),
            {"unique": Way("_papilio_rank = 1"), "duplicate": Way("_papilio_rank > 1")},
            working=["_papilio_rank"],
        )
