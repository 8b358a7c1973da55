"""One run as the designer sees it: driven here, attached to, or replayed. Panels listen to it and read its log."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from designer.editor import Editor
from designer.link.client import EngineClient
from designer.text import tr

if TYPE_CHECKING:
    from engine.events import LogTail

TAIL_MS = 100
TAIL_BYTES = 4 << 20  # of a long log at a time, so that the window stays alive beside it
ALIVE_TICKS = 10  # a run of another process is looked after once in so many looks
# Nothing was run yet; under way; over. `replay` is a recorded run that somebody looks at.
STATES = ("idle", "starting", "running", "paused", "done", "failed", "cancelled", "interrupted", "replay")
UNDER_WAY = ("starting", "running", "paused")


class RunController(QObject):
    """Starts and drives runs through the engine process, and follows the log of the one in front.

    `started` comes once for each run, with the path of its `events.jsonl` and the editor of its workflow (None where
    it is not open); the file may still be empty then. `appended` says that the log grew, `ended` how the run ended:
    `done`, `failed`, `cancelled` or `interrupted` (its process died). For a recorded run `started` comes with the
    state `replay`, and no `ended` follows.
    """

    started = Signal(str, object)
    appended = Signal()
    ended = Signal(str)
    state_changed = Signal(str)
    known = Signal()  # the first event of its log was read: `facts`, `run_id` and `policy` are there
    told = Signal(str)  # why something was refused or went wrong, in words
    compare_asked = Signal(list, str)  # the logs of the runs to compare, and a remark about them

    def __init__(self, engine: EngineClient, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.engine = engine
        self.state = "idle"
        self.log_path: str | None = None
        self.run_id: str | None = None
        self.policy = ""
        self.facts: dict[str, Any] = {}  # the first event of the run's log
        self.editor: Editor | None = None
        self.finished: deque[str] = deque(maxlen=64)  # the logs of the runs that ended here, the newest last
        self._tail: LogTail | None = None
        self._command: int | None = None
        self._ticks = 0
        self._said: str | None = None  # how the log says that the run ended
        self._timer = QTimer(self)
        self._timer.setInterval(TAIL_MS)
        self._timer.timeout.connect(self.look)
        engine.told.connect(self._answered)
        engine.state_changed.connect(self._engine_is)

    # -- driving

    def run(self, editor: Editor, settings: Mapping[str, Any], parameters: Mapping[str, Any] | None = None) -> None:
        """Run the workflow as it stands on the canvas, saved or not."""
        if self.state in UNDER_WAY:
            return
        document = editor.document
        path = str(document.path.resolve()) if document.path else None
        self._begin(editor, str(settings.get("policy") or ""))
        self._command = self.engine.send(
            "run", text=document.text(), path=path, settings=dict(settings), parameters=dict(parameters or {})
        )

    def resume_killed(self, run: str | None = None, editor: Editor | None = None) -> None:
        """Finish a run whose process died; none named is the one in front."""
        run = run or self.run_id
        if self.state in UNDER_WAY or run is None:
            return
        self._begin(editor or self.editor, self.policy)
        self._command = self.engine.send("resume", run=run)

    def is_resumable(self) -> bool:
        """Whether the run in front was interrupted and can be finished; a simulated one is simulated anew."""
        return self.state == "interrupted" and self.facts.get("backend") == "spark"

    def _begin(self, editor: Editor | None, policy: str) -> None:
        self._timer.stop()
        self.editor, self.policy = editor, policy
        self.log_path = self.run_id = self._tail = None
        self.facts, self._said = {}, None
        self._become("starting")

    def pause(self) -> None:
        """No new decision until somebody says so; turns that run are ended."""
        self._control("pause")

    def step(self) -> None:
        """One scheduling decision more, then paused."""
        self._control("step")

    def resume(self) -> None:
        """Go on deciding."""
        self._control("resume")

    def cancel(self) -> None:
        """Stop the run; its targets stay as they were."""
        if self._command is not None:
            self.engine.cancel(self._command)  # also one that waits for Spark
        else:
            self._control("cancel")

    def set_speed(self, speed: float | None) -> None:
        """So many simulated seconds in one of ours; None is as fast as it goes."""
        self._control("speed", speed)

    def _control(self, action: str, value: float | None = None) -> None:
        if self.state in UNDER_WAY and self.log_path is not None:
            self.engine.send("control", folder=str(Path(self.log_path).parent), action=action, value=value)

    # -- looking

    def attach(self, log_path: str, editor: Editor | None = None) -> None:
        """Follow a run that somebody else started."""
        self._command = None
        self._open(log_path, editor, "running")

    def replay(self, log_path: str, editor: Editor | None = None) -> None:
        """Show a recorded run."""
        self._command = None
        self._open(log_path, editor, "replay")

    def _open(self, log_path: str, editor: Editor | None, state: str) -> None:
        self._timer.stop()
        self.log_path, self.editor, self.facts = log_path, editor, {}
        from engine.events import LogTail

        self._tail = LogTail(Path(log_path))
        self._ticks = 0
        self._become(state)
        self.started.emit(log_path, editor)
        if state != "replay":
            self._timer.start()

    def look(self) -> None:
        """Read what the log has grown by; only what changes the run's own state is understood here."""
        if self._tail is None:
            return
        self._ticks += 1
        # A run of another process says nothing when it dies. Asked first: what it wrote before is read below.
        gone = self._command is None and self._ticks % ALIVE_TICKS == 1 and not _is_alive(self._tail)
        lines = self._tail.lines(TAIL_BYTES)
        for line in lines:
            if line.startswith(b'{"event":"run-'):
                try:
                    event = json.loads(line)
                except ValueError:  # what comes after it counts all the same
                    self.told.emit(tr("{0}: a line of the log is damaged", self._tail.path))
                else:
                    self._take(event)
        if lines:
            self.appended.emit()
        if gone and not lines:
            self._end("interrupted")

    def _read_all(self) -> None:
        """Read the log to its end."""
        tail = self._tail
        at = -1
        while tail is not None and tail.at != at:
            at = tail.at
            self.look()

    @property
    def is_ours(self) -> bool:
        """Whether the run under way is in this program's own engine, and so ends with it."""
        return self.state in UNDER_WAY and self._command is not None

    def _take(self, event: Mapping[str, Any]) -> None:
        match event.get("event"):
            case "run-started":
                self.facts = dict(event)
                self.run_id = str(event.get("run"))
                self.policy = str(event.get("policy") or "")
                self._become("running")
                self.known.emit()
            case "run-paused":
                self._become("paused")
            case "run-resumed":
                self._become("running")
            case "run-finished" if self._command is None:
                self._end(str(event.get("status")))
            case "run-finished":  # of ours the engine says so too, once all of it is written down
                self._said = str(event.get("status"))

    # -- what the engine says

    def _answered(self, event: dict[str, Any]) -> None:
        if self._command is None or event.get("id") != self._command:
            return
        match event.get("event"):
            case "run-started":
                self.run_id = str(event["run"])
                self._open(str(event["log"]), self.editor, "running")
            case "run-ended":
                self._read_all()
                self._end(str(event["status"]), event.get("message"))
            case "failed":
                self._end("failed", event.get("message"))
            case "cancelled":
                self._end("cancelled")

    def _engine_is(self, state: str) -> None:
        if state in ("lost", "off") and self._command is not None and self.state in UNDER_WAY:
            self._read_all()
            if self._said is not None:
                self._end(self._said)
            else:
                simulated = self.facts.get("backend") == "simulated"
                onwards = tr("Run simulates it anew.") if simulated else tr("Resume goes on from where the run was.")
                self._end("interrupted", tr("The engine process died. {0}", onwards))

    def _end(self, status: str, message: object = None) -> None:
        if self.state not in UNDER_WAY:
            return
        self._timer.stop()
        self._command = None
        if self.log_path is not None:
            self.finished.append(self.log_path)
        self._become(status if status in STATES else "failed")
        if message:
            self.told.emit(str(message))
        self.ended.emit(self.state)

    def _become(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.state_changed.emit(state)


def _is_alive(tail: LogTail) -> bool:
    from engine.control import is_alive

    return is_alive(Path(tail.path).parent)
