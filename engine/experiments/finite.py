"""Figures as JSON has them: it knows neither infinity nor what is no number, so what was not measured is `null`."""

from __future__ import annotations

import json
import math
from typing import Any


def finite(value: Any) -> Any:
    """The same without numbers that are none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def as_json(value: Any, indent: int) -> str:
    """JSON that every reader takes."""
    return json.dumps(finite(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
