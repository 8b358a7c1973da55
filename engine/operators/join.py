"""The join: rows of two flows that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar

from pydantic import Field, model_validator

from engine.model.expression_tree import columns
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.inference import Scope
from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Built,
    Category,
    Condition,
    Finding,
    Inputs,
    LeftColumn,
    Operator,
    Port,
    RightColumn,
    Settings,
    has_column,
)
from engine.model.physical import JOINS, Known, Physical, joining
from engine.model.types import UNKNOWN, Schema
from engine.operators._keys import check_pairs, filled, position, type_of_both
from engine.operators._sql import quoted, type_in


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
        return filled(values, "left", "right")

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
    adds_rows: ClassVar[bool] = True
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
        yield from check_pairs([(key.left, key.right) for key in self.keys], left, right, "keys")
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
            at = position(list(left), name)
            if at is not None and self.kind in (JoinKind.RIGHT, JoinKind.FULL):
                other = type_in(right, key.right)
                kind = other if self.kind is JoinKind.RIGHT else type_of_both(type_in(left, name), other)
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
        # An empty key that equals another one is compared in two steps, for which no order of the keys serves.
        on_spark = not self.null_safe and known.alike([(key.left, key.right) for key in self.keys], "left", "right")
        return joining(left, right, passing, ways=ways, same=same, asks=asks, keys=self.keys, on_spark=on_spark)

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
