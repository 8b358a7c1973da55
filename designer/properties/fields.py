"""An operator's settings model as the description of a form. No Qt: what is edited how can be tested alone."""

from __future__ import annotations

import datetime
import types
import typing
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from designer.document.edits import ABSENT
from engine.model.meanings import Meaning, Means

_TEXT_KINDS = {
    Meaning.COLUMN: "column",
    Meaning.NEW_COLUMN: "new column",
    Meaning.EXPRESSION: "expression",
    Meaning.CONDITION: "expression",
    Meaning.AGGREGATE: "expression",
    Meaning.WINDOW: "expression",
    Meaning.TYPE: "type",
    Meaning.PATH: "path",
    Meaning.SECRET: "secret",
    Meaning.CODE: "code",
}


@dataclass(frozen=True)
class Value:
    """What one editor edits."""

    kind: str  # text, number, integer, boolean, choice, date, scalar, list, mapping, group, or a text's kind
    means: Means | None = None
    choices: tuple[str | int, ...] = ()
    item: Value | None = None  # of a list; of a mapping its values
    key: Value | None = None  # of a mapping
    fields: tuple[FieldSpec, ...] = ()  # of a group

    @property
    def port(self) -> str:
        """The input whose columns a text speaks of."""
        return self.means.port if self.means else "in"


@dataclass(frozen=True)
class FieldSpec:
    """One setting: its name in the file, what it is for, and what it is."""

    name: str
    label: str
    description: str
    required: bool
    default: Any
    value: Value = field(default_factory=lambda: Value("text"))


def fields_of(model: type[BaseModel]) -> tuple[FieldSpec, ...]:
    """The settings of a model, those that are needed first."""
    found = [_field(name, info) for name, info in model.model_fields.items()]
    return tuple(sorted(found, key=lambda spec: not spec.required))


def _field(name: str, info: FieldInfo) -> FieldSpec:
    in_file = info.alias or name
    means = next((item for item in info.metadata if isinstance(item, Means)), None)
    required = info.is_required()
    default = ABSENT if required else info.get_default(call_default_factory=True)
    if isinstance(default, Enum):
        default = default.value
    label = in_file.replace("_", " ").capitalize()
    for end, unit in ((" s", "seconds"), (" ms", "ms"), (" percent", "%")):
        if label.endswith(end):
            label = f"{label.removesuffix(end)} ({unit})"
    return FieldSpec(in_file, label, info.description or "", required, default, value_of(info.annotation, means))


def value_of(annotation: Any, means: Means | None = None) -> Value:
    """The editor that an annotation asks for."""
    annotation, inner = _unwrapped(annotation)
    means = means or inner
    origin = typing.get_origin(annotation)
    if origin is list:
        item = value_of(typing.get_args(annotation)[0], means)
        return Value("list", item.means, item=item)
    if origin is dict:
        keys, values = typing.get_args(annotation)
        return Value("mapping", item=value_of(values), key=value_of(keys))
    if origin is typing.Literal:
        return Value("choice", choices=typing.get_args(annotation))
    if origin in (typing.Union, types.UnionType):
        return Value("scalar", means)  # a text, a number or a truth value
    if isinstance(annotation, type):
        if issubclass(annotation, BaseModel):
            return Value("group", fields=fields_of(annotation))
        if issubclass(annotation, Enum):
            return Value("choice", choices=tuple(member.value for member in annotation))
        if annotation is bool:
            return Value("boolean")
        if annotation is int:
            return Value("integer")
        if annotation is float:
            return Value("number")
        if issubclass(annotation, datetime.date):
            return Value("date")
    return Value(_TEXT_KINDS[means.meaning] if means else "text", means)


def _unwrapped(annotation: Any) -> tuple[Any, Means | None]:
    """An annotation without `Annotated` and `None`, and the mark of its text."""
    means = None
    while True:
        for item in getattr(annotation, "__metadata__", ()):
            if isinstance(item, Means):
                means = means or item
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
            continue
        if typing.get_origin(annotation) in (typing.Union, types.UnionType):
            rest = [one for one in typing.get_args(annotation) if one is not type(None)]
            if len(rest) == 1:
                annotation = rest[0]
                continue
        if isinstance(annotation, typing.TypeAliasType) if hasattr(typing, "TypeAliasType") else False:
            annotation = annotation.__value__
            continue
        return annotation, means


def top_setting(place: str | None) -> str | None:
    """The setting that a problem's place is in: `columns` for `columns[0].expression`."""
    if place is None:
        return None
    return place.split(".")[0].split("[")[0]
