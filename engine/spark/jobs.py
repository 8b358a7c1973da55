"""Spark's jobs and stages of a run, as events. From the status store of classic Spark; others have none."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from engine.events import Event, SparkJob

POLL_SECONDS = 0.5
MOST = 200  # jobs looked at in one go; the others come with the next


class JobWatch:
    """Tells of every job whose group begins with the run's name: when it began, how far it is, how it ended."""

    def __init__(self, spark: SparkSession, run: str) -> None:
        self._prefix = f"{run}/"
        context: Any = spark.sparkContext._jsc.sc()
        self._store = context.statusStore()
        self._scheduler = context.dagScheduler()
        # As Spark's own REST service writes them: one question for all that is known of a job, not one for each field.
        jvm: Any = spark.sparkContext._jvm
        self._writer = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        self._next = self._scheduler.numTotalJobs()
        self._open: dict[int, tuple[Any, ...]] = {}  # jobs under way, as they were last told

    def poll(self) -> list[SparkJob]:
        """What is new since the last look."""
        told = []
        for _ in range(min(MOST, self._scheduler.numTotalJobs() - self._next)):
            if self._job(self._next) is None:
                break
            self._open[self._next] = ()
            self._next += 1
        for number in list(self._open):
            data = self._job(number)
            event = None if data is None else self._event(number, data)
            if event is None or event.ended is not None:
                before = self._open.pop(number)
            else:
                before = self._open[number]
                self._open[number] = _shape(event)
            if event is not None and before != _shape(event):
                told.append(event)
        return told

    def _job(self, number: int) -> dict[str, Any] | None:
        try:
            return self._known(self._store.job(number))
        except Exception:
            return None  # not there yet, or no longer

    def _known(self, of: Any) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(self._writer.writeValueAsString(of))
        return known

    def _event(self, number: int, data: dict[str, Any]) -> SparkJob | None:
        group = data.get("jobGroup")
        if group is None or not group.startswith(self._prefix):
            return None
        return SparkJob(
            job=number,
            unit=group.removeprefix(self._prefix),
            status=data["status"].lower(),
            started=_seconds(data.get("submissionTime")),
            ended=_seconds(data.get("completionTime")),
            stages=[self._stage(stage) for stage in data["stageIds"]],
        )

    def _stage(self, number: int) -> dict[str, Any]:
        try:
            stage = self._known(self._store.lastStageAttempt(number))
        except Exception:
            return {"stage": number, "name": "", "tasks": 0, "tasks_done": 0, "status": "skipped"}
        return {
            "stage": number,
            "name": stage["name"].partition(" at ")[0],
            "tasks": stage["numTasks"],
            "tasks_done": stage["numCompleteTasks"],
            "status": stage["status"].lower(),
        }


class JobsTold:
    """Tells the jobs of a run as events, from a thread of its own."""

    def __init__(self, spark: SparkSession, run: str, tell: Callable[[Event], None]) -> None:
        self._tell = tell
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        with contextlib.suppress(Exception):  # not a classic Spark
            self._watch = JobWatch(spark, run)
            self._thread = threading.Thread(target=self._follow, name="jobs", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The last job has ended. It is told meanwhile; who needs all of them waits."""
        self._stop.set()

    def wait(self) -> None:
        """Until all jobs are told."""
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self._look()
        self._look()

    def _look(self) -> None:
        with contextlib.suppress(Exception):  # a dead JVM is told by the unit that needs it
            for event in self._watch.poll():
                self._tell(event)


def _shape(event: SparkJob) -> tuple[Any, ...]:
    """What of a job is worth telling again."""
    return (event.status, *(stage["tasks_done"] for stage in event.stages))


def _seconds(moment: str | None) -> float | None:
    if moment is None:
        return None
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S.%fGMT").replace(tzinfo=UTC).timestamp()
