"""A real PostgreSQL for the tests: one server for the session, a fresh database for each test."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_START_SECONDS = 60
_numbers = itertools.count(1)


@dataclass(frozen=True)
class PostgresqlServer:
    """A running server and its superuser."""

    host: str
    port: int
    user: str
    password: str

    def dsn(self, database: str = "postgres") -> str:
        """The connection string libpq and ADBC take."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"


@dataclass(frozen=True)
class PostgresqlDatabase:
    """A database of its own for one test."""

    host: str
    port: int
    user: str
    password: str
    database: str

    @property
    def dsn(self) -> str:
        """The connection string libpq and ADBC take."""
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    @property
    def url(self) -> str:
        """The URL SQLAlchemy takes."""
        return self.dsn.replace("postgresql://", "postgresql+psycopg://", 1)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """A server on a free loopback port, with its files in a temporary folder, stopped at the end."""
    if os.environ.get("PAPILIO_WITHOUT_POSTGRESQL") == "1":
        pytest.skip("PAPILIO_WITHOUT_POSTGRESQL=1")
    programs = _programs()
    # Not in pytest's own folder: PostgreSQL refuses root, and no other user may enter that one. The path
    # of a socket may not be long either.
    folder = Path(tempfile.mkdtemp(prefix="papilio-pg-", dir="/tmp"))
    try:
        yield from _serve(programs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql(postgresql_server: PostgresqlServer) -> Iterator[PostgresqlDatabase]:
    """A fresh, empty database."""
    import psycopg

    server = postgresql_server
    name = f"papilio_{next(_numbers)}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    yield PostgresqlDatabase(server.host, server.port, server.user, server.password, name)
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


def _programs() -> Path:
    """The folder of PostgreSQL's own programs; Debian keeps it off the PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    folders += sorted(versions, key=lambda folder: int(folder.parent.name.split(".")[0]), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    pytest.fail(
        "PostgreSQL was not found. Install Debian's package `postgresql` (apt-get install postgresql), "
        "or set PAPILIO_WITHOUT_POSTGRESQL=1 to skip its tests.",
        pytrace=False,
    )


def _someone_else() -> dict[str, Any]:
    """How to start a process as a user PostgreSQL accepts; nothing to do unless we are root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    pytest.fail("PostgreSQL refuses root, and there is no user `postgres` or `nobody`.", pytrace=False)


def _serve(programs: Path, folder: Path) -> Iterator[PostgresqlServer]:
    as_user = _someone_else()
    if as_user:
        os.chown(folder, as_user["user"], as_user["group"])
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    data, log = folder / "data", folder / "log"
    password = secrets.token_urlsafe(16)
    secret = folder / "password"
    secret.write_text(password)
    if as_user:
        os.chown(secret, as_user["user"], as_user["group"])
    extra = [f"--pwfile={secret}", "-E", "UTF8", "--no-sync"]
    made = subprocess.run(
        [programs / "initdb", "-D", data, "-U", "papilio", "-A", "scram-sha-256", *extra],
        check=False,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **as_user,
    )
    if made.returncode:
        pytest.fail(f"initdb failed:\n{made.stdout}", pytrace=False)
    port = _free_port()
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": folder,
        "fsync": "off",
        "full_page_writes": "off",
        "synchronous_commit": "off",
        "shared_buffers": "32MB",
        "max_connections": 50,
    }
    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with open(log, "wb") as output:
        server = subprocess.Popen(
            [programs / "postgres", "-D", data, *options],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is for pytest; it stops the server itself
            **as_user,
        )
    try:
        found = PostgresqlServer("127.0.0.1", port, "papilio", password)
        _wait(found, server, log)
        yield found
    finally:
        server.send_signal(signal.SIGINT)  # a fast shutdown: sessions are ended
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGQUIT)
            server.wait(20)


def _wait(found: PostgresqlServer, server: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            psycopg.connect(found.dsn(), connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                said = log.read_text(errors="replace")
                pytest.fail(f"PostgreSQL did not start:\n{said}", pytrace=False)
            time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
