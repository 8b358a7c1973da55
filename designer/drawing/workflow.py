"""A whole workflow as an SVG picture: what the canvas shows of it."""

from __future__ import annotations

from collections.abc import Iterable

from designer.document.analysis import Analysis
from designer.document.arranging import group_frame
from designer.document.document import Document
from designer.document.layout import (
    NODE_WIDTH,
    Group,
    Note,
    Point,
    bends,
    edge_key,
    groups,
    height_for,
    notes,
    positions,
)
from designer.drawing import edge as edges
from designer.drawing.backdrop import LANES, bands, draw_lane
from designer.drawing.node import WORDS_WIDTH, draw_node, elided, fitted, port_place
from designer.drawing.remarks import draw_group, draw_group_words, draw_note, gate, group_box
from designer.drawing.sheet import Frame
from designer.drawing.svg import SvgSheet
from designer.drawing.widths import font_width
from engine.model.operator import Carries

MARGIN = 70.0  # around everything
EMPTY: Frame = (0.0, 0.0, 400.0, 200.0)


class NodePicture:
    """What is drawn of one node."""

    def __init__(self, document: Document, analysis: Analysis, id_: str, at: Point) -> None:
        node = document.workflow.nodes[id_]
        self.at = at
        self.operator = node.operator
        self.kind = document.catalogue.get(node.operator)
        self.title = document.title_of(id_)
        self.ports = document.ports.of(id_)
        self.height = height_for(max(len(self.ports.inputs), len(self.ports.outputs)))
        self.wing = analysis.wings.get(id_)
        self.level = analysis.level(id_)
        self.connected: set[tuple[bool, str]] = set()
        name = self.kind.title if self.kind else self.operator
        self.title_lines = fitted(self.title, WORDS_WIDTH, lambda text: font_width(text, "title"))
        self.operator_line = elided(name, WORDS_WIDTH, lambda text: font_width(text, "small"))

    def port(self, output: bool, name: str) -> Point:
        """Where a port stands in the picture."""
        x, y = port_place(self, output, name)
        return self.at[0] + x, self.at[1] + y


def frame_around(frames: Iterable[Frame]) -> Frame:
    """What a picture shows: everything, with a margin."""
    found = list(frames) or [EMPTY]
    left, top = min(x for x, _, _, _ in found) - MARGIN, min(y for _, y, _, _ in found) - MARGIN
    right = max(x + width for x, _, width, _ in found) + MARGIN
    bottom = max(y + height for _, y, _, height in found) + MARGIN
    return left, top, right - left, bottom - top


def draw_workflow(document: Document, analysis: Analysis) -> str:
    """The picture of a workflow, as SVG."""
    workflow = document.workflow
    there, held = positions(workflow), groups(workflow)
    boxes: dict[str, tuple[Group, Frame]] = {}
    for id_, group in held.items():
        around = group_frame(there, group.nodes)
        if around is not None:
            boxes[id_] = group, group_box(group, around)
    hidden = {node: box for group, box in boxes.values() if group.collapsed for node in group.nodes}
    nodes = {id_: NodePicture(document, analysis, id_, there.get(id_, (0.0, 0.0))) for id_ in workflow.nodes}
    shown = {id_: node for id_, node in nodes.items() if id_ not in hidden}
    remarks = notes(workflow)
    frame = frame_around([
        *((*node.at, NODE_WIDTH, node.height) for node in shown.values()),
        *((*note.at, *note.size) for note in remarks.values()),
        *(box for _, box in boxes.values()),
    ])  # fmt: skip
    sheet = SvgSheet(frame, workflow.name or "Papilio")
    _draw_lanes(sheet, shown.values())
    for group, box in boxes.values():
        if not group.collapsed:
            _draw_group(sheet, group, box)
    if remarks:
        _draw_notes(sheet, remarks.values())
    _draw_edges(sheet, document, nodes, hidden)
    for node in shown.values():
        with sheet.at(*node.at, node.title):
            draw_node(sheet, node)
    for group, box in boxes.values():
        if group.collapsed:
            _draw_group(sheet, group, box)
    return sheet.text()


def _draw_lanes(sheet: SvgSheet, nodes: Iterable[NodePicture]) -> None:
    corners: dict[str, list[tuple[float, float, float]]] = {}
    for node in nodes:
        if node.wing is not None:
            x, y = node.at
            corners.setdefault(node.wing, []).append((x, y, y + node.height))
    for wing, band in bands(corners):
        draw_lane(sheet, wing, band, LANES[wing], sheet.theme)


def _draw_group(sheet: SvgSheet, group: Group, box: Frame) -> None:
    left, top, width, height = box
    with sheet.at(left, top, group.title):
        draw_group(sheet, (width, height), group.collapsed)
        count = f"{len(group.nodes)} nodes"
        draw_group_words(sheet, group, width, lambda text: font_width(text, "title"), count)


def _draw_notes(sheet: SvgSheet, remarks: Iterable[Note]) -> None:
    from designer.drawing.markdown import draw_text  # few workflows have notes, and a reader of Markdown loads slowly

    for note in remarks:
        with sheet.at(*note.at):
            draw_note(sheet, note.size)
            draw_text(sheet, note.text, note.size)


def _draw_edges(sheet: SvgSheet, document: Document, nodes: dict[str, NodePicture], hidden: dict[str, Frame]) -> None:
    """Every edge, and which ports have one. Edges of a collapsed group's nodes begin or end at its box."""
    bent = bends(document.workflow)
    for edge in document.workflow.edges:
        if edge.source not in nodes or edge.target not in nodes:
            continue
        source, source_port, target, target_port = document.ports.ends(edge)
        nodes[source].connected.add((True, source_port))
        nodes[target].connected.add((False, target_port))
        inside, other = hidden.get(source), hidden.get(target)
        if inside is not None and inside is other:
            continue
        start = gate(inside, True) if inside else nodes[source].port(True, source_port)
        end = gate(other, False) if other else nodes[target].port(False, target_port)
        out = nodes[source].ports.output(source_port)
        ink = "refused" if out is not None and out.carries is Carries.REFUSED else "edge"
        way = () if inside or other else tuple(bent.get(edge_key(edge), ()))
        sheet.shape(edges.way, start, end, way, line=ink, width=edges.WIDTH)
