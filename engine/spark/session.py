"""Opening and closing the one Spark session of an engine process."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int
from pyspark.sql import SparkSession

from engine.errors import BadInput, EnvironmentProblem
from engine.spark.archive import (
    archive_path,
    archiving_options,
    base_archive,
    class_archive_options,
    dump_base_archive,
    train,
)
from engine.spark.connect import close_connected, is_connected, open_connected
from engine.spark.hadoop import lighten_hadoop
from engine.spark.java import Java, cache_folder, find_java
from engine.spark.processes import JVM_OPTIONS, LAST_LINES, SPARK_FILES, spark_command, spark_environment

LEAST_DRIVER_MEMORY_MB = 512
"""Spark itself refuses a heap below 450 MB."""
SHUFFLE_PARTITIONS_PER_CORE = 8
"""Enough for a shuffle to spill in small pieces; Spark joins small ones again while it runs (AQE)."""
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30
ARCHIVE_TIMEOUT_S = 600
"""A JVM that archives its classes does so when it ends; on a busy machine that took longer than any other end."""

MASTER_FORMS = (
    "local, local[n], local[*], local-cluster[workers,cores,MB], spark://host:port, k8s://url, yarn, "
    "sc://host:port, sail"
)

_LOCAL = re.compile(r"local(?:\[(?P<threads>\*|[1-9]\d*)(?:,\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*\]")
_MANAGED = re.compile(r"yarn|k8s://\S+")
_STANDALONE = re.compile(r"spark://(?P<hosts>[^/\s,]+:\d+(?:,[^/\s,]+:\d+)*)")


@dataclass(frozen=True)
class SparkSettings:
    """How to reach Spark and what to give it."""

    master: str = "local[*]"
    driver_memory_mb: int | None = None
    """The driver's heap; none given is a quarter of the machine's memory."""
    scratch: Path | None = None
    """A folder for shuffles, spills and the session's own files; none given is a temporary one."""
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark's own settings, over Papilio's. Not shown: a secret may be among them."""
    log: Path | None = None
    """Where what the JVM says is written; none given is stderr."""


@dataclass
class _Jvm:
    """A running gateway JVM and what belongs to it."""

    process: subprocess.Popen[bytes]
    folder: Path
    last_lines: deque[str]
    reader: threading.Thread
    quiet: threading.Event
    secret: str = ""
    port: int = 0
    stop_timeout_s: float = STOP_TIMEOUT_S


@dataclass
class _Opened:
    """The session of this process: Spark allows one at a time."""

    session: SparkSession
    jvm: _Jvm
    settings: SparkSettings
    lent: bool = False


class _Process:
    """What this process has open."""

    lock = threading.Lock()
    opened: _Opened | None = None


def open_session(settings: SparkSettings | None = None) -> SparkSession:
    """Start a JVM and a Spark session in it, or take the one that is lent. One may be open at a time."""
    settings = settings or SparkSettings()
    if is_connected(settings.master):
        return open_connected(settings.master, settings.extra, settings.log)
    opened = _Process.opened
    if opened is not None and opened.lent:
        return _borrow(opened, settings)
    return _open(settings, java=find_java(), archive_to=None)


@contextlib.contextmanager
def lent(session: SparkSession) -> Iterator[None]:
    """While this lasts, who opens a session gets this one, and closing it leaves it open.

    So a process that runs many workflows, one after the other, starts Spark once.
    """
    opened = _Process.opened
    if opened is None or opened.session is not session:
        raise EnvironmentProblem("only the Spark session that is open in this process can be lent")
    opened.lent = True
    try:
        yield
    finally:
        opened.lent = False


def close_session(session: SparkSession, *, at_once: bool = False) -> None:
    """Stop the session and end its JVM, also one that died on its own. A lent session stays open.

    `at_once`: nothing it does is wanted any more. Local Spark is then killed, since nobody else has to hear of it.
    """
    if close_connected(session):
        return
    with _Process.lock:
        if _Process.opened is None or _Process.opened.session is not session or _Process.opened.lent:
            return
        local = _LOCAL.fullmatch(_Process.opened.settings.master.strip())
        jvm, _Process.opened = _Process.opened.jvm, None
        if at_once and local:
            logging.getLogger().addFilter(_not_of_a_killed_jvm)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(jvm.process.pid, signal.SIGKILL)
            jvm.process.wait()
        _forget(session, alive=jvm.process.poll() is None)
        _end(jvm)


def _not_of_a_killed_jvm(record: logging.LogRecord) -> bool:
    """Leaves out what py4j logs in a thread that was speaking to a JVM when we killed it."""
    return record.getMessage() != "Exception while sending command."


def activate(session: SparkSession) -> None:
    """Make a session the active one of this thread, which is where Spark looks for Python data sources."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


def jvm_last_lines(session: SparkSession) -> list[str]:
    """What the session's JVM said last on its stderr: the reason, if it died."""
    opened = _Process.opened
    return list(opened.jvm.last_lines) if opened is not None and opened.session is session else []


def build_class_archive() -> Path:
    """Run a short session and keep the classes it loaded, parsed and checked, for later JVMs to map.

    The first row then comes after some six tenths of the time. It takes about a minute and 200 MB in the
    cache folder, once per Java and Spark; a session without an archive only starts more slowly.
    """
    java = find_java()
    wanted = archive_path(java)
    if wanted.exists():
        return wanted
    base = base_archive(java)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        if base is not None and not base.exists():
            dump_base_archive(java, Path(folder) / "base.jsa")
            os.replace(Path(folder) / "base.jsa", base)
        made = Path(folder) / "classes.jsa"
        session = _open(SparkSettings(master="local[2]", driver_memory_mb=1024), java, archive_to=made)
        try:
            train(session, Path(folder))
        finally:
            close_session(session)
        if not made.exists():
            raise EnvironmentProblem(f"Java {java.version} of {java.home} could not archive Spark's classes")
        os.replace(made, wanted)
    kept = {wanted, base}
    for old in cache_folder().glob("*.jsa"):
        if old not in kept and time.time() - old.stat().st_mtime > 30 * 86400:
            old.unlink(missing_ok=True)
    return wanted


def driver_memory_mb(settings: SparkSettings) -> int:
    """The driver's heap in MB: as set, or a quarter of the machine's memory."""
    if settings.driver_memory_mb is None:
        return max(LEAST_DRIVER_MEMORY_MB, psutil.virtual_memory().total // 4 // 2**20)
    if settings.driver_memory_mb < LEAST_DRIVER_MEMORY_MB:
        raise BadInput(
            f"driver memory of {settings.driver_memory_mb} MB is too small: "
            f"Spark needs at least {LEAST_DRIVER_MEMORY_MB} MB"
        )
    return settings.driver_memory_mb


def spark_properties(settings: SparkSettings, scratch: Path, driver_options: str = "") -> dict[str, str]:
    """Every Spark setting of a session: Papilio's, and the caller's on top."""
    master = settings.master.strip()
    memory = driver_memory_mb(settings)
    log4j = f"-Dlog4j2.configurationFile={shlex.quote((SPARK_FILES / 'log4j2.properties').as_uri())}"
    executor_options = " ".join((*JVM_OPTIONS, log4j))
    properties = {
        "spark.app.name": "papilio",
        "spark.master": master,
        "spark.driver.memory": f"{memory}m",
        "spark.driver.extraJavaOptions": f"{executor_options} {driver_options}".strip(),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What is over is in the run's own log. Every question to Spark's store walks over all that it keeps.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "200",
        "spark.ui.retainedTasks": "2000",
        "spark.sql.ui.retainedExecutions": "100",
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": (SPARK_FILES / "pools.xml").as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.runSQLOnFiles": "false",
        "spark.sql.variable.substitute": "false",  # ${env:NAME} in an expression stays text
        "spark.sql.reflect.allowList": "^$",
        "spark.sql.adaptive.enabled": "true",
        # It drops the rest of a plan once one side of a join turns out empty, and the counts of refused rows with it.
        "spark.sql.adaptive.optimizer.excludedRules": (
            "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
        ),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # a job to list files costs more than they
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Parquet would look through the dictionary of each compared column in every row group, to skip one that does
        # not have the value: a lookup's default is in none, and looking takes 11 % of SSB's Q3.1 at scale 4.
        # By the least and the largest values of groups and pages it still skips.
        "spark.hadoop.parquet.filter.dictionary.enabled": "false",
        # A mark of success is not part of a target: it was written only to be removed again.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    cores: int | None = None
    if match := _LOCAL.fullmatch(master):
        threads = match["threads"] or "1"
        cores = _machine_cores() if threads == "*" else int(threads)
    elif match := _LOCAL_CLUSTER.fullmatch(master):
        workers, worker_cores, worker_mb = (int(number) for number in match.groups())
        cores = workers * worker_cores
        # An executor that asks for more than its worker has would be waited for, for ever.
        properties["spark.executor.memory"] = f"{worker_mb}m"
    elif not _STANDALONE.fullmatch(master) and not _MANAGED.fullmatch(master):
        raise BadInput(f"master {settings.master!r} is not one of: {MASTER_FORMS}")
    if cores is not None:
        properties["spark.sql.shuffle.partitions"] = str(cores * SHUFFLE_PARTITIONS_PER_CORE)
        # Spark listens on loopback even where it needs nobody: other users of the machine are kept out.
        properties["spark.authenticate"] = "true"
        properties["spark.authenticate.secret"] = secrets.token_hex(32)
    if is_loopback(master):
        properties["spark.driver.host"] = "127.0.0.1"
        properties["spark.driver.bindAddress"] = "127.0.0.1"
        properties["spark.executor.extraJavaOptions"] = executor_options
    for key, value in settings.extra.items():
        if key.endswith(".extraJavaOptions") and key in properties:
            value = f"{properties[key]} {value}"
        properties[key] = value
    return properties


def is_loopback(master: str) -> bool:
    """Whether everything of that master runs on this machine alone."""
    match = _STANDALONE.fullmatch(master)
    if match is None:
        return master.startswith("local")
    hosts = {host.rpartition(":")[0].strip("[]") for host in match["hosts"].split(",")}
    return all(host in ("localhost", "::1") or host.startswith("127.") for host in hosts)


def properties_text(properties: Mapping[str, str]) -> str:
    """Settings in the form of a Java properties file."""
    lines = []
    for key, value in properties.items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{key}={escaped}\n")
    return "".join(lines)


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner may read, from its first byte on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _open(settings: SparkSettings, java: Java, archive_to: Path | None) -> SparkSession:
    """Start the JVM, connect to it, and make the session; leave nothing behind if one of them fails."""
    with _Process.lock:
        if _Process.opened is not None or SparkContext._active_spark_context is not None:
            raise EnvironmentProblem("a Spark session is already open in this process; close it first")
        java_options = class_archive_options(java) if archive_to is None else archiving_options(java, archive_to)
        folder = _session_folder(settings)
        try:
            properties = spark_properties(settings, folder, java_options)
            jvm = _start_jvm(java, folder, properties, loopback=is_loopback(settings.master), log=settings.log)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        try:
            session = _connect(jvm, settings.master)
            jvm.quiet.clear()
            if archive_to is not None:
                jvm.stop_timeout_s = ARCHIVE_TIMEOUT_S
        except BaseException:
            _forget(None, alive=jvm.process.poll() is None)
            _end(jvm)
            raise
        _Process.opened = _Opened(session, jvm, settings)
        return session


def _borrow(opened: _Opened, wanted: SparkSettings) -> SparkSession:
    """The lent session, unless something is asked of it that only another start could give."""
    given = opened.settings
    differences = [f"the master {wanted.master!r}"] if wanted.master.strip() != given.master.strip() else []
    if wanted.driver_memory_mb is not None and wanted.driver_memory_mb != driver_memory_mb(given):
        differences.append(f"a driver memory of {wanted.driver_memory_mb} MB")
    differences += [name for name, value in wanted.extra.items() if given.extra.get(name) != value]
    if differences:
        raise EnvironmentProblem(f"the Spark session of this process was started without {', '.join(differences)}")
    return opened.session


def _session_folder(settings: SparkSettings) -> Path:
    """A folder of this session's own, below the scratch folder if there is one."""
    try:
        if settings.scratch is not None:
            settings.scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="papilio-spark-", dir=settings.scratch)).resolve()
        (folder / "local").mkdir()
        return folder
    except OSError as error:
        where = settings.scratch or tempfile.gettempdir()
        raise EnvironmentProblem(f"cannot make a scratch folder in {where}: {error.strerror}") from error


def _start_jvm(java: Java, folder: Path, properties: Mapping[str, str], *, loopback: bool, log: Path | None) -> _Jvm:
    """Start the gateway JVM and wait until it tells its port.

    In a process group of its own, Ctrl-C in the terminal does not reach it: Python cancels first. Its
    stdin is a pipe that nobody writes to: when this process ends, however it ends, the JVM reads the end of
    it and ends too.
    Its settings go through a private file, because everybody on the machine can read a command line.
    """
    settings_file = write_private(folder / "spark.properties", properties_text(properties))
    connection = folder / "connection"
    environment = spark_environment(java, loopback=loopback)
    environment["SPARK_CONNECT_MODE"] = "0"
    environment["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(connection)
    arguments = ("--properties-file", str(settings_file), "pyspark-shell")
    process = subprocess.Popen(
        spark_command(environment, "org.apache.spark.deploy.SparkSubmit", *arguments),
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
    )
    assert process.stdout is not None
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    quiet = threading.Event()
    quiet.set()
    reader = threading.Thread(
        target=_read_output, args=(process.stdout, last_lines, quiet, log), name="papilio-jvm-output", daemon=True
    )
    reader.start()
    jvm = _Jvm(process, folder, last_lines, reader, quiet)
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not connection.exists():
            if process.poll() is not None:
                raise _died(jvm, f"Java {java.version} ({java.home}) could not start Spark")
            if time.monotonic() > deadline:
                raise _died(jvm, f"Java {java.version} ({java.home}) did not start Spark in {START_TIMEOUT_S} s")
            time.sleep(0.02)
        with connection.open("rb") as info:
            jvm.port = read_int(info)
            jvm.secret = UTF8Deserializer().loads(info)
        connection.unlink()
        settings_file.unlink()
    except BaseException:
        _end(jvm)
        raise
    return jvm


def _connect(jvm: _Jvm, master: str) -> SparkSession:
    """Connect PySpark to the JVM and make the session from the settings it was started with."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    gateway_at = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    with _environment(gateway_at, without=("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE")):
        gateway = launch_gateway()
        SparkContext._ensure_initialized(gateway=gateway)
        with _sigint_kept():
            try:
                session = SparkSession.builder.getOrCreate()
                _remember_classes(session._jvm)
                with contextlib.suppress(Py4JError):  # another Hadoop may not take them; it is only slower then
                    lighten_hadoop(session)
                return session
            except (Py4JError, PySparkException, OSError) as error:
                if jvm.process.poll() is not None:
                    raise _died(jvm, "Spark's JVM ended while the session was made") from error
                # The exception often says only that the context stopped; what Spark logged says why.
                logged = [line for line in jvm.last_lines if " ERROR " in line]
                message = f"Spark did not start on {master}: {_java_reason(error)}"
                raise EnvironmentProblem("\n  ".join([message, *logged])) from error


def _remember_classes(jvm: Any) -> None:
    """Keep the classes that PySpark names all the time: each time it does, Java looks through all its archives."""
    for name in ("PythonUtils", "PythonSQLUtils", "PythonErrorUtils", "org.apache.spark.sql.functions"):
        setattr(jvm, name, getattr(jvm, name))


def _forget(session: SparkSession | None, *, alive: bool) -> None:
    """Make PySpark forget its session, context and gateway, so that another can be opened."""
    gateway = SparkContext._gateway
    context = SparkContext._active_spark_context
    if alive and session is not None:
        with contextlib.suppress(Py4JError, OSError):
            session.stop()
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()
    if gateway is not None:
        with contextlib.suppress(Py4JError, OSError):
            gateway.shutdown()
    with SparkContext._lock:
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _end(jvm: _Jvm) -> None:
    """End the JVM and remove its folder."""
    jvm.quiet.set()
    assert jvm.process.stdin is not None
    with contextlib.suppress(OSError):
        jvm.process.stdin.close()
    try:
        jvm.process.wait(jvm.stop_timeout_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(jvm.process.pid, signal.SIGKILL)
        jvm.process.wait()
    jvm.reader.join(STOP_TIMEOUT_S)
    shutil.rmtree(jvm.folder, ignore_errors=True)


def _read_output(output: IO[bytes], last_lines: deque[str], quiet: threading.Event, log: Path | None) -> None:
    """Keep the JVM's last lines, and pass them on to the log, or to stderr while the session is open."""
    with output:
        for raw in output:
            line = raw.decode(errors="replace").rstrip()
            last_lines.append(line)
            with contextlib.suppress(OSError, ValueError):
                if log is not None:
                    with log.open("a", encoding="utf-8") as file:
                        file.write(line + "\n")
                elif not quiet.is_set():
                    sys.stderr.write(line + "\n")


def _died(jvm: _Jvm, message: str) -> EnvironmentProblem:
    """The problem to raise for a JVM that is gone, with its own last words."""
    if jvm.process.poll() is not None:
        jvm.reader.join(5)
    said = [line for line in jvm.last_lines if line.strip() and "\tat " not in line]
    return EnvironmentProblem("\n  ".join([message + (":" if said else ""), *said[-LAST_LINES:]]))


def _java_reason(error: BaseException) -> str:
    """The message of the exception in the JVM, without its stack."""
    exception = getattr(error, "java_exception", None)
    text = str(exception.toString()) if exception is not None else str(error)
    return text.splitlines()[0] if text else type(error).__name__


def _machine_cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _environment(values: Mapping[str, str], without: tuple[str, ...]) -> Iterator[None]:
    """Set and hide environment variables for PySpark to read, and put them back."""
    before = {key: os.environ.get(key) for key in (*values, *without)}
    for key in without:
        os.environ.pop(key, None)
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


@contextlib.contextmanager
def _sigint_kept() -> Iterator[None]:
    """Put the SIGINT handler back that PySpark replaces: what Ctrl-C cancels is the engine's to say."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)


@atexit.register
def _close_at_exit() -> None:
    """Remove the scratch folder of a session that nobody closed."""
    opened = _Process.opened
    if opened is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            close_session(opened.session)
