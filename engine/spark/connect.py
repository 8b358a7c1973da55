"""Sessions over Spark Connect: to a server that is there (`sc://host:port`), or to Sail, started beside this process.

Sail is an engine in Rust that speaks Spark Connect. It has no JVM to start, and it does not know all of Spark: what
it was not seen to do as Spark does is refused before anything runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from engine.errors import BadInput, EnvironmentProblem
from engine.model.binding import Bound

SAIL = "sail"
_REMOTE = re.compile(r"sc://[^/\s;]+(/;\S*)?")
# PySpark's functions ask the environment whether they build plans for Spark Connect.
_MODE = {"SPARK_CONNECT_MODE_ENABLED": "1"}
# What decides on results is the same as for a classic session; the rest is the server's.
_SETTINGS = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}


# Sail stops at Ctrl-C, so it runs in a process that Ctrl-C does not reach; it ends when its stdin does.
_SERVER = """
import sys
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
sys.stdin.read()
"""


class _Opened:
    """The connection of this process: PySpark's mode is the process's, so there is one at a time."""

    session: SparkSession | None = None
    server: subprocess.Popen[str] | None = None
    before: Mapping[str, str | None] = {}


def is_connected(master: str) -> bool:
    """Whether a master is reached over Spark Connect."""
    return master.strip() == SAIL or _REMOTE.fullmatch(master.strip()) is not None


def speaks_connect(session: SparkSession) -> bool:
    """Whether a session is one over Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def open_connected(master: str, extra: Mapping[str, str], log: Path | None) -> SparkSession:
    """Connect to a server, or start Sail and connect to it."""
    if _Opened.session is not None:
        raise EnvironmentProblem("a Spark session is already open in this process; close it first")
    master = master.strip()
    _Opened.before = {name: os.environ.get(name) for name in (*_MODE, "SPARK_REMOTE")}
    try:
        address = _start_sail(log) if master == SAIL else master
        os.environ.update(_MODE)
        session = SparkSession.builder.remote(address).getOrCreate()
        if _Opened.server is not None:
            # A Sail of our own answers, or it is gone for good: PySpark would ask it again for ten minutes.
            session.client.set_retry_policies([])
        for name, value in {**_SETTINGS, **extra}.items():
            session.conf.set(name, value)
    except ImportError as error:
        _close()
        raise EnvironmentProblem(f"{master} needs a package that is not here: pip install 'papilio[sail]'") from error
    except Exception as error:
        _close()
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise EnvironmentProblem(f"Spark could not be reached on {master}: {said}") from error
    _Opened.session = session
    return session


def close_connected(session: SparkSession) -> bool:
    """Close a session of this module's. False for any other."""
    if session is not _Opened.session:
        return False
    with contextlib.suppress(Exception):  # a server that is gone needs no goodbye
        session.stop()
    _close()
    return True


def cancel_connected(session: SparkSession) -> None:
    """Drop every query of a session; a Sail of our own is ended, whatever it does."""
    if _Opened.server is not None and session is _Opened.session:
        _Opened.server.kill()
    else:
        session.interruptAll()


def _start_sail(log: Path | None) -> str:
    if importlib.util.find_spec("pysail") is None:
        raise ImportError("pysail")
    environment = {**os.environ, "RUST_LOG": "warn"}  # it would write every request down
    with contextlib.ExitStack() as files:
        errors = files.enter_context(log.open("ab")) if log is not None else subprocess.DEVNULL
        _Opened.server = subprocess.Popen(
            [sys.executable, "-c", _SERVER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, process_group=0,
        )  # fmt: skip
    assert _Opened.server.stdout is not None
    port = _Opened.server.stdout.readline().strip()
    if not port:
        raise OSError(f"Sail ended with code {_Opened.server.wait()} as it started")
    return f"sc://127.0.0.1:{port}"


def _close() -> None:
    server, _Opened.server, _Opened.session = _Opened.server, None, None
    if server is not None:
        server.kill()  # it keeps nothing: targets are written and swapped by their deliveries
        server.communicate()
    for name, value in _Opened.before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def check_operators(bound: Bound, master: str) -> None:
    """Refuse operators that Sail does not run as Spark does, or was not seen to."""
    if master.strip() != SAIL:
        return
    file = bound.file or bound.name
    strange = [
        f"{file}: node `{node}`: `{operator.name}` is not known to give on Sail what it gives on Spark; use local[*]"
        for node, operator in bound.operators.items()
        if not operator.on_sail
    ]
    if strange:
        raise BadInput("\n".join(strange))
