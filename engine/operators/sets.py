"""Flows of like rows: union, set operations, and the difference between old and new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from engine.model.meanings import Meaning, Means
from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Built,
    Category,
    Finding,
    Inputs,
    NewColumn,
    Operator,
    Port,
    has_column,
)
from engine.model.physical import Known, Physical, black_box, joining
from engine.model.problems import Level, did_you_mean
from engine.model.types import UNKNOWN, Schema, comparable, is_orderable
from engine.operators._keys import check_pairs, key_column, position, renamed, type_of_both, unique_or_fail
from engine.operators._sql import literal, plain, quoted, type_in

NewSideColumn = Annotated[str, StringConstraints(min_length=1), Means(Meaning.COLUMN, "new")]


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
            at = index if match is Match.POSITION else position(names, name)
            if at is None:
                result[name] = kind
            elif at < len(names):
                own = None if result[names[at]] == UNKNOWN else result[names[at]]
                result[names[at]] = type_of_both(own, None if kind == UNKNOWN else kind)
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
        # Spark compares empty values in a way of its own, for which no order of the columns serves.
        return joining(left, right, known.passing("left"), ways=("MJ", "HJ", "SMJ"), on_spark=False)

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
        yield from check_pairs([(name, name) for name in self.keys], old, new, "keys")
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
                result[name] = type_of_both(type_in(old, name), type_in(new, name))
            else:
                result[name] = kind
        return {"out": {**result, self.flag: "string"}}

    def physical(self, known: Known) -> Physical:
        old, new = ([known.name(name, port) for name in self.keys] for port in ("old", "new"))
        # On Spark both states are put together and grouped.
        return joining(old, new, known.passing("old"), ways=("MJ", "HJ", "SMJ"), on_spark=False)

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        old, new = inputs.of("old"), inputs.of("new")
        old_names, names = tools.columns(old), tools.columns(new)
        own = [key_column(index) for index in range(len(self.keys))]
        both = new.selectExpr(*renamed(self.keys, own), "struct(*) AS _papilio_new").unionByName(
            old.selectExpr(*renamed(self.keys, own), "struct(*) AS _papilio_old"), allowMissingColumns=True
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
            at = position(old_names, name)
            if at is not None:
                former = f"_papilio_old.{quoted(old_names[at])}"
                value = f"CASE WHEN _papilio_new IS NULL THEN {former} ELSE {value} END AS {quoted(name)}"
            chosen.append(value)
        result = paired.where(unique_or_fail(own, "a state", "_papilio_rows = 1")).selectExpr(
            *chosen, f"{flag} AS {quoted(self.flag)}"
        )
        if set(self.emit) == set(Change):
            return result
        kept = ", ".join(literal(change.value) for change in Change if change in self.emit)
        return result.where(f"{quoted(self.flag)} IN ({kept})")
