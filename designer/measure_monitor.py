"""Measures the panels: opening a long log, scrubbing it, following a log that grows fast, a run on a large canvas.

Run by `papilio bench monitor` in a process of its own, because the engine knows no Qt. Prints one JSON object.
A gap is the time between two beats of a timer of 5 ms in the window's own thread: `wall` by the clock, `busy` by the
processor's time of this process, in which what else runs on the machine does not count.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEAT_MS = 5


def _window(path: Path, log: Path) -> Any:
    """The real window with the workflow open, all panels in sight, showing the log."""
    from PySide6.QtWidgets import QApplication

    from designer.app import open_window

    _, window = open_window(["papilio"], "light")
    window.resize(1800, 1200)
    view = window.files.open(path)
    assert view is not None
    window.monitor.build()
    for name in window.monitor.panels:  # apart, so that every one of them is drawn
        window.docks[name].setFloating(True)
        window.docks[name].resize(700, 320)
        window.docks[name].show()
    QApplication.processEvents()
    window.monitor.open(str(log), view.editor)  # not as a replay: nobody is to judge whether its run goes on
    return window


def _turn() -> None:
    """Let the window do what waits for it, or wait for it: as the program does, which does not spin."""
    from PySide6.QtCore import QEventLoop
    from PySide6.QtWidgets import QApplication

    QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def _frames(count: int, act: Callable[[int], None]) -> dict[str, float]:
    """Do something so many times, painted each time: the 95th percentile of a frame, by either clock."""
    from PySide6.QtWidgets import QApplication

    wall, busy = [], []
    for number in range(count):
        begun, worked = time.perf_counter(), time.process_time()
        act(number)
        QApplication.processEvents()
        wall.append(time.perf_counter() - begun)
        busy.append(time.process_time() - worked)
    return {name: sorted(times)[int(count * 0.95)] for name, times in (("wall", wall), ("busy", busy))}


class Beats:
    """The gaps of the window's thread while something goes on."""

    def __init__(self) -> None:
        from PySide6.QtCore import QTimer

        self.wall: list[float] = []
        self.busy: list[float] = []
        self._last = (time.perf_counter(), time.process_time())
        self.timer = QTimer()
        self.timer.setInterval(BEAT_MS)
        self.timer.timeout.connect(self._beat)
        self.timer.start()

    def _beat(self) -> None:
        now = (time.perf_counter(), time.process_time())
        self.wall.append(now[0] - self._last[0])
        self.busy.append(now[1] - self._last[1])
        self._last = now

    def told(self) -> dict[str, float]:
        """The largest gaps, and those that one in a hundred exceeds."""
        found = {}
        for name, gaps in (("wall", self.wall), ("busy", self.busy)):
            ordered = sorted(gaps)
            found[f"{name} max"] = ordered[-1]
            found[f"{name} p99"] = ordered[int(len(ordered) * 0.99)]
        return found


def opened(path: Path, log: Path, frames: int) -> dict[str, Any]:
    """Seconds until a log is read and drawn, the gaps meanwhile, and those of scrubbing to and fro."""
    from PySide6.QtWidgets import QApplication

    window = _window(path, log.with_name("nothing.jsonl"))
    QApplication.processEvents()
    player = window.monitor.player
    beats = Beats()
    begun, worked = time.perf_counter(), time.process_time()
    player.open(log)
    while not player.loaded:
        _turn()
    player.tick()
    QApplication.processEvents()
    result: dict[str, Any] = {
        "wall": time.perf_counter() - begun,
        "busy": time.process_time() - worked,
        "events": player.recording.count,
        "run seconds": player.recording.end,
        "gaps": beats.told(),
    }
    chance = random.Random(1)

    def scrub(_: int) -> None:
        player.seek(chance.random() * player.end)
        player.draw_all()

    result["scrub"] = _frames(frames, scrub)
    window.close()
    return result


def live(path: Path, log: Path, seconds: float) -> dict[str, Any]:
    """The gaps while a log grows; another process writes it."""
    window = _window(path, log)
    player = window.monitor.player
    until = time.perf_counter() + 2.0
    while time.perf_counter() < until:  # fonts are found, first frames are drawn
        _turn()
    beats = Beats()
    before, begun, worked = player.recording.count, time.perf_counter(), time.process_time()
    behind = []
    while time.perf_counter() - begun < seconds:
        _turn()
        behind.append(log.stat().st_size - player.recording.bytes_read)
    passed = time.perf_counter() - begun
    result = {
        "events a second": (player.recording.count - before) / passed,
        "processor": (time.process_time() - worked) / passed,
        "bytes behind": sorted(behind)[int(len(behind) * 0.99)],
        "gaps": beats.told(),
    }
    window.close()
    return result


def canvas(path: Path, log: Path, frames: int) -> dict[str, Any]:
    """Seconds of a frame while a run is replayed on a canvas with many nodes, near and from afar."""
    from PySide6.QtWidgets import QApplication

    window = _window(path, log)
    for name in window.monitor.panels:
        window.docks[name].hide()
    view, player = window.view, window.monitor.player
    player.wait_until_loaded()
    result: dict[str, Any] = {"nodes": len(view.canvas.nodes)}
    for place in ("near", "far"):
        if place == "near":
            view.zoom_to(1.0)
            view.show_node(list(view.canvas.nodes)[len(view.canvas.nodes) // 2])
        else:
            view.fit()
        QApplication.processEvents()
        result[place] = _frames(frames, lambda number: player.seek(player.end * (number + 0.5) / frames))
    window.close()
    return result


def main(arguments: list[str]) -> None:
    """`open`, `live` or `canvas`, with the workflow, the log, and frames or seconds."""
    what = {"open": opened, "live": live, "canvas": canvas}[arguments[0]]
    found = what(Path(arguments[1]), Path(arguments[2]), int(arguments[3]))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
