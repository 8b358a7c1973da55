"""A terminated process leaves what a cancelled one leaves: no folder, no process, the old targets."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from engine.events import Event, LoadFinished, LogReader, RunFinished, RunStarted, SparkReady, UnitFinished
from engine.spark.packs import MEMORY_FOLDER
from tests.end_to_end.helpers import ROOT, WORKFLOWS, environment_for, write
from tests.end_to_end.test_runs import SLOW, SLOW_EDGES, old_target
from tests.end_to_end.test_runs import snapshot as files_below
from tests.spark.test_session import gone

Starts = Callable[..., subprocess.Popen]


@pytest.fixture
def started(tmp_path) -> Iterator[Starts]:
    """`papilio` as a process whose temporary folders all are in `tmp_path / "tmp"`."""
    (tmp_path / "tmp").mkdir()
    processes = []

    def start(*arguments: object) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine", *map(str, arguments)],
            cwd=ROOT,
            env=environment_for(tmp_path / "home", {"TMPDIR": str(tmp_path / "tmp")}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def log_of(run: Path) -> list[Event]:
    log = run / "events.jsonl"
    return list(LogReader(log)) if log.exists() else []


def wait_until(holds: Callable[[], bool], process: subprocess.Popen, seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def terminated(process: subprocess.Popen, folder: Path, number: signal.Signals = signal.SIGTERM) -> str:
    """End a process that has others and folders of its own, and see that nothing of them is left."""
    children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    assert children
    assert list((folder / "tmp").glob("papilio-*"))
    process.send_signal(number)
    time.sleep(0.2)
    process.send_signal(number)  # an impatient supervisor: cleaning up goes on
    _, errors = process.communicate(timeout=60)
    assert gone(children)
    assert list((folder / "tmp").glob("papilio-*")) == []
    return errors


def ended(run: Path) -> str:
    """How a run's log ends; its packs in memory are gone."""
    events = log_of(run)
    (begun,) = [event for event in events if isinstance(event, RunStarted)]
    assert list(MEMORY_FOLDER.glob(f"papilio-{begun.run}*")) == []
    (finished,) = [event for event in events if isinstance(event, RunFinished)]
    return finished.status


def test_a_terminated_engine_process_ends_as_a_cancelled_one(started):
    process = started("serve")
    assert json.loads(process.stdout.readline())["event"] == "hello"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (3, "Cancelled.")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_run_leaves_the_old_targets_and_nothing_else(started, tmp_path, number):
    before = old_target(tmp_path)
    run = tmp_path / "run"
    process = started("run", write(tmp_path, SLOW, SLOW_EDGES, name="slow"), "--run-dir", run)
    wait_until(lambda: any(isinstance(event, UnitFinished) for event in log_of(run)), process)
    errors = terminated(process, tmp_path, number)
    assert process.returncode == 3, errors
    assert ended(run) == "cancelled"
    assert files_below(tmp_path / "out") == before


@pytest.mark.slow
def test_a_terminated_run_by_packs_leaves_no_pack(started, tmp_path):
    run = tmp_path / "run"
    file = write(tmp_path, SLOW, SLOW_EDGES, name="slow")
    process = started("run", file, "--run-dir", run, "--granularity", "operator", "--policy", "rr")
    wait_until(lambda: any(isinstance(event, UnitFinished) for event in log_of(run)), process)
    errors = terminated(process, tmp_path)
    assert process.returncode == 3, errors
    assert ended(run) == "cancelled"


@pytest.mark.slow
def test_a_terminated_elastic_run_takes_its_cluster_with_it(started, tmp_path, tpch):
    document = yaml.safe_load((WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml").read_text())
    document["parameters"]["data_folder"]["default"] = str(tpch)
    document["elastic"]["rate"] = {"kind": "steps", "steps": [{"at_s": 0, "rows_s": 2000}], "seconds": 600}
    file = tmp_path / "live.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    run = tmp_path / "run"
    process = started("scale", "run", file, "--run-dir", run)
    wait_until(lambda: any(isinstance(event, LoadFinished) for event in log_of(run)), process)
    errors = terminated(process, tmp_path)
    assert process.returncode == 3, errors
    assert ended(run) == "cancelled"
    assert not list(run.glob("raw/*"))
    assert not list(run.glob("buffer/*"))


@pytest.mark.slow
def test_an_elastic_run_that_is_terminated_while_its_cluster_starts_leaves_nothing(started, tmp_path, tpch):
    document = yaml.safe_load((WORKFLOWS / "elastic_tpch_to_ssb.butterfly.yaml").read_text())
    document["parameters"]["data_folder"]["default"] = str(tpch)
    file = tmp_path / "live.butterfly.yaml"
    file.write_text(yaml.safe_dump(document))
    process = started("scale", "run", file, "--run-dir", tmp_path / "run")
    wait_until(lambda: any((tmp_path / "tmp").glob("papilio-cluster-*/worker-1.log")), process)
    errors = terminated(process, tmp_path)
    assert process.returncode == 3, errors
    assert ended(tmp_path / "run") == "cancelled"
    assert not any(isinstance(event, SparkReady) for event in log_of(tmp_path / "run"))


@pytest.mark.slow
def test_a_terminated_streaming_warehouse_stops_after_its_jobs_and_leaves_nothing(started, tmp_path):
    from tests.refresh.test_live import FILE, version

    file = tmp_path / "small.butterfly.yaml"
    file.write_text(FILE)
    process = started("stream", "run", file)
    wait_until(lambda: version(tmp_path, "click") > 2, process)
    children = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors  # the first one lets the running jobs end
    assert gone(children)
    assert list((tmp_path / "tmp").glob("papilio-*")) == []
