"""Finding classes by name: those of a folder's modules, those of plugins announced under an entry point group."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_INFO = (".dist-info", "egg-info")  # what a package says of itself


def announced(group: str) -> Iterable[EntryPoint]:
    """What installed packages announce under an entry point group.

    Most often it is nothing. Looking for the group's name in their files is soon done; reading them all is not.
    """
    if not any(_may_announce(place, group) for place in sys.path):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _may_announce(place: str, group: str) -> bool:
    """Whether a package in a folder announces something under a group; of what is no folder nobody knows."""
    try:
        infos = [entry.path for entry in os.scandir(place or ".") if entry.name.lower().endswith(_INFO)]
    except FileNotFoundError:
        return False
    except OSError:
        return True
    for info in infos:
        try:
            if f"[{group}]" in Path(info, "entry_points.txt").read_text(encoding="utf-8", errors="replace"):
                return True
        except OSError:
            continue
    return False


def named_classes(base: type[Any], folder: ModuleType, group: str, what: str) -> dict[str, type[Any]]:
    """All classes under `base` that have a `name` of their own, by that name.

    They are found because they stand in a module of `folder`, because a package announces them under the entry
    point `group`, or because a plugin file that was loaded already defines them.
    """
    for info in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{info.name}")
    for entry in announced(group):
        try:
            entry.load()
        except Exception as error:
            raise BadInput(f"{what} plugin {entry.name}: cannot be loaded: {error}") from error
    found: dict[str, type[Any]] = {}
    waiting = base.__subclasses__()
    for kind in waiting:  # grows while it is walked
        waiting.extend(kind.__subclasses__())
        if "name" in kind.__dict__:
            known = found.setdefault(kind.name, kind)
            if known is not kind and (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
                raise BadInput(
                    f"{kind.__module__}: the {what} `{kind.name}` is already defined in {known.__module__}; "
                    f"a plugin's {what} needs a name of its own"
                )
            found[kind.name] = kind  # a plugin file that was loaded again: its latest
    return dict(sorted(found.items()))
