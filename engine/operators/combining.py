"""Operators that bring several flows together: joins, lookups, keys, unions, differences, set operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints, model_validator

from engine.model.expressions import ExpressionError, columns, parse
from engine.model.inference import Scope
from engine.model.operator import (
    IN,
    OUT,
    BuildInputs,
    BuildTools,
    Built,
    Category,
    Condition,
    DataFrame,
    Finding,
    Inputs,
    LeftColumn,
    ManyColumns,
    Meaning,
    Means,
    NewColumn,
    Operator,
    Port,
    ReferenceColumn,
    ReferenceCondition,
    Refusing,
    RightColumn,
    Role,
    Settings,
    Split,
    Way,
    column_type,
    has_column,
    refused,
)
from engine.model.physical import JOINS, Known, Physical, black_box, joining
from engine.model.problems import Level, did_you_mean
from engine.model.types import UNKNOWN, BadType, Schema, common_type, comparable, is_numeric, is_orderable
from engine.operators._sql import listed, literal, plain, quoted, type_in
from engine.operators.files import ParquetSource

_Text = StringConstraints(min_length=1)
MainColumn = Annotated[str, _Text, Means(Meaning.COLUMN, "main")]
KnownColumn = Annotated[str, _Text, Means(Meaning.COLUMN, "known")]
NewSideColumn = Annotated[str, _Text, Means(Meaning.COLUMN, "new")]

FOUND = "_papilio_found"


# ---------------------------------------------------------------- what several of them need


def _filled(values: Any, given: str, left_out: str) -> Any:
    """A pair of columns where the second was left out because it has the first one's name."""
    if isinstance(values, dict) and given in values and not values.get(left_out):
        return {**values, left_out: values[given]}
    return values


def _position(names: Sequence[str], name: str) -> int | None:
    """Where a column stands, in any case."""
    lower = name.lower()
    return next((at for at, other in enumerate(names) if other.lower() == lower), None)


def _check_pairs(
    pairs: Iterable[tuple[str, str]], left: Schema | None, right: Schema | None, setting: str
) -> Iterator[Finding]:
    """Whether columns that must be equal can be compared at all."""
    for index, (first, second) in enumerate(pairs):
        place = f"{setting}[{index}]"
        one, other = type_in(left, first), type_in(right, second)
        for name, kind in ((first, one), (second, other)):
            if kind is not None and not is_orderable(kind):
                yield Finding(f"`{name}` is a `{kind}`, which cannot be a key", setting=place)
                break
        else:
            mixed = one is not None and other is not None and (one == "string") != (other == "string")
            if mixed or not comparable(one, other):
                yield Finding(
                    f"`{first}` is a `{one}` and `{second}` a `{other}`; convert one of them first",
                    setting=place,
                )


def _shared_type(left: str | None, right: str | None) -> str:
    """The type of a column that takes values from two, `?` where it is not known."""
    try:
        return common_type(left, right) or UNKNOWN
    except BadType:
        return UNKNOWN


def _unique_or_fail(keys: Sequence[str], what: str, rows: str) -> str:
    """A condition that stops the run where a key has several rows; the keys as SQL."""
    message = f"concat({literal(f'{what} has several rows for the key ')}, to_json(struct({', '.join(keys)})))"
    return f"assert_true({rows}, {message}) IS NULL"


# ---------------------------------------------------------------- join


class JoinKind(StrEnum):
    """Which rows a join gives."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"
    CROSS = "cross"


class JoinForm(StrEnum):
    """How Spark is asked to carry a join out."""

    AUTO = "auto"
    BROADCAST = "broadcast"
    HASH = "hash"
    MERGE = "merge"
    NESTED_LOOPS = "nested_loops"


_SPARK_KINDS = {JoinKind.SEMI: "left_semi", JoinKind.ANTI: "left_anti"}
_SPARK_HINTS = {
    JoinForm.BROADCAST: "broadcast",
    JoinForm.HASH: "shuffle_hash",
    JoinForm.MERGE: "merge",
    JoinForm.NESTED_LOOPS: "shuffle_replicate_nl",
}

# What an asked-for form leaves the planner to choose from.
_WAYS: dict[JoinForm, tuple[str, ...]] = {
    JoinForm.AUTO: JOINS,
    JoinForm.BROADCAST: ("BJ", "HJ"),
    JoinForm.HASH: ("HJ",),
    JoinForm.MERGE: ("MJ", "SMJ"),
    JoinForm.NESTED_LOOPS: ("NL",),
}

# The form that asks Spark for an implementation.
_ASKED = {
    "MJ": JoinForm.MERGE,
    "SMJ": JoinForm.MERGE,
    "HJ": JoinForm.HASH,
    "NL": JoinForm.NESTED_LOOPS,
    "BJ": JoinForm.BROADCAST,
}


class JoinKey(Settings):
    """Two columns that must be equal."""

    left: LeftColumn = Field(description="The column of the left input.")
    right: RightColumn = Field("", description="The column of the right input; left out, it has the same name.")

    @model_validator(mode="before")
    @classmethod
    def _same_name(cls, values: Any) -> Any:
        return _filled(values, "left", "right")

    @property
    def one_name(self) -> bool:
        """Whether both columns have the same name, and leave as one."""
        return self.left.lower() == self.right.lower()


class Join(Operator):
    """Brings the rows of two inputs together where their keys are equal and the condition holds.

    All columns of the left input leave, then those of the right. Two key columns of one name leave as one,
    with the value of the side that has the row; other right columns whose names are taken get the suffix.
    """

    name: ClassVar[str] = "join"
    title: ClassVar[str] = "Join"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.SEMI_BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (Port("left"), Port("right"))
    on_sail: ClassVar[bool] = True

    kind: JoinKind = Field(JoinKind.INNER, description="Which rows leave.")
    keys: list[JoinKey] = Field(default_factory=list, description="The columns that must be equal.")
    null_safe: bool = Field(False, description="Whether an empty (null) key equals an empty key.")
    condition: Condition | None = Field(
        None, description="What must hold besides, over `left.column` and `right.column`."
    )
    form: JoinForm = Field(JoinForm.AUTO, description="How Spark is asked to join.")
    right_suffix: str = Field(
        "_right", min_length=1, description="Behind the name of a right column whose name the left has too."
    )

    def _gives_left_only(self) -> bool:
        return self.kind in (JoinKind.SEMI, JoinKind.ANTI)

    def _merged(self) -> dict[str, JoinKey]:
        """The keys of one name, by that name in lower case."""
        return {key.left.lower(): key for key in self.keys if key.one_name}

    def _from_right(self, left: Iterable[str], right: Iterable[str]) -> dict[str, str]:
        """The columns of the right input that leave, with the names they leave by."""
        taken = {name.lower() for name in left}
        merged = self._merged()
        return {
            name: f"{name}{self.right_suffix}" if name.lower() in taken else name
            for name in right
            if name.lower() not in merged
        }

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        left, right = inputs.of("left"), inputs.of("right")
        both = None if left is None or right is None else {**right, **left}
        return Scope(both, {"left": left, "right": right})

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        left, right = inputs.of("left"), inputs.of("right")
        if self.kind is JoinKind.CROSS:
            if self.keys or self.condition:
                yield Finding("a cross join takes every pair of rows; it has no keys and no condition", setting="kind")
        elif not self.keys and not self.condition:
            yield Finding("a join needs keys or a condition; `cross` takes every pair of rows", setting="keys")
        yield from _check_pairs([(key.left, key.right) for key in self.keys], left, right, "keys")
        yield from self._check_form()
        if left is None or right is None:
            return
        yield from self._check_ambiguous(left, right)
        if not self._gives_left_only():
            names = [name.lower() for name in (*left, *self._from_right(left, right).values())]
            for name in sorted({name for name in names if names.count(name) > 1}):
                yield Finding(f"two columns would be called `{name}`; choose another suffix", setting="right_suffix")

    def _check_form(self) -> Iterator[Finding]:
        if self.form in (JoinForm.HASH, JoinForm.MERGE) and not self.keys:
            yield Finding(f"a `{self.form}` join needs keys", setting="form")
        inner = self.kind in (JoinKind.INNER, JoinKind.CROSS)
        if self.form is JoinForm.NESTED_LOOPS and not inner:
            yield Finding("nested loops are for inner and cross joins", setting="form")
        if self.form is JoinForm.BROADCAST and self.kind is JoinKind.FULL:
            yield Finding("a full join cannot be done by broadcast", setting="form")

    def _check_ambiguous(self, left: Schema, right: Schema) -> Iterator[Finding]:
        try:
            named = columns(parse(self.condition)) if self.condition else []
        except ExpressionError:
            return  # told already
        for column in named:
            name = column.names[0]
            qualified = len(column.names) > 1 and name in ("left", "right")
            if not qualified and has_column(left, name) and has_column(right, name):
                yield Finding(
                    f"both inputs have a column `{name}`; write `left.{name}` or `right.{name}`",
                    setting="condition",
                )

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        left, right = inputs.of("left"), inputs.of("right")
        if left is None or self._gives_left_only():
            return {"out": left}
        if right is None:
            return {"out": None}
        result = dict(left)
        for name, key in self._merged().items():
            at = _position(list(left), name)
            if at is not None and self.kind in (JoinKind.RIGHT, JoinKind.FULL):
                other = type_in(right, key.right)
                kind = other if self.kind is JoinKind.RIGHT else _shared_type(type_in(left, name), other)
                result[list(left)[at]] = kind or UNKNOWN
        result.update({new: right[old] for old, new in self._from_right(left, right).items()})
        return {"out": result}

    def physical(self, known: Known) -> Physical:
        left = [known.name(key.left, "left") for key in self.keys]
        right = [known.name(key.right, "right") for key in self.keys]
        outer = self.kind in (JoinKind.RIGHT, JoinKind.FULL)
        ways = tuple(
            way
            for way in _WAYS[self.form]
            if not (way == "NL" and self.keys and self.kind is not JoinKind.INNER)
            and not (way == "BJ" and outer)  # the right is what is copied, and such a join must keep its rows
            and not (way == "HJ" and self.form is JoinForm.BROADCAST and not outer)
        )
        same = {}
        columns = known.columns.get("left"), known.columns.get("right")
        if self.kind is JoinKind.INNER and None not in columns:
            names = self._from_right(columns[0] or (), columns[1] or ())
            by_lower = {name.lower(): new for name, new in names.items()}
            for key in self.keys:
                new = by_lower.get(key.right.lower())
                if new is not None:
                    same[known.spelling(new)] = known.name(key.left, "left")
        # Rows that only the right has stand in no order of the left's keys.
        passing = known.passing("left", only=True) if outer else known.passing("left")
        asks = {way: {"form": form.value} for way, form in _ASKED.items()} if self.form is JoinForm.AUTO else {}
        return joining(left, right, passing, ways=ways, same=same, asks=asks)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        left, right = inputs.of("left"), inputs.of("right")
        chosen = ["left.*"]
        if not self._gives_left_only():
            chosen = self._select(tools.columns(left), tools.columns(right))
        left, right = left.alias("left"), right.alias("right")
        if self.form is not JoinForm.AUTO:
            hint = _SPARK_HINTS[self.form]
            # The hinted side is the one that is broadcast or hashed; an outer join can only do that to the
            # side whose rows it need not keep.
            if self.kind is JoinKind.RIGHT:
                left = left.hint(hint)
            else:
                right = right.hint(hint)
        if self.kind is JoinKind.CROSS:
            return left.crossJoin(right).selectExpr(*chosen)
        sign = "<=>" if self.null_safe else "="
        terms = [f"left.{quoted(key.left)} {sign} right.{quoted(key.right)}" for key in self.keys]
        if self.condition:
            terms.append(f"({self.condition})" if terms else self.condition)
        on = tools.functions.expr(" AND ".join(terms))
        return left.join(right, on, _SPARK_KINDS.get(self.kind, self.kind.value)).selectExpr(*chosen)

    def _select(self, left: list[str], right: list[str]) -> list[str]:
        merged = self._merged()
        chosen = ["left.*"]
        if merged and self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            chosen = []
            for name in left:
                key = merged.get(name.lower())
                if key is None:
                    chosen.append(f"left.{quoted(name)}")
                elif self.kind is JoinKind.RIGHT:
                    chosen.append(f"right.{quoted(key.right)} AS {quoted(name)}")
                else:
                    both = f"left.{quoted(name)}, right.{quoted(key.right)}"
                    chosen.append(f"coalesce({both}) AS {quoted(name)}")
        for old, new in self._from_right(left, right).items():
            chosen.append(f"right.{quoted(old)}" + (f" AS {quoted(new)}" if new != old else ""))
        return chosen


# ---------------------------------------------------------------- lookup and exists


class LookupKey(Settings):
    """A column of the main flow and the column of the reference it is looked up in."""

    main: MainColumn = Field(description="The column of the main input.")
    reference: ReferenceColumn = Field("", description="The column of the reference; left out, it has the same name.")

    @model_validator(mode="before")
    @classmethod
    def _same_name(cls, values: Any) -> Any:
        return _filled(values, "main", "reference")


class Taken(Settings):
    """A column that a lookup adds."""

    column: ReferenceColumn = Field(description="The column of the reference.")
    name: NewColumn = Field("", description="Its name behind the lookup; left out, it keeps its own.")
    default: str | int | float | bool | None = Field(
        None, description="The value where nothing is found; left out, none (null)."
    )

    @model_validator(mode="before")
    @classmethod
    def _same_name(cls, values: Any) -> Any:
        return _filled(values, "column", "name")


class Preference(Settings):
    """A column by which reference rows of the same key are preferred."""

    column: ReferenceColumn = Field(description="The column of the reference.")
    descending: bool = Field(False, description="The largest first.")


class OnMiss(StrEnum):
    """What becomes of a row whose key the reference does not have."""

    DEFAULT = "default"  # it goes on with default values
    MISS = "miss"  # it leaves by the port `miss`


class OnDuplicate(StrEnum):
    """What is done about several reference rows of one key, which would multiply the rows of the flow."""

    FAIL = "fail"
    FIRST = "first"


class Lookup(Operator, Refusing):
    """Adds columns of the reference row that has the same key. Each row of the main flow leaves once.

    An empty (null) key is never found.
    """

    name: ClassVar[str] = "lookup"
    title: ClassVar[str] = "Lookup"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.ROW_SYNCHRONIZED  # as the paper has it: main rows pass one by one
    inputs: ClassVar[tuple[Port, ...]] = (Port("main"), Port("reference"))
    on_sail: ClassVar[bool] = True

    keys: list[LookupKey] = Field(min_length=1, description="The columns by which rows are found.")
    take: list[Taken] = Field(min_length=1, description="The columns of the reference to add.")
    condition: ReferenceCondition | None = Field(
        None, description="Which rows of the reference count; left out, all of them."
    )
    on_miss: OnMiss = Field(
        OnMiss.DEFAULT, description="Rows that are not found go on with default values, or leave by `miss`."
    )
    on_duplicate: OnDuplicate = Field(
        OnDuplicate.FAIL, description="Several reference rows of one key stop the run, or the first is taken."
    )
    order: list[Preference] = Field(
        default_factory=list,
        description="Which of several reference rows comes first; ties go by the taken columns.",
    )
    broadcast: bool = Field(True, description="Whether the reference fits into the memory of every worker.")

    def output_ports(self) -> tuple[Port, ...]:
        return (OUT, refused("miss")) if self.on_miss is OnMiss.MISS else (OUT,)

    def scope_of(self, place: str, inputs: Inputs) -> Scope | None:
        return Scope(self.named_schemas(inputs)["reference"]) if place == "condition" else None

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        schemas = self.named_schemas(inputs)
        main, reference = schemas["main"], schemas["reference"]
        yield from _check_pairs([(key.main, key.reference) for key in self.keys], main, reference, "keys")
        seen: set[str] = set()
        for index, taken in enumerate(self.take):
            place = f"take[{index}]"
            if taken.name.lower() in seen:
                yield Finding(f"two columns would be called `{taken.name}`", setting=place)
            elif main is not None and has_column(main, taken.name):
                yield Finding(f"the main input has a column `{taken.name}` already; give it a new name", setting=place)
            seen.add(taken.name.lower())
            if taken.default is not None and self.on_miss is OnMiss.MISS:
                yield Finding("rows that are not found leave by `miss`; a default is not used", setting=place)
            kind = type_in(reference, taken.column)
            if isinstance(taken.default, str) and kind is not None and is_numeric(kind):
                yield Finding(f"`{taken.column}` is a `{kind}`, and its default is a text", setting=place)
        if self.order and self.on_duplicate is OnDuplicate.FAIL:
            yield Finding("an order is for `on_duplicate: first`", setting="order")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        schemas = self.named_schemas(inputs)
        main, reference = schemas["main"], schemas["reference"]
        out = None
        if main is not None:
            out = {**main, **{item.name: type_in(reference, item.column) or UNKNOWN for item in self.take}}
        return {"out": out, "miss": main} if self.on_miss is OnMiss.MISS else {"out": out}

    def physical(self, known: Known) -> Physical:
        left = [known.name(key.main, "main") for key in self.keys]
        right = [known.name(key.reference, "reference") for key in self.keys]
        passing = known.passing("main", lost=[item.name for item in self.take])
        asks = {"MJ": {"broadcast": False}, "SMJ": {"broadcast": False}, "HJ": {"broadcast": True}}
        return joining(left, right, passing, ways=("MJ", "HJ", "SMJ"), keeps_order=True, asks=asks)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        main = inputs.of("main")
        found, kinds = tools.ahead or self._found(inputs, tools)
        on = " AND ".join(f"main.{quoted(key.main)} = reference.{_key(index)}" for index, key in enumerate(self.keys))
        joined = main.alias("main").join(found, tools.functions.expr(on), "left")
        if self.on_miss is OnMiss.DEFAULT:
            return joined.selectExpr("main.*", *(self._value(taken, kinds) for taken in self.take))
        taken = [f"reference.{quoted(taken.name)}" for taken in self.take]
        return Split(
            joined.selectExpr("main.*", *taken, f"reference.{FOUND}"),
            {
                "out": Way(f"{FOUND} IS NOT NULL"),
                "miss": Way(f"{FOUND} IS NULL", [plain(name) for name in tools.columns(main)]),
            },
            working=[FOUND],
        )

    def _found(self, inputs: BuildInputs, tools: BuildTools) -> tuple[DataFrame, Schema]:
        """What the main rows are joined with, and the columns of the reference."""
        reference, kinds = self._reference(inputs, tools)
        found = self._one_row_per_key(reference, kinds, tools).alias("reference")
        return found.hint("broadcast") if self.broadcast else found, kinds

    def _reference(self, inputs: BuildInputs, tools: BuildTools) -> tuple[DataFrame, Schema]:
        """The rows that are looked up in, and their columns."""
        reference = inputs.of("reference")
        return reference, tools.schema(reference)

    def _one_row_per_key(self, reference: DataFrame, kinds: Schema, tools: BuildTools) -> DataFrame:
        """The reference's rows that count, one a key. In few steps: Spark analyses each on its own."""
        names = [key.reference for key in self.keys]
        conditions = [f"({self.condition})"] if self.condition else []
        usable = reference.where(" AND ".join([*conditions, *(f"{quoted(name)} IS NOT NULL" for name in names)]))
        if self.broadcast:  # every worker gets all of it anyway
            usable = self._gathered(usable, tools)
        if self.on_duplicate is OnDuplicate.FAIL:
            # Grouped, and not numbered by a window: that would sort the reference while the main flow waits for it.
            keys = [f"{_key(index)} AS {quoted(name)}" for index, name in enumerate(names)]
            group = [f"{quoted(name)} AS {_key(index)}" for index, name in enumerate(names)]
            values = [f"first({quoted(taken.column)}) AS {quoted(taken.name)}" for taken in self.take]
            values += [f"true AS {FOUND}", "count(*) AS _papilio_place"]
            rows = usable.groupBy(*map(tools.functions.expr, group)).agg(*map(tools.functions.expr, values))
            return rows.where(_unique_or_fail(keys, "the reference of a lookup", "_papilio_place = 1"))
        order = [quoted(item.column) + (" DESC" if item.descending else "") for item in self.order]
        order += [quoted(item.column) for item in self.take if is_orderable(column_type(kinds, item.column) or "")]
        place = f"row_number() OVER (PARTITION BY {listed(names)} ORDER BY {', '.join(order) or '1'})"
        return usable.selectExpr(
            *(f"{quoted(name)} AS {_key(index)}" for index, name in enumerate(names)),
            *(f"{quoted(taken.column)} AS {quoted(taken.name)}" for taken in self.take),
            f"true AS {FOUND}",
            f"{place} AS _papilio_place",
        ).where("_papilio_place = 1")

    def _gathered(self, usable: DataFrame, tools: BuildTools) -> DataFrame:
        """The rows that are looked up in, in one piece where they are few."""
        return tools.gathered(usable)

    def _value(self, taken: Taken, kinds: Schema) -> str:
        value = f"reference.{quoted(taken.name)}"
        if taken.default is None:
            return value
        default = literal(taken.default)
        kind = type_in(kinds, taken.column)
        if kind is not None and kind != "string":
            default = f"CAST({default} AS {kind})"
        elif not isinstance(taken.default, str):
            default = f"CAST({default} AS string)" if kind == "string" else default
        return f"CASE WHEN reference.{FOUND} THEN {value} ELSE {default} END AS {quoted(taken.name)}"


class ParquetLookup(Lookup, ParquetSource):
    """A lookup in Parquet files that it reads itself, so that its flow stays one line.

    Each row of the main flow leaves once, with columns of the row that has the same key.
    """

    name: ClassVar[str] = "parquet_lookup"
    title: ClassVar[str] = "Lookup in Parquet"
    role: ClassVar[Role] = Role.ACTIVITY  # rows pass through it; what it reads is its own affair
    columnar: ClassVar[bool] = False  # computed again, it would read its files again
    inputs: ClassVar[tuple[Port, ...]] = (Port("main"),)
    on_sail: ClassVar[bool] = True

    def named_schemas(self, inputs: Inputs) -> dict[str, Schema | None]:
        return {**super().named_schemas(inputs), "reference": inputs.discovered}

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        yield from Lookup.check(self, inputs)
        yield from ParquetSource.check(self, inputs)

    def physical(self, known: Known) -> Physical:
        return black_box(known.passing("main", lost=[item.name for item in self.take]))

    def prepare(self, tools: BuildTools) -> Any:
        return self._found(BuildInputs({}), tools)

    def _reference(self, inputs: BuildInputs, tools: BuildTools) -> tuple[DataFrame, Schema]:
        return ParquetSource.build(self, inputs, tools), tools.source_schema()

    def _gathered(self, usable: DataFrame, tools: BuildTools) -> DataFrame:
        return tools.gathered(usable, "path")


def _key(index: int) -> str:
    return f"_papilio_key_{index + 1}"


class Exists(Operator):
    """Rows whose key the reference has leave by `match`, all others (also with an empty key) by `rest`."""

    name: ClassVar[str] = "exists"
    title: ClassVar[str] = "Exists"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.SEMI_BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (Port("main"), Port("reference"))
    outputs: ClassVar[tuple[Port, ...]] = (Port("match"), Port("rest", required=False))
    on_sail: ClassVar[bool] = True

    keys: list[LookupKey] = Field(min_length=1, description="The columns by which rows are found.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        pairs = [(key.main, key.reference) for key in self.keys]
        return _check_pairs(pairs, inputs.of("main"), inputs.of("reference"), "keys")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"match": inputs.of("main"), "rest": inputs.of("main")}

    def physical(self, known: Known) -> Physical:
        left = [known.name(key.main, "main") for key in self.keys]
        right = [known.name(key.reference, "reference") for key in self.keys]
        return joining(left, right, known.passing("main"), ways=("MJ", "HJ", "SMJ"))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        main, reference = inputs.of("main"), inputs.of("reference")
        keys = [f"{quoted(key.reference)} AS {_key(index)}" for index, key in enumerate(self.keys)]
        known = reference.selectExpr(*keys, f"true AS {FOUND}").distinct()
        on = " AND ".join(f"main.{quoted(key.main)} = reference.{_key(index)}" for index, key in enumerate(self.keys))
        joined = main.alias("main").join(known.alias("reference"), tools.functions.expr(on), "left")
        return Split(
            joined.selectExpr("main.*", f"reference.{FOUND}"),
            {"match": Way(f"{FOUND} IS NOT NULL"), "rest": Way(f"{FOUND} IS NULL")},
            working=[FOUND],
        )


# ---------------------------------------------------------------- surrogate keys


class SurrogateKey(Operator):
    """Gives every natural key a whole number: the one it is known by, or the next free one.

    New keys are numbered in the order of the natural key. An empty (null) key is a key like any other.
    """

    name: ClassVar[str] = "surrogate_key"
    title: ClassVar[str] = "Surrogate key"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (IN, Port("known", required=False))
    outputs: ClassVar[tuple[Port, ...]] = (OUT, Port("new_keys", required=False))
    on_sail: ClassVar[bool] = True

    key: ManyColumns = Field(description="The columns of the natural key.")
    column: NewColumn = Field(description="The name of the surrogate key.")
    known_key: list[KnownColumn] = Field(
        default_factory=list,
        description="The natural key's columns among the known keys, if named otherwise.",
    )
    known_column: KnownColumn | None = Field(
        None, description="The surrogate key's column among the known keys, if named otherwise."
    )
    start: int = Field(1, description="The first number, where no key is known yet.")

    def _known_names(self) -> list[str]:
        return list(self.known_key or self.key)

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        rows, known = inputs.of("in"), inputs.of("known")
        if self.known_key and len(self.known_key) != len(self.key):
            yield Finding(f"{len(self.key)} columns are expected, one for each of `key`", setting="known_key")
        if rows is not None and has_column(rows, self.column):
            yield Finding(f"the input has a column `{self.column}` already", setting="column")
        pairs = list(zip(self.key, self._known_names(), strict=False))
        yield from _check_pairs(pairs, rows, known if known is not None else rows, "key")
        if known is None:
            return
        wanted = [*([] if self.known_key else self.key), *([] if self.known_column else [self.column])]
        for name in wanted:
            if not has_column(known, name):
                yield Finding(f"the known keys have no column `{name}`{did_you_mean(name, known)}", "known")
        kind = type_in(known, self.known_column or self.column)
        if kind is not None and not is_numeric(kind):
            yield Finding(f"the known keys' `{self.known_column or self.column}` is a `{kind}`, not a number", "known")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        rows = inputs.of("in")
        if rows is None:
            return {"out": None, "new_keys": None}
        names = zip(self.key, self._known_names(), strict=False)
        new = {name: column_type(rows, own) or UNKNOWN for own, name in names}
        return {
            "out": {**rows, self.column: "bigint"},
            "new_keys": {**new, self.known_column or self.column: "bigint"},
        }

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        rows, known = inputs.of("in"), inputs.of("known")
        own = [_key(index) for index in range(len(self.key))]
        new = rows.selectExpr(*_renamed(self.key, own)).distinct()
        last = str(self.start - 1)
        numbers = None
        if known is not None:
            surrogate = f"CAST({quoted(self.known_column or self.column)} AS BIGINT)"
            numbers = (  # of a key that is known by several numbers, the least counts
                known.selectExpr(*_renamed(self._known_names(), own), f"{surrogate} AS _papilio_number")
                .groupBy(*own)
                .agg(tools.functions.expr("min(_papilio_number)").alias("_papilio_number"))
                .where("_papilio_number IS NOT NULL")
            )
            highest = f"greatest(coalesce(max({surrogate}), {last}), {last})"
            on = " AND ".join(f"new.{name} <=> known.{name}" for name in own)
            new = (
                new.alias("new")
                .join(numbers.alias("known"), tools.functions.expr(on), "left_anti")
                .crossJoin(known.agg(tools.functions.expr(highest).alias("_papilio_last")))
            )
            last = "_papilio_last"
        place = f"row_number() OVER (ORDER BY {', '.join(own)})"
        new = new.selectExpr(*own, f"CAST({place} + {last} AS BIGINT) AS _papilio_number")
        numbers = new if numbers is None else numbers.unionByName(new)
        on = " AND ".join(
            f"main.{quoted(name)} <=> keys.{own_name}" for name, own_name in zip(self.key, own, strict=True)
        )
        joined = rows.alias("main").join(numbers.alias("keys"), tools.functions.expr(on), "left")
        return {
            "out": joined.selectExpr("main.*", f"keys._papilio_number AS {quoted(self.column)}"),
            "new_keys": new.selectExpr(
                *_renamed(own, self._known_names()),
                f"_papilio_number AS {quoted(self.known_column or self.column)}",
            ),
        }


def _renamed(old: Iterable[str], new: Iterable[str]) -> list[str]:
    return [f"{quoted(one)} AS {quoted(other)}" for one, other in zip(old, new, strict=True)]


# ---------------------------------------------------------------- union and set operations


class Match(StrEnum):
    """How the columns of several inputs are brought together."""

    NAME = "name"
    POSITION = "position"


def _check_together(schemas: Sequence[Schema], match: Match, allow_missing: bool) -> Iterator[Finding]:
    """Whether inputs can stand below one another, column by column."""
    first = schemas[0]
    for number, schema in enumerate(schemas[1:], 2):
        if match is Match.POSITION:
            if len(schema) != len(first):
                yield Finding(f"the first input has {len(first)} columns and input {number} has {len(schema)}")
                continue
            pairs = list(zip(first, schema, strict=True))
        else:
            pairs = [(name, name) for name in first if has_column(schema, name)]
            if not allow_missing:
                for name in first:
                    if not has_column(schema, name):
                        yield Finding(f"input {number} has no column `{name}`{did_you_mean(name, schema)}")
                for name in schema:
                    if not has_column(first, name):
                        near = did_you_mean(name, first)
                        yield Finding(f"only input {number} has a column `{name}`{near}")
        for name, other in pairs:
            one, two = type_in(first, name), type_in(schema, other)
            mixed = one is not None and two is not None and (one == "string") != (two == "string")
            if "void" not in (one, two) and (mixed or not comparable(one, two)):
                yield Finding(
                    f"`{name}` is a `{one}` in the first input and `{other}` a `{two}` in input {number}; "
                    "convert one of them first"
                )


def _together(schemas: Sequence[Schema | None], match: Match) -> dict[str, str] | None:
    """The columns of inputs that stand below one another."""
    known = [schema for schema in schemas if schema is not None]
    if len(known) < len(schemas) or not known:
        return None
    result = dict(known[0])
    for schema in known[1:]:
        names = list(result)
        for index, (name, kind) in enumerate(schema.items()):
            at = index if match is Match.POSITION else _position(names, name)
            if at is None:
                result[name] = kind
            elif at < len(names):
                own = None if result[names[at]] == UNKNOWN else result[names[at]]
                result[names[at]] = _shared_type(own, None if kind == UNKNOWN else kind)
    return result


class Union(Operator):
    """The rows of all inputs, one below the other. With `sorted_by` they are merged into one order."""

    name: ClassVar[str] = "union"
    title: ClassVar[str] = "Union"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.SEMI_BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (Port("in", many=True),)

    match: Match = Field(Match.NAME, description="Columns belong together by their names or by their positions.")
    allow_missing: bool = Field(False, description="A column that an input lacks is empty (null) in its rows.")
    distinct: bool = Field(False, description="Whether equal rows leave once.")
    sorted_by: list[str] = Field(default_factory=list, description="The columns whose order the rows leave in.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        if self.allow_missing and self.match is Match.POSITION:
            yield Finding("columns may be missing only where they are matched by name", setting="allow_missing")
        known = [schema for schema in inputs.all_of("in") if schema is not None]
        if known and len(known) == len(inputs.all_of("in")):
            yield from _check_together(known, self.match, self.allow_missing)
        together = _together(inputs.all_of("in"), self.match)
        for name, kind in (together or {}).items():
            if self.distinct and not is_orderable(kind):
                yield Finding(f"`{name}` is a `{kind}`, so rows cannot be told apart by it", setting="distinct")
        for index, name in enumerate(self.sorted_by):
            if together is not None and not has_column(together, name):
                yield Finding(f"no column `{name}`{did_you_mean(name, together)}", setting=f"sorted_by[{index}]")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": _together(inputs.all_of("in"), self.match)}

    def expected_share(self) -> float:
        return 0.5 if self.distinct else 1.0

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        frame, *others = inputs.all_of("in")
        for other in others:
            if self.match is Match.POSITION:
                frame = frame.union(other)
            elif self.allow_missing:
                frame = frame.unionByName(other, allowMissingColumns=True)
            else:
                frame = frame.unionByName(other)
        if self.distinct:
            frame = frame.distinct()
        return frame.orderBy(*map(plain, self.sorted_by)) if self.sorted_by else frame


class SetKind(StrEnum):
    """Which rows a set operation gives."""

    INTERSECT = "intersect"
    EXCEPT = "except"


class SetOperation(Operator):
    """The rows of the left input that the right has too (`intersect`) or has not (`except`).

    Whole rows are compared, and an empty (null) value equals an empty value. With `all`, a row that stands
    n times on the left and m times on the right leaves min(n, m) or n - m times; without, it leaves once.
    """

    name: ClassVar[str] = "set_operation"
    title: ClassVar[str] = "Set operation"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.SEMI_BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (Port("left"), Port("right"))

    kind: SetKind = Field(description="Rows that both have, or rows that only the left has.")
    all: bool = Field(False, description="Whether equal rows are counted.")
    match: Match = Field(Match.NAME, description="Columns belong together by their names or by their positions.")

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        left, right = inputs.of("left"), inputs.of("right")
        for port, schema in (("left", left), ("right", right)):
            for name, kind in (schema or {}).items():
                if not is_orderable(kind):
                    yield Finding(f"`{name}` is a `{kind}`, so rows cannot be compared by it", port)
        if left is not None and right is not None:
            yield from _check_together([left, right], self.match, allow_missing=False)

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": _together([inputs.of("left"), inputs.of("right")], self.match)}

    def physical(self, known: Known) -> Physical:
        columns = known.columns.get("left"), known.columns.get("right")
        if not columns[0] or not columns[1] or self.match is Match.POSITION:
            return black_box()
        left = [known.name(name, "left") for name in columns[0]]
        right = [known.name(name, "right") for name in columns[0]]
        return joining(left, right, known.passing("left"), ways=("MJ", "HJ", "SMJ"))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        left, right = inputs.of("left"), inputs.of("right")
        if self.match is Match.NAME and tools.columns(left) != tools.columns(right):
            right = right.select(*map(plain, tools.columns(left)))
        if self.kind is SetKind.INTERSECT:
            return left.intersectAll(right) if self.all else left.intersect(right)
        return left.exceptAll(right) if self.all else left.subtract(right)


# ---------------------------------------------------------------- difference


class Change(StrEnum):
    """What happened to a row between the old and the new state."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"
    SAME = "same"


class Difference(Operator):
    """Compares an old and a new state by key and flags each row as new, changed, deleted or same.

    A deleted row leaves with its old values, every other row with its new ones. Empty (null) values equal
    each other. A key that stands twice in one state stops the run.
    """

    name: ClassVar[str] = "difference"
    title: ClassVar[str] = "Difference"
    family: ClassVar[str] = "combining"
    category: ClassVar[Category] = Category.SEMI_BLOCKING
    inputs: ClassVar[tuple[Port, ...]] = (Port("old"), Port("new"))

    keys: list[NewSideColumn] = Field(min_length=1, description="The columns that tell rows apart, in both states.")
    compare: list[NewSideColumn] = Field(
        default_factory=list,
        description="The columns that are compared; none named, all that both states have.",
    )
    emit: list[Change] = Field(
        default_factory=lambda: [Change.NEW, Change.CHANGED, Change.DELETED],
        min_length=1,
        description="Which rows leave.",
    )
    flag: NewColumn = Field("change", description="The name of the column that says what happened.")

    def _compared(self, old: Iterable[str], new: Iterable[str]) -> list[str]:
        held = {name.lower() for name in old}
        keys = {name.lower() for name in self.keys}
        return list(self.compare) or [name for name in new if name.lower() in held - keys]

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        old, new = inputs.of("old"), inputs.of("new")
        if new is not None and has_column(new, self.flag):
            yield Finding(f"the input has a column `{self.flag}` already", "new", "flag")
        if old is None or new is None:
            return
        for name in (*self.keys, *self.compare):
            if not has_column(old, name):
                yield Finding(f"no column `{name}` in the old state{did_you_mean(name, old)}", "old")
        yield from _check_pairs([(name, name) for name in self.keys], old, new, "keys")
        compared = self._compared(old, new)
        for name in compared:
            one, two = type_in(old, name), type_in(new, name)
            if not comparable(one, two) or not is_orderable(one or "") or not is_orderable(two or ""):
                yield Finding(
                    f"`{name}` is a `{one}` in the old state and a `{two}` in the new, which do not compare",
                    setting="compare",
                )
        for name in new:
            if not has_column(old, name):
                yield Finding(
                    f"the old state has no column `{name}`, so it is empty in deleted rows", "old",
                    level=Level.WARNING,
                )  # fmt: skip

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        old, new = inputs.of("old"), inputs.of("new")
        if new is None:
            return {"out": None}
        result = {}
        for name, kind in new.items():
            if old is None:
                result[name] = UNKNOWN
            elif has_column(old, name):
                result[name] = _shared_type(type_in(old, name), type_in(new, name))
            else:
                result[name] = kind
        return {"out": {**result, self.flag: "string"}}

    def physical(self, known: Known) -> Physical:
        old, new = ([known.name(name, port) for name in self.keys] for port in ("old", "new"))
        return joining(old, new, known.passing("old"), ways=("MJ", "HJ", "SMJ"))

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        old, new = inputs.of("old"), inputs.of("new")
        old_names, names = tools.columns(old), tools.columns(new)
        own = [_key(index) for index in range(len(self.keys))]
        both = new.selectExpr(*_renamed(self.keys, own), "struct(*) AS _papilio_new").unionByName(
            old.selectExpr(*_renamed(self.keys, own), "struct(*) AS _papilio_old"), allowMissingColumns=True
        )
        expr = tools.functions.expr
        paired = both.groupBy(*own).agg(
            expr("first(_papilio_new, true)").alias("_papilio_new"),
            expr("first(_papilio_old, true)").alias("_papilio_old"),
            expr("greatest(count(_papilio_new), count(_papilio_old))").alias("_papilio_rows"),
        )
        equal = [
            f"_papilio_new.{quoted(name)} <=> _papilio_old.{quoted(name)}" for name in self._compared(old_names, names)
        ]
        flag = (
            "CASE WHEN _papilio_new IS NULL THEN 'deleted' WHEN _papilio_old IS NULL THEN 'new' "
            f"WHEN {' AND '.join(equal) or 'true'} THEN 'same' ELSE 'changed' END"
        )
        chosen = []
        for name in names:
            value = f"_papilio_new.{quoted(name)}"
            at = _position(old_names, name)
            if at is not None:
                former = f"_papilio_old.{quoted(old_names[at])}"
                value = f"CASE WHEN _papilio_new IS NULL THEN {former} ELSE {value} END AS {quoted(name)}"
            chosen.append(value)
        result = paired.where(_unique_or_fail(own, "a state", "_papilio_rows = 1")).selectExpr(
            *chosen, f"{flag} AS {quoted(self.flag)}"
        )
        if set(self.emit) == set(Change):
            return result
        kept = ", ".join(literal(change.value) for change in Change if change in self.emit)
        return result.where(f"{quoted(self.flag)} IN ({kept})")
