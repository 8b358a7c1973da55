"""The streaming warehouse live: the real clock drives the scheduler, streams arrive, and Spark carries its jobs out.

A track is a thread with a FAIR pool of its own that runs one job at a time. The scheduler itself is asked and told by
one thread alone. What was loaded is in the tables' journals, so a stop, a kill and a restart neither lose nor repeat.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

from engine.control import RunControl
from engine.errors import BadInput, PapilioError, RunFailed
from engine.events import EventLog, Remark, RowsRefused, TableStaleness, UpdateFinished, UpdateStarted
from engine.model.binding import Bound
from engine.operators.streams import MICROS, Stream
from engine.partition.tables import TablePlan, tables_of
from engine.refresh.described import scan_share_of, spec_of, warehouse_of
from engine.refresh.estimates import Learnt
from engine.refresh.jobs import Job, Load
from engine.refresh.live.clock import Clock
from engine.refresh.live.made_of import ID, made_of, way_of
from engine.refresh.live.places import strange, unfit
from engine.refresh.report import bounds_report, tables_report, weighted_staleness
from engine.refresh.scheduler import Scheduler, Settings
from engine.refresh.simulator import Observer
from engine.refresh.table import NEVER
from engine.spark.failures import NodeFailed, by_a_record, java_died, reason_of
from engine.spark.letting_go import letting_go
from engine.spark.stream_edges import before_s, last_us
from engine.spark.stream_feeds import Arrival, Feed, FolderFeed, feed_of
from engine.spark.stream_store import RecentRows, TableStore
from engine.spark.stream_update import Updated, Updater, start_track
from engine.spark.stream_versions import Version

LONGEST_WAIT_S = 0.05  # so long at most until the streams are looked at again
RETRIES = 3  # of an update once Spark itself is gone, before the warehouse stops; others are tried as long as it runs
RETRY_S = 0.5  # the first wait; each further one is twice as long
MOST_RETRY_S = 30.0  # and none is longer
FILE_LOOK_S = 1.0  # how often the workflow file is looked at for changes
SAMPLE_S = 1.0  # how often the staleness of tables that did not move is told
BEHIND_S = 0.001  # so far at least is a view that holds nothing behind what its sources hold
FIRST_ROWS = 50_000  # so many of its sources' oldest rows a new view takes in at once, from whatever time they are
KEEP_S = 10.0  # how often what was learnt is kept: a kill loses no more


@dataclass
class LiveSettings:
    """How a warehouse is run."""

    schedule: Settings = field(default_factory=lambda: Settings(tracks=2))
    for_s: float | None = None  # None: until somebody stops it
    learnt: Mapping[str, Learnt] = field(default_factory=dict)


@dataclass
class _Task:
    """A job on its way through a track, and what came of it."""

    job: Job
    arrivals: dict[str, list[Arrival]]
    rows: int = 0
    late: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    failed: dict[str, BaseException] = field(default_factory=dict)  # by table


class LiveWarehouse:
    """A warehouse that runs. `run` does all of it; `stop` and `abort` may be called from anywhere."""

    def __init__(
        self,
        bound: Bound,
        settings: LiveSettings,
        spark: Any,
        log: EventLog,
        *,
        secrets: Mapping[str, str] | None = None,
        reopen: Callable[[], Bound] | None = None,
        clock: Callable[[], float] | None = None,
        control: RunControl | None = None,
        observer: Observer | None = None,
        keep: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """`keep` is told now and then what was learnt of the tables so far."""
        self.settings = settings
        self.spark = spark
        self.log = log
        self.secrets = secrets or {}
        self.reopen = reopen
        self.clock = clock or Clock()
        self.control = control or RunControl()
        self.watch = observer or Observer()
        self.keep = keep
        self.plans: dict[str, TablePlan] = {plan.name: plan for plan in tables_of(bound)}
        self.recent = RecentRows()
        self.stores: dict[str, TableStore] = {}
        self.feeds: dict[str, Feed] = {}
        self.waiting: dict[str, deque[Arrival]] = {}
        self.loading: dict[str, list[Arrival]] = {}  # what running jobs load
        self.done: queue.Queue[_Task] = queue.Queue()
        self.tracks: list[queue.Queue[_Task | None]] = []
        self.threads: list[Thread] = []
        self.running = 0
        self.stopping = False
        self.aborted = False
        self.busy_s = 0.0
        self.jobs = 0
        self.rows = 0
        self.failures: dict[str, int] = {}
        self.reasons: dict[str, str] = {}  # why tables failed that have not worked again
        self.held: dict[str, float] = {}  # tables that failed, and when they are tried again
        self._warm: set[str] = set()  # tables that were updated in this process: their first update takes far longer
        self._told_at = 0.0
        self._kept_at = 0.0
        self._looked_at = 0.0
        self._changed_at = _changed(bound.file)
        self._clock_told = False
        self.bound = bound  # at the start
        self.bounds: dict[str, Bound] = dict.fromkeys(self.plans, bound)  # what describes each table as long as it runs
        self.place = bound.place(self.secrets)

    # -- from outside

    def stop(self) -> None:
        """No job begins any more; those that run end first."""
        self.stopping = True

    def abort(self) -> None:
        """Drop what runs as well. Nothing of it was published, so the next start loads it."""
        self.stopping = self.aborted = True
        try:
            self.spark.sparkContext.cancelAllJobs()
        except Exception:
            return  # the JVM is gone already

    # -- the whole run

    def run(self) -> dict[str, Any]:
        """Keep every table as fresh as can be, until told to stop."""
        try:
            self._open()
            with letting_go():
                self._loop()
        finally:
            self._close()
        return self.summary()

    def _open(self) -> None:
        warehouse = warehouse_of(self.bound, self.plans.values())
        for plan in self.plans.values():
            self._open_store(plan)
        self.updater = Updater(self.bound, self.plans, self.stores, self.spark, self.place)
        self.updater.prepare()
        for plan in sorted(self.plans.values(), key=lambda plan: not plan.is_base):
            self._describe(plan)  # a base table that is refused comes before any view is made anew
        self.begin = now = self.clock()
        for plan in self.plans.values():
            self._open_feed(plan, now)
        fresh = {name: self._freshness(plan) for name, plan in self.plans.items()}
        self.scheduler = Scheduler(
            warehouse, self.settings.schedule, now=now, freshness=fresh, learnt=self.settings.learnt
        )
        self._catch_up(now)
        self.control.drive(self.control.pace, self.log.add, self.clock)
        if self.watch.began is not None:
            self.watch.began(now, self.scheduler)
        for number in range(self.settings.schedule.tracks):
            tasks: queue.Queue[_Task | None] = queue.Queue()
            self.tracks.append(tasks)
            self.threads.append(start_track(self.spark, f"track-{number}", partial(self._track, tasks)))

    def _open_store(self, plan: TablePlan) -> None:
        folder = self._home(plan)
        self.stores[plan.name] = TableStore(folder, plan.operator.time_column, plan.partition_us, self.recent)

    def _home(self, plan: TablePlan) -> Path:
        return self.bounds[plan.name].place(self.secrets).path(plan.operator.path)

    def _describe(self, plan: TablePlan) -> None:
        """See whether a table is still made of what it was made of: a view is made anew if not, a base table cannot."""
        name, store, bound = plan.name, self.stores[plan.name], self.bounds[plan.name]
        place = bound.place(self.secrets)
        columns = {field.name: str(field.type) for field in self.updater.arrow[name]}
        made = made_of(
            bound, plan, place, columns, {source: self.stores[source].version.made for source in plan.sources}
        )
        before = store.version.made
        if made == {key: value for key, value in before.items() if key != ID}:
            return
        if plan.is_base and (reason := strange(bound, plan, place, store.version, columns)):
            raise BadInput(f"{bound.file or bound.name}: node `{name}`: {reason}")
        version = store.version
        holds = version.fresh_us is not None or version.batches or version.position is not None
        anew = not plan.is_base or not holds
        if holds and before:
            what = "is made anew from its sources" if anew else "goes on, and the rows that it has stay as they are"
            self.log.add(Remark(message=f"table `{name}` is described otherwise than before: it {what}", node=name))
        store.describe({**made, ID: uuid4().hex if anew or ID not in before else before[ID]}, anew=anew)

    def _open_feed(self, plan: TablePlan, now: float) -> None:
        if plan.stream is None:
            return
        bound = self.bounds[plan.name]
        stream = bound.operators[plan.stream]
        assert isinstance(stream, Stream)
        assert plan.stream_time is not None
        name, place, columns = plan.name, bound.place(self.secrets), self.updater.arrow[plan.stream]
        self.feeds[name] = feed_of(
            stream, place, self.stores[name], columns, plan.stream_time, now,
            lambda message: self.log.add(Remark(message=f"table `{name}`: {message}", node=name)),
        )  # fmt: skip
        self.waiting[name] = deque()

    def _freshness(self, plan: TablePlan) -> float:
        """Up to when a table holds data; a new view over old tables is as old as these are."""
        version = self.stores[plan.name].version
        if version.fresh_us is not None:
            return version.fresh_us / MICROS if plan.is_base else before_s(version.fresh_us)
        return min([self.begin, *(self._begins(source) for source in plan.sources)])

    def _begins(self, source: str) -> float:
        """Where a new view of a table begins: its first rows are taken in at once, and its history part by part."""
        version = self.stores[source].version
        if version.safe_us is None:
            return self._freshness(self.plans[source])
        begin, rows = version.safe_us, 0
        for file in sorted(version.files.values(), key=lambda file: file.last_us):
            rows += file.rows
            if rows > FIRST_ROWS:
                begin = min(begin, file.first_us)
                break
        return before_s(begin) - BEHIND_S

    def _catch_up(self, now: float) -> None:
        """A stop or a kill may have come between a table and its views: these are behind, and are told so."""
        for plan in self.plans.values():
            self._safe_from(plan)
        self.scheduler.catch_up(now)

    def _safe_from(self, plan: TablePlan) -> None:
        """A base table is as safe as its journal says: what the scheduler supposes, its views may not reach."""
        if plan.is_base:
            self.scheduler.tables[plan.name].safe = safe_s(self.stores[plan.name].version)

    def _close(self) -> None:
        for tasks in self.tracks:
            tasks.put(None)
        for thread in self.threads:
            thread.join(10)
        for feed in self.feeds.values():
            feed.close()
        for store in self.stores.values():
            store.close()

    def _loop(self) -> None:
        end = None if self.settings.for_s is None else self.begin + self.settings.for_s
        while True:
            now = self.clock()
            self._tell(now)
            if end is not None and now >= end:
                self.stopping = True
            if self.stopping and not self.running:
                break
            if not self.stopping:
                self._look_at_file(now)
                self._arrivals(now)
                self._resume(now)
                self._decide(now)
            try:
                task = self.done.get(timeout=self._pause(now))
            except queue.Empty:
                continue
            self._ended(task)
            while not self.done.empty():
                self._ended(self.done.get())
            if self.aborted:
                break
        self.scheduler.account(self.clock())

    def _decide(self, now: float) -> None:
        """Begin what comes next, unless it is paused: then data arrive and wait, and each step is one decision."""
        control = self.control
        if control.asked:
            control.take([load.table for job in self.scheduler.running for load in job.loads])
        if control.pace.held:
            if not self.running:
                control.still()
            return
        jobs = self.scheduler.start(now)
        for job in jobs:
            self._begin(job, now)
        if jobs:
            control.pace.decided()

    def _pause(self, now: float) -> float:
        looks = [feed.next_look - now for feed in self.feeds.values()]
        return max(0.001, min([LONGEST_WAIT_S, *looks]))

    # -- what arrives

    def _arrivals(self, now: float) -> None:
        for name, feed in self.feeds.items():
            for arrival in feed.poll(now):
                table = self.scheduler.table(name)
                self._begin_earlier(name, arrival, now)
                self.waiting[name].append(arrival)
                upto = table.available if arrival.upto_us is None else arrival.upto_us / MICROS
                self.scheduler.arrive(name, upto, now)
                if self.watch.arrived is not None:
                    self.watch.arrived(now, name, upto)
                if arrival.safe_us is not None:
                    self.scheduler.punctuate(name, before_s(arrival.safe_us), now)

    def _begin_earlier(self, name: str, arrival: Arrival, now: float) -> None:
        """The first data of a table may be old: it and its views, empty as well, begin there and not now."""
        table = self.scheduler.table(name)
        if arrival.upto_us is None or self.stores[name].version.fresh_us is not None:
            return
        if any(other.upto_us is not None for other in (*self.waiting[name], *self.loading.get(name, ()))):
            return
        first = arrival.upto_us / MICROS - table.lateness - (table.periods.value or 1.0)
        below = self.scheduler.warehouse.descendants(name)
        empty = [one for one in below if self.stores[one].version.fresh_us is None]
        self.scheduler.begin_from([name, *empty], first, now)

    # -- jobs

    def _begin(self, job: Job, now: float) -> None:
        self.jobs += 1
        arrivals = {
            load.table: [self.waiting[load.table].popleft() for _ in range(load.batches)]
            for load in job.loads
            if load.batches
        }
        self.log.add(
            UpdateStarted(
                time=now, job=job.number, track=job.track, tables=list(job.tables), expected_s=round(job.expected_s, 4)
            )
        )
        if self.watch.started is not None:
            self.watch.started(now, job)
        self.running += 1
        self.loading |= arrivals
        self.tracks[job.track].put(_Task(job, arrivals))

    def _track(self, tasks: queue.Queue[_Task | None]) -> None:
        """A track: one job at a time."""
        while (task := tasks.get()) is not None:
            if len(task.job.loads) > 1:
                self._update_together(task)
            for load in task.job.loads:
                try:
                    if load.table not in task.versions and load.table not in task.failed:
                        self._update(task, load.table, load.upto)
                except BaseException as error:
                    task.failed[load.table] = error
            self.done.put(task)

    def _update_together(self, task: _Task) -> None:
        """One job for all of them. Where one fails, none of those that are left is published: each goes by itself."""
        plans = [self.updater.plans[load.table] for load in task.job.loads]
        try:
            for name, done in self.updater.follow_together(plans, last_us(task.job.loads[0].upto)):
                self._updated(task, name, done)
        except BaseException as error:
            if self.aborted:
                task.failed = dict.fromkeys((plan.name for plan in plans if plan.name not in task.versions), error)

    def _update(self, task: _Task, name: str, upto: float) -> None:
        plan = self.updater.plans[name]
        if not plan.is_base:
            self._updated(task, name, self.updater.follow(plan, last_us(upto)))
            return
        arrivals, feed = task.arrivals.get(name, []), self.feeds[name]
        try:
            self._updated(task, name, self.updater.load(plan, feed, arrivals, self.clock()))
        except Exception as error:
            if self.aborted or not isinstance(feed, FolderFeed) or not by_a_record(error):
                raise
            self._one_by_one(task, plan, feed, arrivals, error)

    def _one_by_one(
        self, task: _Task, plan: TablePlan, feed: FolderFeed, arrivals: Sequence[Arrival], error: Exception
    ) -> None:
        """A record makes the plan fail: each arrival is loaded by itself, and who fails alone is put aside.

        That is no file's fault where the plan has yet to work with any: then nothing is put aside.
        """
        name = plan.name
        works, bad, done = name in self._warm, [], []
        for arrival in arrivals:
            try:
                done.append(self.updater.load(plan, feed, [arrival], self.clock()))
                works = works or bool(arrival.rows)
            except Exception as alone:
                if self.aborted or not by_a_record(alone):
                    raise
                bad.append((arrival, alone))
        if bad and not works:
            raise error
        for arrival, problem in bad:
            node = problem.node if isinstance(problem, NodeFailed) and problem.node else name
            feed.put_aside(arrival, f"node `{node}`: {reason_of(problem)}")
        for one in done:
            self._updated(task, name, one)
        task.versions[name] = self.stores[name].version

    def _updated(self, task: _Task, name: str, done: Updated) -> None:
        task.rows += done.rows
        task.late += done.late
        for node, rows in done.refused.items():
            task.refused[node] = task.refused.get(node, 0) + rows
        task.versions[name] = done.version

    def _ended(self, task: _Task) -> None:
        now = self.clock()
        self.running -= 1
        self.busy_s += now - task.job.started
        job, failed = task.job, bool(task.failed)
        names = [load.table for load in job.loads]
        reasons = {name: self._reason(name, error) for name, error in task.failed.items()}
        for name in task.arrivals:
            self.loading.pop(name, None)
        safe = {}
        if not failed:
            job.loads = tuple(self._as_it_came_out(load, task.versions[load.table]) for load in job.loads)
            safe = {name: safe_s(task.versions[name]) for name in task.arrivals}
            for name in names:
                self._worked(name)
        else:
            for name, arrivals in task.arrivals.items():
                if name not in task.versions:
                    self.waiting[name].extendleft(reversed(arrivals))
        cold = [name for name in names if name not in self._warm]
        self.scheduler.finish(job, now, failed=failed, cold=bool(cold), hold=task.failed, safe=safe)
        if not failed:
            self._warm.update(cold)
            if self.watch.finished is not None:
                self.watch.finished(now, job)
        self.rows += task.rows
        self.log.add(
            UpdateFinished(
                time=now, job=job.number, track=job.track, tables=names, seconds=round(now - job.started, 4),
                rows=task.rows, late=task.late, failed=next(iter(reasons.values()), None),
            )
        )  # fmt: skip
        for node, rows in task.refused.items():
            self.log.add(RowsRefused(node=node, port="", rows=rows, total=rows + task.rows))
        for name in names:
            self._tell_table(name, now)
        if not self.aborted:
            for name, reason in reasons.items():
                self._again(name, reason, task.failed[name], now)

    def _as_it_came_out(self, load: Load, version: Version) -> Load:
        """What a job really loaded.

        A view may have had to end where its sources' buckets end, or could not begin. Of what arrived for a base
        table, not all may have been there any more, and promises bring no data.
        """
        if not load.batches:
            return load._replace(upto=load.after if version.fresh_us is None else before_s(version.fresh_us))
        table = self.scheduler.tables.get(load.table)
        before = load.after if table is None else table.freshness  # it may begin earlier by now
        return load._replace(upto=before if version.fresh_us is None else max(before, version.fresh_us / MICROS))

    def _reason(self, name: str, error: BaseException) -> str:
        node = error.node if isinstance(error, NodeFailed) and error.node else name
        if isinstance(error, NodeFailed):
            text = error.reason
        else:
            text = str(error) if isinstance(error, OSError | PapilioError) else reason_of(error)
        return f"{self.bound.file or self.bound.name}: table `{name}`, node `{node}`: {text}"

    def _again(self, name: str, reason: str, error: BaseException, now: float) -> None:
        """An update failed and published nothing. It is tried again later and later, and the other tables go on.

        What comes from outside, like a database that is away, may come right by itself; what a record makes fail, once
        the next start has another plan for it. Without Spark none would.
        """
        failed = self.failures[name] = self.failures.get(name, 0) + 1
        if failed > RETRIES and java_died(error):
            self.stop()
            while self.running:
                self._ended(self.done.get())
            raise RunFailed(reason)
        self.held[name] = now + min(RETRY_S * 2 ** min(failed - 1, 10), MOST_RETRY_S)
        if self.reasons.get(name) != reason:  # told once, and again where it is another one
            self.reasons[name] = reason
            self.log.add(Remark(message=f"{reason}; it is tried again until it works", node=name))

    def _resume(self, now: float) -> None:
        """Tables that failed are tried again once they have waited."""
        for name in [name for name, at in self.held.items() if at <= now]:
            del self.held[name]
            self.scheduler.resume(name, now)

    def _worked(self, name: str) -> None:
        failed = self.failures.pop(name, 0)
        self.reasons.pop(name, None)
        if failed:
            self.log.add(Remark(message=f"table `{name}` works again, at try {failed + 1}", node=name))

    # -- what is told

    def _tell(self, now: float) -> None:
        backwards = getattr(self.clock, "backwards_s", 0.0)
        if backwards and not self._clock_told:
            self._clock_told = True
            self.log.add(
                Remark(message=f"the clock went back by {backwards:.1f} s; the warehouse goes on in its own time")
            )
        if now - self._told_at >= SAMPLE_S:
            self._told_at = now
            for name in self.scheduler.tables:
                self._tell_table(name, now)
        if self.keep is not None and now - self._kept_at >= KEEP_S:
            self._kept_at = now
            if learnt := self.learnt():
                self.keep(learnt)

    def _tell_table(self, name: str, now: float) -> None:
        table = self.scheduler.tables.get(name)
        if table is not None:
            self.log.add(
                TableStaleness(
                    time=now, table=name, staleness=round(max(table.staleness(now), 0.0), 4), bound=table.bound
                )
            )

    # -- tables that come and go

    def _look_at_file(self, now: float) -> None:
        if self.reopen is None or now - self._looked_at < FILE_LOOK_S:
            return
        self._looked_at = now
        changed = _changed(self.bound.file)
        if changed == self._changed_at:
            return
        self._changed_at = changed
        try:
            bound = self.reopen()
            plans = {plan.name: plan for plan in tables_of(bound)}
            warehouse_of(bound, plans.values())
        except (PapilioError, OSError) as error:
            self.log.add(
                Remark(message=f"the file changed and does not hold; the warehouse goes on as it was: {error}")
            )
            return
        self._change_tables(bound, plans, now)

    def _change_tables(self, bound: Bound, plans: dict[str, TablePlan], now: float) -> None:
        """Take tables in that the file has now, and leave those that it has no more. Their data stay.

        A table that is kept stays as it was described when it came.
        """
        gone = self._gone(plans)
        if any(load.table in gone for job in self.scheduler.running for load in job.loads):
            self._changed_at = 0.0  # once they are idle
            return
        changed = {name for name, plan in plans.items() if name in self.plans and self._differs(bound, plan)}
        for name in sorted(changed):
            message = f"table `{name}` changed in the file; that holds from the next start on"
            self.log.add(Remark(message=message, node=name))
        for name in reversed(list(self.plans)):
            if name in gone:
                self.scheduler.remove_table(name, now)
                self._forget(name)
                self.log.add(Remark(message=f"table `{name}` is no longer kept; its data stay", node=name))
            elif name not in plans:
                message = f"table `{name}` is kept until the next start: others that run derive from it"
                self.log.add(Remark(message=message, node=name))
        for name, plan in plans.items():
            if name not in self.plans:
                try:
                    self._join(bound, plan, plans, now)
                except Exception as error:  # whatever is wrong with a new table, those that run go on
                    self._forget(name)
                    node = error.node if isinstance(error, NodeFailed) and error.node else name
                    reason = str(error) if isinstance(error, OSError | PapilioError) else reason_of(error)
                    message = f"{bound.file or bound.name}: node `{node}`: table `{name}` cannot join: {reason}"
                    self.log.add(Remark(message=f"{message}; the warehouse goes on as it was", node=name))
                else:
                    self.log.add(Remark(message=f"table `{name}` joined", node=name))

    def _gone(self, plans: Mapping[str, TablePlan]) -> set[str]:
        """Tables that the file has no more, and that nothing which stays derives from."""
        gone = {name for name in self.plans if name not in plans}
        for name in reversed(list(self.plans)):  # views before their sources
            if name not in gone:
                gone -= set(self.plans[name].sources)
        return gone

    def _join(self, bound: Bound, plan: TablePlan, plans: Mapping[str, TablePlan], now: float) -> None:
        """A table joins; raises where it cannot, and then `_forget` takes it out again."""
        name, place = plan.name, bound.place(self.secrets)
        for source in plan.sources:
            if source not in self.plans:
                raise BadInput(f"its source `{source}` could not join")
            if _times(plans[source]) != _times(self.plans[source]):  # its plan reckons with the times that will be
                raise BadInput(
                    f"the times of its source `{source}` changed in the file; that holds from the next start on"
                )
        stream = bound.operators[plan.stream] if plan.stream is not None else None
        reason = unfit(place.path(plan.operator.path), {other: self._home(kept) for other, kept in self.plans.items()})
        if isinstance(stream, Stream):
            reason = stream.missing(place) or reason
        if reason:
            raise BadInput(reason)
        self.bounds[name] = bound
        self._open_store(plan)
        self.updater.enter(bound, plan, place)
        self._describe(plan)
        self._open_feed(plan, now)
        self.plans[name] = plan
        self.scheduler.add_table(spec_of(plan, scan_share_of(bound, plan)), now, self._freshness(plan))
        self._safe_from(plan)

    def _forget(self, name: str) -> None:
        """A table that left, or could not come: nothing of it is open any more."""
        if name in self.feeds:
            self.feeds.pop(name).close()
        if name in self.stores:
            self.stores.pop(name).close()
        self.updater.leave(name)
        for known in (self.plans, self.bounds, self.waiting, self.failures, self.reasons, self.held):
            known.pop(name, None)

    def _differs(self, bound: Bound, plan: TablePlan) -> bool:
        """Whether a table is described otherwise than it was, or what stands between it and its sources."""
        before, kept = self.bounds[plan.name], self.plans[plan.name]
        if plan != kept or way_of(bound, plan) != way_of(before, kept):
            return True
        return plan.stream is not None and bound.operators[plan.stream] != before.operators[plan.stream]

    # -- what came of it

    def summary(self) -> dict[str, Any]:
        """Staleness, bounds kept and broken, and what was learnt of every table."""
        now = self.clock()
        seconds = max(now - self.begin, 1e-9)
        tables = tables_report(self.scheduler, seconds)
        for name, table in tables.items():
            version = self.stores[name].version
            table |= {"rows": version.rows, "late_rows": version.late_rows, "version": version.number}
        return {
            "seconds": round(seconds, 3),
            "jobs": self.jobs,
            "rows": self.rows,
            "utilization": round(self.busy_s / seconds / self.settings.schedule.tracks, 4),
            "weighted_staleness": round(weighted_staleness(self.scheduler, seconds), 4),
            "bounds": bounds_report(self.scheduler),
            "held": dict(self.reasons),  # tables that failed, and were tried in vain until the end
            "tables": tables,
            "learnt": self.learnt(),
        }

    def learnt(self) -> dict[str, Any]:
        """What updates cost and how often data come, as far as it is known by now."""
        return {name: vars(learnt) for name, learnt in self.scheduler.learnt().items()}


def safe_s(version: Version) -> float:
    """The scheduler's safe edge of a base table; none yet where nothing was loaded."""
    return -NEVER if version.safe_us is None else before_s(version.safe_us)


def _times(plan: TablePlan) -> tuple[str, int]:
    return plan.operator.time_column, plan.granule_us


def _changed(file: Path | None) -> float:
    try:
        return file.stat().st_mtime if file is not None else 0.0
    except OSError:
        return 0.0
