"""Results that are kept: the report of a benchmark or an experiment, with the machine and what else it was doing."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from engine.errors import reaching
from engine.experiments.finite import as_json

KINDS = ("bench", "experiment")
KEPT = Path("resources/results")  # beside the code whose figures they are, so that the next one adds to them
NOT_CODE = ("resources/results", "resources/help")  # which a series of results writes itself
MEASURED = ("engine", "workflows")  # what figures are of
CHANGED = "+"


@dataclass
class Kept:
    """One result: what was run, when, how long it took, on what machine, and the report as its JSON has it."""

    kind: str
    name: str
    report: dict[str, Any]
    at: str = ""
    seconds: float = 0.0
    revision: str = ""  # of the code, where it is a checkout; with a + where files had been changed since
    code: str = ""  # the same as long as nothing of what is measured changes, whatever else is committed
    machine: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    charts: list[str] = field(default_factory=list)  # SVG documents

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.kind}-{self.name}.json"


def machine() -> dict[str, Any]:
    """What a figure depends on that is not in the code."""
    import psutil

    def version(package: str) -> str | None:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    return {
        "cores": psutil.cpu_count() or 1,
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "pyspark": version("pyspark"),
    }


def revision() -> str:
    """The commit of the checkout that this code is in, "" where it is in none."""
    commit = _git("rev-parse", "--short=10", "HEAD")
    others = [f":(top,exclude){path}" for path in NOT_CODE]
    return commit and commit + _changed(":(top)", *others)


def code() -> str:
    """What identifies the measured code of the checkout, "" where there is none."""
    trees = [_git("rev-parse", "--short=10", f"HEAD:{path}") for path in MEASURED]
    return "-".join(trees) + _changed(*(f":(top){path}" for path in MEASURED)) if all(trees) else ""


def other_code(one: Kept, other: Kept) -> bool:
    """Whether two results say that they are of different code. One that does not tell its code is not judged."""
    if one.code and other.code:
        return one.code != other.code
    if not (one.revision and other.revision):
        return False
    return one.revision.rstrip(CHANGED) != other.revision.rstrip(CHANGED)


def _changed(*where: str) -> str:
    """A mark where files have been changed since the last commit."""
    return CHANGED if _git("status", "--porcelain", "--untracked-files=no", "--", *where) else ""


def _git(*words: str) -> str:
    """What git says of the checkout that this code is in, "" where it is in none."""
    command = ["git", "-C", str(Path(__file__).resolve().parent), *words]
    try:
        found = subprocess.run(command, check=False, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip() if found.returncode == 0 else ""


def load_average() -> float:
    """How many processes wanted a core, over the last minute."""
    return round(os.getloadavg()[0], 2)


@contextlib.contextmanager
def clock(kept: Kept) -> Iterator[Kept]:
    """Note when it began, how long it took, and what the machine was loaded with before and after."""
    kept.at = datetime.now(UTC).isoformat(timespec="seconds")
    kept.revision, kept.code = revision(), code()
    kept.machine = {**machine(), "load_before": load_average()}
    begun = time.monotonic()
    yield kept
    kept.seconds = round(time.monotonic() - begun, 1)
    kept.machine["load_after"] = load_average()


def keep(kept: Kept, folder: Path) -> Path:
    """Write a result down, in place of the last one of its name."""
    file = folder / kept.file
    unfinished = file.with_suffix(".new")
    text = as_json(vars(kept), 1)
    with reaching(file):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            unfinished.write_text(text, encoding="utf-8")
            unfinished.replace(file)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
    return file


def kept_in(folder: Path) -> dict[tuple[str, str], Kept]:
    """All results of a folder by kind and name; a file that is none is left out."""
    found = {}
    for file in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        with contextlib.suppress(ValueError, TypeError, OSError):
            data: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            one = Kept(**data)
            if one.kind in KINDS:
                found[one.kind, one.name] = one
    return found
