"""Shows the run in front: opens its recording, puts up panels and timeline, and draws it on the canvas."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QDockWidget

from designer.editor import Editor
from designer.text import tr

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView
    from designer.monitor.compare import CompareWindow
    from designer.monitor.overlay import Overlay
    from designer.monitor.panel import Panel
    from designer.monitor.player import Player
    from designer.monitor.scrubber import Scrubber
    from designer.window.window import MainWindow

AREA = Qt.DockWidgetArea.BottomDockWidgetArea
DRAWING = ("palette", "outline", "properties")  # docks that are for drawing
FIRST = ("memory", "activity")  # side by side; the others wait behind them
FIRST_OF = {"streaming": ("staleness", "activity")}  # of runs whose units have no queues between them


class Monitor(QObject):
    """All that shows a run. Nothing of it is made before the first run: the first window comes sooner without."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window = window
        self.player: Player | None = None
        self.panels: dict[str, Panel] = {}
        self.scrubber: Scrubber | None = None
        self.overlay: Overlay | None = None
        self.comparing: list[CompareWindow] = []
        self.projecting = False
        self.roomy = False
        self._put_away: list[str] = []
        self._told: str | None = None
        self._speed: float | None = None  # at which the log is played once it is read
        window.runs.started.connect(self.open)
        window.runs.ended.connect(self._ended)
        window.runs.compare_asked.connect(self.compare)
        window.tabs.tabCloseRequested.connect(self._tab_closes)

    # -- opening

    def open(self, log_path: str, editor: Editor | None = None) -> None:
        """Show a run, under way or over. The first brings back the panels that were there last time."""
        self.build(as_last_time=True)
        assert self.player is not None
        assert self.scrubber is not None
        self._leave_canvas()
        self._told = None
        self.player.open(Path(log_path))
        self.scrubber.show()
        view = self._view_of(editor)
        if view is not None:
            from designer.monitor.overlay import Overlay

            self.overlay = Overlay(view, self.player)
            self.overlay.set_scale(self.scale)
        if not any(self.window.docks[name].isVisible() for name in self.panels):
            first = self._first(Path(log_path))
            for name in first:
                self.window.docks[name].show()
                self.window.docks[name].raise_()
            self.arrange(first)

    def build(self, as_last_time: bool = False) -> None:
        """Make the player, the panels in their docks and the timeline, once. None is seen but those of last time."""
        if self.player is not None:
            return
        from designer.monitor.panel import panel_kinds
        from designer.monitor.player import Player
        from designer.monitor.scrubber import Scrubber

        window = self.window
        self.player = Player(self)
        self.player.ticked.connect(self._say_flaw)
        self.player.read_all.connect(self._all_read)
        for kind in panel_kinds():
            panel = kind(self.player)
            self.panels[kind.name] = panel
            dock = window.add_panel(kind.name, tr(kind.title), panel, AREA)
            dock.topLevelChanged.connect(lambda floats, dock=dock: self._floats(dock, floats))
            known = kind.name in window.remembered
            if not (as_last_time and known):
                dock.hide()
            elif dock.isFloating() and dock.isVisible():
                self._floats(dock, True)
        if not window.remembered & self.panels.keys():
            self._group()
        self.scrubber = Scrubber(self.player)
        window.below.addWidget(self.scrubber)
        gc.freeze()  # as after the window: all this stays, and to look for garbage among it lasts longer than a picture

    def _group(self) -> None:
        """Memory and activity side by side, the others behind one of the two."""
        docks = self.window.docks
        self.window.tabifyDockWidget(docks["problems"], docks["memory"])
        self.window.addDockWidget(AREA, docks["activity"], Qt.Orientation.Horizontal)
        for number, name in enumerate(name for name in self.panels if name not in FIRST):
            self.window.tabifyDockWidget(docks[FIRST[number % 2]], docks[name])

    def _first(self, log: Path) -> tuple[str, ...]:
        """The panels that say most of a run, by what its log begins with."""
        from engine.events import LogReader, RunStarted

        started = next(iter(LogReader(log)), None) if log.exists() else None
        return FIRST_OF.get(started.granularity or "", FIRST) if isinstance(started, RunStarted) else FIRST

    def arrange(self, names: tuple[str, ...] = ()) -> None:
        """These panels, or those that are seen, share the width and take three eighths of the height."""
        seen = [self.window.docks[name] for name in names or self.panels]
        if not names:
            seen = [dock for dock in seen if not dock.isFloating() and not dock.visibleRegion().isEmpty()]
        if seen:
            width, height = self.window.width() // len(seen), self.window.height() * 3 // 8
            self.window.resizeDocks(seen, [width] * len(seen), Qt.Orientation.Horizontal)
            self.window.resizeDocks(seen, [height] * len(seen), Qt.Orientation.Vertical)

    def _view_of(self, editor: Editor | None) -> CanvasView | None:
        if editor is None:
            return None
        return next((view for view in self.window.views() if view.editor is editor), None)

    def _say_flaw(self) -> None:
        recording = self.player.recording if self.player else None
        flaw = recording.flaw if recording else None
        if flaw != self._told:
            self._told = flaw
            if recording and flaw and (recording.damage or self.window.runs.state == "replay"):
                title = tr("The log is damaged") if recording.damage else tr("The log breaks off")
                self.window.complain(title, flaw)

    def _all_read(self) -> None:
        assert self.player is not None
        if self.window.runs.state == "replay":
            self.player.look_after()
            self._say_flaw()
        if self._speed is not None:
            self.player.set_speed(self._speed)
            self.player.play()
            self._speed = None

    def _ended(self, status: str) -> None:
        """A run that was watched has died: its log is as long as it will ever be. The run bar says so."""
        if status == "interrupted" and self.player is not None:
            self.player.look_after()

    def play_at(self, speed: float) -> None:
        """Play the log that is opened from its beginning, so many of its seconds in one of ours."""
        self._speed = speed
        if self.player is not None and self.player.loaded:
            self._all_read()

    # -- ending

    def _tab_closes(self, index: int) -> None:
        if self.overlay is not None and self.overlay.view is self.window.tabs.widget(index):
            self._leave_canvas()

    def _leave_canvas(self) -> None:
        if self.overlay is not None:
            self.overlay.close()
            self.overlay = None

    def close(self) -> None:
        """The window closes."""
        self._leave_canvas()
        for comparing in list(self.comparing):
            comparing.close()
        if self.player is not None:
            self.player.close()

    # -- what a person asks for

    def show_panel(self, name: str) -> None:
        """Bring a panel to the front, or put it away."""
        self.build()
        self.window.toggle_dock(name)

    def front(self) -> Panel | None:
        """The panel with the focus, or else the first that is seen."""
        seen = [panel for panel in self.panels.values() if panel.isVisible() and not panel.visibleRegion().isEmpty()]
        focused = [panel for panel in seen if panel.isAncestorOf(self.window.focusWidget() or panel.window())]
        return next(iter(focused or seen), None)

    def pop_out(self, name: str | None = None, *, full_screen: bool = False) -> None:
        """A panel in a window of its own, or back in its place."""
        self.build()
        panel = self.panels[name] if name else self.front()
        if panel is None:
            return
        dock = self.window.docks[panel.name]
        if dock.isFloating() and (not full_screen or dock.isFullScreen()):
            dock.showNormal()
            dock.setFloating(False)
            return
        dock.setFloating(True)
        dock.show()
        if full_screen:
            dock.showFullScreen()

    def _floats(self, dock: QDockWidget, floats: bool) -> None:
        if floats:  # a window like any other: it can be maximised and put on another screen
            dock.setWindowFlags(Qt.WindowType.Window)
            dock.show()

    def make_room(self, on: bool) -> None:
        """Put away what is for drawing while a run is watched, or bring it back."""
        self.roomy = on
        if on:
            self._put_away = [name for name in DRAWING if self.window.docks[name].isVisible()]
            for name in self._put_away:
                self.window.docks[name].hide()
        else:
            for name in self._put_away:
                self.window.docks[name].show()
            self._put_away = []
        if self.window.view is not None:
            QTimer.singleShot(0, self.window.view.fit)

    def project(self, on: bool) -> None:
        """Fonts and lines for the back row, or for a desk."""
        self.build()
        assert self.scrubber is not None
        self.projecting = on
        for panel in self.panels.values():
            panel.set_scale(self.scale)
        self.scrubber.set_scale(self.scale)
        if self.overlay is not None:
            self.overlay.set_scale(self.scale)

    @property
    def scale(self) -> float:
        """How large everything is that shows a run."""
        from designer.monitor.panel import NORMAL, PROJECTOR

        return PROJECTOR if self.projecting else NORMAL

    def compare(self, logs: list[str], remark: str = "") -> None:
        """Runs side by side, in a window of their own, with a remark about all of them."""
        from designer.monitor.compare import CompareWindow

        shown = CompareWindow([Path(log) for log in logs], self.scale, remark)
        shown.closed.connect(lambda: self.comparing.remove(shown) if shown in self.comparing else None)
        self.comparing.append(shown)
        shown.show()
