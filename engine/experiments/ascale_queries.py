"""Queries on 50 GB with a limit of 60 s (elastic, section 5.7): workloads 1 and 2."""

from __future__ import annotations

from engine.elastic.simulator import Simulated
from engine.experiments.ascale import POOL, run

LIMIT_S = 60.0
SIZE_MB = 50_000.0
OTHERS = 4  # nodes of the other stages, which the paper's twelve do not count


def queried(sessions: int, nodes: int) -> Simulated:
    """The warehouse under so many sessions, beginning with so many nodes; hardly a row comes in."""
    _, result = run(
        limit_s=None,
        pool=POOL + OTHERS,
        sample_s=60,
        settle_s=120,
        hold_s=1e6,
        rate={"kind": "steps", "steps": [{"at_s": 0, "rows_s": 1}], "seconds": 14_400},
        extraction={"every_s": 60},
        switch={"limit_rows_s": 1e9},
        warehouse={
            "every_s": 60, "query_limit_s": LIMIT_S, "sessions": sessions, "nodes": {"min": nodes, "max": POOL}
        },
        capacity={"warehouse_mb": SIZE_MB},
    )  # fmt: skip
    return result
