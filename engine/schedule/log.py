"""The events of a scheduled run, made from what the monitor knows. Real and simulated runs tell the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from engine.events import QueueSnapshot, QueueSpilled, UnitActivated, UnitDecided
from engine.schedule.build import PackUnits
from engine.schedule.monitor import Monitor
from engine.schedule.queues import Queue
from engine.schedule.turn import Activation, Decided, Outcome

_ALL = 1 << 20  # packs; more is said as this


def unit_facts(monitor: Monitor) -> dict[str, dict[str, Any]]:
    """The units that are scheduled, with the subflow they belong to and the policy they are under."""
    return {
        id_: {
            "nodes": list(unit.spec.nodes),
            "reads": [queue.producer for queue in monitor.graph.inputs[id_]],
            "work": unit.work.value,
            "number": unit.number,
            "group": unit.group.name,
            "policy": unit.group.policy.name,
        }
        for id_, unit in monitor.units.items()
    }


def queue_facts(monitor: Monitor, made: PackUnits) -> dict[str, dict[str, Any]]:
    """The queues between them, with the edge whose end each one feeds."""
    facts = {}
    for id_, queue in monitor.queues.items():
        link = made.links[id_]
        facts[id_] = {
            "producer": queue.spec.producer,
            "consumer": queue.spec.consumer,
            "capacity_packs": queue.capacity,
            "link": [link.source, link.source_port, link.target, link.target_port],
        }
    return facts


def decision(decided: Decided, moment: float | None = None) -> UnitDecided:
    """Which unit was picked, and why."""
    activation = decided.activation
    return UnitDecided(
        time=time.time() if moment is None else moment,
        activation=activation.number,
        unit=activation.unit.id,
        step=activation.step.value,
        packs=min(activation.packs, _ALL),
        policy=decided.policy,
        group=decided.group,
        candidates=[[unit, round(score, 3)] for unit, score in decided.scores],
    )


def turn(activation: Activation, rows_in: int, outcome: Outcome, moment: float | None = None) -> UnitActivated:
    """What a unit took and gave in its turn."""
    return UnitActivated(
        time=time.time() if moment is None else moment,
        activation=activation.number,
        unit=activation.unit.id,
        step=activation.step.value,
        packs_in=sum(count for _, count in activation.take),
        rows_in=rows_in + outcome.rows_read,
        packs_out=sum([pack.count for pack, _ in outcome.produced]),
        rows_out=sum([pack.rows * pack.count for pack, _ in outcome.produced]),
        seconds=outcome.seconds,
    )


def spill(queue: Queue, moment: float | None = None) -> QueueSpilled:
    """A queue goes beyond its capacity."""
    assert queue.capacity is not None
    packs = queue.capacity + queue.extra
    return QueueSpilled(time=time.time() if moment is None else moment, queue=queue.spec.id, packs=packs)


def snapshot(
    monitor: Monitor,
    running: Sequence[str],
    moment: float | None = None,
    memory_bytes: int = 0,
    disk_bytes: int = 0,
) -> QueueSnapshot:
    """What every queue holds now."""
    return QueueSnapshot(
        time=time.time() if moment is None else moment,
        queues={id_: [queue.count, queue.rows, queue.bytes] for id_, queue in monitor.queues.items() if queue.count},
        held=[monitor.statistics.packs, monitor.statistics.rows, monitor.statistics.bytes],
        memory_bytes=memory_bytes,
        disk_bytes=disk_bytes,
        running=list(running),
    )
