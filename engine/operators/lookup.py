"""Rows completed from a reference: lookup, exists, surrogate keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field, StringConstraints, model_validator

from engine.model.inference import Scope
from engine.model.meanings import Meaning, Means
from engine.model.operator import (
    IN,
    OUT,
    BuildInputs,
    BuildTools,
    Built,
    Category,
    DataFrame,
    Finding,
    Inputs,
    ManyColumns,
    NewColumn,
    Operator,
    Port,
    ReferenceColumn,
    ReferenceCondition,
    Refusing,
    Role,
    Settings,
    Split,
    Way,
    column_type,
    has_column,
    refused,
)
from engine.model.physical import Known, Physical, black_box, joining
from engine.model.problems import did_you_mean
from engine.model.types import UNKNOWN, Schema, is_numeric, is_orderable
from engine.operators._keys import check_pairs, filled, key_column, renamed, unique_or_fail
from engine.operators._sql import listed, literal, plain, quoted, type_in
from engine.operators.file_sources import ParquetSource

_Text = StringConstraints(min_length=1)
MainColumn = Annotated[str, _Text, Means(Meaning.COLUMN, "main")]
KnownColumn = Annotated[str, _Text, Means(Meaning.COLUMN, "known")]

FOUND = "_papilio_found"
REFERENCE = "the reference of a lookup"


class LookupKey(Settings):
    """A column of the main flow and the column of the reference it is looked up in."""

    main: MainColumn = Field(description="The column of the main input.")
    reference: ReferenceColumn = Field("", description="The column of the reference; left out, it has the same name.")

    @model_validator(mode="before")
    @classmethod
    def _same_name(cls, values: Any) -> Any:
        return filled(values, "main", "reference")


def _alike(keys: list[LookupKey], known: Known) -> bool:
    return known.alike([(key.main, key.reference) for key in keys], "main", "reference")


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
        return filled(values, "column", "name")


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
        yield from check_pairs([(key.main, key.reference) for key in self.keys], main, reference, "keys")
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
        return joining(
            left,
            right,
            passing,
            ways=("MJ", "HJ", "SMJ"),
            keeps_order=True,
            asks=asks,
            keys=self.keys,
            # The first of a key is found by sorting, however rows come.
            on_spark=self.on_duplicate is OnDuplicate.FAIL and _alike(self.keys, known),
        )

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        main = inputs.of("main")
        found, kinds = tools.ahead or self._found(inputs, tools)
        on = " AND ".join(
            f"main.{quoted(key.main)} = reference.{key_column(index)}" for index, key in enumerate(self.keys)
        )
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

    def settle(self, inputs: BuildInputs, tools: BuildTools, keep: Callable[[DataFrame], DataFrame]) -> Any:
        found, kinds = self._found(inputs, tools)
        return keep(found), kinds

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
        if self._is_unique(names, tools):
            return usable.selectExpr(*self._renamed())
        if self.broadcast:  # every worker gets all of it anyway
            usable = self._gathered(usable, tools)
        if self.on_duplicate is OnDuplicate.FAIL:
            return self._unique(usable, tools)
        order = [quoted(item.column) + (" DESC" if item.descending else "") for item in self.order]
        order += [quoted(item.column) for item in self.take if is_orderable(column_type(kinds, item.column) or "")]
        place = f"row_number() OVER (PARTITION BY {listed(names)} ORDER BY {', '.join(order) or '1'})"
        return usable.selectExpr(*self._renamed(), f"{place} AS _papilio_place").where("_papilio_place = 1")

    def _renamed(self) -> list[str]:
        """The keys and the taken columns of a reference row, and that it was found."""
        keys = [f"{quoted(key.reference)} AS {key_column(index)}" for index, key in enumerate(self.keys)]
        return [*keys, *(f"{quoted(taken.column)} AS {quoted(taken.name)}" for taken in self.take), f"true AS {FOUND}"]

    def _unique(self, usable: DataFrame, tools: BuildTools) -> DataFrame:
        """The reference's rows; where two have the same key, the run stops.

        Grouped, and not numbered by a window: that would sort the reference while the main flow waits for it.
        """
        expr, names = tools.functions.expr, [key.reference for key in self.keys]
        keys = [f"{key_column(index)} AS {quoted(name)}" for index, name in enumerate(names)]
        group = [f"{quoted(name)} AS {key_column(index)}" for index, name in enumerate(names)]
        values = [f"first({quoted(taken.column)}) AS {quoted(taken.name)}" for taken in self.take]
        values += [f"true AS {FOUND}", "count(*) AS _papilio_place"]
        rows = usable.groupBy(*map(expr, group)).agg(*map(expr, values))
        return rows.where(unique_or_fail(keys, REFERENCE, "_papilio_place = 1"))

    def _is_unique(self, names: list[str], tools: BuildTools) -> bool:
        """Whether it is known that the reference has one row for each key."""
        return False

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

    def _is_unique(self, names: list[str], tools: BuildTools) -> bool:
        return tools.unique_keys("path", names)

    def _gathered(self, usable: DataFrame, tools: BuildTools) -> DataFrame:
        return tools.gathered(usable, "path")

    def _unique(self, usable: DataFrame, tools: BuildTools) -> DataFrame:
        # Spark sorts rows that it groups if they hold texts. To read the keys once more and count them costs less.
        if not self.broadcast or not tools.subqueries:
            return super()._unique(usable, tools)
        expr, names = tools.functions.expr, [quoted(key.reference) for key in self.keys]
        counted = usable.groupBy(*map(expr, names)).agg(expr("count(*) AS _papilio_rows"))
        checked = counted.where(unique_or_fail(names, REFERENCE, "_papilio_rows = 1")).agg(expr("count(*)"))
        return usable.selectExpr(*self._renamed()).where(checked.scalar() >= 0)  # whose value says only that it ran


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
        return check_pairs(pairs, inputs.of("main"), inputs.of("reference"), "keys")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"match": inputs.of("main"), "rest": inputs.of("main")}

    def physical(self, known: Known) -> Physical:
        left = [known.name(key.main, "main") for key in self.keys]
        right = [known.name(key.reference, "reference") for key in self.keys]
        ways = ("MJ", "HJ", "SMJ")
        on_spark = _alike(self.keys, known)
        return joining(left, right, known.passing("main"), ways=ways, keys=self.keys, on_spark=on_spark)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        main, reference = inputs.of("main"), inputs.of("reference")
        keys = [f"{quoted(key.reference)} AS {key_column(index)}" for index, key in enumerate(self.keys)]
        known = reference.selectExpr(*keys).distinct().selectExpr("*", f"true AS {FOUND}")
        on = " AND ".join(
            f"main.{quoted(key.main)} = reference.{key_column(index)}" for index, key in enumerate(self.keys)
        )
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
        yield from check_pairs(pairs, rows, known if known is not None else rows, "key")
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
        own = [key_column(index) for index in range(len(self.key))]
        new = rows.selectExpr(*renamed(self.key, own)).distinct()
        last = str(self.start - 1)
        numbers = None
        if known is not None:
            surrogate = f"CAST({quoted(self.known_column or self.column)} AS BIGINT)"
            numbers = (  # of a key that is known by several numbers, the least counts
                known.selectExpr(*renamed(self._known_names(), own), f"{surrogate} AS _papilio_number")
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
                *renamed(own, self._known_names()),
                f"_papilio_number AS {quoted(self.known_column or self.column)}",
            ),
        }
