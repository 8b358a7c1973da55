"""A simulated run, from a bound workflow to its record in the store. Its log replays like that of a real one.

As fast as it goes, or paced by our clock, so that a class can watch it: then the log grows as the virtual clock does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.control import RunControl, VirtualPace, driven
from engine.errors import RunCancelled
from engine.events import Event, EventLog, NodeCounted, RunFinished, RunStarted, UnitFinished
from engine.model.binding import Bound
from engine.model.file import to_yaml
from engine.schedule import log as scheduled
from engine.schedule.costs import Listeners, SimulationSettings, prepare, told
from engine.schedule.facts import edge_facts, node_facts
from engine.schedule.turn import Activation, Outcome
from engine.store import RunRecord
from engine.store.runs import also_to, keep_run, last_refreshes, new_run_id, run_folder
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
    control: RunControl | None = None,
    begun: Callable[[str, Path], None] | None = None,
) -> dict[str, Any]:
    """Simulate a run and keep what is worth keeping of it. Returns the summary.

    The events carry the times of the virtual clock, from the moment of the start on. `begun` hears the run's id and
    folder as soon as its log is there.
    """
    bound.raise_errors()
    started = datetime.now(UTC)
    run_id = new_run_id(started)
    zero = started.timestamp()
    control = control or RunControl()
    if control.speed is not None and control.speed < 1:  # ten a second for whoever watches
        settings = replace(settings, snapshot_ms=settings.snapshot_ms * control.speed)
    virtual = VirtualPace(control)
    heard = _Heard(zero, virtual)
    simulation, made, known = prepare(bound, settings, known_rows(bound, store), heard.listeners(telemetry))
    folder = run_folder(folder, run_id)
    record = RunRecord(
        run=run_id,
        workflow=bound.name,
        file=str(bound.file or ""),
        content_hash=bound.workflow.content_hash(),
        status="running",
        started=started,
        finished=None,
        policy=settings.policy,
        granularity=settings.granularity.value,
        master="simulated",
        folder=str(folder),
        summary={},
    )
    with contextlib.ExitStack() as cleanup:
        cleanup.enter_context(driven(folder, control))
        log = heard.log = EventLog(folder / "events.jsonl", listener)
        cleanup.callback(log.close)
        if events:
            log.listen(also_to(events, cleanup))
        (folder / "workflow.butterfly.yaml").write_text(to_yaml(bound.workflow), encoding="utf-8")
        monitor = simulation.monitor
        keep_run(record, store)
        if begun is not None:
            begun(run_id, folder)
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
                nodes=node_facts(bound),
                edges=edge_facts(bound),
                units=scheduled.unit_facts(monitor),
                queues=scheduled.queue_facts(monitor, made),
                settings={**settings.as_dict(), "speed": control.speed, "full_bytes": simulation.full_bytes()},
                refreshed=last_refreshes(bound, store),
            )
        )
        control.drive(monitor.pace, log.add, heard.now)
        try:
            control.take()
            result = simulation.run()
        except (RunCancelled, KeyboardInterrupt):
            seconds = virtual.moment
            reason = "the person stopped the run"
            held = monitor.statistics.summary()
            log.add(RunFinished(time=zero + seconds, status="cancelled", seconds=seconds, reason=reason, queue=held))
            keep_run(replace(record, status="cancelled", finished=datetime.now(UTC)), store)
            raise RunCancelled(f"{bound.name}: cancelled") from None
        summary = {"run": run_id, **told(bound, settings, made, known, simulation, result), "folder": str(folder)}
        end = zero + result.seconds
        for node, rows in summary["nodes"].items():
            log.add(NodeCounted(time=end, node=node, **rows))
        log.add(RunFinished(time=end, status="done", seconds=result.seconds, queue=dict(result.queue)))
        (folder / "summary.json").write_text(json.dumps(summary, indent=2, default=str), encoding="utf-8")
        keep_run(replace(record, status="simulated", finished=datetime.now(UTC), summary=summary), store)
    return summary


class _Heard:
    """Turns what the simulation tells into events."""

    def __init__(self, zero: float, virtual: VirtualPace) -> None:
        self.zero = zero
        self.virtual = virtual
        self.log: EventLog
        self._over: set[str] = set()  # units that have finished

    def now(self) -> float:
        """The time that the virtual clock has come to."""
        return self.zero + self.virtual.moment

    def listeners(self, telemetry: bool) -> Listeners:
        """Everything that a real run's log has too, and whoever drives the run."""
        driver = Listeners(on_clock=self.virtual.to, on_held=self.virtual.hold)
        if not telemetry:
            return driver
        return replace(
            driver,
            on_decision=lambda decided: self.log.add(scheduled.decision(decided, self.now())),
            on_spill=lambda queue: self.log.add(scheduled.spill(queue, self.now())),
            on_turn=self._turn,
            on_snapshot=lambda moment, monitor: self.log.add(
                scheduled.snapshot(
                    monitor,
                    [group.running.id for group in monitor.groups.values() if group.running],
                    self.zero + moment,
                    memory_bytes=monitor.statistics.bytes,
                )
            ),
        )

    def _turn(self, activation: Activation, rows: int, outcome: Outcome) -> None:
        """A turn is over; with it the unit may have finished, and those behind it that had nothing left to do."""
        self.log.add(scheduled.turn(activation, rows, outcome, self.now()))
        ahead = [activation.unit]
        while ahead:
            unit = ahead.pop()
            if unit.finished and unit.id not in self._over:
                self._over.add(unit.id)
                rows_out = unit.rows_out or unit.rows_in
                self.log.add(UnitFinished(time=self.now(), unit=unit.id, seconds=unit.seconds, rows=rows_out))
                ahead += [queue.consumer for queue in unit.outputs]
