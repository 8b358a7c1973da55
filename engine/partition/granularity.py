"""The sizes of a unit of scheduling, by name. On its own, as the command line names them before it loads a model."""

from __future__ import annotations

from enum import StrEnum


class Granularity(StrEnum):
    """How much is scheduled as one."""

    OPERATOR = "operator"
    SUBFLOW = "subflow"
    TREE = "tree"
    FUSED = "fused"
