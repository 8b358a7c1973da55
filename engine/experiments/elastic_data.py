"""The rows that a live elastic run replays: TPC-H, made once."""

from __future__ import annotations

from collections.abc import Callable

from engine.experiments.data import generate_tpch
from engine.model.binding import Bound
from engine.model.elastic import Live


def make_lines(bound: Bound, live: Live, tell: Callable[[str], None]) -> None:
    """Generate TPC-H where the source's file is not there yet, and say so before."""
    path = getattr(bound.operators.get(live.source), "path", None)
    if path is None:
        return
    file = bound.place().path(path)
    if file.exists():
        return
    tell(f"generating TPC-H at scale {live.scale:g} in {file.parent}")
    generate_tpch(file.parent, live.scale)
