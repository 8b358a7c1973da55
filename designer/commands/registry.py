"""Commands are declared by a decorator in the modules of this folder; none needs to be listed elsewhere."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from designer.window.window import MainWindow

Run = Callable[["MainWindow"], None]
Test = Callable[["MainWindow"], bool]

MENUS = ("File", "Edit", "Insert", "Arrange", "Run", "View", "Help")


@dataclass(frozen=True)
class Command:
    """One thing to do: its name in menus, where it stands, its shortcut and when it makes sense."""

    id: str
    text: str
    menu: str
    run: Run
    shortcut: str = ""
    icon: str = ""
    section: int = 0  # lines in a menu stand between sections
    tool: bool = False  # also in the tool bar
    enabled: Test | None = None
    checked: Test | None = None


_COMMANDS: dict[str, Command] = {}


def command(
    id_: str,
    text: str,
    menu: str,
    *,
    shortcut: str = "",
    icon: str = "",
    section: int = 0,
    tool: bool = False,
    enabled: Test | None = None,
    checked: Test | None = None,
) -> Callable[[Run], Run]:
    """Declare the function below as a command."""

    def declare(run: Run) -> Run:
        _COMMANDS[id_] = Command(id_, text, menu, run, shortcut, icon, section, tool, enabled, checked)
        return run

    return declare


@cache
def commands() -> dict[str, Command]:
    """Every command by its id, in the order of declaration."""
    import designer.commands as folder

    for info in sorted(pkgutil.iter_modules(folder.__path__), key=lambda info: info.name):
        if info.name not in ("registry", "palette"):
            importlib.import_module(f"{folder.__name__}.{info.name}")
    return dict(sorted(_COMMANDS.items(), key=lambda entry: (MENUS.index(entry[1].menu), entry[1].section)))


def has_editor(window: MainWindow) -> bool:
    """A workflow is open."""
    return window.view is not None


def has_nodes(window: MainWindow) -> bool:
    """At least one node is selected."""
    return window.view is not None and bool(window.view.canvas.selected_nodes())


def has_several(window: MainWindow) -> bool:
    """At least two nodes are selected."""
    return window.view is not None and len(window.view.canvas.selected_nodes()) > 1


def has_selection(window: MainWindow) -> bool:
    """Something is selected."""
    if window.view is None:
        return False
    canvas = window.view.canvas
    return bool(canvas.selected_nodes() or canvas.selected_edges() or canvas.selected_notes() or
                canvas.selected_groups())  # fmt: skip
