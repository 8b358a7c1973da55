"""`python -m designer.pictures FOLDER` takes the README's pictures of the program as it is now, without a screen.

Nothing in them is posed: the real window opens shipped workflows, and the runs that it shows are simulated for it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WORKFLOWS = Path(__file__).parent.parent / "workflows"
SIZE = (1600, 960)
POLICIES = ("rr", "mc", "mm")
AT = 0.62  # of the run: its queues are well filled by then
WAIT_S = 30


def _settle(true: Callable[[], object] = lambda: True) -> None:
    """Let the window do what it was asked for, until something is so."""
    from PySide6.QtWidgets import QApplication

    until = time.monotonic() + WAIT_S
    while not true():
        if time.monotonic() > until:
            raise TimeoutError("the window does not come to rest")
        QApplication.processEvents()
        time.sleep(0.01)
    for _ in range(30):  # what was started by a timer as well
        QApplication.processEvents()
        time.sleep(0.02)


def _window(theme: str, name: str) -> Any:
    from designer.session.settings import Settings
    from designer.theme.theme import themes
    from designer.window.window import MainWindow

    themes().choose(theme)
    window = MainWindow(Settings(Path(os.environ["PAPILIO_HOME"]) / theme / name))
    window.resize(*SIZE)
    window.show()
    view = window.files.open(WORKFLOWS / f"{name}.butterfly.yaml")
    if view is None:
        raise OSError(f"{name}: cannot be opened")
    _settle()
    return window


def _simulated(folder: Path) -> list[Path]:
    """The logs of Fig. 1 under each policy."""
    from engine.model.binding import bind
    from engine.model.file import load
    from engine.operators import catalogue
    from engine.schedule.costs import SimulationSettings
    from engine.simulation import launch_simulated

    bound = bind(load(WORKFLOWS / "fig1.butterfly.yaml"), catalogue())
    for policy in POLICIES:
        place = folder / policy
        launch_simulated(bound, SimulationSettings(policy=policy), folder=place, store=f"sqlite:///{folder}/store.db")
    return [folder / policy / "events.jsonl" for policy in POLICIES]


def drawing(theme: str) -> Any:
    """The canvas with a node's settings beside it."""
    window = _window(theme, "fig1")
    window.view.canvas.select(["view_1_by"])
    _settle()
    return window


def watching(log: Path) -> Any:
    """A run in the middle."""
    window = _window("light", "fig1")
    window.runs.replay(str(log), window.editor)
    player = window.monitor.player
    player.wait_until_loaded()
    window.monitor.make_room(True)
    player.seek(player.end * AT)
    _settle()
    return window


def comparing(logs: list[Path]) -> Any:
    """The same workflow under three policies."""
    from designer.monitor.compare import CompareWindow
    from designer.theme.theme import themes

    themes().choose("dark")
    window = CompareWindow(logs)
    window.resize(*SIZE)
    window.show()
    for player in window.players:
        player.wait_until_loaded()
    window.conductor.redraw()
    _settle()
    return window


def planning() -> Any:
    """The plans of the balanced butterfly."""
    window = _window("light", "plan_balanced")
    window.show_dock("plan")
    window.plan.plan_now()
    _settle(window.plan.list.topLevelItemCount)
    return window


def main(arguments: Sequence[str]) -> int:
    """Take them all; return the exit code."""
    target = Path(arguments[0])
    with tempfile.TemporaryDirectory(prefix="papilio-pictures-") as home:
        os.environ["PAPILIO_HOME"] = home
        os.environ["PAPILIO_STORE"] = f"{home}/store.db"
        from designer.app import make_application
        from designer.theme.theme import themes

        application = make_application(["papilio"])
        themes().start("light")
        logs = _simulated(Path(home) / "runs")
        for name, take in (
            ("designer-light", lambda: drawing("light")),
            ("designer-dark", lambda: drawing("dark")),
            ("watching-light", lambda: watching(logs[0])),
            ("compare-dark", lambda: comparing(logs)),
            ("plan-explorer", planning),
        ):
            window = take()
            picture = target / f"{name}.png"
            if not window.grab().save(str(picture)):
                raise OSError(f"{picture}: cannot be written")
            sys.stdout.write(f"{picture}\n")
            window.close()
        application.processEvents()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
