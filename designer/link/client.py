"""The engine process as the designer sees it: commands go in, events come out, and a lost one is started again."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from typing import Any

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

PROTOCOL = 1
RESTARTS = 3  # within a minute; then the person must want it
STATES = ("off", "starting", "idle", "ready", "busy", "lost")


class EngineClient(QObject):
    """Starts the engine on first use and keeps it. Whoever listens gets every event as a mapping."""

    state_changed = Signal(str)
    told = Signal(dict)
    gave_up = Signal()  # it was lost so often that it is not started again by itself

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = "off"
        self.pid = 0
        self.errors: deque[str] = deque(maxlen=200)
        self._process: QProcess | None = None
        self._buffer = b""
        self._wanted = False
        self._starts: deque[float] = deque(maxlen=RESTARTS + 1)
        self._number = 0

    # -- the process

    def start(self) -> None:
        """Start the engine, if it does not run."""
        if self._process is not None:
            return
        self._wanted = True
        self._starts.append(time.monotonic())
        process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        environment.insert("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        process.setProcessEnvironment(environment)
        process.readyReadStandardOutput.connect(self._read)
        process.readyReadStandardError.connect(self._read_errors)
        process.finished.connect(self._ended)
        process.errorOccurred.connect(self._failed)
        self._process = process
        self._buffer = b""
        self._say("starting")
        process.start(sys.executable, ["-m", "engine", "serve"])

    def stop(self) -> None:
        """End the engine with the designer; a hanging one is killed."""
        self._wanted = False
        process, self._process = self._process, None
        if process is None:
            return
        process.finished.disconnect(self._ended)
        process.closeWriteChannel()
        if not process.waitForFinished(4000):
            process.kill()
            process.waitForFinished(2000)
        process.deleteLater()
        self._say("off")

    def restart(self) -> None:
        """Start it again, whatever it does."""
        self._starts.clear()
        self.stop()
        self.start()

    def _ended(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.deleteLater()
        self._say("lost")
        if self._wanted:
            recent = [start for start in self._starts if time.monotonic() - start < 60]
            if len(recent) <= RESTARTS:
                QTimer.singleShot(600 * len(recent), self._again)
            else:
                self.gave_up.emit()

    def _again(self) -> None:
        if self._wanted:
            self.start()

    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._ended()

    # -- the protocol

    def send(self, command: str, **fields: Any) -> int:
        """Send a command and return its number, which its answer carries."""
        self.start()
        self._number += 1
        line = json.dumps({"command": command, "id": self._number, **fields}) + "\n"
        if self._process is not None:
            self._process.write(line.encode())
        return self._number

    def cancel(self, number: int) -> None:
        """Cancel a command that was sent."""
        if self._process is not None:
            self._process.write((json.dumps({"command": "cancel", "id": number}) + "\n").encode())

    def _read(self) -> None:
        if self._process is None:
            return
        self._buffer += bytes(self._process.readAllStandardOutput().data())
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        match event.get("event"):
            case "hello":
                self.pid = int(event.get("pid") or 0)
                if event.get("protocol") != PROTOCOL:
                    self._wanted = False
                    self._say("lost")
            case "state":
                self._say(str(event.get("state")))
        self.told.emit(event)

    def _read_errors(self) -> None:
        if self._process is not None:
            text = bytes(self._process.readAllStandardError().data()).decode(errors="replace")
            self.errors.extend(text.splitlines())

    def _say(self, state: str) -> None:
        if state in STATES and state != self.state:
            self.state = state
            self.state_changed.emit(state)
