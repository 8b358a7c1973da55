"""Finding classes by name: those of a folder's modules, those of plugins announced under an entry point group."""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from types import ModuleType
from typing import Any

from engine.errors import BadInput


def named_classes(base: type[Any], folder: ModuleType, group: str, what: str) -> dict[str, type[Any]]:
    """All classes under `base` that have a `name` of their own, by that name.

    They are found because they stand in a module of `folder`, because a package announces them under the entry
    point `group`, or because a plugin file that was loaded already defines them.
    """
    for info in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{info.name}")
    for entry in importlib.metadata.entry_points(group=group):
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
