"""A simulated elastic run, from a workflow file to its record in the store. Its log replays like that of a real one."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from engine.control import VirtualPace
from engine.elastic.decision import Stage
from engine.elastic.rates import data_rate
from engine.elastic.record import BUFFER_DISK, QUERY_TIME, TRANSFORMATION_TIME, ElasticRecord
from engine.elastic.simulator import Change, Full, Point, Rebalancing, Simulated, Simulation
from engine.elastic.total import TotalTime
from engine.events import EventLog, Rebalanced, Remark, ScalingDecided, StagesSampled
from engine.model.elastic import Elastic

_MB = 1e6


def launch_simulation(record: ElasticRecord) -> tuple[dict[str, Any], Simulated]:
    """Simulate a workflow file's limits against its data rate, and keep what is worth keeping."""
    rate = data_rate(record.limits.rate, record.file.path.parent)
    started = time.perf_counter()
    pace = VirtualPace(record.control)
    with record:
        record.control.drive(record.control.pace, record.log.add, lambda: record.zero + pace.moment)
        total = TotalTime(record.limits.limit_s)
        limits = record.limits

        def tell(found: Point | Change | Rebalancing | Full) -> None:
            if isinstance(found, Full):
                record.log.add(Remark(time=record.zero + found.at_s, message=found.told(limits.buffer)))
            else:
                _log(record.log, record.zero, found, total)

        result = Simulation(limits, rate, tell, pace.to).run()
        record.seconds = rate.seconds
        record.summary |= summary_of(limits, result)
        record.summary["wall_seconds"] = round(time.perf_counter() - started, 3)
    return record.summary, result


def _log(log: EventLog, zero: float, found: Point | Change | Rebalancing, total: TotalTime) -> None:
    moment = zero + found.at_s + (found.seconds if isinstance(found, Rebalancing) else 0.0)
    match found:
        case Point():
            log.add(point_event(found, moment))
            late = total.look(found.extraction_s, found.transformation_s, found.load_s)
            if late is not None:
                log.add(Remark(time=moment, message=late))
        case Change():
            log.add(
                ScalingDecided(
                    time=moment,
                    stage=found.stage.value,
                    action=found.kind,
                    number=found.number,
                    nodes=found.nodes,
                    ready=found.ready,
                    reason=found.reason,
                )
            )
        case Rebalancing():
            log.add(
                Rebalanced(
                    time=moment,
                    nodes_before=found.nodes_before,
                    nodes_after=found.nodes_after,
                    bytes=int(found.moved_mb * _MB),
                    seconds=round(found.seconds, 3),
                )
            )


def point_event(point: Point, moment: float) -> StagesSampled:
    """A point as an event: three figures after the point, no more than a panel shows."""
    measures = {
        Stage.EXTRACTION.value: point.extraction_s,
        Stage.TRANSFORMATION.value: point.queue_mb,
        Stage.BUFFER.value: max(point.memory_mb),
        Stage.SWITCH.value: point.switch_rows_s,
        Stage.WAREHOUSE.value: point.load_s,
        TRANSFORMATION_TIME: point.transformation_s,
        BUFFER_DISK: max(point.disk_mb),
        QUERY_TIME: point.query_s or 0.0,
    }
    return StagesSampled(
        time=moment,
        rows_s=round(point.rate_rows_s, 1),
        ready=point.ready,
        nodes=point.nodes,
        measures={name: round(value, 3) for name, value in measures.items()},
        memory_bytes=int(sum(point.memory_mb) * _MB),
        disk_bytes=int(sum(point.disk_mb) * _MB),
        etl_seconds=round(point.etl_s, 3),
    )


def summary_of(limits: Elastic, result: Simulated) -> dict[str, Any]:
    """What a simulation came to, as the command line's JSON has it."""
    points = result.points
    total = TotalTime(limits.limit_s)
    for point in points:
        total.look(point.extraction_s, point.transformation_s, point.load_s)
    node_hours = result.node_seconds / 3600
    at_peak = result.most_nodes * result.seconds / 3600
    cost = limits.capacity.node_hour_cost
    return {
        "rows": {
            "generated": round(result.generated_rows),
            "loaded": round(result.loaded_rows),
            "waiting": round(result.waiting_rows),
        },
        "nodes": {
            stage.value: {
                "least": min(point.nodes[stage.value] for point in points),
                "most": max(point.nodes[stage.value] for point in points),
                "last": points[-1].nodes[stage.value],
            }
            for stage in Stage
        },
        "times": {
            **total.summary(),
            "query_max_s": max(
                (round(point.query_s, 3) for point in points if point.query_s is not None), default=None
            ),
        },
        "queue_max_mb": round(max(point.queue_mb for point in points), 1),
        "buffer": {
            "memory_max_mb": round(max(max(point.memory_mb) for point in points), 1),
            "disk_max_mb": round(max(max(point.disk_mb) for point in points), 1),
            "full_s": round(result.full_s, 3),
        },
        "decisions": [
            {**asdict(change), "stage": change.stage.value, "rate_rows_s": round(change.rate_rows_s)}
            for change in result.changes
        ],
        "rebalancings": [
            {**asdict(one), "moved_mb": round(one.moved_mb, 1), "seconds": round(one.seconds, 2)}
            for one in result.rebalancings
        ],
        "unreachable": sorted({change.stage.value for change in result.changes if change.kind == "unreachable"}),
        "cost": {
            "node_hours": round(node_hours, 2),
            "cost": round(node_hours * cost, 2),
            "cost_at_peak": round(at_peak * cost, 2),  # had the most nodes been there all the time
            "share_of_peak": round(node_hours / at_peak, 4) if at_peak else None,
        },
    }
