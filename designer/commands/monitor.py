"""Watching a run: its panels, windows of their own, the projector."""

from __future__ import annotations

import pkgutil

import designer.monitor.panels
from designer.commands.registry import command
from designer.window.window import MainWindow


def _declare_panel(name: str) -> None:
    @command(f"monitor.{name}", f"Run panel: {name}", "View", icon="monitor", section=6,
             checked=lambda w: name in w.monitor.panels and w.docks[name].isVisible())  # fmt: skip
    def toggle(window: MainWindow) -> None:
        window.monitor.show_panel(name)


for _info in pkgutil.iter_modules(designer.monitor.panels.__path__):  # their modules are loaded with the first run
    _declare_panel(_info.name)


def _has_panel(window: MainWindow) -> bool:
    return window.monitor.front() is not None


@command("monitor.pop_out", "Run panel in its own window", "View", shortcut="Ctrl+F10", section=7, enabled=_has_panel)
def pop_out(window: MainWindow) -> None:
    window.monitor.pop_out()


@command("monitor.full_screen", "Run panel on the full screen", "View", shortcut="Shift+F11", icon="full_screen",
         section=7, enabled=_has_panel)  # fmt: skip
def full_screen(window: MainWindow) -> None:
    window.monitor.pop_out(full_screen=True)


@command("monitor.project", "Projector: larger panels", "View", shortcut="Ctrl+Shift+J", icon="projector", section=7,
         checked=lambda w: w.monitor.projecting)  # fmt: skip
def project(window: MainWindow) -> None:
    window.monitor.project(not window.monitor.projecting)


@command("monitor.room", "Room for watching", "View", shortcut="Ctrl+Shift+W", section=7,
         checked=lambda w: w.monitor.roomy)  # fmt: skip
def room(window: MainWindow) -> None:
    window.monitor.make_room(not window.monitor.roomy)
