"""The main window."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QDragEnterEvent, QDropEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QLabel,
    QMenu,
    QMessageBox,
    QStackedWidget,
    QTabBar,
    QTabWidget,
    QToolBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from designer.canvas.adding import add_from_palette
from designer.canvas.arrange import arrange, place_missing
from designer.canvas.view import CanvasView
from designer.document.analysis import Analysis
from designer.document.document import Document
from designer.document.layout import positions
from designer.editor import Editor
from designer.link.client import EngineClient
from designer.monitor.monitor import Monitor
from designer.outline.panel import OutlinePanel
from designer.palette.panel import PalettePanel
from designer.preview.panel import PreviewPanel
from designer.problems.panel import ProblemsPanel
from designer.properties.form import NodeForm
from designer.properties.panel import PropertiesPanel
from designer.properties.renaming import Renamed
from designer.run.controller import RunController
from designer.run.driver import RunDriver
from designer.session.exports import Exports
from designer.session.files import Files
from designer.session.recovery import Recovery
from designer.session.schemas import Schemas
from designer.session.settings import Settings
from designer.text import tr
from designer.theme.icons import action_icon, give_icon, program_icon, repaint_icons
from designer.theme.theme import themes
from designer.undo import HistoryPanel
from designer.widgets import Later, take_role
from designer.window.banner import Banner
from designer.window.docked import DockedWindow
from designer.window.start import StartPage
from engine.model.problems import Level
from engine.operators import catalogue

if TYPE_CHECKING:
    from designer.plan.panel import PlanPanel


class MainWindow(DockedWindow):
    """Open workflows in tabs, with the panels around them."""

    def __init__(self, settings: Settings | None = None) -> None:
        super().__init__()
        self.setWindowTitle("Papilio")
        self.setWindowIcon(program_icon())
        self.setAcceptDrops(True)
        self.settings = settings or Settings()
        self.catalogue = catalogue()
        self.schemas = Schemas(self)
        self.schemas.found.connect(self._reanalyse)
        self.recovery = Recovery(self.settings.folder)
        self.files = Files(self)
        self.exports = Exports(self)
        self.actions_: dict[str, QAction] = {}
        self._followed: CanvasView | None = None
        self._build_center()
        self._build_docks()
        self.monitor = Monitor(self)
        self._build_status()
        self._build_commands()
        self.driver = RunDriver(self)
        self._give_icons(self.driver.bar.actions())
        self._refresh_timer = QTimer(self)
        self._refresh_timer.setSingleShot(True)
        self._refresh_timer.setInterval(0)
        self._refresh_timer.timeout.connect(self.refresh_actions)
        themes().changed.connect(self._restyle)
        self._switch()
        self._arranged = self.settings.restore(self)

    # ---------------------------------------------------------------- building

    def _build_center(self) -> None:
        self.banner = Banner()
        self.tabs = QTabWidget()
        self.tabs.setTabsClosable(True)
        self.tabs.setMovable(True)
        self.tabs.setDocumentMode(True)
        self.tabs.currentChanged.connect(self._switch)
        self.tabs.tabCloseRequested.connect(self.close_tab)
        self.start = StartPage(self)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.start)
        self.pages.addWidget(self.tabs)
        center = QWidget()
        layout = self.below = QVBoxLayout(center)  # a run's timeline goes below the canvas
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.banner)
        layout.addWidget(self.pages)
        self.setCentralWidget(center)

    def _build_docks(self) -> None:
        self.palette_panel = PalettePanel(self.catalogue)
        self.outline = OutlinePanel()
        self.properties = PropertiesPanel()
        self.problems = ProblemsPanel()
        self.engine = EngineClient(self)
        self.engine.state_changed.connect(self._show_engine)
        self.engine.gave_up.connect(self._offer_engine)
        self.engine.told.connect(self._engine_told)
        self.runs = RunController(self.engine, self)
        self.preview = PreviewPanel(self.engine)
        self.history = HistoryPanel()
        self._plan_area = Later(lambda: self.plan)
        area = Qt.DockWidgetArea
        for name, title, widget, where in (
            ("palette", tr("Palette"), self.palette_panel, area.LeftDockWidgetArea),
            ("outline", tr("Outline"), self.outline, area.LeftDockWidgetArea),
            ("properties", tr("Properties"), self.properties, area.RightDockWidgetArea),
            ("problems", tr("Problems"), self.problems, area.BottomDockWidgetArea),
            ("preview", tr("Preview"), self.preview, area.BottomDockWidgetArea),
            ("history", tr("History"), self.history, area.BottomDockWidgetArea),
            ("plan", tr("Plan"), self._plan_area, area.BottomDockWidgetArea),
        ):
            self.add_panel(name, title, widget, where)
        self.tabifyDockWidget(self.docks["palette"], self.docks["outline"])
        self.tabifyDockWidget(self.docks["problems"], self.docks["preview"])
        self.tabifyDockWidget(self.docks["preview"], self.docks["history"])
        self.tabifyDockWidget(self.docks["history"], self.docks["plan"])
        self.docks["palette"].raise_()
        self.docks["problems"].raise_()
        self.setCorner(Qt.Corner.BottomRightCorner, area.RightDockWidgetArea)
        self.palette_panel.chosen.connect(self._add_chosen)
        self.outline.asked.connect(self._center)
        self.problems.asked.connect(self.go_to)
        self.properties.asked_lineage.connect(self._show_lineage)
        self.properties.renamed.connect(self._offer_rename)

    @cached_property
    def plan(self) -> PlanPanel:
        """The plan explorer: made when it is first seen or asked for, and the planner is loaded with it."""
        from designer.plan.panel import PlanPanel

        panel = PlanPanel()
        panel.follow(self.view)
        self._plan_area.setWidget(panel)
        return panel

    def _build_status(self) -> None:
        self.verdict = QLabel()
        self.archetype = QLabel()
        self.zoom_label = QLabel()
        self.engine_label = QLabel()
        for shown in (self.verdict, self.archetype, self.engine_label, self.zoom_label):
            shown.setContentsMargins(8, 0, 8, 0)
            self.statusBar().addPermanentWidget(shown)
        self._show_engine(self.engine.state)

    def _build_commands(self) -> None:
        from designer.commands.palette import CommandPalette
        from designer.commands.registry import MENUS, commands

        menus = {name: self.menuBar().addMenu(tr(name)) for name in MENUS}
        self.toolbar = QToolBar(tr("Tools"), self)
        self.toolbar.setObjectName("tools")
        self.toolbar.setIconSize(QSize(20, 20))
        self.toolbar.setMovable(False)
        self.addToolBar(self.toolbar)
        last: dict[str, int] = {}
        last_tool: tuple[str, int] | None = None
        for one in commands().values():
            action = QAction(tr(one.text), self)
            action.setObjectName(one.id)
            if one.icon:
                action.setProperty("icon_name", one.icon)
            if one.shortcut:
                action.setShortcuts(self._keys(one.id, one.shortcut))
                action.setToolTip(f"{tr(one.text)}  ({one.shortcut})")
            action.setCheckable(one.checked is not None)
            action.triggered.connect(lambda _=False, id_=one.id: self.run(id_))
            menu = menus[one.menu]
            if last.setdefault(one.menu, one.section) != one.section:
                menu.addSeparator()
                last[one.menu] = one.section
            menu.addAction(action)
            if one.id == "file.open":
                self.recent_menu = menu.addMenu(tr("Open recent"))
                self.recent_menu.aboutToShow.connect(lambda: self.files.fill_recent(self.recent_menu))
            if one.tool:
                if last_tool is not None and last_tool != (one.menu, one.section):
                    self.toolbar.addSeparator()
                last_tool = (one.menu, one.section)
                self.toolbar.addAction(action)
            self.actions_[one.id] = action
        self._give_icons(self.toolbar.actions())
        for menu in menus.values():
            menu.aboutToShow.connect(lambda menu=menu: self._give_icons(menu.actions()))
            menu.aboutToShow.connect(self.refresh_actions)
        self.command_palette = CommandPalette(self)

    def _give_icons(self, actions: Iterable[QAction]) -> None:
        """Icons for actions that will be seen now: the first window does not wait for those in its menus."""
        for action in actions:
            name = action.property("icon_name")
            if name and action.icon().isNull():
                action.setIcon(action_icon(name))

    def _keys(self, id_: str, shortcut: str) -> list[QKeySequence]:
        keys = [QKeySequence(shortcut)]
        if id_ == "edit.redo":
            keys.append(QKeySequence("Ctrl+Y"))
        if id_ == "view.zoom_in":
            keys.append(QKeySequence("Ctrl+="))
        return keys

    # ---------------------------------------------------------------- what is open

    @property
    def view(self) -> CanvasView | None:
        """The canvas in front."""
        widget = self.tabs.currentWidget()
        return widget if isinstance(widget, CanvasView) else None

    @property
    def editor(self) -> Editor | None:
        """What the canvas in front edits."""
        return self.view.editor if self.view else None

    def views(self) -> list[CanvasView]:
        """Every open canvas."""
        found = (self.tabs.widget(index) for index in range(self.tabs.count()))
        return [widget for widget in found if isinstance(widget, CanvasView)]

    def open_document(self, document: Document, *, modified: bool = False, recovered: str | None = None) -> CanvasView:
        """Show a document in a tab of its own."""
        editor = Editor(document, self.schemas.discover, self)
        editor.check()
        if len(positions(document.workflow)) < len(document.workflow.nodes):
            place_missing(document, arrange(document, editor.analysis.wings))
        if modified:
            editor.stack.resetClean()
        view = CanvasView(editor)
        view.canvas.show_analysis(editor.analysis)
        editor.saved_state.connect(lambda: self._label(view))
        editor.stack.indexChanged.connect(lambda _: self._refresh_timer.start())
        editor.edited.connect(lambda _: self._label(view))
        self.recovery.follow(editor, recovered)
        index = self.tabs.addTab(view, "")
        self.tabs.tabBar().setTabButton(index, QTabBar.ButtonPosition.RightSide, self._close_button(view))
        self._label(view)
        self.tabs.setCurrentIndex(index)
        view.asked_problem.connect(lambda id_: self.go_to(id_, view.editor.analysis.first_place(id_) or ""))
        view.asked_menu.connect(lambda at: self.context_menu().exec(at))
        view.said.connect(self.say)
        view.zoomed.connect(lambda _: self._show_zoom())
        view.fit()
        view.setFocus()
        return view

    def _close_button(self, view: CanvasView) -> QToolButton:
        button = QToolButton()
        give_icon(button, "remove", "muted")
        button.setIconSize(QSize(12, 12))
        button.setToolTip(tr("Close"))
        button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        button.clicked.connect(lambda: self.close_tab(self.tabs.indexOf(view)))
        return button

    def _label(self, view: CanvasView) -> None:
        index = self.tabs.indexOf(view)
        if index < 0:
            return
        editor = view.editor
        name = editor.path.name.removesuffix(".butterfly.yaml") if editor.path else tr("Untitled")
        self.tabs.setTabText(index, f"● {name}" if editor.modified else name)
        self.tabs.setTabToolTip(index, str(editor.path) if editor.path else tr("Not saved yet"))
        if view is self.view:
            self.setWindowTitle(f"{name}[*] — Papilio")
            self.setWindowModified(editor.modified)
        self._refresh_timer.start()

    def close_tab(self, index: int) -> bool:
        """Close a workflow; with unsaved changes the person is asked. False where they keep it open."""
        view = self.tabs.widget(index)
        if not isinstance(view, CanvasView):
            return True
        if view.editor.modified and not self.files.may_close(view):
            return False
        self.recovery.forget(view.editor)
        view.editor.close()
        self.tabs.removeTab(index)
        view.deleteLater()
        view.editor.deleteLater()
        return True

    def _switch(self) -> None:
        view = self.view
        self.pages.setCurrentWidget(self.tabs if view else self.start)
        if self._followed is not None:
            self._followed.editor.analysed.disconnect(self._show_analysis)
            self._followed.canvas.chosen.disconnect(self._refresh_timer.start)
            self._followed.canvas.chosen.disconnect(self.driver.edge_chosen)
        self._followed = view
        self.properties.follow(view)
        self.preview.follow(view)
        self.history.follow(view.editor.stack if view else None)
        if self._plan_area.is_made:
            self.plan.follow(view)
        if view is not None:
            view.editor.analysed.connect(self._show_analysis)
            view.canvas.chosen.connect(self._refresh_timer.start)
            view.canvas.chosen.connect(self.driver.edge_chosen)
            self._show_analysis(view.editor.analysis)
            self._label(view)
        else:
            self.setWindowTitle("Papilio")
            self.setWindowModified(False)
            self.problems.clear()
            self.outline.show_nodes(None, None)
            self.verdict.clear()
            self.archetype.clear()
            self.start.refresh()
        self.driver.follow()
        self._show_zoom()
        self.refresh_actions()

    # ---------------------------------------------------------------- what is shown

    def _show_analysis(self, analysis: Analysis) -> None:
        editor = self.editor
        if editor is None:
            return
        self.problems.show_problems(analysis, editor.document)
        self.outline.show_nodes(editor.document, analysis)
        errors = sum(problem.level is Level.ERROR for problem in analysis.problems)
        warnings = len(analysis.problems) - errors
        if not analysis.problems:
            self.verdict.setText(tr("No problems"))
        else:
            self.verdict.setText(tr("Errors: {0}, warnings: {1}", errors, warnings))
        take_role(self.verdict, "wrong" if errors else "good")
        self.archetype.setText(analysis.shape.archetype.value)
        title = tr("Problems ({0})", len(analysis.problems)) if analysis.problems else tr("Problems")
        self.docks["problems"].setWindowTitle(title)

    def _show_engine(self, state: str) -> None:
        words = {
            "off": tr("Engine: not started"), "starting": tr("Engine: starting"), "idle": tr("Engine: waiting"),
            "ready": tr("Engine: ready"), "busy": tr("Engine: busy"), "lost": tr("Engine: lost"),
        }  # fmt: skip
        self.engine_label.setText(words[state])
        take_role(self.engine_label, "wrong" if state == "lost" else "muted")
        self.engine_label.setToolTip(tr("It is started again by itself.") if state == "lost" else "")
        self.banner.take_back("engine")

    def start_engine(self) -> None:
        """Start the engine. Spark warms in the background for those who have used it; others may only draw.

        It has nothing to do with a file: none is read for it.
        """
        self.engine.start()
        if self.settings.uses_spark:
            self.engine.send("warm")

    def _engine_told(self, event: dict[str, Any]) -> None:
        if event.get("event") == "state" and event.get("state") == "ready" and not self.settings.uses_spark:
            self.settings.uses_spark = True

    def _offer_engine(self) -> None:
        """The engine ended again and again: it waits for the person now."""
        text = tr("The engine was lost and is not started again by itself. View → Restart the engine does.")
        self.engine_label.setToolTip("\n".join([text, *list(self.engine.errors)[-3:]]))
        self.banner.offer("engine", text, [(tr("Restart"), self.engine.restart), (tr("Later"), lambda: None)])

    def _show_zoom(self) -> None:
        self.zoom_label.setText(f"{round(self.view.zoom * 100)} %" if self.view else "")

    def _restyle(self) -> None:
        for action in self.actions_.values():
            name = action.property("icon_name")
            if name and not action.icon().isNull():
                action.setIcon(action_icon(name))
        repaint_icons(self)
        if self.editor is not None:
            self._show_analysis(self.editor.analysis)
        self.start.refresh()

    def _reanalyse(self) -> None:
        for view in self.views():
            view.editor.analyse_soon()

    def say(self, text: str) -> None:
        """Tell something in passing."""
        self.statusBar().showMessage(text, 8000 if text else 1)

    def complain(self, title: str, text: str) -> None:
        """Tell that something went wrong. Never blocks: the person may go on at once."""
        box = QMessageBox(QMessageBox.Icon.Warning, title, text[:4000], QMessageBox.StandardButton.Ok, self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    # ---------------------------------------------------------------- doing

    def run(self, id_: str) -> None:
        """Run a command by its id, if it makes sense now."""
        from designer.commands.registry import commands

        one = commands()[id_]
        if one.enabled is None or one.enabled(self):
            one.run(self)
        self.refresh_actions()

    def refresh_actions(self) -> None:
        """Show which commands make sense now."""
        from designer.commands.registry import commands

        for id_, action in self.actions_.items():
            one = commands()[id_]
            if one.enabled is not None:
                action.setEnabled(one.enabled(self))
            if one.checked is not None:
                action.setChecked(one.checked(self))

    def context_menu(self) -> QMenu:
        """What can be done with what is selected."""
        menu = QMenu(self)
        for group in (
            ("edit.rename", "edit.delete"),
            ("edit.cut", "edit.copy", "edit.paste", "edit.duplicate"),
            ("insert.operator", "insert.note", "insert.group", "insert.ungroup"),
            ("edit.upstream", "edit.downstream"),
            ("arrange.auto", "view.fit"),
        ):
            for id_ in group:
                menu.addAction(self.actions_[id_])
            menu.addSeparator()
        self._give_icons(menu.actions())
        self.refresh_actions()
        return menu

    def enter_center(self) -> None:
        if self.view is not None:
            self.view.setFocus()

    def enter_content(self, content: QWidget) -> None:
        if content is self.properties:
            self.properties.enter()
        else:
            super().enter_content(content)

    def go_to(self, node: str, place: str) -> None:
        """Show a node and the field of it that a problem names; without a node, the workflow's own."""
        if self.view is not None:
            if node:
                self.view.show_node(node)
            else:
                self.view.canvas.select()
            self.show_dock("properties")
            self.properties.go_to(node, place)

    def _center(self, node: str) -> None:
        if self.view is not None:
            self.view.show_node(node)

    def next_problem(self) -> None:
        """Go from one problem to the next."""
        count = self.problems.topLevelItemCount()
        current = self.problems.currentItem()
        if count:
            at = self.problems.indexOfTopLevelItem(current) if current is not None else -1
            self.problems.go_to_row((at + 1) % count)

    def _add_chosen(self, operator: str) -> None:
        if self.view is None:
            self.files.new()
        assert self.view is not None
        add_from_palette(self.view, operator)

    def _show_lineage(self, node: str, port: str, column: str) -> None:
        if self.view is not None:
            self.view.show_lineage(node, port, column)

    def _offer_rename(self, renamed: Renamed | None) -> None:
        """A source's column has another name: offer that the nodes behind it follow."""
        editor = self.editor
        if renamed is None or editor is None:
            self.banner.take_back("rename")
            return
        text = tr("{0} nodes read {1}. Rename it to {2} there too?", len(renamed.readers), renamed.old, renamed.new)
        self.banner.offer(
            "rename",
            text,
            [(tr("Rename"), lambda: self._rename(editor, renamed)), (tr("Leave them"), lambda: None)],
        )

    def _rename(self, editor: Editor, renamed: Renamed) -> None:
        editor.push(renamed.edit(editor))
        if isinstance(self.properties.form, NodeForm):
            self.properties.form.watch.reset()

    def offer_recovery(self) -> None:
        """After a crash: tell what was left unsaved, and offer it."""
        lost = self.recovery.lost()
        if not lost:
            return
        names = ", ".join(one.name for one in lost[:5])
        text = tr("Papilio ended without saving. These can be recovered: {0}", names)
        self.banner.offer(
            "recovery",
            text,
            [
                (tr("Recover"), lambda: self.files.recover(lost)),
                (tr("Discard"), lambda: self.recovery.discard(lost)),
                (tr("Later"), lambda: None),
            ],
        )

    def about(self) -> None:
        """Who this is."""
        from engine import __version__

        text = tr("Papilio {0}\n\nDesign butterfly ETL workflows and run them on Spark.", __version__)
        box = QMessageBox(QMessageBox.Icon.NoIcon, tr("About Papilio"), text, QMessageBox.StandardButton.Ok, self)
        box.setIconPixmap(program_icon().pixmap(64, 64))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.open()

    # ---------------------------------------------------------------- the window itself

    def showEvent(self, event: QShowEvent) -> None:
        """The first time nothing is remembered: panels at the sides, most of the room for the canvas."""
        super().showEvent(event)
        if not self._arranged:
            self._arranged = True
            QTimer.singleShot(0, self._arrange)

    def _arrange(self) -> None:
        self.resizeDocks([self.docks["palette"], self.docks["properties"]], [236, 330], Qt.Orientation.Horizontal)
        self.resizeDocks([self.docks["problems"]], [180], Qt.Orientation.Vertical)
        self.monitor.arrange()  # a run that was asked for when the program started

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        for url in event.mimeData().urls():
            if url.isLocalFile():
                self.files.open(Path(url.toLocalFile()))
        event.acceptProposedAction()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self.driver.may_close():
            event.ignore()
            return
        self.settings.keep(self)
        while self.tabs.count():
            if not self.close_tab(self.tabs.count() - 1):
                event.ignore()
                return
        self.schemas.stop()
        self.monitor.close()
        self.engine.stop()
        event.accept()
