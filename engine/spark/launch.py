"""From a bound workflow to a finished run: its folder, its log, its record in the store."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.control import RunControl, driven, is_alive
from engine.errors import BadInput, PapilioError
from engine.events import Event, EventLog, Remark
from engine.model.binding import Bound, with_settings
from engine.model.file import to_yaml
from engine.partition.granularity import Granularity
from engine.plan.apply import Applied
from engine.plan.choice import BEST
from engine.plan.planner import TooLarge
from engine.schedule.settings import ScheduleSettings
from engine.spark.connect import check_operators, is_connected
from engine.spark.fused_run import FusedRun
from engine.spark.journal import Journal, is_committing, is_discarded, recover
from engine.spark.pack_run import STORE, PackRun
from engine.spark.packs import memory_folder, remove_packs
from engine.spark.progress import FILE, Progress, read_steps
from engine.spark.runner import SUMMARY, Run, RunSettings, write_summary
from engine.store import MetadataStore, RunRecord
from engine.store.plans import RunPlan, plan_for_run, remember_plan
from engine.store.runs import also_to, last_refreshes, new_run_id, run_folder
from engine.store.sources import remember_operators, remember_schemas
from engine.store.trust import is_trusted

BESIDE_SECONDS = 0.3  # by then the first units' plans are made, and Spark works


def launch(
    bound: Bound,
    settings: RunSettings,
    *,
    store: str | None = None,
    events: str | None = None,
    listener: Callable[[Event], None] | None = None,
    control: RunControl | None = None,
    begun: Callable[[str, Path], None] | None = None,
) -> dict[str, Any]:
    """Run a workflow and keep what is worth keeping of it. Returns the summary.

    `control` drives it from outside; `begun` hears the run's id and folder as soon as its log is there.
    """
    with contextlib.ExitStack() as held:
        with contextlib.suppress(PapilioError):  # whoever needs the store says what is wrong with it
            held.enter_context(MetadataStore(store))  # closed once, at the end: closing waits for the disk
        return _launch(bound, settings, store, events, listener, control, begun)


def _launch(
    bound: Bound,
    settings: RunSettings,
    store: str | None,
    events: str | None,
    listener: Callable[[Event], None] | None,
    control: RunControl | None,
    begun: Callable[[str, Path], None] | None,
) -> dict[str, Any]:
    started = datetime.now(UTC)
    control = control or RunControl()
    if settings.resume:
        earlier = _resumable(settings.resume, bound, store)
        run_id, folder, started = earlier.run, Path(earlier.folder), earlier.started
        if is_committing(folder):
            return _commit_forward(earlier, folder, store)
        first = next(read_steps(folder / FILE), None)
        if first is None:  # it was killed as it began: the same again, from the start
            granularity = Granularity(earlier.granularity)
            schedule = replace(settings.schedule, granularity=granularity, policy=earlier.policy)
            settings = replace(settings, schedule=schedule)
            plan = _chosen_plan(bound, settings, store)
        else:
            settings = replace(settings, schedule=_begun_with(first, bound))
            plan = _begun_plan(first)
    else:
        plan = _chosen_plan(bound, settings, store)
        run_id = new_run_id(started)
        folder = run_folder(settings.folder, run_id)
    bound, settings = with_settings(bound, plan.work.settings), replace(settings, applied=plan.work)
    if settings.schedule.degree is None:
        settings = replace(settings, measures=_earlier_measures(bound, settings.schedule, store))
    with contextlib.ExitStack() as cleanup:
        journal = Journal(folder)  # first of all: it refuses a folder in which another process runs
        cleanup.callback(journal.close)
        log = EventLog(folder / "events.jsonl", listener)
        cleanup.callback(log.close)
        cleanup.enter_context(driven(folder, control))
        if events:
            log.listen(also_to(events, cleanup))
        (folder / "workflow.butterfly.yaml").write_text(to_yaml(bound.workflow), encoding="utf-8")
        trusted = settings.trusted or is_trusted(bound)
        progress = Progress(folder)
        cleanup.callback(progress.close)
        fused = settings.schedule.granularity is Granularity.FUSED
        _check_backend(bound, settings)
        kind = FusedRun if fused else PackRun
        refreshed = last_refreshes(bound, store)
        told = replace(settings, trusted=trusted, refreshed=refreshed)
        run = kind(bound, told, folder, run_id, log, journal, progress, control)
        control.on_cancel = run.cancel
        cleanup.callback(run.close)
        run.summary.plan = plan.told
        if plan.remark:
            log.add(Remark(message=plan.remark))
        _recover_earlier(bound, store, but=run_id)
        if begun is not None:
            begun(run_id, folder)
        try:
            _keep(run, bound, settings, started, None, store)
            with _beside(lambda: _remember(bound, plan, store)):
                run.execute()
        finally:
            summary = run.summary.as_dict()
            write_summary(folder, run.summary)
            if run.summary.status != "running":
                _keep(run, bound, settings, started, datetime.now(UTC), store)
    return summary


@contextlib.contextmanager
def _beside(work: Callable[[], None]) -> Iterator[None]:
    """Something is done in a thread while this lasts, once Spark has its plans; it is done when this ends."""
    ended = threading.Event()

    def later() -> None:
        ended.wait(BESIDE_SECONDS)
        work()

    thread = threading.Thread(target=later, name="beside", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _remember(bound: Bound, chosen: _Chosen, store: str | None) -> None:
    """What the store keeps of a workflow whatever becomes of its run: nobody waits for it."""
    if chosen.plan is not None:
        remember_plan(bound, chosen.plan, store)
    remember_schemas(bound, bound.order, store)
    remember_operators(bound, store)


@dataclass(frozen=True)
class _Chosen:
    """The physical plan of a run: what it asks for, what is told of it."""

    work: Applied = field(default_factory=Applied)
    told: dict[str, Any] | None = None
    remark: str | None = None
    plan: RunPlan | None = None  # as it was found, if it was found for this run


def _chosen_plan(bound: Bound, settings: RunSettings, store: str | None) -> _Chosen:
    """The plan that was asked for, as far as the workflow has one."""
    fused = settings.schedule.granularity is Granularity.FUSED
    connected = is_connected(settings.spark.master)
    if connected and settings.plan == BEST:
        return _Chosen()  # prices and layouts are classic Spark's; another engine knows itself better
    try:
        plan = plan_for_run(bound, settings.plan, store, sorters=fused and not connected)
    except TooLarge as error:
        return _Chosen(remark=str(error))
    if plan is None:
        return _Chosen()
    return _Chosen(plan.applied, plan.told(), plan=plan)


def _begun_plan(first: Mapping[str, Any]) -> _Chosen:
    """The plan that a killed run was begun with; what is known of the rows may have changed since."""
    begun = first["plan"]
    return _Chosen(Applied.from_data(begun["applied"]), begun["told"])


def _check_backend(bound: Bound, settings: RunSettings) -> None:
    """Refuse what only classic Spark can do on a master that is reached over Spark Connect."""
    master, granularity = settings.spark.master, settings.schedule.granularity
    if is_connected(master) and granularity is not Granularity.FUSED:
        raise BadInput(f"--granularity {granularity.value}: row packs take classic Spark; {master} runs fused only")
    check_operators(bound, master)


def _resumable(run: str, bound: Bound, store: str | None) -> RunRecord:
    """The killed run of that name; refused where it is none, or was of another workflow."""
    with MetadataStore(store) as opened:
        record = opened.get_run(run)
    if record is None:
        raise BadInput(f"--resume {run}: there is no such run; `papilio history` lists them")
    if record.status != "running":
        raise BadInput(f"--resume {run}: that run has ended ({record.status}); there is nothing to resume")
    if is_discarded(Path(record.folder)):
        raise BadInput(f"--resume {run}: that run had failed or was cancelled before it was killed; run it anew")
    if record.content_hash != bound.workflow.content_hash():
        raise BadInput(f"--resume {run}: the workflow has changed since; run it anew")
    return record


def _commit_forward(record: RunRecord, folder: Path, store: str | None) -> dict[str, Any]:
    """A run that was killed while its targets changed: bring the others forward."""
    if recover(folder) is None:
        raise BadInput(f"--resume {record.run}: it is still running")
    summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    summary |= {"status": "done", "resumed": True}
    (folder / SUMMARY).write_text(json.dumps(summary, indent=2), encoding="utf-8")
    remove_packs(folder / STORE, memory_folder(record.run))
    shutil.rmtree(folder / "staged", ignore_errors=True)
    with MetadataStore(store) as opened:
        ended = {**vars(record), "status": "done", "finished": datetime.now(UTC), "summary": summary}
        opened.put_run(RunRecord(**ended))
    return summary


def _earlier_measures(bound: Bound, schedule: ScheduleSettings, store: str | None) -> dict[str, dict[str, float]]:
    """What the newest run of the same workflow at the same granularity measured of its units."""
    with MetadataStore(store) as opened:
        for record in opened.list_runs(workflow=bound.name, status="done", limit=50):
            same = record.content_hash == bound.workflow.content_hash()
            if same and record.granularity == schedule.granularity.value and record.summary.get("measures"):
                found: dict[str, dict[str, float]] = record.summary["measures"]
                return found
    return {}


def _begun_with(first: Mapping[str, Any], bound: Bound) -> ScheduleSettings:
    """The settings that a killed run was begun with. It goes on with the same parameters, or not at all."""
    for name, value in first["values"].items():
        if bound.values.get(name) != value:
            raise BadInput(f"--resume: the run was begun with {name}={value}; give it the same again, by --param")
    return ScheduleSettings.from_dict(first["settings"])


def _recover_earlier(bound: Bound, store: str | None, but: str) -> None:
    """Finish or undo what a killed run of this workflow left half done, before this one touches the targets."""
    with MetadataStore(store) as opened:
        runs = opened.list_runs(workflow=bound.name, status="running")
    for record in runs:
        folder = Path(record.folder)
        if folder.is_dir() and record.run != but and not is_alive(folder):
            outcome = recover(folder)
            if outcome is None:
                continue  # still running, in another process
            shutil.rmtree(folder / "staged", ignore_errors=True)
            remove_packs(folder / STORE, memory_folder(record.run))
            with MetadataStore(store) as opened:
                ended = RunRecord(**{**vars(record), "status": outcome, "finished": datetime.now(UTC)})
                opened.put_run(ended)


def _keep(
    run: Run, bound: Bound, settings: RunSettings, started: datetime, finished: datetime | None, store: str | None
) -> None:
    """Write the run down in the store. A store that cannot be written must not stop the run."""
    record = RunRecord(
        run=run.id,
        workflow=bound.name,
        file=str(bound.file or ""),
        content_hash=bound.workflow.content_hash(),
        status=run.summary.status,
        started=started,
        finished=finished,
        policy=run.summary.policy or "",
        granularity=run.summary.granularity,
        master=settings.spark.master,
        folder=str(run.folder),
        summary=json.loads(json.dumps(run.summary.as_dict(), default=str)),
    )
    with contextlib.suppress(PapilioError), MetadataStore(store) as opened:
        opened.put_run(record)
