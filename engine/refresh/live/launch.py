"""From a bound workflow to a running warehouse: its folder, its log, its record in the store, and how it is stopped."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.control import RunControl, driven
from engine.errors import BadInput, RunCancelled
from engine.events import Event, EventLog, RunFinished, SparkReady
from engine.model.binding import Bound
from engine.model.file import to_yaml
from engine.operators.streams import Stream
from engine.partition.tables import TablePlan, tables_of
from engine.refresh.described import warehouse_of
from engine.refresh.kept import first_event, keep, learnt_of, record_of
from engine.refresh.live.places import strange, unfit
from engine.refresh.live.warehouse import LiveSettings, LiveWarehouse
from engine.refresh.local import algorithm_named
from engine.refresh.partition import tracks_named
from engine.spark.session import SparkSettings, close_session, open_session
from engine.spark.stream_versions import published
from engine.store.runs import also_to, new_run_id, run_folder
from engine.store.trust import code_hash, refuse_untrusted


@dataclass
class StreamSettings:
    """How a warehouse is run, and where."""

    live: LiveSettings = field(default_factory=LiveSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    folder: Path | None = None
    trusted: bool = False  # whether operators that run code of the file may, as it is at the start


def launch_stream(
    bound: Bound,
    settings: StreamSettings,
    *,
    store: str | None = None,
    events: str | None = None,
    listener: Callable[[Event], None] | None = None,
    reopen: Callable[[], Bound] | None = None,
) -> dict[str, Any]:
    """Run a streaming warehouse until it is stopped, and keep what is worth keeping. Returns the summary."""
    plans = tables_of(bound)
    warehouse_of(bound, plans)
    refuse_untrusted(bound, settings.trusted)
    _check(bound, plans, settings.live)
    started = datetime.now(UTC)
    run_id = new_run_id(started)
    folder = run_folder(settings.folder, run_id)
    live = replace(settings.live, learnt={**learnt_of(bound.name, store), **settings.live.learnt})
    control = RunControl()
    with contextlib.ExitStack() as cleanup:
        cleanup.enter_context(driven(folder, control))  # before its log is there: whoever sees it sees it run
        log = EventLog(folder / "events.jsonl", listener)
        cleanup.callback(log.close)
        if events:
            log.listen(also_to(events, cleanup))
        (folder / "workflow.butterfly.yaml").write_text(to_yaml(bound.workflow), encoding="utf-8")
        told = (bound, run_id, live.schedule.policy, started, settings.spark.master)
        log.add(first_event(*told))
        record = record_of(*told, folder)
        keep(record, store)
        began = time.monotonic()
        status, reason = "failed", None
        summary: dict[str, Any] = {"run": run_id}

        def learn(learnt: dict[str, Any]) -> None:
            summary["learnt"] = learnt
            keep(replace(record, summary=summary), store)

        try:
            spark = open_session(replace(settings.spark, log=folder / "spark.log"))
            cleanup.callback(close_session, spark)
            seconds = time.monotonic() - began
            log.add(SparkReady(version=spark.version, master=settings.spark.master, seconds=seconds))
            running = LiveWarehouse(
                bound,
                live,
                spark,
                log,
                secrets=os.environ,
                reopen=reopen and _trusted(reopen, bound if settings.trusted else None),
                control=control,
                keep=learn,
            )
            with _stopped(running, control):
                summary |= running.run()
            if running.aborted:
                status = "cancelled"
            elif summary["held"]:
                reason = held_back(summary["held"])
            else:
                status = "done"
        except (KeyboardInterrupt, RunCancelled):
            status = "cancelled"
            raise
        except BaseException as error:
            reason = str(error)
            raise
        finally:
            summary |= {"status": status, "policy": live.schedule.policy, "folder": str(folder)}
            log.add(RunFinished(status=status, seconds=time.monotonic() - began, reason=reason))
            (folder / "summary.json").write_text(json.dumps(summary, indent=2, default=str), encoding="utf-8")
            keep(replace(record, status=status, finished=datetime.now(UTC), summary=summary), store)
    if status == "cancelled":
        raise RunCancelled(f"{bound.name}: stopped at once; what was published stays, the rest is loaded next time")
    return summary


def _trusted(reopen: Callable[[], Bound], trusted: Bound | None) -> Callable[[], Bound]:
    """The file that changed meanwhile: code in it must be trusted too, or be that which was trusted at the start."""

    def opened() -> Bound:
        bound = reopen()
        refuse_untrusted(bound, trusted is not None and code_hash(bound) == code_hash(trusted))
        return bound

    return opened


def held_back(held: Mapping[str, str]) -> str:
    """What is told at the end of tables that failed, and were tried in vain."""
    return "; ".join(["tables were held back, and the others went on", *held.values()])


def _check(bound: Bound, plans: list[TablePlan], live: LiveSettings) -> None:
    """What only a run looks at, before Spark is started: its policy, streams, and places for its tables."""
    algorithm_named(live.schedule.policy)
    tracks_named(live.schedule.sharing)
    place = bound.place(os.environ)
    problems = []
    for node, operator in bound.operators.items():
        if isinstance(operator, Stream):
            try:
                reason = operator.missing(place)
            except BadInput as error:
                reason = str(error)
            if reason:
                problems.append((node, reason))
    homes: dict[str, Path] = {}
    for plan in plans:
        home = place.path(plan.operator.path)
        reason = unfit(home, homes)
        if reason is None and plan.stream is not None and home.is_dir():
            reason = strange(bound, plan, place, published(home))
        if reason:
            problems.append((plan.name, reason))
        homes[plan.name] = home
    if problems:
        file = bound.file or bound.name
        raise BadInput("\n".join(f"{file}: node `{node}`: {reason}" for node, reason in problems))


@contextlib.contextmanager
def _stopped(running: LiveWarehouse, control: RunControl) -> Iterator[None]:
    """Ctrl-C and `cancel` stop after the jobs that run, a second one at once; a termination is like the first."""

    def heard(*_: Any) -> None:
        if running.stopping:
            running.abort()
        else:
            running.stop()

    control.on_cancel = heard
    if control.cancelled.is_set():  # while Spark was started
        running.stop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
