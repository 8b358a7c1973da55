"""Benchmarks and experiments are found by the names of their files: adding one is adding a file."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path
from typing import Any

import engine.experiments
from engine.errors import BadInput
from engine.model.problems import did_you_mean


def names(kind: str) -> list[str]:
    """The names there are: `bench_large_file.py` is `large-file` of the kind `bench`."""
    modules = (info.name for info in pkgutil.iter_modules(engine.experiments.__path__))
    found = (name.removeprefix(f"{kind}_") for name in modules if name.startswith(f"{kind}_"))
    return sorted(name.replace("_", "-") for name in found)


def summaries(kind: str, what: str) -> dict[str, str]:
    """What each is about, in a line. Read from the source: loading all of them takes seconds."""
    first_line = re.compile(rf'^def {what}\(.*\n    """(.+?)(?:"""|$)', re.MULTILINE)
    found = {}
    for name in names(kind):
        spec = importlib.util.find_spec(_module(kind, name))
        source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.has_location and spec.origin else ""
        match = first_line.search(source)
        found[name] = match[1] if match else ""
    return found


def find(kind: str, name: str, what: str) -> Any:
    """The function named `what` in the module of a name."""
    known = names(kind)
    if name not in known:
        raise BadInput(f"there is no {what} `{name}`{did_you_mean(name, known)}; there are {', '.join(known)}")
    return getattr(importlib.import_module(_module(kind, name)), what)


def _module(kind: str, name: str) -> str:
    return f"engine.experiments.{kind}_{name.replace('-', '_')}"
