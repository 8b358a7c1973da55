"""Quick-add: choose an operator by typing a few letters, right where it will stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF

from designer.chooser import Chooser, Entry
from designer.document import changes
from designer.palette.matching import best, operator_texts
from designer.text import tr
from designer.theme.icons import operator_icon
from engine.model.operator import Operator
from engine.model.workflow import Edge

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView

ORDER = ("sources", "cleansing", "shaping", "combining", "flow", "warehouse", "streams", "targets", "code")


class QuickAdd(Chooser):
    """The operators that fit where the new node will stand."""

    def __init__(self, view: CanvasView) -> None:
        super().__init__(view, tr("Add an operator…"), 300, 330)
        self.view = view
        self._at = QPointF()
        self._port: tuple[str, bool, str] | None = None
        self._edge: Edge | None = None
        self._kinds: list[type[Operator]] = []

    def ask(self, at: QPointF, port: tuple[str, bool, str] | None, edge: Edge | None = None) -> None:
        """Open at a point of the scene; `port` and `edge` say what the new node is connected to."""
        document = self.view.editor.document
        catalogue = document.catalogue
        self._at, self._port, self._edge = at, port, edge
        if port is not None:
            ports = document.ports.of(port[0])
            known = ports.output(port[2]) if port[1] else ports.input(port[2])
            names = changes.fitting_operators(document, port[0], known, port[1]) if known else []
            hint = tr("What fits {0} of {1}", port[2], document.title_of(port[0]))
        elif edge is not None:
            names = [name for name, kind in catalogue.items() if kind.inputs and kind.outputs]
            hint = tr("Between {0} and {1}", document.title_of(edge.source), document.title_of(edge.target))
        else:
            names = list(catalogue)
            hint = tr("Enter adds, Esc leaves")
        rank = {family: number for number, family in enumerate(ORDER)}
        self._kinds = sorted(
            (catalogue[name] for name in names), key=lambda kind: (rank.get(kind.family, 99), kind.title)
        )
        corner = self.view.mapFromScene(at)
        self.open_at(corner.x() - 40, corner.y() - 24, hint)

    def entries(self, query: str) -> list[Entry]:
        suffix = {"sources": tr("source"), "targets": tr("target")}
        return [
            Entry(
                kind.name,
                f"{kind.title}   ·  {suffix.get(kind.family, kind.family)}",
                operator_icon(kind.name, kind.family),
                (kind.__doc__ or "").strip().splitlines()[0],
            )
            for kind in best(query, self._kinds, operator_texts)
        ]

    def taken(self, key: str) -> None:
        self.view.add_operator(key, self._at, self._port, self._edge)

    def left(self) -> None:
        self.view.setFocus()
