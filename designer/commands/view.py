"""View: zoom, overlays, theme, panels; and help."""

from __future__ import annotations

from designer.canvas.backdrop import OVERLAYS
from designer.commands.registry import command, has_editor
from designer.theme.theme import CHOICES, themes
from designer.window.window import MainWindow


@command("view.fit", "Fit everything", "View", shortcut="Ctrl+0", icon="fit", tool=True, enabled=has_editor)
def fit(window: MainWindow) -> None:
    if window.view is not None:
        window.view.fit()


@command("view.fit_selection", "Fit the selection", "View", shortcut="Ctrl+Shift+0", enabled=has_editor)
def fit_selection(window: MainWindow) -> None:
    if window.view is not None:
        window.view.fit(window.view.canvas.selected_nodes())


@command("view.zoom_in", "Zoom in", "View", shortcut="Ctrl++", icon="zoom_in", enabled=has_editor)
def zoom_in(window: MainWindow) -> None:
    if window.view is not None:
        window.view.zoom_by(1.25)


@command("view.zoom_out", "Zoom out", "View", shortcut="Ctrl+-", icon="zoom_out", enabled=has_editor)
def zoom_out(window: MainWindow) -> None:
    if window.view is not None:
        window.view.zoom_by(0.8)


@command("view.actual", "Actual size", "View", shortcut="Ctrl+1", enabled=has_editor)
def actual(window: MainWindow) -> None:
    if window.view is not None:
        window.view.zoom_to(1.0)


@command("view.lanes", "Wings as lanes", "View", shortcut="Alt+0", icon="lanes", section=1, tool=True,
         enabled=has_editor, checked=lambda w: bool(w.view and w.view.canvas.backdrop.lanes))  # fmt: skip
def lanes(window: MainWindow) -> None:
    if window.view is not None:
        window.view.canvas.backdrop.show_lanes(not window.view.canvas.backdrop.lanes)


@command("view.minimap", "Minimap", "View", shortcut="Alt+M", section=1, enabled=has_editor,
         checked=lambda w: bool(w.view and w.view.minimap.wanted))  # fmt: skip
def minimap(window: MainWindow) -> None:
    if window.view is not None:
        window.view.minimap.show_map(not window.view.minimap.wanted)


def _declare_overlay(number: int, name: str, text: str) -> None:
    @command(f"view.{name}", text, "View", shortcut=f"Alt+{number}", icon=name, section=2, tool=True,
             enabled=has_editor,
             checked=lambda w: bool(w.view and w.view.canvas.backdrop.overlay == name))  # fmt: skip
    def overlay(window: MainWindow) -> None:
        if window.view is not None:
            backdrop = window.view.canvas.backdrop
            backdrop.show_overlay(None if backdrop.overlay == name else name)
            window.view.legend.refresh()


for _number, (_name, _text) in enumerate(
    zip(
        OVERLAYS,
        ("Overlay: execution trees", "Overlay: subflows", "Overlay: strata", "Overlay: categories"),
        strict=True,
    ),
    start=1,
):
    _declare_overlay(_number, _name, _text)


def _declare_theme(name: str, text: str) -> None:
    @command(f"view.theme_{name}", text, "View", icon="theme", section=3, checked=lambda w: themes().choice == name)
    def choose(window: MainWindow) -> None:
        themes().choose(name)
        window.settings.theme = name


for _name, _text in zip(CHOICES, ("Theme: as the system", "Theme: light", "Theme: dark"), strict=True):
    _declare_theme(_name, _text)


def _declare_dock(name: str, text: str, shortcut: str) -> None:
    @command(f"view.dock_{name}", text, "View", shortcut=shortcut, section=4,
             checked=lambda w: w.in_front(name))  # fmt: skip
    def toggle(window: MainWindow) -> None:
        window.toggle_dock(name)


for _name, _text, _shortcut in (
    ("palette", "Palette", "Ctrl+Shift+1"),
    ("outline", "Outline", "Ctrl+Shift+2"),
    ("properties", "Properties", "Ctrl+Shift+3"),
    ("problems", "Problems", "Ctrl+Shift+4"),
    ("preview", "Preview", "Ctrl+Shift+5"),
    ("history", "History", "Ctrl+Shift+6"),
):
    _declare_dock(_name, _text, _shortcut)


@command("view.look", "Look at the data", "View", shortcut="F5", icon="preview", section=5, tool=True,
         enabled=has_editor)  # fmt: skip
def look(window: MainWindow) -> None:
    window.show_dock("preview")
    window.preview.ask()


@command("view.restart_engine", "Restart the engine", "View", section=5)
def restart_engine(window: MainWindow) -> None:
    window.engine.restart()


@command("view.canvas", "Go to the canvas", "View", shortcut="F6", section=5, enabled=has_editor)
def canvas(window: MainWindow) -> None:
    if window.view is not None:
        window.view.setFocus()


@command("view.next_panel", "Go to the next panel", "View", shortcut="Shift+F6", section=5)
def next_panel(window: MainWindow) -> None:
    window.next_panel()


@command("view.next_problem", "Next problem", "View", shortcut="F8", section=5, enabled=has_editor)
def next_problem(window: MainWindow) -> None:
    window.next_problem()


@command("help.commands", "All commands…", "Help", shortcut="Ctrl+Shift+P", icon="command", tool=True)
def all_commands(window: MainWindow) -> None:
    window.command_palette.ask()


@command("help.help", "Help", "Help", shortcut="F1")
def help_(window: MainWindow) -> None:
    from designer.window.help import HelpDialog

    HelpDialog(window).show()


@command("help.about", "About Papilio", "Help")
def about(window: MainWindow) -> None:
    window.about()
