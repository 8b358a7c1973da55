"""A robot at the real program: it has a screen of its own, a mouse and a keyboard, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

SCREEN = (3100, 1400)


class Robot:
    """Starts `papilio design` on a virtual display and works it by xdotool."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *files: str) -> None:
        read, write = os.pipe()
        self.screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{SCREEN[0]}x{SCREEN[1]}x24", "-nolisten", "tcp"],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        )
        os.close(write)
        number = b""
        while not number.endswith(b"\n"):
            number += os.read(read, 16)
        os.close(read)
        self.folder = folder
        self.environment = {**environment, "DISPLAY": f":{number.decode().strip()}", "QT_QPA_PLATFORM": "xcb"}
        self.errors = (folder / "designer.log").open("w")
        self.program = subprocess.Popen(
            [sys.executable, "-m", "engine", "design", *files], cwd=folder, env=self.environment, stderr=self.errors
        )
        self.window = self.find("Papilio")
        self.do("windowmove", self.window, "0", "0", "windowsize", self.window, *map(str, SCREEN))
        self.do("windowfocus", self.window)
        self.settle()

    def close(self) -> None:
        """End what was started."""
        for process in (self.program, self.screen):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        self.errors.close()

    # -- the screen

    def do(self, *words: str) -> str:
        """One command of xdotool."""
        done = subprocess.run(
            ["xdotool", *words], env=self.environment, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.strip()

    def find(self, title: str, seconds: float = 60) -> str:
        """The window with a title, as soon as it is there."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self.program.poll() is None, (self.folder / "designer.log").read_text()
            found = subprocess.run(
                ["xdotool", "search", "--onlyvisible", "--name", title],
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            ).stdout.split()
            if found:
                return found[-1]
            time.sleep(0.1)
        raise TimeoutError(f"no window called {title}")

    def settle(self) -> None:
        """Wait until the program has done what it was told: it sleeps, and uses no more of the processor."""
        process = psutil.Process(self.program.pid)
        quiet, used = 0, -1.0
        deadline = time.monotonic() + 30
        while quiet < 3 and time.monotonic() < deadline:
            time.sleep(0.04)
            times = process.cpu_times()
            now = times.user + times.system
            quiet = quiet + 1 if now == used and process.status() == psutil.STATUS_SLEEPING else 0
            used = now

    # -- the hands

    def keys(self, *names: str) -> None:
        """Press keys, one after the other, by their X names."""
        for name in names:
            self.do("key", "--clearmodifiers", name)
            self.settle()

    def tap(self, name: str) -> None:
        """Press a key while the program is busy with a run, and so never settles."""
        self.do("key", "--clearmodifiers", name)

    def type(self, text: str) -> None:
        """Type a text."""
        self.do("type", "--delay", "8", text)
        self.settle()

    def double_click(self, x: int, y: int) -> None:
        """Two clicks at a place of the screen."""
        self.do("mousemove", str(x), str(y), "click", "--repeat", "2", "--delay", "60", "1")
        self.settle()

    def click(self, x: int, y: int) -> None:
        """One click at a place of the screen."""
        self.do("mousemove", str(x), str(y), "click", "1")
        self.settle()

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Press the button, move, let go."""
        self.do("mousemove", str(start[0]), str(start[1]), "mousedown", "1")
        self.settle()
        for share in (0.3, 0.6, 0.9, 1.0):
            x, y = (round(a + (b - a) * share) for a, b in zip(start, end, strict=True))
            self.do("mousemove", str(x), str(y))
            self.settle()
        self.do("mouseup", "1")
        self.settle()
