"""Telling Spark's jobs: to the last of them, for a moment at most, and nothing afterwards. No Spark is needed for it."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from engine.events import SparkJob
from engine.spark import jobs as module
from engine.spark.jobs import JobsTold, JobWatch


def spark_with(jvm=None):
    """As much of a session as the watch asks for; `jvm` stands for Java's classes."""
    scheduler = SimpleNamespace(numTotalJobs=lambda: 1)
    context = SimpleNamespace(dagScheduler=lambda: scheduler, statusStore=lambda: None)
    gateway = SimpleNamespace(jvm=jvm, new_array=lambda *asked: None)
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jsc=SimpleNamespace(sc=lambda: context), _gateway=gateway, _conf=SimpleNamespace(get=lambda *asked: "")
        )
    )


def job(status, ended=None):
    return SparkJob(job=0, unit="u", status=status, started=1.0, ended=ended, stages=[])


class Watched:
    """In place of the watch: one job, whose end the store hears of at the given look."""

    def __init__(self, ends_at):
        self.looks = 0
        self.ends_at = ends_at
        self.closed = False

    def __call__(self, *given):
        return self

    def poll(self):
        self.looks += 1
        if self.looks == self.ends_at:
            return [job("succeeded", 2.0)]
        return [job("running")] if self.looks == 1 else []

    def is_behind(self):
        return self.looks < self.ends_at

    def close(self):
        self.closed = True


def told_of(monkeypatch, watch):
    monkeypatch.setattr(module, "JobWatch", watch)
    told = []
    return JobsTold(spark_with(), "run", told.append), told


def test_a_job_whose_end_is_still_on_its_way_to_the_store_is_told_as_ended(monkeypatch):
    jobs, told = told_of(monkeypatch, Watched(ends_at=4))
    jobs.stop()
    jobs.wait()
    assert [event.status for event in told] == ["running", "succeeded"]


def test_where_nothing_is_behind_nobody_waits(monkeypatch):
    watch = Watched(ends_at=1)
    jobs, told = told_of(monkeypatch, watch)
    begun = time.monotonic()
    jobs.stop()
    jobs.wait()
    assert time.monotonic() - begun < module.LAST_SECONDS / 2
    assert ([event.status for event in told], watch.looks, watch.closed) == (["succeeded"], 1, True)


def test_a_job_that_never_ends_is_waited_for_a_moment_only(monkeypatch):
    monkeypatch.setattr(module, "LAST_SECONDS", 0.1)
    watch = Watched(ends_at=10**9)
    jobs, told = told_of(monkeypatch, watch)
    jobs.stop()
    jobs.wait(5)
    assert ([event.status for event in told], watch.closed) == (["running"], True)


def test_nothing_is_told_once_nobody_waits_any_more(monkeypatch):
    hung, went_on = threading.Event(), threading.Event()

    class Hangs(Watched):
        def poll(self):
            hung.wait(5)
            return super().poll()

        def close(self):
            went_on.set()

    jobs, told = told_of(monkeypatch, Hangs(ends_at=1))
    jobs.stop()
    jobs.wait(0.05)
    hung.set()
    assert went_on.wait(5)
    assert told == []


def test_a_watch_that_cannot_be_made_leaves_no_file(monkeypatch, tmp_path):
    def dead(path):
        raise ConnectionError("Java is gone")

    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module, "_writer", lambda gateway: None)
    jvm = SimpleNamespace(double=None, java=SimpleNamespace(io=SimpleNamespace(File=dead)))
    with pytest.raises(ConnectionError):
        JobWatch(spark_with(jvm), "run", 0)
    assert list(tmp_path.iterdir()) == []
