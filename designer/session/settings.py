"""What the program remembers: recent files, the theme, the window and its panels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSettings, QSize

from engine.store.home import papilio_home

if TYPE_CHECKING:
    from designer.window.window import MainWindow

RECENT = 12
STATE_VERSION = 2  # of the panels; another number forgets where they stood


class Settings:
    """A file in the person's Papilio folder. One that cannot be read or written only costs memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or papilio_home() / "designer"
        self._file = QSettings(str(self.folder / "settings.ini"), QSettings.Format.IniFormat)

    @property
    def theme(self) -> str:
        """`system`, `light` or `dark`."""
        return str(self._file.value("theme", "system"))

    @theme.setter
    def theme(self, choice: str) -> None:
        self._file.setValue("theme", choice)

    @property
    def uses_spark(self) -> bool:
        """Whether the person has looked at data or run something on this machine."""
        return self._file.value("uses_spark", "") == "yes"

    @uses_spark.setter
    def uses_spark(self, does: bool) -> None:
        self._file.setValue("uses_spark", "yes" if does else "")

    def recent(self) -> list[Path]:
        """The files opened or saved last that are still there."""
        found = self._file.value("recent", [])
        names = found if isinstance(found, list) else [found]
        return [Path(name) for name in names if isinstance(name, str) and name and Path(name).is_file()]

    def remember(self, path: Path) -> None:
        """A file was opened or saved."""
        path = path.resolve()
        rest = [str(other) for other in self.recent() if other != path]
        self._file.setValue("recent", [str(path), *rest][:RECENT])

    def forget_recent(self) -> None:
        """An empty list again."""
        self._file.remove("recent")

    def keep(self, window: MainWindow) -> None:
        """Remember where the window and its panels are."""
        self._file.setValue("geometry", window.saveGeometry())
        self._file.setValue("panels", window.saveState(STATE_VERSION))
        self._file.sync()

    def restore(self, window: MainWindow) -> bool:
        """Put the window and its panels where they were; False where that is not known."""
        geometry, panels = self._file.value("geometry"), self._file.value("panels")
        if isinstance(geometry, QByteArray):
            window.restoreGeometry(geometry)
        else:
            window.resize(QSize(1480, 900).boundedTo(window.screen().availableSize()))
        return isinstance(panels, QByteArray) and window.restoreState(panels, STATE_VERSION)
