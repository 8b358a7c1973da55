"""The metadata store: source schemas, operator specifications, workflow versions, plans and runs.

Its names are imported on first use, because SQLAlchemy takes longer to load than most commands take to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.store.records import (
        OperatorSpecification,
        PlanRecord,
        Record,
        RunRecord,
        SourceSchema,
        WorkflowInfo,
        WorkflowVersion,
    )
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
    if name in __all__:
        from engine.store import records

        return getattr(records, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
