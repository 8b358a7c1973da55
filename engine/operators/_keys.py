"""What operators that compare rows by their keys have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from engine.model.operator import Finding
from engine.model.types import UNKNOWN, BadType, Schema, common_type, comparable, is_orderable
from engine.operators._sql import literal, quoted, type_in


def filled(values: Any, given: str, left_out: str) -> Any:
    """A pair of columns where the second was left out because it has the first one's name."""
    if isinstance(values, dict) and given in values and not values.get(left_out):
        return {**values, left_out: values[given]}
    return values


def position(names: Sequence[str], name: str) -> int | None:
    """Where a column stands, in any case."""
    lower = name.lower()
    return next((at for at, other in enumerate(names) if other.lower() == lower), None)


def check_pairs(
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


def type_of_both(left: str | None, right: str | None) -> str:
    """The type of a column that takes values from two, `?` where it is not known."""
    try:
        return common_type(left, right) or UNKNOWN
    except BadType:
        return UNKNOWN


def unique_or_fail(keys: Sequence[str], what: str, rows: str) -> str:
    """A condition that stops the run where a key has several rows; the keys as SQL."""
    message = f"concat({literal(f'{what} has several rows for the key ')}, to_json(struct({', '.join(keys)})))"
    return f"assert_true({rows}, {message}) IS NULL"


def key_column(index: int) -> str:
    """What a key's column is called while rows are compared; no column of theirs is."""
    return f"_papilio_key_{index + 1}"


def renamed(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """Columns under other names, in SQL."""
    return [f"{quoted(one)} AS {quoted(other)}" for one, other in zip(old, new, strict=True)]
