"""Which unit holds a run up at a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.recording.state import GREEN, RunState, State

if TYPE_CHECKING:
    from engine.recording.recording import RunRecording


def bottleneck(recording: RunRecording, state: RunState) -> str | None:
    """The unit before which rows pile up although it has room behind it; the busiest one where none pile up.

    None once the run is over, and before anything was done.
    """
    started = recording.started
    if started is None or state.status not in ("running", "paused"):
        return None
    before: dict[str, float] = {}
    behind: dict[str, float] = {}
    for id_, queue in state.queues.items():
        if not queue.packs or id_ not in started.queues:
            continue
        fill, facts = queue.fill or 0.0, started.queues[id_]
        consumer, producer = facts.get("consumer", ""), facts.get("producer", "")
        before[consumer] = max(fill, before.get(consumer, 0.0))
        behind[producer] = max(fill, behind.get(producer, 0.0))
    alive = {name: unit for name, unit in state.units.items() if unit.state not in (State.FINISHED, State.FAILED)}
    piled = [name for name in alive if before.get(name, 0.0) > GREEN and behind.get(name, 0.0) <= GREEN]
    if piled:
        return max(piled, key=lambda name: (before[name], alive[name].seconds))
    worked = [name for name, unit in alive.items() if unit.seconds > 0]
    return max(worked, key=lambda name: alive[name].seconds) if worked else None
