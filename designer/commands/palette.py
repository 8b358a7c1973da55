"""The command palette: every command by typing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from designer.chooser import Chooser, Entry
from designer.commands.registry import Command, commands
from designer.palette.matching import best
from designer.text import tr
from designer.theme.icons import action_icon

if TYPE_CHECKING:
    from designer.window.window import MainWindow

WIDTH, HEIGHT = 560, 400


class CommandPalette(Chooser):
    """Commands that make sense now, with their shortcuts."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, tr("What do you want to do?"), WIDTH, HEIGHT)
        self.main = window

    def ask(self) -> None:
        """Open in the upper middle of the window."""
        self.open_at((self.main.width() - WIDTH) // 2, 90)

    def entries(self, query: str) -> list[Entry]:
        possible = [one for one in commands().values() if one.enabled is None or one.enabled(self.main)]

        def texts(one: Command) -> tuple[str, str]:
            return tr(one.text), f"{tr(one.menu)} {one.id}"

        return [
            Entry(
                one.id,
                f"{tr(one.menu)}:  {tr(one.text)}" + (f"     {one.shortcut}" if one.shortcut else ""),
                action_icon(one.icon) if one.icon else None,
            )
            for one in best(query, possible, texts)
        ]

    def taken(self, key: str) -> None:
        self.main.run(key)

    def left(self) -> None:
        if self.main.view is not None:
            self.main.view.setFocus()
