"""Finding operators and commands by a few typed letters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from engine.model.operator import Operator

_T = TypeVar("_T")

# Words that people bring along from other tools.
ALSO = {
    "derive": "calculator formula compute expression column",
    "filter": "where condition rows",
    "select": "rename drop keep columns project",
    "aggregate": "group by sum count memory",
    "join": "merge inner outer left right",
    "lookup": "stream lookup enrich reference",
    "union": "append concatenate all",
    "deduplicate": "unique distinct rows",
    "sort": "order by",
    "limit": "top head first",
    "router": "switch case split conditional",
    "convert": "cast type change",
    "not_null": "null quarantine required",
    "validate": "check rule data quality",
    "copy": "dummy nothing pass",
    "staging": "intermediate table cache",
    "materialized_view": "view aggregate summary",
    "slowly_changing_dimension": "scd dimension history",
    "csv_source": "read text file input",
    "parquet_source": "read file input table",
    "parquet_target": "write file output table",
    "csv_target": "write text file output",
}


def score(query: str, text: str) -> int:
    """How well a typed text fits: 0 not at all; words' beginnings before middles before scattered letters."""
    query, text = query.strip().lower(), text.lower()
    if not query:
        return 1
    if text.startswith(query):
        return 100
    words = text.replace("_", " ").replace("-", " ").split()
    if any(word.startswith(query) for word in words):
        return 80
    parts = query.split()
    if len(parts) > 1 and all(any(word.startswith(part) for word in words) for part in parts):
        return 70
    if query in text:
        return 50
    initials = "".join(word[0] for word in words)
    if initials.startswith(query):
        return 40
    at = 0
    for letter in query:
        at = text.find(letter, at) + 1
        if at == 0:
            return 0
    return 10 if len(query) > 2 else 0


def best(query: str, items: Iterable[_T], texts: Callable[[_T], tuple[str, str]]) -> list[_T]:
    """The items that fit a typed text, the best first. `texts` gives an item's name and its other words."""
    found = []
    for index, item in enumerate(items):
        name, other = texts(item)
        value = max(2 * score(query, name), score(query, other) if len(query) > 1 else 0)
        if value > 1 or not query.strip():
            found.append((-value, len(name) if query.strip() else 0, index, item))
    return [item for *_, item in sorted(found, key=lambda entry: entry[:3])]


def operator_texts(kind: type[Operator]) -> tuple[str, str]:
    """By what an operator is found."""
    return kind.title, f"{kind.name} {kind.family} {ALSO.get(kind.name, '')}"
