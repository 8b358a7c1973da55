"""Spark's jobs and stages of a run, as events. From the status store of classic Spark; others have none."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engine.events import Event, SparkJob

POLL_SECONDS = 0.5
LAST_SECONDS = 1.0  # after the run's end, for what Spark's listeners have not heard yet
WAIT_SECONDS = 2 * LAST_SECONDS  # where a look takes long as well
LAST_POLL_SECONDS = 0.02
LONG_POLL_SECONDS = 1.0  # where looking takes long; Spark forgets all but the last hundred jobs
SHARE = 0.01  # of the time that looking may take: it is the JVM's time too, and that has work to do
LATE = 20  # jobs that may still be on their way to the store when younger ones are there
FEW = 3  # stages are asked for one by one
SPARE = 8  # stages asked for beyond those that are looked for, as others may have begun meanwhile


class JobWatch:
    """Tells of every job whose group begins with the run's name: when it began, how far it is, how it ended.

    A question to the JVM takes longer than its answer, and a run in packs has a job for every turn: what is new comes
    in one answer, as Spark's own REST service writes it. It comes through a file: over the gateway's socket an answer
    of more than 8 KB waits 40 ms for an acknowledgement.
    """

    def __init__(self, spark: SparkSession, run: str, first: int) -> None:
        self._prefix = f"{run}/"
        context: Any = spark.sparkContext._jsc.sc()
        self._store = context.statusStore()
        self._scheduler = context.dagScheduler()
        self._next = first
        gateway: Any = spark.sparkContext._gateway
        self._writer = _writer(gateway)
        self._no_quantiles = gateway.new_array(gateway.jvm.double, 0)
        scratch = (spark.sparkContext._conf.get("spark.local.dir", "") or "").partition(",")[0]
        handle, path = tempfile.mkstemp(prefix="jobs-", suffix=".json", dir=scratch if os.path.isdir(scratch) else None)
        os.close(handle)
        self._answer = Path(path)
        try:
            self._answer_in_java = gateway.jvm.java.io.File(path)
        except BaseException:
            self.close()
            raise
        self._open: dict[int, tuple[Any, ...]] = {}  # jobs under way, as they were last told

    def poll(self) -> list[SparkJob]:
        """What is new since the last look."""
        fresh = self._fresh()
        if fresh and min(fresh) > self._next + LATE:
            self._next = min(fresh)  # those before it are forgotten already
        while self._next in fresh:
            self._open[self._next] = ()
            self._next += 1
        jobs = {number: fresh.get(number) or self._one(self._store.job, number) for number in self._open}
        ours = {number: data for number, data in jobs.items() if data and self._unit(data) is not None}
        stages = self._stages({stage for data in ours.values() for stage in data["stageIds"]})
        told = []
        for number in jobs:
            event = self._event(number, ours[number], stages) if number in ours else None
            if event is None or event.ended is not None:
                before = self._open.pop(number)
            else:
                before = self._open[number]
                self._open[number] = _shape(event)
            if event is not None and before != _shape(event):
                told.append(event)
        return told

    def is_behind(self) -> bool:
        """Whether something is to be told yet: a job goes on, or has begun and the store has not heard of it."""
        return bool(self._open) or self._scheduler.numTotalJobs() > self._next

    def _fresh(self) -> dict[int, dict[str, Any]]:
        """The jobs that began since the last look, and maybe some before them. The store has the newest first."""
        count = self._scheduler.numTotalJobs() - self._next
        return {data["jobId"]: data for data in self._many(self._store.jobsList(None), count)} if count else {}

    def _stages(self, wanted: set[int]) -> dict[int, dict[str, Any]]:
        """What is known of these stages, of each its last attempt."""
        found: dict[int, dict[str, Any]] = {}
        if len(wanted) > FEW:
            newest = self._store.stageList(None, False, False, self._no_quantiles, None)
            for data in self._many(newest, len(wanted) + SPARE):
                found.setdefault(data["stageId"], data)
        for stage in wanted - found.keys():
            known = self._one(self._store.lastStageAttempt, stage)
            if known is not None:
                found[stage] = known
        return found

    def _many(self, newest_first: Any, count: int) -> list[dict[str, Any]]:
        self._writer.writeValue(self._answer_in_java, newest_first.take(count))
        known: list[dict[str, Any]] = json.loads(self._answer.read_bytes())
        return known

    def close(self) -> None:
        """Nothing more is asked."""
        self._answer.unlink(missing_ok=True)

    def _one(self, ask: Callable[[int], Any], number: int) -> dict[str, Any] | None:
        try:
            known: dict[str, Any] = json.loads(self._writer.writeValueAsString(ask(number)))
        except Exception:
            return None  # not there yet, or no longer
        return known

    def _unit(self, data: dict[str, Any]) -> str | None:
        group = data.get("jobGroup")
        return group.removeprefix(self._prefix) if group and group.startswith(self._prefix) else None

    def _event(self, number: int, data: dict[str, Any], stages: dict[int, dict[str, Any]]) -> SparkJob:
        return SparkJob(
            job=number,
            unit=self._unit(data) or "",
            status=data["status"].lower(),
            started=_seconds(data.get("submissionTime")),
            ended=_seconds(data.get("completionTime")),
            stages=[_stage(stage, stages.get(stage)) for stage in data["stageIds"]],
        )


@lru_cache(maxsize=1)
def _writer(gateway: Any) -> Any:
    """What writes answers as JSON; making one takes a while."""
    return gateway.jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()


def _stage(number: int, data: dict[str, Any] | None) -> dict[str, Any]:
    if data is None:
        return {"stage": number, "name": "", "tasks": 0, "tasks_done": 0, "status": "skipped"}
    return {
        "stage": number,
        "name": data["name"].partition(" at ")[0],
        "tasks": data["numTasks"],
        "tasks_done": data["numCompleteTasks"],
        "tasks_running": data.get("numActiveTasks", 0),
        "status": data["status"].lower(),
        "started": _seconds(data.get("submissionTime")),
        "ended": _seconds(data.get("completionTime")),
        "busy_s": data.get("executorRunTime", 0) / 1000,
    }


class JobsTold:
    """Tells the jobs of a run as events, from a thread of its own."""

    def __init__(self, spark: SparkSession, run: str, tell: Callable[[Event], None]) -> None:
        self._hear = tell
        self._telling = threading.Lock()
        self._over = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        with contextlib.suppress(Exception):  # not a classic Spark
            context: Any = spark.sparkContext._jsc.sc()
            first = context.dagScheduler().numTotalJobs()  # now; what else the watch needs, it gets beside the run
            self._thread = threading.Thread(target=self._follow, args=(spark, run, first), name="jobs", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The last job has ended. It is told meanwhile; who needs all of them waits."""
        self._stop.set()

    def wait(self, seconds: float = WAIT_SECONDS) -> None:
        """Until all jobs are told, so long at most. From then on nothing more is told."""
        if self._thread is not None:
            self._thread.join(seconds)
        with self._telling:
            self._over = True

    def _follow(self, spark: SparkSession, run: str, first: int) -> None:
        with contextlib.suppress(Exception):  # a dead JVM is told by the unit that needs it
            watch = JobWatch(spark, run, first)
            try:
                rest = POLL_SECONDS
                while not self._stop.wait(rest):
                    begun = time.monotonic()
                    self._look(watch)
                    rest = min(LONG_POLL_SECONDS, max(POLL_SECONDS, (time.monotonic() - begun) / SHARE))
                self._look(watch)
                deadline = time.monotonic() + LAST_SECONDS
                while watch.is_behind() and time.monotonic() < deadline:
                    time.sleep(LAST_POLL_SECONDS)
                    self._look(watch)
            finally:
                watch.close()

    def _look(self, watch: JobWatch) -> None:
        with contextlib.suppress(Exception):  # as above; the next look may succeed
            for event in watch.poll():
                self._tell(event)

    def _tell(self, event: Event) -> None:
        with self._telling:
            if not self._over:
                self._hear(event)


def _shape(event: SparkJob) -> tuple[Any, ...]:
    """What of a job is worth telling again."""
    return (event.status, *((stage["tasks_done"], stage.get("tasks_running")) for stage in event.stages))


def _seconds(moment: str | None) -> float | None:
    if moment is None:
        return None
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()
