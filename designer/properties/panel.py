"""The properties panel: the form of what is selected."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget
from shiboken6 import isValid

from designer.canvas.view import CanvasView
from designer.document.edits import Edit
from designer.properties.columns import ColumnsTable
from designer.properties.editors.base import in_reading_order
from designer.properties.form import NodeForm
from designer.properties.workflow_form import WorkflowForm
from designer.text import tr
from designer.widgets import enter, label


class PropertiesPanel(QScrollArea):
    """Shows the form of one node, of the workflow, or a word about several."""

    asked_lineage = Signal(str, str, str)  # node, port, column
    renamed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMinimumWidth(290)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.view: CanvasView | None = None
        self.form: QWidget | None = None
        self._shown: tuple[str, ...] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self.show_selection)
        self._order = QTimer(self)
        self._order.setSingleShot(True)
        self._order.setInterval(0)
        self._order.timeout.connect(self._put_in_order)

    def follow(self, view: CanvasView | None) -> None:
        """Follow the selection of a canvas, and of no other."""
        if self.view is not None:
            self.view.canvas.chosen.disconnect(self._timer.start)
            self.view.editor.analysed.disconnect(self._refresh)
            self.view.editor.edited.disconnect(self._on_edit)
        self.view = view
        self._shown = None
        if view is not None:
            view.canvas.chosen.connect(self._timer.start)
            view.editor.analysed.connect(self._refresh)
            view.editor.edited.connect(self._on_edit)
        self.show_selection()

    def show_selection(self) -> None:
        """Build the form for what is selected, unless it is shown already."""
        self._timer.stop()
        if self.view is None:
            self._show(QWidget(), ())
            return
        nodes = self.view.canvas.selected_nodes()
        edges = self.view.canvas.selected_edges()
        if len(nodes) == 1:
            if self._shown != ("node", nodes[0]) or not isinstance(self.form, NodeForm):
                form = NodeForm(self.view.editor, nodes[0])
                form.asked_lineage.connect(self.asked_lineage)
                form.renamed.connect(self.renamed)
                self._show(form, ("node", nodes[0]))
        elif nodes:
            self._show(self._words(tr("{0} nodes are selected.", len(nodes))), ("many", str(len(nodes))))
        elif len(edges) == 1:
            self._show(self._edge(), ("edge", edges[0].from_, edges[0].to))
        elif self._shown != ("workflow",):
            self._show(WorkflowForm(self.view.editor), ("workflow",))

    def _show(self, widget: QWidget, what: tuple[str, ...]) -> None:
        self._shown = what
        self.form = widget
        self.setWidget(widget)
        self._order.start()

    def _put_in_order(self) -> None:
        if self.form is not None and isValid(self.form):
            in_reading_order(self.form)

    def enter(self) -> None:
        """Put the cursor into the first field."""
        self.show_selection()
        self._put_in_order()
        if isinstance(self.form, NodeForm) and self.form.editors:
            next(iter(self.form.editors.values())).focus_on([])
        elif isinstance(self.form, WorkflowForm):
            self.form.name.setFocus()
        elif self.form is not None:
            enter(self)

    def _words(self, text: str) -> QWidget:
        widget = QWidget()
        layout = QVBoxLayout(widget)
        layout.setContentsMargins(14, 12, 14, 16)
        layout.addWidget(label(text, "muted"))
        layout.addStretch(1)
        return widget

    def _edge(self) -> QWidget:
        assert self.view is not None
        edge = self.view.canvas.selected_edges()[0]
        source, port, *_ = self.view.editor.document.ports.ends(edge)
        widget = self._words(f"{edge.from_} → {edge.to}")
        table = ColumnsTable()
        layout = widget.layout()
        assert isinstance(layout, QVBoxLayout)
        layout.insertWidget(1, table, 1)
        table.show_columns([(port, self.view.editor.analysis.schema(source, port))])
        table.asked.connect(lambda port, column: self.asked_lineage.emit(source, port, column))
        return widget

    def go_to(self, node: str, place: str) -> None:
        """Show a node's form, or the workflow's, with the cursor in a field."""
        self.show_selection()
        shown = self.form.id if isinstance(self.form, NodeForm) else ""
        if isinstance(self.form, (NodeForm, WorkflowForm)) and shown == node and (place or not node):
            self.form.go_to(place)
            focused = self.window().focusWidget()
            if focused is not None and self.form.isAncestorOf(focused):
                self.ensureWidgetVisible(focused)

    def _refresh(self) -> None:
        if isinstance(self.form, (NodeForm, WorkflowForm)):
            if isinstance(self.form, NodeForm):
                assert self.view is not None
                if self.form.id not in self.view.editor.document.workflow.nodes:
                    return
            self.form.refresh()

    def _on_edit(self, edit: Edit) -> None:
        self._order.start()
        if isinstance(self.form, (NodeForm, WorkflowForm)):
            if self.form.on_edit(edit):
                if isinstance(self.form, NodeForm):
                    self._shown = ("node", self.form.id)
            else:
                self._shown = None
                self._timer.start()
