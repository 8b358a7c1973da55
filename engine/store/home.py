"""Where a person's Papilio lives."""

from __future__ import annotations

import os
from pathlib import Path


def papilio_home() -> Path:
    """The folder of a person's Papilio: `$PAPILIO_HOME`, or `papilio` in the data home of the desktop."""
    home = os.environ.get("PAPILIO_HOME")
    if home:
        return Path(home)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "papilio"


def default_store() -> Path:
    """The file of a person's metadata store, unless they name another."""
    return papilio_home() / "store.db"
