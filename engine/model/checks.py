"""An operator's texts against their meaning: columns exist, expressions hold, types are types."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import functions
from engine.model.expression_words import ExpressionError
from engine.model.expressions import calls, parse
from engine.model.inference import Scope
from engine.model.meanings import Meaning, Means, whole_text
from engine.model.operator import Finding, Inputs, Operator, has_column, is_secret_reference
from engine.model.problems import did_you_mean
from engine.model.secrets import MESSAGE as SECRET_WRITTEN
from engine.model.types import BadType, normal_type


def check_texts(operator: Operator, inputs: Inputs) -> Iterator[Finding]:
    """Every marked setting against its meaning: columns exist, expressions hold, types are types."""
    qualified = operator.named_schemas(inputs)
    for place, text, means in operator.texts():
        schema = qualified[means.port] if means.port in qualified else inputs.first()
        match means.meaning:
            case Meaning.EXPRESSION | Meaning.CONDITION | Meaning.AGGREGATE | Meaning.WINDOW:
                scope = operator.scope_of(place, inputs)
                if scope is None:
                    scope = Scope(schema, qualified if len(qualified) > 1 else {})
                yield from _check_expression(text, means, scope, place)
            case Meaning.COLUMN:
                if schema is not None and not has_column(schema, text):
                    yield Finding(f"no column `{text}`{did_you_mean(text, schema)}", means.port, place)
            case Meaning.TYPE:
                try:
                    normal_type(text)
                except BadType as error:
                    yield Finding(str(error), setting=place)
            case Meaning.SECRET:
                if text and not is_secret_reference(text):
                    yield Finding(SECRET_WRITTEN, setting=place)


def _check_expression(text: str, means: Means, scope: Scope, place: str) -> Iterator[Finding]:
    whole = whole_text(text, means)
    try:
        called = calls(whole)
        kind = scope.kind(whole)
    except ExpressionError as error:
        hint = "; the window is added by itself" if means.meaning is Meaning.WINDOW and " over" in text.lower() else ""
        yield Finding(f"`{_short(text)}`: {error}{hint}", means.port, place)
        return
    found = [call for call in called if call.window is None and call.name in functions.AGGREGATE]
    windows = [call for call in called if call.window is not None]
    if means.meaning is Meaning.WINDOW:
        if found or windows != [parse(whole)]:
            yield Finding(
                f"`{_short(text)}` is not one window function, like `rank()` or `sum(x)`; "
                "compute with its result in a `derive`",
                means.port,
                place,
            )
        return
    if windows:  # rows come in packs, and a window would see no further than its pack
        yield Finding(
            f"`{_short(text)}`: `{windows[0].name} OVER` looks at other rows; that is for a `window`",
            means.port,
            place,
        )
    if means.meaning is Meaning.CONDITION and kind not in (None, "boolean", "void"):
        yield Finding(f"`{_short(text)}` is a `{kind}`, not true or false", means.port, place)
    if means.meaning is Meaning.AGGREGATE and not found:
        yield Finding(f"`{_short(text)}` aggregates nothing; use a function like `sum` or `count`", means.port, place)
    if means.meaning is not Meaning.AGGREGATE and found:
        yield Finding(
            f"`{_short(text)}`: `{found[0].name}` aggregates rows; that is for an aggregate",
            means.port,
            place,
        )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else flat[:57] + "..."
