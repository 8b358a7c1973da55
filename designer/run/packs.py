"""A look into the packs of a queue while the run is paused: the first rows of each, as the preview shows rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from designer.link.client import EngineClient
from designer.preview.panel import RowsTable, lay_out
from designer.text import tr
from designer.widgets import label, take_role


class PacksPanel(QWidget):
    """Asks the engine for the packs of the queue on an edge."""

    def __init__(self, engine: EngineClient) -> None:
        super().__init__()
        self.engine = engine
        self._asked: int | None = None
        self.title = label("", "heading")
        self.told = label(tr("Pause a run and click an edge."), "muted")
        self.table = RowsTable(tr("Rows of the packs"))
        self.pages = lay_out(self, [self.title], self.told, self.table)
        engine.told.connect(self._answered)

    def ask(self, folder: Path, facts: Mapping[str, Any], ends: Sequence[str]) -> None:
        """Look at the queue that feeds the end of an edge; `facts` is the run's first event."""
        self.clear()
        self.title.setText(f"{ends[0]}.{ends[1]} → {ends[2]}.{ends[3]}")
        queue = queue_of(facts, ends)
        if facts.get("backend") == "simulated":
            self._tell(tr("A simulated run reckons with packs; they hold no rows. The canvas shows how many."), "muted")
        elif queue is None:
            self._tell(tr("There is no queue on this edge: both ends are in the same unit."), "muted")
        else:
            self._asked = self.engine.send("peek", folder=str(folder), queue=queue)
            self._tell(tr("Looking…"), "muted")

    def clear(self) -> None:
        """Show nothing."""
        self._asked = None
        self.pages.setCurrentIndex(0)
        self.title.clear()
        self._tell(tr("Pause a run and click an edge."), "muted")

    def _tell(self, text: str, role: str) -> None:
        take_role(self.told, role)
        self.told.setText(text)

    def _answered(self, event: dict[str, Any]) -> None:
        if self._asked is None or event.get("id") != self._asked:
            return
        self._asked = None
        if event.get("event") == "failed":
            self._tell(str(event.get("message")), "wrong")
            return
        packs = event["packs"]
        rows = [[str(place), *row] for place, pack in enumerate(packs, start=1) for row in pack["first"]]
        sizes = [tr("{0}: {1} rows", place, f"{pack['rows']:,}") for place, pack in enumerate(packs, start=1)]
        first = {
            "name": tr("pack"), "type": tr("place in the queue"), "nulls": 0.0, "distinct": len(packs), "bars": [],
            "labels": sizes,
        }  # fmt: skip
        self.table.show_rows([first, *event["columns"]], rows)
        self.pages.setCurrentIndex(1)
        every = len(packs) + event["left_out"]
        shown = tr("the first rows of each") if not event["left_out"] else tr("the first of {0} packs", len(packs))
        size = f"{event['total_bytes'] / 1e6:,.1f} MB"
        self._tell(tr("{0} packs, {1} rows, {2}: {3}", every, f"{event['total_rows']:,}", size, shown), "muted")


def queue_of(facts: Mapping[str, Any], ends: Sequence[str]) -> str | None:
    """The queue that feeds the end of an edge, by the run's first event."""
    for id_, queue in (facts.get("queues") or {}).items():
        if list(queue.get("link", ())) == list(ends):
            return str(id_)
    return None
