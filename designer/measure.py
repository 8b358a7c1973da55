"""Measures the canvas: opening, dragging, panning and zooming large workflows, and the first window.

Run by `papilio bench designer` in a process of its own, because the engine knows no Qt. Prints one JSON object. Every
time is told twice: `wall` by the clock, `busy` by the processor's time of this process, in which what else runs on the
machine does not count.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from designer.document.edits import Edit
    from designer.editor import Editor

SOURCE = "source_0"  # of the workflow whose nodes all hang on one


class Watch:
    """Both clocks from a moment on."""

    def __init__(self) -> None:
        self._wall, self._busy = time.perf_counter(), time.process_time()

    def passed(self) -> dict[str, float]:
        """What has passed by each of them."""
        return {"wall": time.perf_counter() - self._wall, "busy": time.process_time() - self._busy}


def first_window(started: float) -> dict[str, Any]:
    """Seconds to a painted first window from when this process was started, by the one clock of all processes.

    That is told by who started it. The system knows it too, but as seconds since it was booted, and says when that was
    in whole seconds only.
    """
    from designer.app import open_window

    application, window = open_window(["papilio"], "light")
    window.repaint()
    application.processEvents()
    found = {"wall": time.monotonic() - started, "busy": time.process_time()}
    window.close()
    return {"first window": found}


def canvas(path: Path, frames: int) -> dict[str, Any]:
    """Seconds to open a file until it is painted, and for each frame of the usual movements."""
    from PySide6.QtCore import QPointF
    from PySide6.QtWidgets import QApplication

    from designer.app import make_application
    from designer.canvas.gestures import Move
    from designer.document.document import Document
    from designer.session.settings import Settings
    from designer.theme.theme import themes
    from designer.window.window import MainWindow

    make_application(["papilio"])
    themes().start("light")
    window = MainWindow(Settings())
    window.resize(1600, 1000)
    window.show()
    QApplication.processEvents()
    result: dict[str, Any] = {}
    # A small file first, as a session has had: modules are loaded and fonts are found.
    small = path.with_name("warm.butterfly.yaml")
    window.open_document(Document.open(small, window.catalogue))
    QApplication.processEvents()

    watch = Watch()
    view = window.files.open(path)
    assert view is not None
    QApplication.processEvents()
    view.viewport().repaint()
    result["open"] = watch.passed()

    view.zoom_to(1.0)
    view.show_node(next(iter(view.canvas.nodes)))
    QApplication.processEvents()

    def moved(act: Callable[[int], object]) -> list[dict[str, float]]:
        """The frames of a movement, each painted before the next."""
        times = []
        for number in range(frames):
            watch = Watch()
            act(number)
            QApplication.processEvents()
            times.append(watch.passed())
        return times

    bars = view.horizontalScrollBar(), view.verticalScrollBar()

    def pan(number: int) -> None:
        bars[0].setValue(bars[0].value() + 7)
        bars[1].setValue(bars[1].value() + 5)

    result["pan"] = moved(pan)
    item = min(view.canvas.nodes.values(), key=lambda one: (one.pos().x(), one.pos().y()))
    view.centerOn(item.frame().center())
    view.canvas.select([item.id])
    QApplication.processEvents()

    def drag(ids: list[str], far: bool) -> list[dict[str, float]]:
        view.canvas.select(ids)
        if far:
            view.fit()
        QApplication.processEvents()
        gesture = Move(view, QPointF(0, 0))
        gesture.start()
        from PySide6.QtCore import Qt

        times = moved(lambda n: gesture.move(QPointF(3.0 * n, 2.0 * n), Qt.KeyboardModifier.NoModifier))
        gesture.cancel()
        QApplication.processEvents()
        return times

    result["drag one"] = drag([item.id], far=False)
    some = [one.id for one in view.canvas.nodes_near(item.frame().center(), 900.0)][:50]
    result["drag fifty"] = drag(some, far=False)
    view.fit()
    QApplication.processEvents()
    result["pan far"] = moved(lambda n: bars[0].setValue(bars[0].value() + 3))
    result["zoom far"] = moved(lambda n: view.zoom_by(1.02 if n % 2 else 1 / 1.02))
    from designer.document import changes

    first = next(iter(view.canvas.nodes))
    result["problems"] = _checked(view.editor, changes.set_title(view.editor.document, first, "Other"))
    view.editor.stack.setClean()
    window.close()
    return result


def checked(path: Path) -> dict[str, Any]:
    """Seconds until the problems are told after the source that all nodes hang on has got another column."""
    from PySide6.QtWidgets import QApplication

    from designer.app import make_application
    from designer.document import changes
    from designer.session.settings import Settings
    from designer.theme.theme import themes
    from designer.window.window import MainWindow

    make_application(["papilio"])
    themes().start("light")
    window = MainWindow(Settings())
    window.show()
    view = window.files.open(path)
    assert view is not None
    QApplication.processEvents()
    document = view.editor.document
    columns = {**document.workflow.nodes[SOURCE].settings["columns"], "one_more": "int"}
    found = _checked(view.editor, changes.set_setting(document, SOURCE, "columns", columns))
    view.editor.stack.setClean()
    window.close()
    return {"problems from the source": found}


def _checked(editor: Editor, edit: Edit) -> dict[str, float]:
    """From an edit until its problems are told."""
    from PySide6.QtCore import QEventLoop

    loop, told = QEventLoop(), []

    def heard(_: object) -> None:
        told.append(watch.passed())
        loop.quit()

    editor.analysed.connect(heard)
    watch = Watch()
    editor.push(edit)
    loop.exec()
    editor.analysed.disconnect(heard)
    return told[0]


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Lists of frames as the 95th percentile of each clock."""
    short: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, list):
            value = {clock: sorted(one[clock] for one in value)[int(len(value) * 0.95)] for clock in ("wall", "busy")}
        short[name] = value
    return short


def main(arguments: list[str]) -> None:
    """`window STARTED`, `check FILE` or `canvas FILE FRAMES`."""
    if arguments[0] == "window":
        found = first_window(float(arguments[1]))
    elif arguments[0] == "check":
        found = checked(Path(arguments[1]))
    else:
        found = canvas(Path(arguments[1]), int(arguments[2]))
    sys.stdout.write(json.dumps(summary(found)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
