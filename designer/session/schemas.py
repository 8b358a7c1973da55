"""The columns of sources, read beside the window's own thread and remembered.

Only footers and headers of files are looked at. Until they are read a schema is not known, which is silence.
"""

from __future__ import annotations

import queue
import threading

from PySide6.QtCore import QObject, Signal

from engine.model.operator import Place, Source
from engine.model.types import Schema

Key = tuple[str, str, str]


class Schemas(QObject):
    """Answers what a source's columns are; what it does not know yet it finds out and tells."""

    found = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._known: dict[Key, Schema | None] = {}
        self._asked: set[Key] = set()
        self._queue: queue.Queue[tuple[Key, Source, Place] | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    def discover(self, source: Source, place: Place) -> Schema | None:
        """For `bind`: what is known of a source now."""
        try:
            key = (source.name, source.model_dump_json(), source.identity(place))
        except Exception:  # a path outside the roots, a secret that is not there
            return None
        if key not in self._known and key not in self._asked:
            self._asked.add(key)
            self._queue.put((key, source, place))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="schemas", daemon=True)
                self._thread.start()
        return self._known.get(key)

    def _work(self) -> None:
        from engine.store.sources import SourceSchemas

        schemas = SourceSchemas()
        while True:
            wanted = self._queue.get()
            if wanted is None:
                return
            key, source, place = wanted
            self._known[key] = schemas.discover(source, place)
            if self._known[key] is not None and self._queue.empty():
                self.found.emit()

    def forget(self) -> None:
        """Look at the sources again: a run or another program may have changed them."""
        self._known.clear()
        self._asked.clear()
        self.found.emit()

    def stop(self) -> None:
        """End the thread; one that hangs on a dead disk does not hold the program."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=2)
            self._thread = None
