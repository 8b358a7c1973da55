"""Virtual environments for contenders that are not Papilio's own dependencies: one each, made once and kept."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.experiments.apart import kill_tree

INSTALL_SECONDS = 600
IMPORT_SECONDS = 120
RUN_SECONDS = 1800
LAST_LETTERS = 300


class NotThere(Exception):
    """A contender that cannot be installed or started here; the text says why."""


def environment(folder: Path, package: str, more: Sequence[str], say: Callable[[str], None]) -> Path:
    """The Python of the environment that holds a package, made if need be. Raises `NotThere`."""
    home = folder / package
    python = home / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        say(f"installing {package} into {home}")
        shutil.rmtree(home, ignore_errors=True)
        _told([sys.executable, "-m", "venv", str(home)], "no virtual environment can be made", INSTALL_SECONDS)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package, *more]
        _told(install, f"{package} cannot be installed", INSTALL_SECONDS)
        ready.touch()
    _told([str(python), "-c", f"import {package}"], f"{package} cannot be imported", IMPORT_SECONDS)
    return python


def run_job(python: Path, job: Path, *arguments: object) -> Mapping[str, float]:
    """Run a job in its environment: the figures it says on its last line."""
    output = _told([str(python), str(job), *map(str, arguments)], f"{job.name} failed", RUN_SECONDS)
    figures: Mapping[str, float] = json.loads(output.strip().splitlines()[-1])
    return figures


def version_in(python: Path, package: str) -> str:
    """The version of a package that an environment holds."""
    asked = f"from importlib.metadata import version; print(version({package!r}))"
    return _told([str(python), "-c", asked], f"{package} tells no version", IMPORT_SECONDS).strip()


def _told(command: Sequence[str], what: str, seconds: float) -> str:
    """What a command says; where it fails or takes too long, `what` and the last thing it said are raised."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        raise NotThere(f"{what}: {str(error)[:LAST_LETTERS]}") from error
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise NotThere(f"{what}: it was not done after {seconds:g} s and was ended") from error
    finally:
        if process.poll() is None:
            kill_tree(process.pid)
            process.communicate()
    if process.returncode:
        said = [line for line in (errors + output).splitlines() if line.strip()]
        raise NotThere(f"{what}: {said[-1][:LAST_LETTERS] if said else f'it ended with {process.returncode}'}")
    return output
