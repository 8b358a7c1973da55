"""Benchmarks and experiments are found by the names of their files: adding one is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import engine.experiments
from engine.errors import BadInput
from engine.model.problems import did_you_mean


def names(kind: str) -> list[str]:
    """The names there are: `bench_large_file.py` is `large-file` of the kind `bench`."""
    modules = (info.name for info in pkgutil.iter_modules(engine.experiments.__path__))
    found = (name.removeprefix(f"{kind}_") for name in modules if name.startswith(f"{kind}_"))
    return sorted(name.replace("_", "-") for name in found)


def find(kind: str, name: str, what: str) -> Any:
    """The function named `what` in the module of a name."""
    known = names(kind)
    if name not in known:
        raise BadInput(f"there is no {what} `{name}`{did_you_mean(name, known)}; there are {', '.join(known)}")
    return getattr(importlib.import_module(f"engine.experiments.{kind}_{name.replace('-', '_')}"), what)
