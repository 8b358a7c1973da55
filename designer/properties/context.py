"""What an editor may ask about the node it edits: the columns around it, the scope of an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.model.inference import Scope
from engine.model.types import Schema


@dataclass(frozen=True)
class Context:
    """Answers from the latest analysis; asked again whenever an editor needs them."""

    columns: Callable[[str], Schema | None]  # of an input port; of the first input where there is no such port
    scope: Callable[[str, str], Scope]  # of a place in the settings, for a port
    folder: Callable[[], Path]  # where relative paths begin
    names: Callable[[], list[str]]  # parameters and roots, as `${name}`
