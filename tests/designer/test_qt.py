"""The Qt that is installed, on the Python that is used."""

from __future__ import annotations

import os
import subprocess
import sys

EMISSIONS = 5_000

PROGRAM = f"""
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication

class Unit(QObject):
    finished = Signal(int, str, object)

application = QApplication([])
seen = []
unit = Unit()
unit.finished.connect(lambda rows, name, details: seen.append((rows, name, details["pack"])))
for number in range({EMISSIONS}):
    unit.finished.emit(number, "join", {{"pack": number}})
assert seen == [(number, "join", number) for number in range({EMISSIONS})]
print(len(seen))
"""


def test_thousands_of_signals_arrive_and_do_not_end_the_process() -> None:
    """PySide6 6.12.0 aborts Python 3.11 after some 560 emissions; a release like it is noticed here."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PROGRAM],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{EMISSIONS}\n"), done.stderr


def test_the_first_window_waits_for_no_library_that_only_a_panel_needs() -> None:
    program = (
        "import sys; from designer.measure import first_window; first_window(0.0);"
        "late = ('sqlalchemy', 'pyqtgraph', 'numpy', 'networkx', 'psutil', 'msgspec', 'engine.events',"
        "        'engine.plan.planner', 'engine.schedule.costs', 'engine.request', 'designer.plan.panel');"
        "print([name for name in late if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
