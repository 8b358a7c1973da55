"""Spark's jobs and stages over time, as the log tells them: when each ran, and how many cores its tasks kept busy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.events import RunStarted, SparkJob
from engine.recording.columns import Floats
from engine.recording.recording import RunRecording

SHORTEST_S = 0.001  # Spark's own clock has no finer beat


@dataclass
class Job:
    """One job; times are seconds since the run's start."""

    number: int
    unit: str
    lane: int  # jobs that run at the same time have different ones
    begin: float
    end: float | None = None
    told: list[tuple[float, SparkJob]] = field(default_factory=list)  # one after the other

    def at(self, moment: float) -> SparkJob | None:
        """What was known of it at a moment; of one that had ended by then, how it ended."""
        if self.end is not None and self.end <= moment:
            return self.told[-1][1]
        return next((event for at, event in reversed(self.told) if at <= moment and event.ended is None), None)


def tasks(job: SparkJob) -> tuple[int, int]:
    """How many tasks of a job are done, of how many; a stage that was skipped has none."""
    stages = [stage for stage in job.stages if stage.get("status") != "skipped"]
    return sum(stage.get("tasks_done", 0) for stage in stages), sum(stage.get("tasks", 0) for stage in stages)


@dataclass
class JobSeries:
    """Grows with the recording: `read` takes what is new."""

    jobs: list[Job] = field(default_factory=list)
    lanes: list[Job] = field(default_factory=list)  # the last job of each
    timed: bool = False  # some stage tells how long its tasks took
    _open: dict[int, Job] = field(default_factory=dict)
    _known: dict[int, Job] = field(default_factory=dict)
    _spans: list[tuple[float, float, float]] = field(default_factory=list)  # from, to, cores; of stages that are done
    _summed: set[int] = field(default_factory=set)  # stages in `_spans`
    _read: int = 0

    def read(self, recording: RunRecording) -> None:
        """Take the events since the last time."""
        count = len(recording.event_times)  # an event is there before its time
        for number in range(self._read, count):
            event = recording.events[number]
            if isinstance(event, SparkJob) and event.started is not None:
                self._take(recording.begin, recording.event_times[number], event)
            elif isinstance(event, RunStarted):  # another JVM counts its jobs and stages anew
                self._known, self._open, self._summed = {}, {}, set()
        self._read = count

    def _take(self, zero: float, at: float, event: SparkJob) -> None:
        assert event.started is not None
        job = self._known.get(event.job)
        if job is None:
            begin = max(0.0, event.started - zero)
            job = Job(event.job, event.unit, self._free(begin), begin)
            self.jobs.append(job)
            self._known[event.job] = self._open[event.job] = job
            self.lanes[job.lane : job.lane + 1] = [job]
        job.told.append((at, event))
        if event.ended is not None:
            job.end = max(job.begin, event.ended - zero)
            self._open.pop(event.job, None)
            self._spans += self._done(zero, event)

    def _free(self, begin: float) -> int:
        for lane, last in enumerate(self.lanes):
            if last.end is not None and last.end <= begin:
                return lane
        return len(self.lanes)

    def _done(self, zero: float, event: SparkJob) -> Iterator[tuple[float, float, float]]:
        """The stages of a job that is over: the time of their tasks, spread evenly."""
        for stage in event.stages:
            started, ended, busy_s = stage.get("started"), stage.get("ended"), stage.get("busy_s")
            if started is None or ended is None or busy_s is None or stage["stage"] in self._summed:
                continue
            self._summed.add(stage["stage"])
            self.timed = True
            length = max(ended - started, SHORTEST_S)
            yield started - zero, started - zero + length, busy_s / length

    def _running(self, now: float) -> Iterator[tuple[float, float, float]]:
        """The jobs that are not over: the tasks that ran whenever somebody looked, until the next look."""
        for job in self._open.values():
            ends = [at for at, _ in job.told[1:]]
            begins = [job.begin, *ends]
            for begin, end, (_, event) in zip(begins, [*ends, max(now, begins[-1])], job.told, strict=True):
                yield begin, end, float(sum(stage.get("tasks_running") or 0 for stage in event.stages))

    def busy(self, edges: Floats, now: float) -> Floats | None:
        """The cores that tasks kept busy between two edges, on average; None where the log does not say."""
        open_ = list(self._running(now))
        if not self.timed and not any(height for _, _, height in open_):
            return None
        spans = np.array([*self._spans, *open_], dtype=np.float64).reshape(-1, 3)
        begins, ends, heights = spans.T
        grown = _grown(edges, begins, heights) - _grown(edges, ends, heights)
        return np.maximum(np.diff(grown) / np.maximum(np.diff(edges), 1e-12), 0.0)


def _grown(at: Floats, begins: Floats, heights: Floats) -> Floats:
    """The sum of all heights times the time since they began, at each moment."""
    order = np.argsort(begins)
    begins, heights = begins[order], heights[order]
    sums = np.concatenate(([0.0], np.cumsum(heights)))
    moments = np.concatenate(([0.0], np.cumsum(heights * begins)))
    place = np.searchsorted(begins, at, side="right")
    found: Any = sums[place] * at - moments[place]
    return np.asarray(found, dtype=np.float64)
