"""The type of an expression over known columns, and what is wrong with it, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model import functions
from engine.model.expression_tree import Call, Case, Cast, Column, Expr, Item, Lambda, Literal, Named, Operation, Window
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.problems import did_you_mean
from engine.model.types import (
    UNKNOWN,
    BadType,
    Schema,
    arithmetic_type,
    bounded_decimal,
    common_type,
    decimal_of,
    element_type,
    is_integral,
    is_numeric,
    split_outside,
    struct_fields,
)


@dataclass(frozen=True)
class Scope:
    """The columns an expression may name. `None` is a schema nobody knows yet: silence, not an error.

    `qualified` holds the inputs that may be named before a dot, as in `left.id`.
    """

    schema: Schema | None
    qualified: Mapping[str, Schema | None] = field(default_factory=dict)
    _kinds: dict[str, str | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def kind(self, text: str) -> str | None:
        """The type of an expression over these columns, told once. A wrong expression raises."""
        if text not in self._kinds:
            self._kinds[text] = infer(parse(text), self)
        return self._kinds[text]

    def column(self, name: str) -> str | None:
        """The type of a column, `None` where it is not known; KeyError where there is no such column."""
        if self.schema is None:
            return None
        return _find(self.schema, name)


def _find(schema: Schema, name: str) -> str | None:
    kind = schema.get(name)
    if kind is None:
        lower = name.lower()  # Spark's columns do not mind their case
        for other, other_kind in schema.items():
            if other.lower() == lower:
                kind = other_kind
                break
        else:
            raise KeyError(name)
    return None if kind == UNKNOWN else kind


def infer(expression: Expr, scope: Scope) -> str | None:
    """The expression's type, `None` where it cannot be told. Wrong columns and types raise."""
    return _infer(expression, scope, {})


def _infer(part: Expr, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    rule = _RULES.get(type(part))
    return rule(part, scope, bound) if rule is not None else None


def _cast(part: Cast, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    _infer(part.operand, scope, bound)
    return part.kind


def _case(part: Case, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    for inner in (part.subject, *part.conditions):
        if inner is not None:
            _infer(inner, scope, bound)
    branches = [*part.results, part.otherwise or Literal(part.position, None, "void")]
    return _shared(part, [_infer(branch, scope, bound) for branch in branches])


def _window(part: Window, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    for inner in part.parts():
        _infer(inner, scope, bound)
    return None


def _column(part: Column, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    names = part.names
    first = names[0]
    if first.lower() in bound:
        kind, rest = bound[first.lower()], names[1:]
    elif len(names) > 1 and first in scope.qualified:
        schema = scope.qualified[first]
        if schema is None:
            return None
        try:
            kind, rest = _find(schema, names[1]), names[2:]
        except KeyError:
            raise ExpressionError(
                f"no column `{names[1]}` on `{first}`{did_you_mean(names[1], schema)}", part.position
            ) from None
    else:
        try:
            kind, rest = scope.column(first), names[1:]
        except KeyError:
            raise ExpressionError(
                f"no column `{first}`{did_you_mean(first, scope.schema or ())}", part.position
            ) from None
    for name in rest:
        kind = _field(kind, name, part)
    return kind


def _field(kind: str | None, name: str, part: Expr) -> str | None:
    if kind is None:
        return None
    if kind.startswith("map<"):
        return element_type(kind)
    if kind.startswith("array<struct<"):
        inner = _field(element_type(kind), name, part)
        return f"array<{inner}>" if inner else None
    fields = struct_fields(kind)
    if fields is None:
        raise ExpressionError(f"`{name}` is asked of a `{kind}`, which has no fields", part.position)
    try:
        return _find(fields, name)
    except KeyError:
        raise ExpressionError(f"no field `{name}`{did_you_mean(name, fields)}", part.position) from None


def _item(part: Item, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    kind = _infer(part.operand, scope, bound)
    if isinstance(part.key, Literal) and part.key.kind == "field":
        return _field(kind, part.key.value, part)
    _infer(part.key, scope, bound)
    if kind is None:
        return None
    if kind.startswith("struct<") and isinstance(part.key, Literal) and isinstance(part.key.value, str):
        return _field(kind, part.key.value.strip("'\""), part)
    inner = element_type(kind)
    if inner is None:
        raise ExpressionError(f"`[…]` is asked of a `{kind}`", part.position)
    return inner


def _shared(part: Expr, kinds: list[str | None]) -> str | None:
    shared: str | None = "void"
    try:
        for kind in kinds:
            shared = common_type(shared, kind)
    except BadType as error:
        raise ExpressionError(str(error), part.position) from None
    return shared


_LOGIC = {"and", "or", "not"}
_COMPARISON = {"is", "in", "between", "=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="}
_ARITHMETIC = {"+", "-", "*", "/", "%", "div"}


def _operation(part: Operation, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    kinds = [_infer(operand, scope, bound) for operand in part.operands]
    sign = part.kind
    if sign in _ARITHMETIC:
        (first, second), (left, right) = part.operands, kinds
        try:
            return arithmetic_type(
                sign, _literal_as_decimal(first, left, right), _literal_as_decimal(second, right, left)
            )
        except BadType as error:
            raise ExpressionError(f"{error} makes no sense", part.position) from None
    if sign in _COMPARISON:
        try:
            for kind in kinds[1:]:
                common_type(kinds[0], kind)
        except BadType as error:
            raise ExpressionError(f"cannot compare: {error}", part.position) from None
        return "boolean"
    if sign in _LOGIC:
        for operand, kind in zip(part.operands, kinds, strict=True):
            if kind not in (None, "boolean", "void", "string"):
                raise ExpressionError(f"`{sign.upper()}` needs true or false, not `{kind}`", operand.position)
        return "boolean"
    match sign:
        case "like":
            return "boolean"
        case "||":
            if kinds[0] and kinds[0].startswith("array<"):
                return kinds[0]
            return "binary" if kinds == ["binary", "binary"] else None if None in kinds else "string"
        case "-_" | "+_" | "~_":
            return "double" if kinds[0] == "string" else kinds[0]
        case "<<" | ">>" | ">>>":
            return kinds[0]
    return _shared(part, kinds)  # & | ^


def _literal_as_decimal(operand: Expr, kind: str | None, other: str | None) -> str | None:
    """Beside a decimal, Spark takes a whole number as the narrowest decimal that holds it."""
    if isinstance(operand, Literal) and other and "decimal" in other and isinstance(operand.value, int):
        return f"decimal({len(str(operand.value))},0)"
    return kind


def _call(part: Call, scope: Scope, bound: Mapping[str, str | None]) -> str | None:
    kinds: list[str | None] = []
    for argument in part.arguments:
        if isinstance(argument, Lambda):
            element = element_type(kinds[0]) if kinds else None
            inner = {**bound, **dict.fromkeys((name.lower() for name in argument.names), None)}
            if len(argument.names) == 1:
                inner[argument.names[0].lower()] = element
            kinds.append(_infer(argument.body, scope, inner))
        else:
            kinds.append(_infer(argument, scope, bound))
    for extra in (part.filter, part.window):
        if extra is not None:
            _infer(extra, scope, bound)
    return _result(part, functions.ALL[part.name], kinds)


def _result(part: Call, rule: str, kinds: list[str | None]) -> str | None:
    first = kinds[0] if kinds else None
    if not rule.startswith("?"):
        if rule == "=*":
            return _shared(part, kinds)
        if rule[0] in "=[":
            index = int(rule[1:]) - 1
            kind = kinds[index] if index < len(kinds) else None
            return kind if rule[0] == "=" else element_type(kind)
        return rule if rule != "array" else None
    match rule[1:]:
        case "sum":
            if first is None or first == "void":
                return None
            if first.startswith("decimal("):
                precision, scale = decimal_of(first) or (38, 0)
                return bounded_decimal(min(precision + 10, 38), scale)
            return "bigint" if is_integral(first) else "double"
        case "avg":
            if first is None:
                return None
            if first.startswith("decimal("):
                precision, scale = decimal_of(first) or (38, 0)
                return f"decimal({min(precision + 4, 38)},{min(scale + 4, 38)})"
            return "double"
        case "concat":
            return first if first and (first.startswith("array<") or first == "binary") else "string"
        case "reverse":
            return first if first is None or first.startswith("array<") else "string"
        case "if":
            return _shared(part, kinds[1:])
        case "round" | "ceil":
            return _rounded(part, rule[1:], first)
        case "+" | "-" | "*" | "/" | "mod":
            try:
                sign = "%" if rule == "?mod" else rule[1:]
                return arithmetic_type(sign, first, kinds[1]) if len(kinds) > 1 else None
            except BadType as error:
                raise ExpressionError(f"{error} makes no sense", part.position) from None
        case "extract":
            unit = part.arguments[0]
            seconds = isinstance(unit, Literal) and unit.value in ("second", "seconds")
            return "decimal(8,6)" if seconds else "int"
        case "array":
            inner = _shared(part, kinds)
            return f"array<{inner}>" if inner else None
        case "list":
            return f"array<{first}>" if first else None
        case "repeat":
            return f"array<{first}>" if first else None
        case "keys" | "values":
            if first and first.startswith("map<"):
                return f"array<{split_outside(first[4:-1], ',')[0 if rule == '?keys' else 1]}>"
    return None


def _rounded(part: Call, rule: str, first: str | None) -> str | None:
    if first is None or len(part.arguments) > 2:
        return None
    places = part.arguments[1] if len(part.arguments) == 2 else Literal(0, 0, "int")
    if isinstance(places, Operation):  # a negative number of places
        return None
    if not (isinstance(places, Literal) and isinstance(places.value, int)):
        return None
    if first.startswith("decimal("):
        precision, scale = decimal_of(first) or (38, 0)
        kept = min(scale, places.value)
        return bounded_decimal(precision - scale + (1 if kept < scale or rule == "ceil" else 0) + kept, kept)
    if rule == "ceil" and len(part.arguments) == 1:
        return "bigint" if is_numeric(first) else None
    return first if rule == "round" else None


# `Star` and `Lambda` have no type of their own.
_RULES: dict[type[Expr], Callable[[Any, Scope, Mapping[str, str | None]], str | None]] = {
    Literal: lambda part, scope, bound: part.kind,
    Column: _column,
    Operation: _operation,
    Call: _call,
    Cast: _cast,
    Case: _case,
    Item: _item,
    Named: lambda part, scope, bound: _infer(part.operand, scope, bound),
    Window: _window,
}
