"""Places inside settings, as problems and marked texts name them: `columns[0].expression`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def steps(place: str) -> Iterator[str | int]:
    """The steps of a place: `columns[0].name` and `columns.0.name` alike."""
    for index, name in _STEP.findall(place):
        if index:
            yield int(index)
        else:
            yield int(name) if name.isdigit() else name


def get_at(settings: Any, place: str) -> Any:
    """What stands at a place; None where there is no such place."""
    at = settings
    for step in steps(place):
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            return None
    return at


def set_at(settings: Any, place: str, value: Any) -> None:
    """Put a value at a place that there is."""
    *outer, last = steps(place)
    for step in outer:
        settings = settings[step]
    settings[last] = value
