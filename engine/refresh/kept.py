"""What runs of a streaming warehouse leave in the metadata store for the next: alpha, beta and periods."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from engine.errors import PapilioError
from engine.refresh.estimates import Learnt
from engine.store import MetadataStore

STREAMING = "streaming"  # what the store has as the granularity of such a run


def learnt_of(workflow: str, store: str | None) -> dict[str, Learnt]:
    """What the newest run of this warehouse learnt of its tables. A store that fails only costs knowledge."""
    with contextlib.suppress(PapilioError), MetadataStore(store) as opened:
        for record in opened.list_runs(workflow=workflow, limit=20):
            found: Mapping[str, Any] = record.summary.get("learnt") or {}
            if record.granularity == STREAMING and found:
                return {name: Learnt(**values) for name, values in found.items()}
    return {}
