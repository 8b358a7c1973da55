"""Where a warehouse keeps its tables, and why a place will not do or what lies there is another table's."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from engine.model.binding import Bound
from engine.model.operator import Place
from engine.partition.tables import TablePlan
from engine.refresh.live.made_of import another_stream, other_columns, stream_of
from engine.spark.stream_versions import JOURNAL, Version


def unfit(home: Path, homes: Mapping[str, Path]) -> str | None:
    """Why a table cannot be kept in a folder, beside the tables that are kept in theirs; None where it can."""
    for name, other in homes.items():
        if home.is_relative_to(other) or other.is_relative_to(home):
            return f"table `{name}` is kept in the same place or one inside it: {home}"
    if home.exists() and not home.is_dir():
        return f"`{home}` is a file; a table is a folder"
    if home.is_dir() and any(home.iterdir()) and not (home / JOURNAL).exists():
        return f"`{home}` holds something else than a streaming table; name another folder"
    reason = _unusable(home)
    return f"the folder `{home}` cannot be used: {reason}" if reason else None


def strange(
    bound: Bound, plan: TablePlan, place: Place, version: Version, columns: Mapping[str, str] | None = None
) -> str | None:
    """Why what a base table holds is not of the stream, or not of the columns, that it has now; None where it is."""
    if not (version.files or version.batches or version.position is not None):
        return None  # it holds nothing
    home = place.path(plan.operator.path)
    remedy = f"name another folder for the table, or delete `{home}` to load it anew"
    changed = another_stream(version.made, stream_of(bound, plan, place))
    if changed:
        return f"its rows came from another stream than `{plan.stream}` is now ({changed}); {remedy}"
    changed = None if columns is None else other_columns(version.made, columns, plan.operator.time_column)
    return f"its rows have other columns than it has now ({changed}); {remedy}" if changed else None


def _unusable(home: Path) -> str | None:
    """Why a table cannot be kept in a folder, or in one that has yet to be made."""
    there = next(path for path in (home, *home.parents) if path.exists())
    if not there.is_dir():
        return f"`{there}` is a file"
    try:
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as error:
        return f"{there}: {error.strerror}"
