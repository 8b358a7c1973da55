"""A real standalone Spark cluster on this machine: one Master and Workers, each a process of its own."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pyspark.sql import SparkSession

from engine.errors import BadInput, EnvironmentProblem
from engine.spark.archive import class_archive_options
from engine.spark.hadoop import EXECUTOR_CLASSES, classes_folder
from engine.spark.java import find_java
from engine.spark.processes import LAST_LINES, SPARK_FILES, spark_command, spark_environment
from engine.spark.session import SHUFFLE_PARTITIONS_PER_CORE, SparkSettings, properties_text, write_private

DAEMON_MEMORY_MB = 256
START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 15
ASK_TIMEOUT_S = 10

_PREFIX = "papilio-cluster-"
_HELD = "held"  # the file that says that a cluster's process lives
_HOST = "127.0.0.1"
_MASTER_CLASS = "org.apache.spark.deploy.master.Master"
_WORKER_CLASS = "org.apache.spark.deploy.worker.Worker"
_MASTER_AT = re.compile(r"Starting Spark master at (spark://\S+)")
_WEB_AT = re.compile(r"MasterWebUI.* started at http://\S+:(\d+)")
_WORKER_AT = re.compile(r"Starting Spark worker \S+:(\d+) with")

# Waits for the end of its input, which comes when the process that started it ends in whatever way, and then
# takes its whole process group with it: Master, Workers and the executors that they started.
_GUARD = ("/bin/sh", "-c", "read -r _; kill -KILL 0")


def executor_ids(session: SparkSession) -> list[str]:
    """The executors that an application has on a cluster, in the order in which they came."""
    found = session.sparkContext._jsc.sc().getExecutorIds().mkString(",")
    return sorted(filter(None, found.split(",")), key=int)


class NoSuchWorker(BadInput):
    """The cluster has no worker of that name, or has none any more."""


@dataclass(frozen=True)
class Worker:
    """A registered worker, as the Master sees it."""

    id: str
    pid: int
    port: int
    cores: int
    cores_used: int
    memory_mb: int
    memory_used_mb: int


@dataclass
class _Daemon:
    """A Master or Worker process and where it writes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0
    registered: bool = False

    def said(self) -> str:
        """Everything it wrote so far."""
        return self.log.read_text(errors="replace")


class StandaloneCluster:
    """A Master and Workers on loopback, with authentication on; everything ends with the `with` block.

    The secret is random and travels in files and environments that only this user can read.
    """

    def __init__(self, workers: int = 2, cores: int = 1, memory_mb: int = 1024) -> None:
        if workers < 0 or cores < 1 or memory_mb < 512:
            raise BadInput("a cluster needs workers >= 0, cores >= 1 and memory_mb >= 512")
        self._wanted = workers
        self._cores = cores
        self._memory_mb = memory_mb
        self._secret = secrets.token_hex(32)
        self._numbers = itertools.count(1)
        self._daemons: dict[str, _Daemon] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None
        self._held: IO[bytes] | None = None
        self._url = ""
        self._web = ""
        self._archive = self._class_path = ""
        # The Master's answers are on loopback; a proxy set for the machine is not asked.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def url(self) -> str:
        """The master URL, `spark://127.0.0.1:port`."""
        return self._url

    def __enter__(self) -> StandaloneCluster:
        java = find_java()
        _remove_dead()
        self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
        try:
            self._held = _hold(self._folder)
            (self._folder / "local").mkdir()
            self._properties = write_private(self._folder / "daemon.properties", self._daemon_properties())
            self._environment = spark_environment(java, loopback=True)
            log4j = f"-Dlog4j2.configurationFile={(SPARK_FILES / 'log4j2-daemon.properties').as_uri()}"
            self._archive = class_archive_options(java)
            options = f"-XX:+UseSerialGC {self._archive} {log4j}"
            self._environment["SPARK_DAEMON_JAVA_OPTS"] = options
            self._environment["SPARK_DAEMON_MEMORY"] = f"{DAEMON_MEMORY_MB}m"
            self._guard = subprocess.Popen(_GUARD, stdin=subprocess.PIPE, process_group=0)
            self._start_master()
            # Started together, then waited for: each takes a JVM's time.
            started = [self._start_worker() for _ in range(self._wanted)]
            for daemon in started:
                self._await_registered(daemon)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def settings(self, driver_memory_mb: int | None = None, scratch: Path | None = None) -> SparkSettings:
        """How to connect to this cluster, its secret included."""
        cores = max(1, sum(worker.cores for worker in self.workers()))
        # An executor that begins with the class path of Master and Workers finds its classes in the same archive.
        classes = os.pathsep.join((self._class_path, str(classes_folder())))
        extra = {
            EXECUTOR_CLASSES: classes,
            # Every Worker is as near to every row as any other.
            "spark.locality.wait": "0",
            "spark.authenticate": "true",
            "spark.authenticate.secret": self._secret,
            "spark.executor.memory": f"{self._memory_mb}m",
            "spark.sql.shuffle.partitions": str(cores * SHUFFLE_PARTITIONS_PER_CORE),
        }
        if self._archive:
            extra["spark.executor.extraJavaOptions"] = self._archive
        return SparkSettings(self._url, driver_memory_mb, scratch, extra=extra)

    def workers(self) -> list[Worker]:
        """The workers that the Master counts as alive, oldest first."""
        alive = {int(told["port"]): told for told in self._ask() if told["state"] == "ALIVE"}
        return [
            Worker(
                id=daemon.name,
                pid=daemon.process.pid,
                port=daemon.port,
                cores=int(alive[daemon.port]["cores"]),
                cores_used=int(alive[daemon.port]["coresused"]),
                memory_mb=int(alive[daemon.port]["memory"]),
                memory_used_mb=int(alive[daemon.port]["memoryused"]),
            )
            for daemon in list(self._daemons.values())  # another thread may start or forget one meanwhile
            if daemon.port in alive
        ]

    def add_worker(self) -> Worker:
        """Start one more worker and wait until it is registered."""
        daemon = self._start_worker()
        try:
            self._await_registered(daemon)
            found = next((worker for worker in self.workers() if worker.id == daemon.name), None)
            if found is None:
                raise self._problem(daemon, "ended as soon as it was registered")
        except BaseException:
            self._end(daemon)
            raise
        return found

    def stop_worker(self, id: str) -> None:
        """End a worker and its executors, and wait until the Master knows."""
        daemon = self._daemons.get(id)
        if daemon is None or daemon.name == "master":
            known = ", ".join(worker.id for worker in self.workers()) or "none"
            raise NoSuchWorker(f"no worker {id!r} in this cluster; there are: {known}")
        self._end(daemon)
        self._await(
            lambda: all(told["port"] != daemon.port or told["state"] != "ALIVE" for told in self._ask()),
            self._daemons["master"],
            f"notice the end of {id}",
        )

    def forget_dead(self) -> list[str]:
        """The workers that ended without being asked to, since the last time this was asked.

        One that never began is told by whoever started it.
        """
        workers = [daemon for daemon in list(self._daemons.values()) if daemon.registered]
        dead = [daemon.name for daemon in workers if daemon.process.poll() is not None]
        return [name for name in dead if self._daemons.pop(name, None) is not None]

    def _daemon_properties(self) -> str:
        assert self._folder is not None
        return properties_text(
            {
                "spark.authenticate": "true",
                "spark.authenticate.secret": self._secret,
                "spark.local.dir": str(self._folder / "local"),
                # The job server and the buttons of the web pages know no authentication.
                "spark.master.rest.enabled": "false",
                "spark.master.ui.decommission.allow.mode": "DENY",
                "spark.ui.killEnabled": "false",
                "spark.worker.cleanup.enabled": "true",
            }
        )

    def _start_master(self) -> None:
        daemon = self._start("master", _MASTER_CLASS, "--port", "0", "--webui-port", "0")
        self._await(lambda: bool(_WEB_AT.search(daemon.said())), daemon, "tell its addresses")
        said = daemon.said()
        master, web = _MASTER_AT.search(said), _WEB_AT.search(said)
        if master is None or web is None:
            raise self._problem(daemon, "did not tell its addresses")
        # It names itself by a host name that may mean another address too.
        self._url, self._web = master[1], f"http://{_HOST}:{web[1]}"

    def _start_worker(self) -> _Daemon:
        assert self._folder is not None
        name = f"worker-{next(self._numbers)}"
        size = ("--cores", str(self._cores), "--memory", f"{self._memory_mb}M")
        place = ("--webui-port", "0", "--work-dir", str(self._folder / name))
        return self._start(name, _WORKER_CLASS, *size, *place, self._url)

    def _start(self, name: str, main_class: str, *arguments: str) -> _Daemon:
        assert self._folder is not None
        assert self._guard is not None
        where = ("--host", _HOST, "--properties-file", str(self._properties))
        log = self._folder / f"{name}.log"
        try:
            command = spark_command(self._environment, main_class, *where, *arguments)
            self._class_path = command[command.index("-cp") + 1]
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    env=self._environment,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    process_group=self._guard.pid,
                )
        except OSError as error:  # no memory or no process left, no space for its log
            raise EnvironmentProblem(f"Spark's {name} could not be started: {error.strerror}") from error
        daemon = self._daemons[name] = _Daemon(name, process, log)
        return daemon

    def _await_registered(self, daemon: _Daemon) -> None:
        self._await(lambda: bool(_WORKER_AT.search(daemon.said())), daemon, "start")
        match = _WORKER_AT.search(daemon.said())
        assert match is not None
        daemon.port = int(match[1])
        self._await(lambda: daemon.name in {worker.id for worker in self.workers()}, daemon, "register")
        daemon.registered = True

    def _await(self, holds: Callable[[], bool], daemon: _Daemon, wanted: str) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not holds():
            if daemon.process.poll() is not None:
                raise self._problem(daemon, f"ended before it could {wanted}")
            if time.monotonic() > deadline:
                raise self._problem(daemon, f"did not {wanted} in {START_TIMEOUT_S} s")
            time.sleep(0.05)

    def _problem(self, daemon: _Daemon, what: str) -> EnvironmentProblem:
        lines = [line for line in daemon.said().splitlines() if line.strip() and "\tat " not in line]
        return EnvironmentProblem("\n  ".join([f"Spark's {daemon.name} {what}:", *lines[-LAST_LINES:]]))

    def _ask(self) -> list[dict[str, Any]]:
        """The Master's list of workers."""
        try:
            with self._opener.open(f"{self._web}/json/", timeout=ASK_TIMEOUT_S) as answer:
                return json.load(answer)["workers"]
        except (OSError, ValueError, KeyError) as error:
            raise EnvironmentProblem(f"Spark's master at {self._url} does not answer: {error}") from error

    def _end(self, daemon: _Daemon) -> None:
        """End one process; a worker takes its executors with it."""
        self._daemons.pop(daemon.name, None)
        with contextlib.suppress(ProcessLookupError):
            daemon.process.send_signal(signal.SIGTERM)
        try:
            daemon.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            daemon.process.kill()
            daemon.process.wait()

    def _stop(self) -> None:
        """End everything: workers first, which end their executors, then whatever is left of the group."""
        for daemon in reversed(list(self._daemons.values())):
            daemon.process.terminate()
        for daemon in reversed(list(self._daemons.values())):
            self._end(daemon)
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        if self._held is not None:
            self._held.close()
            self._held = None


def _hold(folder: Path) -> IO[bytes]:
    """Hold a lock in the folder, for as long as this process lives. It is there when it is held, and not before."""
    new = folder / f"{_HELD}.new"
    file = new.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    new.rename(folder / _HELD)
    return file


def _remove_dead() -> None:
    """Remove the folders of clusters whose process was killed; Master and Workers ended with it."""
    for held in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_HELD}"):
        with contextlib.suppress(OSError), held.open("rb") as file:  # of another person, held, or gone by now
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(held.parent, ignore_errors=True)
