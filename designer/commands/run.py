"""Run: run the workflow, drive a run, look at past ones."""

from __future__ import annotations

from designer.commands.registry import command, has_editor
from designer.run.controller import UNDER_WAY
from designer.window.window import MainWindow


def _under_way(window: MainWindow) -> bool:
    return window.runs.state in UNDER_WAY and window.runs.log_path is not None


@command("run.run", "Run", "Run", shortcut="F9", icon="run",
         enabled=lambda w: has_editor(w) and w.runs.state not in UNDER_WAY)  # fmt: skip
def run(window: MainWindow) -> None:
    window.driver.run()


@command("run.policies", "Run under all policies", "Run", shortcut="Ctrl+F9", icon="run_policies",
         enabled=lambda w: has_editor(w) and w.runs.state not in UNDER_WAY)  # fmt: skip
def run_policies(window: MainWindow) -> None:
    window.driver.run_policies()


@command("run.pause", "Pause", "Run", shortcut="Shift+F9", icon="run_pause", section=1,
         enabled=lambda w: _under_way(w) and w.runs.state != "paused")  # fmt: skip
def pause(window: MainWindow) -> None:
    window.runs.pause()


@command("run.step", "Step: one decision", "Run", shortcut="F10", icon="run_step", section=1, enabled=_under_way)
def step(window: MainWindow) -> None:
    window.runs.step()


@command("run.resume", "Resume", "Run", shortcut="F12", icon="run_resume", section=1,
         enabled=lambda w: w.runs.state == "paused" or w.runs.is_resumable())  # fmt: skip
def resume(window: MainWindow) -> None:
    window.driver.resume()


@command("run.cancel", "Cancel the run", "Run", shortcut="Ctrl+.", icon="run_cancel", section=1,
         enabled=lambda w: w.runs.state in UNDER_WAY)  # fmt: skip
def cancel(window: MainWindow) -> None:
    window.driver.cancel()


@command("run.bar", "Go to the run bar", "Run", shortcut="Ctrl+Shift+B", section=2)
def bar(window: MainWindow) -> None:
    window.driver.bar.enter()


@command("run.more", "Run settings…", "Run", shortcut="Ctrl+Shift+R", icon="run_settings", section=2)
def more(window: MainWindow) -> None:
    window.driver.bar.show_more()


@command("run.save_preset", "Save the settings as a preset…", "Run", section=2)
def save_preset(window: MainWindow) -> None:
    window.driver.ask_save_preset()


@command("run.forget_preset", "Remove this preset", "Run", section=2,
         enabled=lambda w: w.driver.own_preset() is not None)  # fmt: skip
def forget_preset(window: MainWindow) -> None:
    window.driver.forget_preset()


@command("run.history", "Past runs", "Run", shortcut="Ctrl+H", icon="runs", section=3)
def history(window: MainWindow) -> None:
    window.show_dock("runs")
    window.driver.history.tree.setFocus()


@command("run.compare", "Compare the selected runs", "Run", shortcut="Ctrl+Shift+H", icon="compare", section=3,
         enabled=lambda w: len(w.driver.history.chosen()) > 1)  # fmt: skip
def compare(window: MainWindow) -> None:
    window.driver.history.compare()


@command("run.attach", "Watch a run of another process…", "Run", section=3)
def attach(window: MainWindow) -> None:
    window.driver.ask_attach()


@command("run.packs", "Look into the packs of an edge", "Run", shortcut="Shift+F5", icon="preview", section=3,
         enabled=lambda w: w.runs.state == "paused")  # fmt: skip
def packs(window: MainWindow) -> None:
    window.driver.look_into_packs()
