"""What the run bar and the Run menu do: check, ask, run, queue up policies, resume, open the workflow of a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtWidgets import QFileDialog, QInputDialog, QMessageBox

from designer.document.document import Document
from designer.editor import Editor
from designer.run.bar import RunBar
from designer.run.controller import UNDER_WAY
from designer.run.history import RunsPanel
from designer.run.packs import PacksPanel
from designer.run.presets import Presets
from designer.text import tr
from engine.errors import PapilioError
from engine.model.file import load
from engine.model.problems import Level
from engine.schedule.policy import ELASTIC
from engine.store.trust import is_trusted, trust

if TYPE_CHECKING:
    from designer.window.window import MainWindow

FIRST_POLICIES = ("rr", "mc", "mm", "mixed")  # of all: those of the papers
TICK_MS = 500


class RunDriver(QObject):
    """The window's side of running: everything that needs more than the run itself."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window = window
        self.runs = window.runs
        self.bar = RunBar(Presets(window.settings.folder), window.actions_, window)
        window.addToolBarBreak()
        window.addToolBar(self.bar)
        self.history = RunsPanel()
        self.packs = PacksPanel(window.engine)
        area = Qt.DockWidgetArea.BottomDockWidgetArea
        window.add_panel("packs", tr("Packs"), self.packs, area)
        window.add_panel("runs", tr("Runs"), self.history, area)
        window.tabifyDockWidget(window.docks["preview"], window.docks["packs"])
        window.tabifyDockWidget(window.docks["packs"], window.docks["runs"])
        window.docks["problems"].raise_()
        self._queue: list[tuple[Editor, dict[str, Any]]] = []  # the runs that wait for their turn
        self._logs: list[str] = []  # of those under all policies that are over
        self._remark = ""  # about those runs
        self._message = ""
        self._seconds = 0.0
        self._ticker = QTimer(self)
        self._ticker.setInterval(TICK_MS)
        self._ticker.timeout.connect(self._tick)
        self.runs.state_changed.connect(self._state)
        self.runs.known.connect(self._known)
        self.runs.told.connect(self._told)
        self.runs.ended.connect(self._ended)
        self.bar.speed_changed.connect(self.runs.set_speed)
        self.bar.more.save_asked.connect(self.ask_save_preset)
        self.history.replay_asked.connect(self.open_log)
        self.history.compare_asked.connect(lambda logs: self.runs.compare_asked.emit(logs, ""))
        self.history.resume_asked.connect(self._resume_killed)
        self.history.tree.itemSelectionChanged.connect(window.refresh_actions)

    def follow(self) -> None:
        """Another workflow is in front."""
        editor = self.window.editor
        self.bar.show_workflow(editor.document.workflow if editor else None)
        if editor is not None:
            self.history.show_workflow(editor.analysis.bound.name)

    # -- running

    def run(self) -> None:
        """Run the workflow in front as the bar says."""
        self._queue = []
        self._logs = []
        self._ask_to_run([self.bar.settings()])

    def run_policies(self) -> None:
        """Run it under each policy that the bar offers, one after the other; then compare them."""
        settings = self.bar.settings()
        self._queue = []
        self._logs = []
        self._remark = ""
        if settings["granularity"] == "fused":  # whole units one after the other hold nothing between them
            settings["granularity"] = "operator"
            self._remark = tr("All ran at the granularity operator: fused units have no queues to compare.")
        self._ask_to_run([{**settings, "policy": policy} for policy in self.all_policies()])
        if self._remark and self.runs.state in UNDER_WAY:
            self.window.say(self._remark)

    def all_policies(self) -> list[str]:
        """Those that the bar offers: the papers' first, then those of plugins. `elastic` needs limits of its own."""
        box = self.bar.policy
        offered = [box.itemText(place) for place in range(box.count()) if box.itemText(place) != ELASTIC]
        return sorted(offered, key=lambda name: FIRST_POLICIES.index(name) if name in FIRST_POLICIES else 9)

    def _ask_to_run(self, wanted: list[dict[str, Any]]) -> None:
        editor = self.window.editor
        if editor is None or self.runs.state in UNDER_WAY:
            return
        editor.check()
        problems = [problem for problem in editor.analysis.problems if problem.level is Level.ERROR]
        if problems:
            self.window.show_dock("problems")
            self.window.problems.go_to_row(0)
            self.window.say(tr("It has problems and cannot run: {0}", problems[0].text()))
            return
        if not editor.document.workflow.nodes:
            self.window.say(tr("There is nothing to run yet."))
            return
        if wanted[0]["backend"] == "spark" and not is_trusted(editor.analysis.bound):
            self._ask_trust(editor, wanted)
            return
        self._start(editor, wanted)

    def _ask_trust(self, editor: Editor, wanted: list[dict[str, Any]]) -> None:
        """The workflow brings Python code of its own: only the person can say whether it may run."""
        bound = editor.analysis.bound
        nodes = ", ".join(node for node, operator in bound.operators.items() if operator.needs_trust)
        text = tr("{0} runs Python code that came with the file. Read it first: it can do whatever you can.", nodes)
        box = QMessageBox(QMessageBox.Icon.Warning, tr("Run the file's own code?"), text, parent=self.window)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        once = box.addButton(tr("Run it this time"), QMessageBox.ButtonRole.AcceptRole)
        always = box.addButton(tr("Trust this file"), QMessageBox.ButtonRole.AcceptRole)
        box.addButton(tr("Do not run"), QMessageBox.ButtonRole.RejectRole)
        always.setEnabled(editor.path is not None)

        def clicked(button: object) -> None:
            if button is always:
                trust(bound)
                self._start(editor, wanted)
            elif button is once:
                self._start(editor, [{**settings, "trust": True} for settings in wanted])

        box.buttonClicked.connect(clicked)
        box.open()
        self.question = box

    def _start(self, editor: Editor, wanted: list[dict[str, Any]]) -> None:
        self._queue = [(editor, settings) for settings in wanted[1:]]
        self._message = ""
        self.packs.clear()
        self.runs.run(editor, wanted[0], self.bar.more.values())

    def resume(self) -> None:
        """Go on: a paused run where it stands, an interrupted one from where it was."""
        if self.runs.state == "interrupted":
            self.runs.resume_killed()
        else:
            self.runs.resume()

    def _resume_killed(self, run: str, log: str) -> None:
        if self.runs.state not in UNDER_WAY:
            self.runs.resume_killed(run, self._editor_of(Path(log)))

    def may_close(self) -> bool:
        """Whether the window may go: a run of its own would be cancelled with it, so the person is asked."""
        if not self.runs.is_ours:
            return True
        text = tr("A run is under way. Cancel it and close? Its targets stay as they were.")
        yes = QMessageBox.StandardButton.Yes
        return QMessageBox.question(self.window, tr("Close Papilio"), text) == yes

    def cancel(self) -> None:
        """Stop the run and those that wait."""
        self._queue = []
        self.runs.cancel()

    def _ended(self, status: str) -> None:
        self.history.refresh()
        if status != "done":
            self._queue = []
        elif self.runs.log_path is not None:
            self._logs.append(self.runs.log_path)
        if self._queue:
            editor, settings = self._queue.pop(0)
            QTimer.singleShot(0, lambda: self.runs.run(editor, settings, self.bar.more.values()))
        elif len(self._logs) > 1:
            self.runs.compare_asked.emit(list(self._logs), self._remark)
            self._logs = []

    # -- showing

    def _state(self, state: str) -> None:
        if state == "starting":
            self._seconds = 0.0
            self.history.refresh_soon()
        if state == "paused":
            self.window.say(tr("Paused. Select an edge (a click, or Alt+E) to look into its packs."))
        if state in UNDER_WAY:
            self._ticker.start()
        else:
            self._ticker.stop()
        self._show()
        self.window.refresh_actions()

    def _known(self) -> None:
        if self.runs.facts.get("backend") == "simulated":
            self.bar.show_speed(self.runs.facts.get("settings", {}).get("speed"))
        self._show()

    def _tick(self) -> None:
        if self.runs.state in ("starting", "running"):
            self._seconds += TICK_MS / 1000
        self._show()

    def _show(self) -> None:
        state = self.runs.state
        parts = []
        if state in UNDER_WAY or state in ("done", "cancelled"):
            parts.append(self.runs.policy)
            if state in UNDER_WAY:
                parts.append(f"{self._seconds:.0f} s")
        if self._queue:
            parts.append(tr("{0} more to run", len(self._queue)))
        self.bar.show_state(state, "  ".join(part for part in parts if part))
        self.bar.state.setToolTip(self._message)

    def _told(self, message: str) -> None:
        self._message = message
        self.window.say(message.splitlines()[0] if message else "")
        if self.runs.state == "failed":
            self.window.complain(tr("The run failed"), message)
        self._show()

    # -- looking into packs

    def edge_chosen(self) -> None:
        """An edge was clicked: during a pause its packs are shown."""
        view = self.window.view
        if view is not None and self.runs.state == "paused" and len(view.canvas.selected_edges()) == 1:
            self.look_into_packs()

    def look_into_packs(self) -> None:
        """Show the packs of the selected edge."""
        view = self.window.view
        edges = view.canvas.selected_edges() if view is not None else []
        if view is None or len(edges) != 1 or self.runs.log_path is None:
            self.window.say(tr("Select one edge."))
            return
        ends = list(view.editor.document.ports.ends(edges[0]))
        self.window.show_dock("packs")
        self.packs.ask(Path(self.runs.log_path).parent, self.runs.facts, ends)

    # -- logs of other runs

    def open_log(self, log_path: str, watch: bool = False) -> None:
        """Show a run by its log: follow one under way, replay one that is over."""
        from engine.store.runs import LOG

        log = Path(log_path)
        if log.is_dir():
            log = log / LOG
        if self.runs.state in UNDER_WAY:
            self.window.say(tr("A run is under way; wait for it or cancel it."))
            return
        if not log.is_file():
            self.window.complain(tr("Runs"), tr("The log of that run is gone: {0}", log))
            return
        editor = self._editor_of(log)
        if watch:
            self.runs.attach(str(log), editor)
        else:
            self.runs.replay(str(log), editor)

    def ask_attach(self) -> None:
        """Let the person choose the log of a run."""
        name, _ = QFileDialog.getOpenFileName(
            self.window, tr("Watch a run"), "", tr("Event logs (*.jsonl);;All files (*)")
        )
        if name:
            from engine.control import is_alive

            self.open_log(name, watch=is_alive(Path(name).parent))

    def _editor_of(self, log: Path) -> Editor | None:
        """The workflow of a run: the open one, its file where that is unchanged, or the run's own copy."""
        try:
            with log.open("rb") as file:
                first = json.loads(file.readline() or b"{}")
        except (OSError, ValueError):
            first = {}
        wanted = first.get("content_hash")
        for view in self.window.views():
            if wanted and view.editor.document.workflow.content_hash() == wanted:
                self.window.tabs.setCurrentWidget(view)
                return view.editor
        for place in (first.get("file"), log.parent / "workflow.butterfly.yaml"):
            try:
                workflow = load(Path(place)).workflow if place and Path(place).is_file() else None
            except PapilioError:
                continue
            if workflow is not None and workflow.content_hash() == wanted:
                if Path(place).parent == log.parent:  # the run's own copy belongs to no file of the person's
                    return self.window.open_document(Document(workflow, self.window.catalogue)).editor
                opened = self.window.files.open(Path(place))
                return opened.editor if opened is not None else None
        return None

    # -- presets

    def own_preset(self) -> str | None:
        """The preset in front, if it is one of the person's own."""
        one = self.bar.presets.all.get(self.bar.preset.currentText())
        return one.name if one is not None and one.own else None

    def ask_save_preset(self) -> None:
        """Save the settings under a name."""
        name, good = QInputDialog.getText(self.window, tr("Save a preset"), tr("Name"))
        if good and name.strip():
            self.save_preset(name.strip())

    def save_preset(self, name: str) -> None:
        """Save the settings under a name; those of the program keep theirs."""
        try:
            self.bar.presets.keep(name, self.bar.settings())
        except ValueError:
            self.window.complain(tr("Save a preset"), tr("{0} is one of Papilio's own; choose another name.", name))
            return
        self.bar.fill_presets()
        self.bar.choose(name)

    def forget_preset(self) -> None:
        """Remove the preset in front, if it is the person's own."""
        name = self.own_preset()
        if name is not None:
            self.bar.presets.forget(name)
            self.bar.fill_presets()
            self.bar.choose("Fast")
