"""The degree of a unit's pipelines: measured on a sample, corrected by turns. Spark's jobs are stood in for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.spark import pipelines as module
from engine.spark.pipelines import Pipelines

NODES = ("read", "look_up", "derive")
FEEDS = {"read": None, "look_up": "read", "derive": "look_up"}
SECONDS = {"read": 0.02, "look_up": 0.10, "derive": 0.13}  # until each, for the whole sample
EMPTY = 0.01


class Frame:
    """In place of a frame: knows how long Spark would take for it."""

    def __init__(self, node, share, cores):
        self.node, self.share, self.cores = node, share, cores

    def count(self):
        return int(1000 * self.share)

    def run(self):
        begun = time.monotonic()
        with self.cores:
            time.sleep(SECONDS[self.node] * self.share if self.share else EMPTY)
        return time.monotonic() - begun


def measure(monkeypatch, cores):
    """Algorithm 3 where so many jobs run at a time without being in each other's way."""
    free = threading.Semaphore(cores)
    monkeypatch.setattr(module, "_seconds", lambda frame: frame.run())
    pipelines = Pipelines(None, {}, cores=2)

    def together(jobs):
        with ThreadPoolExecutor(len(jobs)) as pool:
            return [future.result() for future in [pool.submit(job) for job in jobs]]

    def frames(splits):
        return {node: Frame(node, len(splits) / 2, free) for node in NODES}

    found = pipelines.measure("unit", NODES, FEEDS, frames, [500, 500], together)
    return pipelines, found


def test_where_one_job_keeps_all_cores_busy_there_is_one_pipeline(monkeypatch):
    pipelines, found = measure(monkeypatch, cores=1)
    pipelines.took("unit", 1_000_000, 1, 120.0)
    assert pipelines.splits("unit", 1_000_000) == 1
    assert (found.staggering, found.input_rows, found.activities) == ("", 1000, 3)


def test_where_pipelines_are_quicker_there_are_several_and_the_staggering_activity_is_known(monkeypatch):
    pipelines, found = measure(monkeypatch, cores=2)
    assert pipelines.splits("unit", 1_000_000) == 1, "the first turn shows what one job takes for so many rows"
    pipelines.took("unit", 1_000_000, 1, 120.0)
    assert 1 < pipelines.splits("unit", 1_000_000) <= pipelines.most
    assert found.staggering == "look_up"


def test_what_turns_take_corrects_what_is_kept(monkeypatch):
    pipelines, found = measure(monkeypatch, cores=2)
    pipelines.took("unit", 1_000_000, 1, 120.0)
    assert pipelines.splits("unit", 1_000_000) > 1
    for _ in range(8):
        pipelines.took("unit", 1_000_000, pipelines.splits("unit", 1_000_000), 500.0)
    assert pipelines.splits("unit", 1_000_000) == 1
    assert pipelines.as_dict()["unit"]["net_seconds"] != found.net_seconds
    again = Pipelines(None, pipelines.as_dict(), cores=2)
    assert not again.must_measure("unit")
    assert again.splits("unit", 1_000_000) == 1


@pytest.mark.parametrize("degree", [1, 3])
def test_a_degree_that_was_asked_for_stays(degree):
    pipelines = Pipelines(degree, {}, cores=2)
    pipelines.took("unit", 1000, degree, 100.0)
    assert (pipelines.splits("unit", 1000), pipelines.as_dict()) == (degree, {})
