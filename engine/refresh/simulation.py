"""A simulated run of a streaming workflow: from its description to its log and its record in the store."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from engine.events import Event, EventLog, RunFinished, TableStaleness, UpdateFinished, UpdateStarted
from engine.model.binding import Bound
from engine.model.file import to_yaml
from engine.operators.streams import GeneratorStream
from engine.partition.tables import TablePlan, tables_of
from engine.refresh.described import warehouse_of
from engine.refresh.estimates import Learnt
from engine.refresh.jobs import Job
from engine.refresh.kept import first_event, keep, learnt_of, record_of
from engine.refresh.model import Warehouse
from engine.refresh.report import bounds_report, tables_report
from engine.refresh.scheduler import Scheduler, Settings
from engine.refresh.simulator import Cost, Observer, Stream, World, simulate, without_contention
from engine.store.runs import also_to, new_run_id, run_folder

LOGGED_EVENTS = 50_000  # of a longer simulation nobody would read the log
IDEAL_EVENTS = 200_000  # without contention nothing piles up, and more of them would tell no more
ASSUMED = Cost(0.5, 0.02)  # of a table of which nothing is known


@dataclass(frozen=True)
class Conditions:
    """Under which conditions a warehouse is simulated, and for how long."""

    events: int = 20_000
    for_s: float = float("inf")  # by the virtual clock
    spread: float = 0.5
    slowdown: float = 1.0
    normal_s: float = 0.0
    slow_s: float = 0.0
    seed: int = 0


@dataclass
class Described:
    """A workflow as a world to simulate, and the tables whose cost had to be assumed."""

    world: World
    assumed: list[str] = field(default_factory=list)


def describe(bound: Bound, conditions: Conditions, learnt: Mapping[str, Learnt] | None = None) -> Described:
    """What a workflow says of its streams and tables: hints first, then what a live run learnt, then assumptions."""
    plans = tables_of(bound)
    warehouse = warehouse_of(bound, plans)
    known = learnt or {}
    random = Random(conditions.seed)
    specs, streams, costs, assumed = [], {}, {}, []
    for plan in plans:
        cost = _cost(bound, plan, known.get(plan.name))
        if cost is None:
            assumed.append(plan.name)
        costs[plan.name] = cost or ASSUMED
        spec = replace(
            warehouse.tables[plan.name],
            scan_share=warehouse.tables[plan.name].scan_share or 0.0,
            alpha_s=None if cost is None else cost.alpha_s,
            beta=None if cost is None else cost.beta,
        )
        if spec.is_base:
            streams[plan.name] = _stream(bound, plan, warehouse, known.get(plan.name), random)
            spec = replace(spec, period_s=spec.period_s or streams[plan.name].period_s)
        specs.append(spec)
    world = World(
        Warehouse(specs, warehouse.file), streams, costs, conditions.spread, conditions.slowdown,
        conditions.normal_s, conditions.slow_s, conditions.seed,
    )  # fmt: skip
    return Described(world, assumed)


def _cost(bound: Bound, plan: TablePlan, learnt: Learnt | None) -> Cost | None:
    hints = bound.workflow.nodes[plan.name].hints
    if hints is not None and (hints.alpha_s is not None or hints.beta is not None):
        return Cost(hints.alpha_s or 0.0, hints.beta or 0.0)
    return Cost(learnt.alpha_s, learnt.beta) if learnt is not None and learnt.observed else None


def _stream(bound: Bound, plan: TablePlan, warehouse: Warehouse, learnt: Learnt | None, random: Random) -> Stream:
    operator = bound.operators[plan.stream or ""]
    period = plan.period_s or (learnt.period_s if learnt else None)
    if period is None:
        raise warehouse.problem(
            plan.name, "nobody knows how often data arrive for it; give it a period_s, or run it live first"
        )
    jitter = operator.jitter_s / period if isinstance(operator, GeneratorStream) else 0.0
    return Stream(period, random.random() * period, jitter)


def launch_simulation(
    bound: Bound,
    settings: Settings,
    conditions: Conditions,
    *,
    folder: Path | None = None,
    store: str | None = None,
    events: str | None = None,
    listener: Callable[[Event], None] | None = None,
) -> dict[str, Any]:
    """Simulate a warehouse, compare it with one without contention, and keep what is worth keeping.

    The events carry the times of the virtual clock, from the moment of the start on.
    """
    described = describe(bound, conditions, learnt_of(bound.name, store))
    world = described.world
    started = datetime.now(UTC)
    run_id = new_run_id(started)
    began = time.perf_counter()
    folder = run_folder(folder, run_id)
    with contextlib.ExitStack() as cleanup:
        log = EventLog(folder / "events.jsonl", listener)
        cleanup.callback(log.close)
        if events:
            log.listen(also_to(events, cleanup))
        (folder / "workflow.butterfly.yaml").write_text(to_yaml(bound.workflow), encoding="utf-8")
        about = (bound, run_id, settings.policy, started, None)
        log.add(first_event(*about))
        told = _Told(log, started.timestamp()) if conditions.events <= LOGGED_EVENTS else None
        observer = told.observer() if told else None
        result = simulate(world, settings, events=conditions.events, until_s=conditions.for_s, observer=observer)
        fewer = min(conditions.events, IDEAL_EVENTS)
        ideal = simulate(world, without_contention(world), events=fewer, until_s=conditions.for_s)
        summary = {
            "run": run_id,
            "status": "done",
            "policy": settings.policy,
            "sharing": settings.sharing,
            "tracks": settings.tracks,
            "relative_lateness": _ratio(result.weighted_staleness, ideal.weighted_staleness),
            "weighted_staleness": round(result.weighted_staleness, 4),
            "events": result.events,
            "seconds": round(time.perf_counter() - began, 3),
            "clock_s": round(result.clock_s, 3),
            "jobs": result.jobs,
            "utilization": round(result.utilization, 4),
            "fits": result.scheduler.partition.fits,
            "bounds": bounds_report(result.scheduler),
            "assumed": described.assumed,
            "logged": told is not None,
            "tables": tables_report(result.scheduler, result.clock_s),
            "folder": str(folder),
        }
        log.add(RunFinished(time=started.timestamp() + result.clock_s, status="done", seconds=result.clock_s))
        (folder / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
        record = record_of(*about, folder)
        keep(replace(record, status="done", finished=datetime.now(UTC), summary=summary), store)
    return summary


def _ratio(value: float, ideal: float) -> float:
    return round(value / ideal, 4) if ideal > 0 else 1.0


class _Told:
    """Writes down what happens, in the events that a live warehouse writes as well."""

    def __init__(self, log: EventLog, zero: float) -> None:
        self.log, self.zero = log, zero
        self.scheduler: Scheduler | None = None

    def observer(self) -> Observer:
        return Observer(began=self.began, started=self.started, finished=self.finished)

    def began(self, now: float, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        for name in scheduler.tables:
            self._stale(now, name)

    def started(self, now: float, job: Job) -> None:
        self.log.add(
            UpdateStarted(
                time=self.zero + now, job=job.number, track=job.track, tables=list(job.tables),
                expected_s=round(job.expected_s, 4),
            )
        )  # fmt: skip

    def finished(self, now: float, job: Job) -> None:
        seconds = round(now - job.started, 4)
        self.log.add(
            UpdateFinished(
                time=self.zero + now, job=job.number, track=job.track, tables=list(job.tables), seconds=seconds, rows=0
            )
        )
        for name in job.tables:
            self._stale(now, name)

    def _stale(self, now: float, name: str) -> None:
        assert self.scheduler is not None
        table = self.scheduler.tables[name]
        stale = round(table.staleness(now), 4)
        self.log.add(TableStaleness(time=self.zero + now, table=name, staleness=stale, bound=table.bound))
