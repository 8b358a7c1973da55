"""What the planner's steps cost on this machine, as `papilio bench plan-steps` measured it; kept in Papilio's home."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import BadInput
from engine.store.home import papilio_home

FILE = "plan_prices.json"


def kept_prices() -> dict[str, Any] | None:
    """The prices of this machine in microseconds; None where nobody has measured them."""
    file = papilio_home() / FILE
    return read_prices(file) if file.exists() else None


def read_prices(file: Path) -> dict[str, Any]:
    """Prices from a file."""
    from engine.model.file import read_text

    try:
        found = json.loads(read_text(file))
    except ValueError as error:
        raise BadInput(f"{file}: {error}") from None
    prices = found.get("prices", found) if isinstance(found, dict) else None  # with what is known of them, or alone
    if not isinstance(prices, dict):
        raise BadInput(f"{file}: steps with their prices are expected")
    return prices


def keep_prices(prices: Mapping[str, float], folder: Path | None = None, **known: Any) -> Path:
    """Write prices down: into Papilio's home, where every planning with measured costs takes them from, or a folder.

    `known`: how they were measured, when and where.
    """
    file = (folder or papilio_home()) / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**known, "prices": dict(prices)}, indent=2) + "\n", encoding="utf-8")
    return file
