"""The component manager: every operator by its name, ours and those of plugins.

An operator is found because its class stands in a module of this folder, or because a package announces it
under the entry point group `papilio.operators`. No list needs editing.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from engine.errors import BadInput
from engine.model.operator import Operator

ENTRY_POINTS = "papilio.operators"


class Catalogue(Mapping[str, type[Operator]]):
    """Operators by name."""

    def __init__(self) -> None:
        self._operators: dict[str, type[Operator]] = {}

    def __getitem__(self, name: str) -> type[Operator]:
        return self._operators[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._operators))

    def __len__(self) -> int:
        return len(self._operators)

    def add(self, operator: type[Operator], origin: str) -> None:
        """Take an operator in; two of one name are a mistake that is named."""
        known = self._operators.get(operator.name)
        if known is not None and known is not operator:
            raise BadInput(
                f"{origin}: the operator `{operator.name}` is already defined in {known.__module__}; "
                "a plugin's operator needs a name of its own"
            )
        self._operators[operator.name] = operator

    def add_module(self, module: ModuleType, origin: str) -> None:
        """Take in every operator a module defines."""
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Operator)
                and not value.abstract
                and value.__module__ == module.__name__
            ):
                self.add(value, origin)


@cache
def catalogue() -> Catalogue:
    """All operators there are."""
    found = Catalogue()
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            module = importlib.import_module(f"{__name__}.{info.name}")
            found.add_module(module, module.__name__)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
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
