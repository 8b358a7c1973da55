"""Errors a person can act on. Each carries the exit code the command line ends with."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path


class PapilioError(Exception):
    """Something a person should read: one message, no stack trace."""

    exit_code = 1


class RunFailed(PapilioError):
    """A run started and could not finish."""

    exit_code = 1


class BadInput(PapilioError):
    """A file, a node or a setting is wrong; nothing was started."""

    exit_code = 2


class RunCancelled(PapilioError):
    """The person stopped the run."""

    exit_code = 3


class EnvironmentProblem(PapilioError):
    """The machine lacks something: Java, a package, room on the disk."""

    exit_code = 4


def out_of_reach(error: OSError, place: Path | None = None) -> EnvironmentProblem:
    """What the system said of a file, with the file; an error while writing does not know its own."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        reason = "a file is where a folder should be"
    else:
        reason = error.strerror or str(error) or type(error).__name__
    where = error.filename if error.filename is not None else place
    return EnvironmentProblem(reason if where is None else f"{where}: {reason}")


@contextlib.contextmanager
def reaching(place: Path) -> Iterator[None]:
    """What cannot be written or read here is told with the place and the reason."""
    try:
        yield
    except ConnectionError:  # of somebody who spoke to another process meanwhile; no place of files
        raise
    except OSError as error:
        raise out_of_reach(error, place) from error


def check_folder(folder: Path) -> None:
    """Refuse a folder that no file can be written to, before anything is done for it. Leaves nothing behind."""
    missing: list[Path] = []
    try:
        with reaching(folder):
            missing = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(b"1")
    finally:
        for path in missing:
            with contextlib.suppress(OSError):
                path.rmdir()
