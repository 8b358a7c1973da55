"""Spark's types by their names, and the rules by which they combine. No Spark needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

# Columns in order, each with its type as Spark writes it (`decimal(12,2)`). None: not known.
Schema = Mapping[str, str]

UNKNOWN = "?"

_ALIASES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "dec": "decimal", "numeric": "decimal", "bool": "boolean", "text": "string", "void": "void",
    "timestamp_ltz": "timestamp",
}  # fmt: skip
_PLAIN = {
    "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "string", "binary",
    "date", "timestamp", "timestamp_ntz", "void", "interval", "variant",
}  # fmt: skip
_INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_INTEGRAL_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)\Z")
_UNORDERABLE = re.compile(r"(?<!\w)(?:map<|variant(?![\w:]))")
_CHAR = re.compile(r"(?:var)?char\(\d+\)\Z")


class BadType(ValueError):
    """A text that is no Spark type."""


@lru_cache(maxsize=4096)
def normal_type(text: str) -> str:
    """The type in Spark's own writing: lower case, no spaces, `decimal(10,0)` for a bare decimal."""
    compact = re.sub(r"\s+", "", _lower_outside_fields(text))
    if compact in _PLAIN:
        return compact
    if compact in _ALIASES:
        compact = _ALIASES[compact]
        return "decimal(10,0)" if compact == "decimal" else compact
    if compact == "decimal":
        return "decimal(10,0)"
    if match := re.fullmatch(r"(?:decimal|dec|numeric)\((\d+)(?:,(\d+))?\)", compact):
        precision, scale = int(match.group(1)), int(match.group(2) or 0)
        if not 1 <= precision <= 38 or scale > precision:
            raise BadType(f"`{text}`: a decimal has 1 to 38 digits, and no more of them behind the point")
        return f"decimal({precision},{scale})"
    if _CHAR.match(compact):
        return "string"
    if compact.startswith("array<") and compact.endswith(">"):
        return f"array<{normal_type(compact[6:-1])}>"
    if compact.startswith("map<") and compact.endswith(">"):
        parts = split_outside(compact[4:-1], ",")
        if len(parts) == 2:
            return f"map<{normal_type(parts[0])},{normal_type(parts[1])}>"
    if compact.startswith("struct<") and compact.endswith(">"):
        fields = []
        for part in split_outside(compact[7:-1], ","):
            name, colon, kind = part.partition(":")
            if not colon or not name:
                raise BadType(f"`{text}`: a struct's field is written `name:type`")
            fields.append(f"{name}:{normal_type(kind)}")
        return f"struct<{','.join(fields)}>"
    raise BadType(f"`{text}` is no Spark type")


def _lower_outside_fields(text: str) -> str:
    """Lower case but for the field names of structs, which keep theirs."""
    if "struct" not in text.lower():
        return text.lower()
    return re.sub(r"[A-Za-z_]\w*(?!\w)(?!\s*:)", lambda match: match.group(0).lower(), text)


def split_outside(text: str, separator: str) -> list[str]:
    """`text` cut at the separators that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif character == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return parts


def element_type(kind: str | None) -> str | None:
    """What an array or a map holds."""
    if kind and kind.startswith("array<"):
        return kind[6:-1]
    if kind and kind.startswith("map<"):
        return split_outside(kind[4:-1], ",")[1]
    return None


def struct_fields(kind: str | None) -> dict[str, str] | None:
    """The fields of a struct by their names."""
    if not kind or not kind.startswith("struct<"):
        return None
    return dict(part.split(":", 1) for part in split_outside(kind[7:-1], ","))


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal, or of an integral type seen as one."""
    if match := _DECIMAL.match(kind):
        return int(match.group(1)), int(match.group(2))
    if kind in _INTEGRAL_DIGITS:
        return _INTEGRAL_DIGITS[kind], 0
    return None


def is_numeric(kind: str) -> bool:
    """Whether arithmetic takes it without a cast."""
    return kind in _INTEGRAL or kind in ("float", "double") or kind.startswith("decimal(")


def is_integral(kind: str) -> bool:
    """Whether it counts in whole numbers."""
    return kind in _INTEGRAL


def is_orderable(kind: str) -> bool:
    """Whether rows can be sorted, grouped or joined by it."""
    return not _UNORDERABLE.search(kind)


def bounded_decimal(precision: int, scale: int) -> str:
    """Spark's `adjustPrecisionScale`: beyond 38 digits the fraction gives way, down to 6 digits."""
    if precision <= 38:
        return f"decimal({precision},{scale})"
    whole = precision - scale
    return f"decimal(38,{max(38 - whole, min(scale, 6))})"


@lru_cache(maxsize=4096)
def common_type(left: str | None, right: str | None) -> str | None:
    """The type two branches or two united columns share, `None` where that is not known.

    Raises `BadType` where there is none.
    """
    if left is None or right is None:
        return None
    if left == right or right == "void":
        return left
    if left == "void":
        return right
    if is_numeric(left) and is_numeric(right):
        if left in _INTEGRAL and right in _INTEGRAL:
            return max(left, right, key=_INTEGRAL.index)
        if "double" in (left, right) or "float" in (left, right):
            return "float" if {left, right} <= {"float", "tinyint", "smallint"} else "double"
        (p1, s1), (p2, s2) = decimal_of(left) or (38, 0), decimal_of(right) or (38, 0)
        scale = max(s1, s2)
        return bounded_decimal(max(p1 - s1, p2 - s2) + scale, scale)
    times = ("date", "timestamp_ntz", "timestamp")
    if left in times and right in times:
        return max(left, right, key=times.index)
    if "string" in (left, right):
        other = right if left == "string" else left
        if other in ("binary",) or "<" in other:
            raise BadType(f"`{left}` and `{right}` have no common type")
        # ANSI mode turns the string side into the other type, integrals into bigint, floats into double.
        return "bigint" if other in _INTEGRAL else "double" if is_numeric(other) else other
    if left.startswith("array<") and right.startswith("array<"):
        inner = common_type(left[6:-1], right[6:-1])
        return f"array<{inner}>" if inner else None
    raise BadType(f"`{left}` and `{right}` have no common type")


def comparable(left: str | None, right: str | None) -> bool:
    """Whether Spark lets two columns be compared, as keys of a join say."""
    try:
        common_type(left, right)
    except BadType:
        return False
    return True


@lru_cache(maxsize=4096)
def arithmetic_type(operator: str, left: str | None, right: str | None) -> str | None:
    """The type of `left operator right`, by Spark's rules; `BadType` where it refuses."""
    if left is None or right is None:
        return None
    if "void" in (left, right):
        return (
            arithmetic_type(operator, right, right)
            if left == "void" and right != "void"
            else (arithmetic_type(operator, left, left) if left != "void" else None)
        )
    if "interval" in (left, right):
        other = right if left == "interval" else left
        return "interval" if other == "interval" or is_numeric(other) else other
    if operator in "+-" and left in ("date", "timestamp", "timestamp_ntz"):
        if right in _INTEGRAL and left == "date":
            return "date"
        return "interval" if operator == "-" and right in ("date", "timestamp", "timestamp_ntz") else None
    if "string" in (left, right):
        other = right if left == "string" else left
        if other == "string":
            return "bigint" if operator == "div" else "double"
        if not is_numeric(other):
            raise BadType(f"`{operator}` between `{left}` and `{right}`")
        promoted = "bigint" if other in _INTEGRAL else "double"
        left, right = promoted, promoted
    if not (is_numeric(left) and is_numeric(right)):
        raise BadType(f"`{operator}` between `{left}` and `{right}`")
    if operator == "div":
        return "bigint"
    if "double" in (left, right) or "float" in (left, right):
        return "float" if operator != "/" and {left, right} == {"float"} else "double"
    if left in _INTEGRAL and right in _INTEGRAL:
        return "double" if operator == "/" else max(left, right, key=_INTEGRAL.index)
    (p1, s1), (p2, s2) = decimal_of(left) or (38, 0), decimal_of(right) or (38, 0)
    if operator in "+-":
        scale = max(s1, s2)
        return bounded_decimal(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return bounded_decimal(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(6, s1 + p2 + 1)
        return bounded_decimal(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)  # %
    return bounded_decimal(min(p1 - s1, p2 - s2) + scale, scale)


def ddl(schema: Schema) -> str:
    """A schema as Spark's DDL text: `` `a` INT, `b` STRING ``."""
    return ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, kind in schema.items())
