"""The plan explorer: show it, plan anew."""

from __future__ import annotations

from designer.commands.registry import command, has_editor
from designer.window.window import MainWindow


@command("view.dock_plan", "Plan explorer", "View", shortcut="Ctrl+Shift+7", section=4,
         checked=lambda w: w.in_front("plan"))  # fmt: skip
def toggle(window: MainWindow) -> None:
    window.toggle_dock("plan")


@command("view.plan", "Plan the workflow", "View", shortcut="F7", section=5, enabled=has_editor)
def plan(window: MainWindow) -> None:
    window.show_dock("plan")
    window.plan.plan_now()
