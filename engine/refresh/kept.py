"""What runs of a streaming warehouse leave behind: their log's first line, their record, and what they learnt."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from engine.errors import PapilioError
from engine.events import RunStarted
from engine.model.binding import Bound
from engine.partition.tables import tables_of
from engine.refresh.estimates import Learnt
from engine.schedule.facts import edge_facts, node_facts
from engine.store import RunRecord
from engine.store.runs import keep_run, kept_runs

RUNS = 20  # the newest, whose knowledge counts
STREAMING = "streaming"  # what the store has as the granularity of such a run


def learnt_of(workflow: str, store: str | None) -> dict[str, Learnt]:
    """What the runs of this warehouse learnt of its tables: of each, what the newest run that updated it did.

    A short run does not update them all. A store that fails only costs knowledge.
    """
    found: dict[str, Learnt] = {}
    with contextlib.suppress(PapilioError):
        for record in _taught(workflow, store):
            for name, values in record.summary["learnt"].items():
                known = Learnt(**values)
                if name not in found or (known.observed and not found[name].observed):
                    found[name] = known
    return found


def _taught(workflow: str, store: str | None) -> list[RunRecord]:
    """The newest runs that learnt anything. There may be many others between them: simulated ones learn nothing."""
    looked_at = RUNS
    while True:
        records = kept_runs(store, workflow=workflow, limit=looked_at)
        taught = [record for record in records if record.granularity == STREAMING and record.summary.get("learnt")]
        if len(taught) >= RUNS or len(records) < looked_at:
            return taught[:RUNS]
        looked_at *= 10


def first_event(bound: Bound, run: str, policy: str, started: datetime, master: str | None) -> RunStarted:
    """What the log of a run begins with; without a master it is simulated."""
    return RunStarted(
        time=started.timestamp(),
        run=run,
        workflow=bound.name,
        file=str(bound.file) if bound.file else None,
        content_hash=bound.workflow.content_hash(),
        policy=policy,
        granularity=STREAMING,
        backend="simulated" if master is None else "spark",
        master=master,
        nodes=node_facts(bound),
        edges=edge_facts(bound),
        units={
            plan.name: {"nodes": [*plan.nodes, plan.name], "reads": list(plan.sources)} for plan in tables_of(bound)
        },
    )


def record_of(bound: Bound, run: str, policy: str, started: datetime, master: str | None, folder: Path) -> RunRecord:
    """The record of a run that has begun."""
    return RunRecord(
        run=run,
        workflow=bound.name,
        file=str(bound.file or ""),
        content_hash=bound.workflow.content_hash(),
        status="running",
        started=started,
        finished=None,
        policy=policy,
        granularity=STREAMING,
        master=master or "simulated",
        folder=str(folder),
        summary={},
    )


def keep(record: RunRecord, store: str | None) -> None:
    """Write a run down. A store that cannot be written must not stop a warehouse."""
    plain = json.loads(json.dumps(record.summary, default=str))
    keep_run(replace(record, summary=plain), store)
