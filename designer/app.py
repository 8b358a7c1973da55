"""Starting the designer."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QTimer, QTranslator
from PySide6.QtGui import QPixmapCache
from PySide6.QtWidgets import QApplication

if TYPE_CHECKING:
    from designer.window.window import MainWindow

PICTURES_KB = 128 * 1024  # of nodes, kept while they do not change
ENGINE_AFTER_MS = 1_500  # the window first


def make_application(arguments: Sequence[str]) -> QApplication:
    """The Qt application with its style, fonts and language."""
    from designer.canvas.sheet import use_font
    from designer.theme.icons import program_icon

    application = QApplication(list(arguments))
    application.setApplicationName("Papilio")
    application.setDesktopFileName("papilio")
    application.setStyle("Fusion")
    application.setWindowIcon(program_icon())
    QPixmapCache.setCacheLimit(PICTURES_KB)
    translator = QTranslator(application)
    place = Path(__file__).parent.parent / "resources" / "languages"
    if translator.load(QLocale(), "papilio", "_", str(place)):
        application.installTranslator(translator)
    use_font(application.font())
    return application


def open_window(arguments: Sequence[str], theme: str | None = None) -> tuple[QApplication, MainWindow]:
    """The application and its first window, in the theme named or the person's own.

    What is made on the way is needed as long as the program runs: nobody looks for garbage among it, then or later.
    """
    gc.disable()
    try:
        application = make_application(arguments)
        from designer.session.settings import Settings
        from designer.theme.theme import themes
        from designer.window.window import MainWindow

        settings = Settings()
        themes().start(theme or settings.theme)
        window = MainWindow(settings)
        window.show()
    finally:
        gc.freeze()
        gc.enable()
    return application, window


def main(arguments: Sequence[str]) -> int:
    """Open the window, with the files named; return the exit code when it is closed.

    `--watch LOG` and `--replay LOG` show a run; `--speed N` plays the one replayed.
    """
    application, window = open_window(["papilio", *arguments])
    waiting = iter(arguments)
    for name in waiting:
        if name in ("--watch", "--replay"):
            window.driver.open_log(next(waiting, ""), watch=name == "--watch")
        elif name == "--speed":
            window.monitor.play_at(float(next(waiting, "1")))
        else:
            window.files.open(Path(name))
    QTimer.singleShot(0, window.offer_recovery)
    QTimer.singleShot(ENGINE_AFTER_MS, window.start_engine)
    return application.exec()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
