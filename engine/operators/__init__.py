"""The component manager: every operator by its name, ours and those of plugins.

An operator is found because its class stands in a module of this folder, or because a package announces it
under the entry point group `papilio.operators`. No list needs editing. A module of ours is loaded when one of its
operators is asked for: most workflows need half of them, and loading takes longer than checking a workflow.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from engine.errors import BadInput
from engine.plugins import announced

if TYPE_CHECKING:
    from engine.model.operator import Operator

ENTRY_POINTS = "papilio.operators"


class Catalogue(Mapping[str, "type[Operator]"]):
    """Operators by name."""

    def __init__(self) -> None:
        self._operators: dict[str, type[Operator]] = {}
        self._waiting: dict[str, str] = {}  # names whose module is not loaded yet
        self._loading = threading.RLock()

    def __getitem__(self, name: str) -> type[Operator]:
        self._load(name)
        return self._operators[name]

    def __iter__(self) -> Iterator[str]:
        for name in list(self._waiting):
            self._load(name)
        return iter(sorted(self._operators))

    def __len__(self) -> int:
        return len(self._operators.keys() | self._waiting.keys())

    def announce(self, module: str, names: Iterable[str]) -> None:
        """Know the operators of a module before it is loaded."""
        self._waiting |= dict.fromkeys(names, module)

    def _load(self, name: str) -> None:
        with self._loading:  # whoever comes meanwhile waits until the module is in
            module = self._waiting.get(name)
            if module is not None:
                self._waiting = {known: home for known, home in self._waiting.items() if home != module}
                self.add_module(importlib.import_module(module), module)

    def add(self, operator: type[Operator], origin: str) -> None:
        """Take an operator in; two of one name are a mistake that is named."""
        self._load(operator.name)
        known = self._operators.get(operator.name)
        if known is not None and known is not operator:
            raise BadInput(
                f"{origin}: the operator `{operator.name}` is already defined in {known.__module__}; "
                "a plugin's operator needs a name of its own"
            )
        self._operators[operator.name] = operator

    def add_module(self, module: ModuleType, origin: str) -> None:
        """Take in every operator a module defines."""
        from engine.model.operator import Operator

        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Operator)
                and not value.abstract
                and value.__module__ == module.__name__
            ):
                self.add(value, origin)


def names_in(module: str) -> list[str]:
    """The operators that a module of ours defines, from its source; a name stands as the first line of its class."""
    spec = importlib.util.find_spec(module)
    try:
        text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    except (OSError, UnicodeDecodeError):
        return []
    return re.findall(r'^    name: ClassVar\[str\] = "(\w+)"', text, re.MULTILINE)


@cache
def catalogue() -> Catalogue:
    """All operators there are."""
    from engine.model.operator import Operator

    found = Catalogue()
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            module = f"{__name__}.{info.name}"
            names = names_in(module)
            if names:
                found.announce(module, names)
            else:  # its source is not there to be looked at
                found.add_module(importlib.import_module(module), module)
    for entry in announced(ENTRY_POINTS):
        origin = f"plugin {entry.name}"
        try:
            loaded = entry.load()
        except Exception as error:
            raise BadInput(f"{origin}: cannot be loaded: {error}") from error
        if isinstance(loaded, ModuleType):
            found.add_module(loaded, origin)
        elif isinstance(loaded, type) and issubclass(loaded, Operator):
            found.add(loaded, origin)
        else:
            raise BadInput(f"{origin}: `{entry.value}` is neither an operator nor a module of operators")
    return found


def load_plugin_file(path: Path) -> ModuleType:
    """Take in the operators of one Python file that the person named (`--plugin FILE`)."""
    name = f"papilio_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise BadInput(f"{path}: no such plugin file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInput(f"{path}: the plugin cannot be loaded: {error}") from error
    catalogue().add_module(module, str(path))
    return module
