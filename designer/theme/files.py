"""The colours and drawings in `resources`, as they are written there: no Qt in here."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from engine.model.yamldata import read_yaml

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_FALLBACK = "shaping"


def read_theme(name: str) -> dict[str, Any]:
    """A theme's colours by what they are for, as `#rrggbb`; `regions` has many of them."""
    text = (resources.files("resources") / "themes" / f"{name}.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = read_yaml(text, name)[0]
    return data


@cache
def drawing(folder: str, name: str, family: str) -> str:
    """An icon as SVG in `currentColor`: the one of this name, else its family's."""
    place = _place(folder)
    for candidate in (name, family, _FALLBACK):
        file = place / f"{candidate}.svg"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return ""


@cache
def _place(folder: str) -> Traversable:
    return resources.files("resources") / "icons" / folder
