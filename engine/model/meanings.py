"""What the texts in an operator's settings stand for, and where they are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from pydantic import BaseModel


class Meaning(StrEnum):
    """What a text in a setting stands for, so that it can be checked and edited as such."""

    COLUMN = "column"  # a column of an input
    NEW_COLUMN = "new column"
    EXPRESSION = "expression"
    CONDITION = "condition"
    AGGREGATE = "aggregate"
    WINDOW = "window function"  # one call, to which the operator adds its own `OVER (…)`
    TYPE = "type"
    PATH = "path"
    SECRET = "secret"
    CODE = "code"


PARSED = (Meaning.EXPRESSION, Meaning.CONDITION, Meaning.AGGREGATE, Meaning.WINDOW)


@dataclass(frozen=True)
class Means:
    """Marks a setting's text: its meaning and the input port whose columns it speaks of."""

    meaning: Meaning
    port: str = "in"

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core)
        schema["x-papilio"] = self.meaning.value
        if self.port != "in":
            schema["x-papilio-port"] = self.port
        return schema


@cache
def texts_of(cls: type[BaseModel]) -> list[tuple[str, Means | None, Means | None]]:
    """The fields of a settings model with the marks of their texts; a mapping has one for its values too."""
    found: list[tuple[str, Means | None, Means | None]] = []
    for name, info in cls.model_fields.items():
        mapping = _mapping(info.annotation)
        if mapping is not None:
            keys, values = mapping.__args__
            found.append((name, _inner_means(keys), _inner_means(values)))
        else:
            means = next((item for item in info.metadata if isinstance(item, Means)), None)
            found.append((name, means or _inner_means(info.annotation), None))
    # Numbers, choices and flags hold no texts; what holds settings of its own is looked into.
    return [entry for entry in found if entry[1] or entry[2] or _holds_settings(cls.model_fields[entry[0]].annotation)]


def _holds_settings(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(_holds_settings(inner) for inner in getattr(annotation, "__args__", ()))


@cache
def has_paths(cls: type[BaseModel]) -> bool:
    """Whether a setting is a path."""
    return any(means is not None and means.meaning is Meaning.PATH for _, means, _ in texts_of(cls))


def _mapping(annotation: Any) -> Any:
    """The mapping that a field holds, as in `dict[Column, SqlType] | None`."""
    if getattr(annotation, "__origin__", None) is dict:
        return annotation
    found = (_mapping(inner) for inner in getattr(annotation, "__args__", ()))
    return next((inner for inner in found if inner is not None), None)


def _inner_means(annotation: Any) -> Means | None:
    """The mark inside `list[Column]` or `Column | None`."""
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, Means):
            return item
    for inner in getattr(annotation, "__args__", ()):
        found = _inner_means(inner)
        if found is not None:
            return found
    return None


def follow(place: str, value: Any, means: Means | None, inner: Means | None) -> Iterator[tuple[str, str, Means]]:
    """Every text with a meaning in a value of the settings: its place, itself, its meaning."""
    if isinstance(value, str):
        if means is not None:
            yield place, value, means
    elif isinstance(value, BaseModel):
        for name, own, held in texts_of(type(value)):
            yield from follow(f"{place}.{name}", getattr(value, name), own, held)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from follow(f"{place}[{index}]", item, means, inner)
    elif isinstance(value, dict):
        for key, item in value.items():
            if means is not None:
                yield f"{place}.{key}", key, means
            yield from follow(f"{place}.{key}", item, inner, None)


def whole_text(text: str, means: Means) -> str:
    """A text as the grammar knows it: a window function is nothing without its window."""
    return f"{text} OVER ()" if means.meaning is Meaning.WINDOW else text
