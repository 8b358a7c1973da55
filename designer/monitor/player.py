"""Moves through a recording: follows its end while it grows, or plays it at any speed, forwards and backwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from engine.control import is_alive
from engine.recording import RunRecording

TICK_MS = 100
LOADING_MS = 400  # between two pictures while a long log is read
GROWN = 3  # times as many events as in the last picture make it worth another one meanwhile
PART_BYTES = 1 << 20
SLICE_S = 0.010  # of reading at a time; then the window has its turn
SPEEDS = (0.01, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0)  # that are offered; any other may be typed
SLOWEST, FASTEST = 1e-6, 1e6


class Player(QObject):
    """One recording and the moment of it that is shown. Panels and canvas redraw on `ticked`, never more often."""

    opened = Signal()  # another recording
    ticked = Signal()  # something to draw: the recording grew or the moment moved
    changed = Signal()  # playing, following or the speed
    sought = Signal(float)  # somebody asked for a moment
    read_all = Signal()  # what the log held when it was opened has been read

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.recording: RunRecording | None = None
        self.at = 0.0
        self.following = True  # the end of the log
        self.playing = 0  # 1 forwards, -1 backwards, 0 not
        self.speed = 1.0
        self.loaded = False  # all that the log held has been read
        self.span = TimeSpan(self)
        self._drawn = 0.0
        self._waiting: list[Callable[[], None]] = []  # what is to be drawn, one by one
        self._painting = False  # this turn of the window is for what was drawn in the last one
        self._shown: tuple[int, float] = (-1, -1.0)
        self._last = time.monotonic()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)
        # Reading and drawing take turns in one thread: with two, every call of Qt would wait for the other's lock.
        self._reading = QTimer(self)
        self._reading.timeout.connect(self._read_in_turn)
        self._drawing = QTimer(self)
        self._drawing.setInterval(0)
        self._drawing.timeout.connect(self._draw_in_turn)

    # -- the recording

    def open(self, path: Path) -> None:
        """Read a log, and go on reading as it grows; a run that is over is shown from its end."""
        self.close()
        self.recording = RunRecording(path)
        self.at, self.following, self.playing, self.loaded = 0.0, True, 0, False
        self._shown = (-1, -1.0)
        self.span.whole = True
        self._waiting.clear()
        self._reading.start(0)
        self._painting = True  # the window, now without a run, before the first part is read
        self._drawing.start()
        self._last = time.monotonic()
        self._timer.start()
        self.opened.emit()
        self.changed.emit()

    def close(self) -> None:
        """Let go of the recording."""
        for timer in (self._timer, self._reading, self._drawing):
            timer.stop()

    def _read_in_turn(self) -> None:
        """One thing in a turn of the window: what waits to be drawn comes first."""
        if self._drawing.isActive():
            self._reading.start(0)
        else:
            self._read()

    def _read(self) -> None:
        recording = self.recording
        assert recording is not None
        until = time.perf_counter() + SLICE_S
        while recording.read(PART_BYTES):
            if time.perf_counter() >= until:
                self._reading.start(0)
                return
        if recording.damage is None:
            self._reading.start(TICK_MS)
        else:
            self._reading.stop()
        if not self.loaded:
            self.loaded = True
            self.read_all.emit()

    def wait_until_loaded(self) -> None:
        """Read all there is at once, and draw it; for pictures and tests."""
        while not self.loaded:
            self._read()
        self.redraw()

    def look_after(self) -> None:
        """Find out whether the run goes on: a log that breaks off is one of a run that does not."""
        recording = self.recording
        if recording is None:
            return
        over = not is_alive(recording.path.parent)  # first: what it wrote before it ended is read after
        while recording.read():
            pass
        recording.over = over
        self._shown = (-1, -1.0)

    def ask(self, draw: Callable[[], None]) -> None:
        """Have something drawn soon; the window can do something else between two of them."""
        if draw not in self._waiting:
            self._waiting.append(draw)
        if not self._drawing.isActive():
            self._painting = True  # whoever asks may have changed the canvas already
            self._drawing.start()

    def _draw_in_turn(self) -> None:
        """Draw one thing; the window's next turn is for painting what that has changed."""
        self._painting = not self._painting and bool(self._waiting)
        if self._painting:
            self._waiting.pop(0)()
        elif not self._waiting:
            self._drawing.stop()

    def draw_all(self) -> None:
        """Draw what waits for it, now."""
        while self._waiting:
            self._waiting.pop(0)()

    @property
    def count(self) -> int:
        """How many events there are."""
        return self.recording.count if self.recording else 0

    @property
    def end(self) -> float:
        """The newest moment there is."""
        return self.recording.end if self.recording else 0.0

    @property
    def live(self) -> bool:
        """Whether the run goes on, as far as its log says."""
        recording = self.recording
        return recording is not None and recording.finished is None and not recording.over

    # -- moving

    def tick(self) -> None:
        """Move on by the time that has passed, and have drawn what changed."""
        now = time.monotonic()
        passed, self._last = now - self._last, now
        end = self.end
        if self.following:
            self.at = end
        elif self.playing:
            self.at += self.playing * self.speed * passed
            if self.at >= end and self.playing > 0:
                self.at = end
                self.playing = 0
                self.following = self.live
                self.changed.emit()
            elif self.at <= 0.0 and self.playing < 0:
                self.at, self.playing = 0.0, 0
                self.changed.emit()
        shown = (self.count, self.at)
        # A long log is drawn now and then while it is read, ever less often.
        grown = self.loaded or (now - self._drawn >= LOADING_MS / 1000 and self.count > GROWN * self._shown[0])
        if shown != self._shown and grown:
            self._shown, self._drawn = shown, now
            self.ticked.emit()

    def redraw(self) -> None:
        """Draw again although nothing has moved: the theme or the fonts are others."""
        self._shown, self._drawn = (-1, -1.0), 0.0
        self.tick()
        self.draw_all()

    def seek(self, at: float) -> None:
        """Show a moment; the end of the log is no longer followed."""
        self.at = min(max(0.0, at), self.end)
        if self.following:
            self.following = False
            self.changed.emit()
        self._last = time.monotonic()
        self.tick()
        self.sought.emit(self.at)

    def follow(self) -> None:
        """Go along with the end of the log again."""
        self.following, self.playing = True, 0
        self.changed.emit()
        self.tick()

    def play(self, direction: int = 1) -> None:
        """Play forwards or backwards; from the beginning where the end is shown."""
        if direction > 0 and self.at >= self.end:
            self.at = 0.0
        self.following, self.playing = False, direction
        self._last = time.monotonic()
        self.changed.emit()

    def pause(self) -> None:
        """Stay where it is."""
        self.playing = 0
        if self.following:
            self.following = False
        self.changed.emit()

    def set_speed(self, speed: float) -> None:
        """So many seconds of the run in one of ours."""
        self.speed = min(max(speed, SLOWEST), FASTEST)
        self.changed.emit()

    def to_decision(self, step: int) -> None:
        """The decision before or after this moment."""
        recording = self.recording
        if recording is None or not len(recording.decisions):
            return
        times = recording.decisions["time"]
        here = recording.decision_at(self.at)
        number = here + step
        while 0 <= number < len(times) and times[number] == self.at:
            number += step
        if step < 0:
            number = max(number, 0)
        self.seek(float(times[min(number, len(times) - 1)]))


class Conductor(Player):
    """Moves several players together: what is asked of one, all show."""

    def __init__(self, players: list[Player], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.players = players
        for player in players:
            player.span = self.span
            player.sought.connect(self.seek)
        self.ticked.connect(self._lead)
        self._leading = False
        self.loaded = True
        self._timer.start()

    @property
    def count(self) -> int:
        return sum(player.count for player in self.players)

    @property
    def end(self) -> float:
        return max((player.end for player in self.players), default=0.0)

    @property
    def live(self) -> bool:
        return any(player.live for player in self.players)

    def seek(self, at: float) -> None:
        if not self._leading:
            super().seek(at)

    def _lead(self) -> None:
        self._leading = True
        for player in self.players:
            if self.at >= player.end:
                player.follow()
            else:
                player.seek(self.at)
        self._leading = False

    def redraw(self) -> None:
        super().redraw()
        for player in self.players:
            player.redraw()

    def close(self) -> None:
        super().close()
        for player in self.players:
            player.close()


class TimeSpan(QObject):
    """The span of time that all panels show: the whole run, until somebody zooms in on a part of it."""

    changed = Signal()

    def __init__(self, player: Player) -> None:
        super().__init__(player)
        self.player = player
        self.whole = True
        self._start, self._stop = 0.0, 1.0

    @property
    def range(self) -> tuple[float, float]:
        """From and to."""
        if self.whole:
            return 0.0, max(self.player.end, 1e-3) * 1.005
        return self._start, self._stop

    def zoom(self, start: float, stop: float) -> None:
        """Show a part only."""
        self.whole, self._start, self._stop = False, start, max(stop, start + 1e-6)
        self.changed.emit()

    def reset(self) -> None:
        """Show the whole run again."""
        self.whole = True
        self.changed.emit()
