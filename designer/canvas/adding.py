"""Where a new node comes to stand and what it is connected to, when the person did not point there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF

from designer.canvas.arrange import COLUMN
from designer.canvas.node import NodeItem
from designer.document import changes
from designer.document.layout import NODE_HEIGHT, NODE_WIDTH
from designer.text import tr
from engine.model.operator import Port

if TYPE_CHECKING:
    from designer.canvas.view import CanvasView


def free_place(view: CanvasView, at: QPointF) -> QPointF:
    """Down from a point until a node around it touches no other."""
    wide, high = NODE_WIDTH / 2 + 10, NODE_HEIGHT / 2 + 10
    frames = [item.frame().adjusted(-wide, -high, wide, high) for item in view.canvas.nodes.values()]
    while any(frame.contains(at) for frame in frames):
        at = QPointF(at.x(), at.y() + 60)
    return at


def _free_output(item: NodeItem) -> Port | None:
    """The first output that nothing reads yet, or the first."""
    free = [port for port in item.ports.outputs if (True, port.name) not in item.connected]
    return next(iter(free or item.ports.outputs), None)


def _behind(view: CanvasView) -> tuple[QPointF, tuple[str, bool, str]] | None:
    """Behind the one selected node: a free place, and the port to connect to."""
    chosen = view.canvas.selected_nodes()
    if len(chosen) != 1:
        return None
    item = view.canvas.nodes[chosen[0]]
    port = _free_output(item)
    if port is None:
        return None
    return free_place(view, item.frame().center() + QPointF(COLUMN, 0)), (item.id, True, port.name)


def quick_add_here(view: CanvasView) -> None:
    """Quick-add behind the selected node or on the selected edge where one is selected, else at the pointer."""
    behind = _behind(view)
    edges = view.canvas.selected_edges()
    if behind is not None:
        view.quick_add(*behind)
    elif len(edges) == 1 and not view.canvas.selected_nodes():
        path = view.canvas.edges[id(edges[0])].path()
        view.quick_add(path.pointAtPercent(0.5), None, edges[0])
    else:
        x, y = view.cursor_point()
        view.quick_add(QPointF(x + NODE_WIDTH / 2, y + NODE_HEIGHT / 2), None)


def add_from_palette(view: CanvasView, operator: str) -> str:
    """Add an operator behind the selected node where it fits there, else in the middle of what is seen."""
    behind = _behind(view)
    if behind is not None and view.editor.document.catalogue[operator].inputs:
        return view.add_operator(operator, *behind)
    return view.add_operator(operator, free_place(view, view.visible_frame().center()))


def connect_selected(view: CanvasView) -> None:
    """Connect two selected nodes, the left one's free output to the right one's free input."""
    chosen = sorted(view.canvas.selected_nodes(), key=lambda id_: view.canvas.nodes[id_].pos().x())
    if len(chosen) != 2:
        return
    source, target = (view.canvas.nodes[id_] for id_ in chosen)
    out = _free_output(source)
    free = [port for port in target.ports.inputs if (False, port.name) not in target.connected or port.many]
    into = next(iter(free or target.ports.inputs), None)
    if out is None or into is None:
        view.say(tr("There is no port to connect."))
        return
    ends = (source.id, out.name, target.id, into.name)
    reason = changes.why_not(view.editor.document, *ends)
    if reason is None:
        view.editor.push(changes.connect(view.editor.document, *ends))
    else:
        view.say(tr("Not connected: {0}", tr(reason)))
