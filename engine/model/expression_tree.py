"""The tree of an expression: what it is made of, and what can be asked of it without its types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.model import functions


@dataclass(frozen=True, slots=True)
class Expr:
    """A part of an expression, at a place in its text."""

    position: int

    def parts(self) -> tuple[Expr, ...]:
        """The parts directly inside this one."""
        return ()


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant with its type."""

    value: Any
    kind: str


@dataclass(frozen=True, slots=True)
class Star(Expr):
    """`*`, as `count(*)` has it."""


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column's name; what follows its first dot may be a field, or the first part a port's name."""

    names: tuple[str, ...]
    end: int


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function of the allow-list with its arguments."""

    name: str
    arguments: tuple[Expr, ...]
    distinct: bool = False
    filter: Expr | None = None
    window: Window | None = None

    def parts(self) -> tuple[Expr, ...]:
        extra = tuple(part for part in (self.filter, self.window) if part is not None)
        return self.arguments + extra


@dataclass(frozen=True, slots=True)
class Window(Expr):
    """What stands behind `OVER`."""

    partition: tuple[Expr, ...]
    order: tuple[Expr, ...]

    def parts(self) -> tuple[Expr, ...]:
        return self.partition + self.order


@dataclass(frozen=True, slots=True)
class Operation(Expr):
    """An operator between, before or behind its operands; `kind` is its lower-case sign."""

    kind: str
    operands: tuple[Expr, ...]

    def parts(self) -> tuple[Expr, ...]:
        return self.operands


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """`CAST(operand AS kind)`."""

    operand: Expr
    kind: str
    attempt: bool

    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)


@dataclass(frozen=True, slots=True)
class Case(Expr):
    """`CASE`: conditions (or values compared with `subject`), their results, and the rest."""

    subject: Expr | None
    conditions: tuple[Expr, ...]
    results: tuple[Expr, ...]
    otherwise: Expr | None

    def parts(self) -> tuple[Expr, ...]:
        extra = tuple(part for part in (self.subject, self.otherwise) if part is not None)
        return self.conditions + self.results + extra


@dataclass(frozen=True, slots=True)
class Item(Expr):
    """`operand[key]` or `operand.field`."""

    operand: Expr
    key: Expr

    def parts(self) -> tuple[Expr, ...]:
        return (self.operand, self.key)


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    """`x -> body`, an argument of the higher-order functions."""

    names: tuple[str, ...]
    body: Expr

    def parts(self) -> tuple[Expr, ...]:
        return (self.body,)


@dataclass(frozen=True, slots=True)
class Named(Expr):
    """`operand AS name` inside `struct(…)`."""

    operand: Expr
    name: str

    def parts(self) -> tuple[Expr, ...]:
        return (self.operand,)


def walk(expression: Expr) -> Iterator[Expr]:
    """Every part of an expression, itself first."""
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(part.parts()[::-1])


def columns(expression: Expr) -> list[Column]:
    """The columns an expression reads, without the names its lambdas bind, in their order."""
    found: list[Column] = []

    def visit(part: Expr, bound: frozenset[str]) -> None:
        if isinstance(part, Column):
            if part.names[0].lower() not in bound:
                found.append(part)
            return
        if isinstance(part, Lambda):
            bound = bound | {name.lower() for name in part.names}
        for inner in part.parts():
            visit(inner, bound)

    visit(expression, frozenset())
    return sorted(found, key=lambda column: column.position)


def is_repeatable(expression: Expr) -> bool:
    """Whether computing it a second time gives the same values."""
    return not any(map(_changes, walk(expression)))


def _changes(part: Expr) -> bool:
    """Whether a part itself gives another value from time to time."""
    if isinstance(part, Literal):
        return isinstance(part.value, str) and functions.is_moment(part.value.strip("'\""))
    if not isinstance(part, Call):
        return False
    return part.name in functions.UNREPEATABLE or (part.name in functions.CLOCKS and not part.arguments)


def is_light(expression: Expr) -> bool:
    """Whether computing it costs little beside reading the row it is computed of."""
    for part in walk(expression):
        if isinstance(part, Call) and part.name not in functions.LIGHT:
            return False
        if isinstance(part, Window | Lambda) or (isinstance(part, Operation) and part.kind == "like"):
            return False
    return True


def aggregates(expression: Expr) -> list[Call]:
    """The aggregate calls in it that are not under a window."""
    return [
        part
        for part in walk(expression)
        if isinstance(part, Call) and part.name in functions.AGGREGATE and part.window is None
    ]
