"""What Python has let go of, Spark lets go of soon after.

A stand-in for a Java object holds itself in a circle, so it goes only when Python looks for circles. When Python does
that depends on how many objects of its own it made, and a few small ones may hold much of Spark's memory: 16 updates
over 200,000 rows each kept 150 to 250 MB that nobody needed. A stream of them ends in a Java without memory.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

EVERY_S = 2.0


@contextmanager
def letting_go(every_s: float = EVERY_S) -> Iterator[None]:
    """Look for circles every few seconds, among the objects that are made meanwhile: the others take too long."""
    stop = threading.Event()

    def look() -> None:
        while not stop.wait(every_s):
            gc.collect()

    gc.freeze()
    thread = threading.Thread(target=look, name="letting go", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        gc.unfreeze()
