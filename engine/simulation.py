"""A simulated run, from a bound workflow to its record in the store. Its log replays like that of a real one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.errors import PapilioError
from engine.events import Event, EventLog, NodeCounted, RunFinished, RunStarted
from engine.model.binding import Bound
from engine.model.file import to_yaml
from engine.schedule import log as scheduled
from engine.schedule.costs import Listeners, SimulationSettings, prepare, told
from engine.store import MetadataStore, RunRecord
from engine.store.runs import also_to, new_run_id, run_folder
from engine.store.statistics import known_rows


def launch_simulated(
    bound: Bound,
    settings: SimulationSettings,
    *,
    folder: Path | None = None,
    store: str | None = None,
    events: str | None = None,
    listener: Callable[[Event], None] | None = None,
    telemetry: bool = True,
) -> dict[str, Any]:
    """Simulate a run and keep what is worth keeping of it. Returns the summary.

    The events carry the times of the virtual clock, from the moment of the start on.
    """
    bound.raise_errors()
    started = datetime.now(UTC)
    run_id = new_run_id(started)
    zero = started.timestamp()
    heard = _Heard(zero)
    simulation, made, known = prepare(
        bound, settings, known_rows(bound, store), heard.listeners() if telemetry else Listeners()
    )
    folder = run_folder(folder, run_id)
    with contextlib.ExitStack() as cleanup:
        log = heard.log = EventLog(folder / "events.jsonl", listener)
        cleanup.callback(log.close)
        if events:
            log.listen(also_to(events, cleanup))
        (folder / "workflow.butterfly.yaml").write_text(to_yaml(bound.workflow), encoding="utf-8")
        monitor = heard.monitor = simulation.monitor
        heard.now = lambda: zero + simulation.now
        log.add(
            RunStarted(
                time=zero,
                run=run_id,
                workflow=bound.name,
                file=str(bound.file) if bound.file else None,
                content_hash=bound.workflow.content_hash(),
                policy=settings.policy,
                granularity=settings.granularity.value,
                backend="simulated",
                master=None,
                nodes=scheduled.node_facts(bound),
                edges=scheduled.edge_facts(bound),
                units=scheduled.unit_facts(monitor),
                queues=scheduled.queue_facts(monitor, made),
            )
        )
        result = simulation.run()
        summary = {"run": run_id, **told(bound, settings, made, known, simulation, result), "folder": str(folder)}
        end = zero + result.seconds
        for node, rows in summary["nodes"].items():
            log.add(NodeCounted(time=end, node=node, **rows))
        log.add(RunFinished(time=end, status="done", seconds=result.seconds))
        (folder / "summary.json").write_text(json.dumps(summary, indent=2, default=str), encoding="utf-8")
    record = RunRecord(
        run=run_id,
        workflow=bound.name,
        file=str(bound.file or ""),
        content_hash=bound.workflow.content_hash(),
        status="simulated",
        started=started,
        finished=datetime.now(UTC),
        policy=settings.policy,
        granularity=settings.granularity.value,
        master="simulated",
        folder=str(folder),
        summary=summary,
    )
    with contextlib.suppress(PapilioError), MetadataStore(store) as opened:
        opened.put_run(record)
    return summary


class _Heard:
    """Turns what the simulation tells into events."""

    def __init__(self, zero: float) -> None:
        self.zero = zero
        self.now: Callable[[], float]
        self.log: EventLog
        self.monitor: Any = None

    def listeners(self) -> Listeners:
        """Everything that a real run's log has too."""
        return Listeners(
            on_decision=lambda decided: self.log.add(scheduled.decision(decided, self.now())),
            on_spill=lambda queue: self.log.add(scheduled.spill(queue, self.now())),
            on_turn=lambda activation, rows, outcome: self.log.add(
                scheduled.turn(activation, rows, outcome, self.now())
            ),
            on_snapshot=lambda moment, monitor: self.log.add(
                scheduled.snapshot(
                    monitor,
                    [group.running.id for group in monitor.groups.values() if group.running],
                    self.zero + moment,
                    memory_bytes=monitor.statistics.bytes,
                )
            ),
        )
