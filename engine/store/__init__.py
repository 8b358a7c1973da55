"""The metadata store: source schemas, operator specifications, workflow versions, plans and runs.

`MetadataStore` is imported on first use, because SQLAlchemy takes longer to load than most
commands take to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.store.records import (
    OperatorSpecification,
    PlanRecord,
    Record,
    RunRecord,
    SourceSchema,
    WorkflowInfo,
    WorkflowVersion,
)

if TYPE_CHECKING:
    from engine.store.store import MetadataStore

__all__ = [
    "MetadataStore",
    "OperatorSpecification",
    "PlanRecord",
    "Record",
    "RunRecord",
    "SourceSchema",
    "WorkflowInfo",
    "WorkflowVersion",
]


def __getattr__(name: str) -> Any:
    if name == "MetadataStore":
        from engine.store.store import MetadataStore

        return MetadataStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
