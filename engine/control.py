"""Driving a run from outside: pause, step, resume, cancel, and the speed of a simulated one.

Commands come from the engine process or, for a run of any other process, from `control.jsonl` in the run's folder. The
run takes them between two decisions; only `cancel` is heard at once. The file is locked while its run lives, so that
nobody takes a killed run for a living one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import BadInput, RunCancelled
from engine.events import Event, LogTail, RunPaused, RunResumed, RunStepped, SpeedChanged
from engine.schedule.pace import Pace
from engine.store.runs import LOG

if TYPE_CHECKING:
    from engine.store import RunRecord

FILE = "control.jsonl"
ACTIONS = ("pause", "step", "resume", "cancel", "speed")
POLL_SECONDS = 0.1
HOLD_SECONDS = 0.2  # a paused run looks up so often
LAST_BYTES = 8192  # of a log, in which its last line is


class RunControl:
    """What is asked of a run. Anyone may `send`; the run itself calls the rest, from one thread."""

    def __init__(self, *, paused: bool = False, speed: float | None = None) -> None:
        """`paused` stops the run before its first decision."""
        self.pace = Pace()
        self.speed = speed
        self.paused_seconds = 0.0
        self.cancelled = threading.Event()
        self.on_cancel: Callable[[], None] = lambda: None
        self._tell: Callable[[Event], None] = lambda event: None
        self._now: Callable[[], float] = time.time
        self._waiting: deque[tuple[str, float | None]] = deque()
        self._came = threading.Condition()
        self._still = False  # whether it was told that nothing runs any more
        if paused:
            self._waiting.append(("pause", None))

    def send(self, action: str, value: float | None = None) -> None:
        """Ask something of the run."""
        check_command(action, value)
        if action == "cancel":
            self.cancelled.set()
            self.on_cancel()
        with self._came:
            self._waiting.append((action, value))
            self._came.notify_all()

    # -- the run's side

    def drive(self, pace: Pace, tell: Callable[[Event], None], now: Callable[[], float] = time.time) -> None:
        """From now on what is sent changes this pace, and is told."""
        self.pace, self._tell, self._now = pace, tell, now

    def clock(self) -> float:
        """A clock that stands still while the run is paused and nothing runs."""
        return time.monotonic() - self.paused_seconds

    @property
    def asked(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._waiting)

    def take(self, running: list[str] | None = None) -> None:
        """Do what was asked since; `running` are the units in the middle of a turn."""
        while self._waiting:
            action, value = self._waiting.popleft()
            pace, moment = self.pace, self._now()
            match action:
                case "pause" if not pace.held:
                    pace.pause()
                    self._still = False
                    if running:
                        self._tell(RunPaused(time=moment, running=running))
                case "step":
                    pace.step()
                    self._still = False
                    self._tell(RunStepped(time=moment))
                case "resume" if pace.paused:
                    pace.resume()
                    self._tell(RunResumed(time=moment))
                case "speed" if value != self.speed:
                    self.speed = value
                    self._tell(SpeedChanged(time=moment, speed=value))

    def still(self) -> bool:
        """A paused run whose turns have ended: true the first time, when it is told."""
        if self._still:
            return False
        self._still = True
        self._tell(RunPaused(time=self._now()))
        return True

    def hold(self) -> None:
        """Wait for a command, a moment at most; the time does not count as the run's."""
        begun = time.monotonic()
        self.wait(HOLD_SECONDS)
        self.paused_seconds += time.monotonic() - begun

    def wait(self, seconds: float) -> None:
        """Wait for a command, so long at most."""
        with self._came:
            if not self._waiting and not self.cancelled.is_set():
                self._came.wait(seconds)


class VirtualPace:
    """Paces a virtual clock by ours: at a speed of 2, two simulated seconds pass in one of ours."""

    def __init__(self, control: RunControl) -> None:
        self.control = control
        self.moment = 0.0  # that the virtual clock has come to, or waits for
        self._from = (time.monotonic(), 0.0)  # ours and the virtual one, when they last began to run together

    def to(self, moment: float) -> None:
        """Return when the virtual clock may go to a moment. Steps do not wait; a paused clock does not move."""
        control = self.control
        while True:
            if control.asked:
                speed = control.speed
                control.take()
                if control.speed != speed:
                    self._rebase()
            self._raise_cancelled()
            if control.pace.held:
                self.hold()
                continue
            if control.speed is None or control.pace.paused:
                self.moment = max(self.moment, moment)
                self._rebase()
                return
            ours, virtual = self._from
            due = ours + (moment - virtual) / control.speed - time.monotonic()
            if due <= 0:
                self.moment = max(self.moment, moment)
                return
            control.wait(due)
            if control.asked:  # so far it has come
                self.moment = min(moment, max(self.moment, virtual + (time.monotonic() - ours) * control.speed))

    def hold(self) -> None:
        """While the run is paused: wait, and do what is asked."""
        self.control.still()
        self.control.hold()
        self.control.take()
        self._raise_cancelled()
        self._rebase()

    def _rebase(self) -> None:
        self._from = (time.monotonic(), self.moment)

    def _raise_cancelled(self) -> None:
        if self.control.cancelled.is_set():
            raise RunCancelled("cancelled")


# ---------------------------------------------------------------- from another process


def check_command(action: Any, value: Any) -> None:
    """Refuse what no run understands."""
    if action not in ACTIONS:
        raise BadInput(f"a run does not understand `{action}`; it knows {', '.join(ACTIONS)}")
    if action == "speed" and value is not None and not (isinstance(value, int | float) and 0 < value < float("inf")):
        raise BadInput(f"speed {value}: write how many simulated seconds pass in one of ours, such as 10")


def send_to(folder: Path, action: str, value: float | None = None) -> None:
    """Ask something of a run of another process, by its folder."""
    check_command(action, value)
    if not is_alive(folder):
        raise BadInput(f"{folder}: no run is under way there")
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"action": action, "value": value}) + "\n")


def is_alive(folder: Path) -> bool:
    """Whether the run of this folder is under way, in whatever process."""
    try:
        with (folder / FILE).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def status_of(record: RunRecord) -> str:
    """A run's status; one that the store takes for running and whose process is gone was interrupted."""
    folder = Path(record.folder)
    if record.status != "running" or is_alive(folder):
        return record.status
    try:  # it may have ended since the store was read
        with (folder / LOG).open("rb") as file:
            file.seek(-min(LAST_BYTES, file.seek(0, 2)), 2)
            last = json.loads(file.read().splitlines()[-1])
        return str(last["status"]) if last["event"] == "run-finished" else "interrupted"
    except (OSError, ValueError, LookupError, TypeError):
        return "interrupted"


@contextlib.contextmanager
def driven(folder: Path, control: RunControl) -> Iterator[None]:
    """While this lasts, what is written into the control file of the folder reaches the run."""
    path = folder / FILE
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)  # what was asked of a killed run is not asked of this one
        stop = threading.Event()

        def follow() -> None:
            tail = LogTail(path)
            while not stop.wait(POLL_SECONDS):
                for line in tail.lines():
                    with contextlib.suppress(ValueError, AttributeError, BadInput):
                        command = json.loads(line)
                        control.send(command.get("action"), command.get("value"))

        thread = threading.Thread(target=follow, name="control", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
