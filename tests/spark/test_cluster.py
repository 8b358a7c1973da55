"""A standalone cluster on this machine: it works, it keeps strangers out, it grows and shrinks, it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import unittest.mock
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pytest

from engine.errors import BadInput, EnvironmentProblem
from engine.spark.archive import archive_path
from engine.spark.cluster import START_TIMEOUT_S, StandaloneCluster
from engine.spark.java import find_java
from engine.spark.session import SparkSettings
from tests.end_to_end.helpers import answer, papilio, parquet_rows, write
from tests.spark.test_session import PATIENCE_S, QUICK_JAVA, Answer, first_line, gone, run, start

CLIENT = """
import json, sys
from engine.errors import EnvironmentProblem
from engine.spark.session import SparkSettings, close_session, open_session

def parents(batches):
    import psutil, pyarrow, time
    for batch in batches:
        time.sleep(1)
        yield pyarrow.RecordBatch.from_pydict({"pid": [parent.pid for parent in psutil.Process().parents()]})

try:
    spark = open_session(SparkSettings(**json.load(sys.stdin)))
except EnvironmentProblem as problem:
    print(json.dumps({"refused": str(problem)}))
    sys.exit()
pids = sorted({row.pid for row in spark.range(0, 4, 1, 4).mapInArrow(parents, "pid long").collect()})
total = spark.range(0, 1000, 1, 4).groupBy("id").count().count()
close_session(spark)
print(json.dumps({"pids": pids, "rows": total}))
"""

WRITES = """
import json, sys, time
from pathlib import Path
import psutil
from engine.spark.session import SparkSettings, close_session, open_session

given = json.load(sys.stdin)
target = given.pop("target")
spark = open_session(SparkSettings(**given))

def executors():
    found = (child for child in psutil.process_iter(["cmdline"]))
    return [one for one in found if any("CoarseGrainedExecutorBackend" in word for word in one.info["cmdline"] or ())
            and spark.sparkContext.applicationId in one.info["cmdline"]]

def had_children(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[8])  # the page faults of ended ones

spark.range(0, 8, 1, 4).write.parquet(target + "/first")
before = {one.pid: had_children(one.pid) for one in executors()}
spark.range(0, 64, 1, 16).write.parquet(target + "/second")
after = {pid: had_children(pid) for pid in before}
archived = {pid: ".jsa" in Path(f"/proc/{pid}/maps").read_text().replace("/lib/server/classes.jsa", "") for pid in before}
close_session(spark)
print(json.dumps({"before": list(before.values()), "after": list(after.values()), "archived": list(archived.values())}))
"""

UNTIL_KILLED = """
import json, time
import psutil
from engine.spark.cluster import START_TIMEOUT_S, StandaloneCluster
with StandaloneCluster(workers=1):
    print(json.dumps([child.pid for child in psutil.Process().children(recursive=True)]), flush=True)
    time.sleep(600)
"""


def connect(settings: SparkSettings) -> Answer:
    return run(CLIENT, given=asdict(settings))


@pytest.fixture(scope="module")
def cluster() -> Iterator[StandaloneCluster]:
    with (
        unittest.mock.patch.dict(os.environ, QUICK_JAVA),
        StandaloneCluster(workers=2, cores=1, memory_mb=1024) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def stranger(cluster: StandaloneCluster) -> Iterator[subprocess.Popen[str]]:
    """A client without the secret, started early: Spark tries for a minute before it gives up."""
    with start(CLIENT) as process:
        assert process.stdin is not None
        json.dump(asdict(SparkSettings(cluster.url, 512, None, {"spark.executor.memory": "512m"})), process.stdin)
        process.stdin.close()
        process.stdin = None
        yield process
        process.kill()


@pytest.mark.slow  # a stranger is refused only after a minute of retries
@pytest.mark.usefixtures("stranger")
def test_a_job_runs_on_both_workers(cluster: StandaloneCluster) -> None:
    settings = cluster.settings(driver_memory_mb=512)
    # Both executors before the first task: otherwise the first one up may do all the work.
    both = {
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    facts = connect(SparkSettings(settings.master, 512, None, {**settings.extra, **both})).facts()
    assert facts["rows"] == 1000
    assert {worker.pid for worker in cluster.workers()} <= set(facts["pids"])


@pytest.mark.slow
def test_a_workflow_runs_on_the_cluster(cluster: StandaloneCluster, tpch: Path, tmp_path: Path) -> None:
    nodes = {
        "lines": {"operator": "parquet_source", "path": str(tpch / "lineitem.parquet")},
        "by": {
            "operator": "aggregate",
            "group": ["l_returnflag"],
            "aggregates": [{"name": "n", "expression": "count(*)"}],
        },
        "target": {"operator": "parquet_target", "path": "out/flags"},
    }
    file = write(tmp_path, nodes, ["lines -> by.in", "by -> target.in"], roots={"here": ".", "data": str(tpch)})
    confs = [f"--spark-conf={key}={value}" for key, value in cluster.settings().extra.items()]
    summary = answer(papilio("run", file, "--json", "--master", cluster.url, *confs, home=tmp_path / "home"))
    wanted = duckdb.sql(f"SELECT l_returnflag, count(*) FROM '{tpch}/lineitem.parquet' GROUP BY 1").fetchall()
    assert parquet_rows(tmp_path / "out" / "flags") == sorted(wanted, key=repr)
    assert summary["status"] == "done"


def test_executors_set_permissions_themselves_and_take_classes_from_the_archive(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    facts = run(WRITES, given={**asdict(cluster.settings(driver_memory_mb=512)), "target": str(tmp_path)}).facts()
    assert facts["before"]
    assert facts["after"] == facts["before"], "a process was started for a file or folder"
    assert len(list((tmp_path / "second").glob("*.parquet"))) == 16
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "second").iterdir()} == {0o644}
    assert set(facts["archived"]) == {archive_path(find_java()).exists()}


def test_the_secret_is_on_no_command_line(cluster: StandaloneCluster) -> None:
    secret = cluster.settings().extra["spark.authenticate.secret"]
    commands = [" ".join(child.cmdline()) for child in psutil.Process().children(recursive=True)]
    assert any("deploy.master.Master" in command for command in commands)
    assert not any(secret in command for command in commands)


def test_master_and_workers_listen_on_loopback_only(cluster: StandaloneCluster) -> None:
    addresses = {
        connection.laddr.ip.removeprefix("::ffff:")
        for worker in cluster.workers()
        for process in (psutil.Process(worker.pid), *_masters())
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


def _masters() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [child for child in children if any("deploy.master.Master" in part for part in child.cmdline())]


def test_a_worker_can_be_added_and_stopped(cluster: StandaloneCluster) -> None:
    before = {worker.id for worker in cluster.workers()}
    added = cluster.add_worker()
    assert {worker.id for worker in cluster.workers()} == before | {added.id}
    cluster.stop_worker(added.id)
    assert {worker.id for worker in cluster.workers()} == before
    assert gone([added.pid])


def test_a_worker_that_was_killed_is_told_once_and_one_that_never_began_is_not(cluster: StandaloneCluster) -> None:
    before = {worker.id for worker in cluster.workers()}
    killed = cluster.add_worker()
    os.kill(killed.pid, signal.SIGKILL)
    assert gone([killed.pid])
    number = int(killed.id.removeprefix("worker-")) + 1
    assert cluster._folder is not None
    (cluster._folder / f"worker-{number}").write_text("no folder")  # in the way of its work folder
    never_began = cluster._start_worker()
    never_began.process.wait(START_TIMEOUT_S)
    assert cluster.forget_dead() == [killed.id]
    with pytest.raises(EnvironmentProblem, match=f"worker-{number} ended before it could register"):
        cluster._await_registered(never_began)
    cluster._end(never_began)
    assert cluster.forget_dead() == []
    assert {worker.id for worker in cluster.workers()} == before


def test_stopping_a_worker_that_is_not_there_names_those_that_are(cluster: StandaloneCluster) -> None:
    with pytest.raises(BadInput, match=r"no worker 'worker-99'.*worker-1"):
        cluster.stop_worker("worker-99")


def test_everything_ends_with_the_block() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with StandaloneCluster(workers=0) as cluster:
        assert cluster.workers() == []
        started = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert len(started) >= 2  # the guard and the master
    assert gone(list(started))


@pytest.mark.slow
def test_master_and_workers_end_when_python_is_killed() -> None:
    process = start(UNTIL_KILLED)
    with process:
        pids: Any = first_line(process)
        process.kill()
    assert len(pids) >= 3  # the guard, the master, the worker
    assert gone(pids)


@pytest.mark.slow
def test_a_client_without_the_secret_is_refused(cluster: StandaloneCluster, stranger: subprocess.Popen[str]) -> None:
    out, err = stranger.communicate(timeout=PATIENCE_S)
    assert "masters are unresponsive" in Answer(stranger.returncode or 0, out, err).facts()["refused"]
    assert len(cluster.workers()) == 2
