"""Two versions of a workflow side by side: the changes as a list, and on the canvas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QHeaderView,
    QLabel,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from designer.canvas.arrange import arrange, place_missing
from designer.canvas.view import CanvasView
from designer.document.document import Document
from designer.document.edits import Edit
from designer.document.layout import positions
from designer.editor import Editor
from designer.text import tr
from designer.theme.theme import theme
from engine.model.workflow import Workflow
from engine.store.diff import Change, diff_documents

if TYPE_CHECKING:
    from designer.window.window import MainWindow


class _Fixed(Editor):
    """An editor for looking only."""

    def push(self, edit: Edit) -> bool:
        return False


def both(before: Workflow, after: Workflow) -> Workflow:
    """The later workflow, with what was removed still there."""
    merged = after.model_copy(deep=True)
    for id_, node in before.nodes.items():
        merged.nodes.setdefault(id_, node)
    there = positions(before)
    section = merged.layout.setdefault("nodes", {})
    for id_ in merged.nodes:
        if id_ not in section and id_ in there:
            section[id_] = list(there[id_])
    known = {(edge.from_, edge.to) for edge in merged.edges}
    merged.edges += [edge for edge in before.edges if (edge.from_, edge.to) not in known]
    for other in ("groups", "bends"):
        merged.layout.pop(other, None)
    return merged


def marks(changes: list[Change]) -> tuple[dict[str, str], dict[str, str]]:
    """What happened to each node and to each edge."""
    nodes: dict[str, str] = {}
    edges: dict[str, str] = {}
    for change in changes:
        if change.kind == "edge":
            edges[change.where] = change.action
        elif change.kind in ("node", "setting"):
            node, dot, _ = change.where.partition(".")
            nodes[node] = "changed" if dot else change.action
    return nodes, edges


class CompareDialog(QDialog):
    """What changed from one version to another."""

    def __init__(self, window: MainWindow, before: Workflow, after: Workflow, title: str) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.resize(1180, 720)
        self.changes = diff_documents(before.document(), after.document())
        document = Document(both(before, after), window.catalogue)
        if len(positions(document.workflow)) < len(document.workflow.nodes):
            place_missing(document, arrange(document))
        self.editor = _Fixed(document, None, self)
        self.view = CanvasView(self.editor)
        self.editor.analyse_now()
        nodes, edges = marks(self.changes)
        for id_, item in self.view.canvas.nodes.items():
            item.mark = nodes.get(id_)
            item.dimmed = item.mark is None
            item.level = None
        for edge in self.view.canvas.edges.values():
            edge.mark = edges.get(f"{edge.edge.from_} → {edge.edge.to}")
            edge.faded = edge.mark is None
            edge.restyle()
        self.tree = self._list()
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self.view)
        split.addWidget(self.tree)
        split.setSizes([480, 200])
        layout = QVBoxLayout(self)
        layout.addWidget(self._legend())
        layout.addWidget(split, 1)

    def showEvent(self, event) -> None:  # type: ignore[no-untyped-def]
        super().showEvent(event)
        self.view.fit()

    def _legend(self) -> QWidget:
        colors = theme()
        words = [
            (colors.ok, tr("added")),
            (colors.warning, tr("changed")),
            (colors.error, tr("removed")),
        ]
        text = "&nbsp;&nbsp;&nbsp;".join(f"<span style='color:{color.name()}'>■</span> {word}" for color, word in words)
        count = tr("{0} changes", len(self.changes)) if self.changes else tr("No difference")
        return QLabel(f"<b>{count}</b>&nbsp;&nbsp;&nbsp;&nbsp;{text}")

    def _list(self) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setHeaderLabels([tr("What"), tr("Where"), tr("Before"), tr("After")])
        tree.setRootIsDecorated(False)
        for change in self.changes:
            values = ["" if value is None else str(value)[:300] for value in (change.before, change.after)]
            tree.addTopLevelItem(QTreeWidgetItem([f"{change.kind} {change.action}", change.where, *values]))
        tree.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        tree.itemClicked.connect(lambda item: self.view.show_node(item.text(1).split(".")[0].split(" ")[0]))
        return tree

    def done(self, result: int) -> None:
        """Let go of the canvas."""
        self.editor.close()
        super().done(result)


def compare_with_disk(window: MainWindow) -> None:
    """The open workflow against its file."""
    from engine.errors import PapilioError
    from engine.model.file import load

    editor = window.editor
    if editor is None or editor.path is None:
        return
    try:
        saved = load(editor.path).workflow
    except PapilioError as error:
        window.complain(tr("This file cannot be opened"), str(error))
        return
    CompareDialog(window, saved, editor.document.workflow, tr("Changes since the file was saved")).open()
