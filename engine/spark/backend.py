"""What a run asks of Spark beyond the DataFrame API, for each way of reaching Spark.

Plans are made of the DataFrame API alone, so they run wherever that is spoken. Job groups, FAIR pools, task counts
and counting in passing are classic Spark's; a backend says what it has, and does without what it has not.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import psutil
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from engine.spark.connect import cancel_connected, speaks_connect
from engine.spark.session import activate

FIRST_POOL = "papilio-first"  # see resources/spark/pools.xml


class Backend(ABC):
    """One way of reaching Spark."""

    counts_in_passing: ClassVar[bool]  # a job that runs anyway can count rows beside (Observation)
    row_packs: ClassVar[bool]  # units can be cut into row packs, which takes Spark's own file layout

    def __init__(self, session: SparkSession) -> None:
        self.session = session

    @abstractmethod
    def thread(self, work: Callable[[], None], name: str) -> threading.Thread:
        """A thread, not started yet, whose jobs are told apart from those of others."""

    @abstractmethod
    def enter(self, group: str, unit: str, first: bool = False) -> None:
        """From here on this thread's jobs are the unit's. `first`: a core that is free is theirs before others'."""

    @abstractmethod
    def tasks(self, group: str) -> tuple[int, int]:
        """How many tasks of a group's jobs are done, of how many; (0, 0) where nobody knows."""

    @abstractmethod
    def cores(self) -> int | None:
        """How many tasks run at a time; None where nobody knows."""

    @abstractmethod
    def cancel(self) -> None:
        """Drop every job."""


class Classic(Backend):
    """A session on a JVM of this process's own: local, or a cluster's driver."""

    counts_in_passing = True
    row_packs = True

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session)
        self._open: dict[int, tuple[int, int]] = {}  # job → its tasks that are done, of how many
        self._ended: dict[int, tuple[int, int]] = {}

    def thread(self, work: Callable[[], None], name: str) -> threading.Thread:
        return InheritableThread(target=work, name=name, daemon=True)

    def enter(self, group: str, unit: str, first: bool = False) -> None:
        activate(self.session)
        context = self.session.sparkContext
        context.setJobGroup(group, unit, interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", FIRST_POOL if first else unit)

    def tasks(self, group: str) -> tuple[int, int]:
        # While the group's jobs run, so with few questions: the fields of an ended job are not asked for again.
        context: Any = self.session.sparkContext._jsc.sc()
        jvm: Any = self.session.sparkContext._jvm
        store, listed = context.statusStore(), context.statusTracker().getJobIdsForGroup(group)
        numbers = [int(text) for text in re.findall(r"\d+", jvm.java.util.Arrays.toString(listed))]
        for number in numbers:
            if number not in self._ended:
                job = store.job(number)
                found = (job.numCompletedTasks(), job.numTasks() - job.numSkippedTasks())
                (self._ended if job.completionTime().isDefined() else self._open)[number] = found
        known = {**self._open, **self._ended}
        return sum(known[number][0] for number in numbers), sum(known[number][1] for number in numbers)

    def cores(self) -> int | None:
        context: Any = self.session.sparkContext
        named = cores_of(context.master)
        if named is not None and context.master != "local[*]":
            return named
        spark = context._jsc.sc()  # which copies its settings in one step; Python's copy asks for each of them
        if spark.getConf().contains("spark.default.parallelism"):
            return named  # a person's own number is none of cores
        if named is None and spark.getExecutorMemoryStatus().size() < 2:
            return None  # a cluster's number is not known before its executors came
        return int(context.defaultParallelism)

    def cancel(self) -> None:
        self.session.sparkContext.cancelAllJobs()


class Connected(Backend):
    """A session over Spark Connect: a server of Spark's, or Sail."""

    counts_in_passing = False
    row_packs = False

    def thread(self, work: Callable[[], None], name: str) -> threading.Thread:
        return threading.Thread(target=work, name=name, daemon=True)

    def enter(self, group: str, unit: str, first: bool = False) -> None:
        pass

    def tasks(self, group: str) -> tuple[int, int]:
        return 0, 0

    def cores(self) -> int | None:
        return None

    def cancel(self) -> None:
        cancel_connected(self.session)


def cores_of(master: str) -> int | None:
    """The cores that a master's name tells of, before Spark is there; None where only the cluster knows."""
    if master == "local":
        return 1
    local = re.fullmatch(r"local\[(\d+|\*)(?:,\s*\d+)?\]", master)
    if local:
        return psutil.cpu_count() if local[1] == "*" else int(local[1])
    cluster = re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master)
    return int(cluster[1]) * int(cluster[2]) if cluster else None


def backend_of(session: SparkSession) -> Backend:
    """The backend that a session belongs to."""
    return Connected(session) if speaks_connect(session) else Classic(session)
