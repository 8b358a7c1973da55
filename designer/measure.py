"""Measures the canvas: opening, dragging, panning and zooming large workflows, and the first window.

Run by `papilio bench designer` in a process of its own, because the engine knows no Qt. Prints one JSON object. The
seconds are the processor's for this process, so that what else runs on the machine does not count.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any


def first_window() -> dict[str, Any]:
    """Seconds from the start of the process to a painted window."""
    from designer.app import make_application

    application = make_application(["papilio"])
    from designer.session.settings import Settings
    from designer.theme.theme import themes
    from designer.window.window import MainWindow

    themes().start("light")
    window = MainWindow(Settings())
    window.show()
    window.repaint()
    application.processEvents()
    seconds = time.process_time()
    window.close()
    return {"first window": seconds}


def canvas(path: Path, frames: int) -> dict[str, Any]:
    """Seconds to open a file until it is painted, and for each frame of the usual movements."""
    from PySide6.QtCore import QEventLoop, QPointF
    from PySide6.QtWidgets import QApplication

    from designer.app import make_application
    from designer.canvas.gestures import Move
    from designer.canvas.view import CanvasView
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

    def frame(view: CanvasView) -> float:
        """All that waits is done and painted."""
        begun = time.process_time()
        QApplication.processEvents()
        return time.process_time() - begun

    begun = time.process_time()
    view = window.files.open(path)
    assert view is not None
    QApplication.processEvents()
    view.viewport().repaint()
    result["open"] = time.process_time() - begun

    view.zoom_to(1.0)
    view.show_node(next(iter(view.canvas.nodes)))
    QApplication.processEvents()

    def moved(act: Any) -> list[float]:
        times = []
        for number in range(frames):
            begun = time.process_time()
            act(number)
            frame(view)
            times.append(time.process_time() - begun)
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

    def drag(ids: list[str], far: bool) -> list[float]:
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
    begun = time.process_time()
    from designer.document import changes

    first = next(iter(view.canvas.nodes))
    told: list[float] = []
    view.editor.analysed.connect(lambda _: told.append(time.process_time()))
    view.editor.push(changes.set_title(view.editor.document, first, "Other"))
    loop = QEventLoop()
    view.editor.analysed.connect(lambda _: loop.quit())
    loop.exec()
    result["problems"] = told[0] - begun
    view.editor.stack.setClean()
    window.close()
    return result


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Lists of frames as their median and their 95th percentile."""
    short: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, list):
            ordered = sorted(value)
            short[name] = {"median": statistics.median(value), "p95": ordered[int(len(ordered) * 0.95)]}
        else:
            short[name] = value
    return short


def main(arguments: list[str]) -> None:
    """`window` or `canvas FILE FRAMES`."""
    if arguments[0] == "window":
        found = first_window()
    else:
        found = canvas(Path(arguments[1]), int(arguments[2]))
    sys.stdout.write(json.dumps(summary(found)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
