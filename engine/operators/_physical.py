"""What several operators need to say how they can be carried out."""

from __future__ import annotations

import re

from engine.model.expression_tree import Column, Expr, Operation, columns
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.physical import Key, Known

_FROM_BELOW = {"=", "==", "<=>", "<", "<=", "between", "is"}  # the rows stand at the beginning of an ascending order
_FROM_ABOVE = {">", ">="}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NOT = re.compile(r"\bnot\b(?!\s+null\b)|!(?!=)|<>|!=", re.IGNORECASE)  # the rows may stand in two places


def filtered_key(condition: str, known: Known) -> Key | None:
    """The order in which the rows that a condition is true for stand together; None where there is none.

    It must be about one column, which constants bound: ascending for `A < 1000`, descending for `A > 1000`.
    """
    try:
        tree = parse(condition)
    except ExpressionError:
        return None
    read = {tuple(name.lower() for name in column.names): column.names[0] for column in columns(tree)}
    if len(read) != 1 or _NOT.search(condition):
        return None
    kinds = {_comparison(part) for part in _all_of(tree)}
    if None in kinds:
        return None
    ((path, name),) = read.items()
    return Key(known.name(name), descending=kinds <= _FROM_ABOVE) if len(path) == 1 else None


def _all_of(tree: Expr) -> list[Expr]:
    """The conditions of which all must hold."""
    if isinstance(tree, Operation) and tree.kind == "and":
        return [part for operand in tree.operands for part in _all_of(operand)]
    return [tree]


def _comparison(part: Expr) -> str | None:
    """The sign by which a column is compared with constants, the column on the left; None for anything else."""
    if not isinstance(part, Operation) or part.kind not in _FROM_BELOW | _FROM_ABOVE:
        return None
    first, *others = part.operands
    if isinstance(first, Column) and not any(columns(other) for other in others):
        return part.kind
    if len(others) == 1 and isinstance(others[0], Column) and not columns(first):
        return _MIRRORED.get(part.kind, part.kind)
    return None
