"""A node: its shape, its face, its ports and its badge."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from designer.document.layout import NODE_WIDTH
from designer.document.ports import Ports
from designer.drawing.sheet import Path, Sheet
from engine.model.operator import Carries, Category, Operator, Port, Role
from engine.model.problems import Level

PORT = 5.5  # a port's radius
CUT = 12.0  # how much the corners of blocking nodes are cut
ROUND = 26.0  # the corners of row-synchronized nodes
SQUARE = 5.0  # the corners of recordsets
FACE = 46.0  # how wide the wing's colour is
BAR, BAR_LEFT = 4.0, NODE_WIDTH - 9  # what rows stop at, on the right of blocking nodes
ICON = 26.0
WORDS_LEFT, WORDS_WIDTH = 55.0, NODE_WIDTH - 70

_WORDS = re.compile(r"[^\s_]*[\s_]*")  # an id breaks behind `_` as a title does at a space
_BEND = 0.5522847498  # of its radius: where a curve's handles stand that looks like a quarter of a circle

Advance = Callable[[str], float]  # how wide a text is


class Node(Protocol):
    """What is drawn of a node."""

    operator: str
    kind: type[Operator] | None
    ports: Ports
    height: float
    wing: str | None
    level: Level | None
    connected: set[tuple[bool, str]]  # (is it an output, name)
    title_lines: list[str]
    operator_line: str


def form_of(kind: type[Operator] | None) -> str:
    """The shape by which a node is told apart: a recordset, or one of the three categories."""
    if kind is None:
        return "unknown"
    return "recordset" if kind.role is not Role.ACTIVITY else kind.category.value


# ---------------------------------------------------------------- words


def elided(text: str, width: float, advance: Advance) -> str:
    """As much of a text as there is room for, and dots for the rest."""
    if advance(text) <= width:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if advance(text[:middle] + "…") <= width:
            fits = middle
        else:
            too_long = middle
    return text[:fits] + "…"


def fitted(title: str, width: float, advance: Advance) -> list[str]:
    """A title in one line, or in two where it is too long for one."""
    if advance(title) <= width:
        return [title]
    first, words = "", _WORDS.findall(title)
    while words and advance((first + words[0]).rstrip()) <= width:
        first += words.pop(0)
    if not first or not words:
        return [elided(title, width, advance)]
    return [first.rstrip(), elided("".join(words), width, advance)]


# ---------------------------------------------------------------- shapes


def outline(path: Path, form: str, height: float) -> None:
    """A row-synchronized node is round, a semi-blocking one cut on the left, a blocking one cut on both sides."""
    if form in (Category.SEMI_BLOCKING, Category.BLOCKING):
        right = CUT if form == Category.BLOCKING else 0.0
        _polygon(path, [
            (CUT, 0), (NODE_WIDTH - right, 0), (NODE_WIDTH, right), (NODE_WIDTH, height - right),
            (NODE_WIDTH - right, height), (CUT, height), (0, height - CUT), (0, CUT),
        ])  # fmt: skip
    else:
        rounded(path, 0, 0, NODE_WIDTH, height, ROUND if form == Category.ROW_SYNCHRONIZED else SQUARE)


def face(path: Path, form: str, height: float) -> None:
    """The part of a node that is in the wing's colour: behind the icon, and the bar that rows stop at."""
    if form in (Category.SEMI_BLOCKING, Category.BLOCKING):
        _polygon(path, [(CUT, 0), (FACE, 0), (FACE, height), (CUT, height), (0, height - CUT), (0, CUT)])
    else:
        _rounded_left(path, height, ROUND if form == Category.ROW_SYNCHRONIZED else SQUARE)
    left, right = BAR_LEFT, BAR_LEFT + BAR
    if form == Category.BLOCKING:
        near, far = left - (NODE_WIDTH - CUT), right - (NODE_WIDTH - CUT)  # below the cut corner
        _polygon(path, [(left, near), (right, far), (right, height - far), (left, height - near)])
    elif form == Category.SEMI_BLOCKING:  # with a gap
        for top, bottom in ((0.0, height * 0.36), (height * 0.64, height)):
            _polygon(path, [(left, top), (right, top), (right, bottom), (left, bottom)])


def _polygon(path: Path, corners: Sequence[tuple[float, float]]) -> None:
    path.moveTo(*corners[0])
    for corner in corners[1:]:
        path.lineTo(*corner)
    path.closeSubpath()


def rounded(path: Path, x: float, y: float, width: float, height: float, corner: float) -> None:
    """A rectangle with round corners."""
    right, bottom, rest = x + width, y + height, corner * (1 - _BEND)
    path.moveTo(x + corner, y)
    path.lineTo(right - corner, y)
    path.cubicTo(right - rest, y, right, y + rest, right, y + corner)
    path.lineTo(right, bottom - corner)
    path.cubicTo(right, bottom - rest, right - rest, bottom, right - corner, bottom)
    path.lineTo(x + corner, bottom)
    path.cubicTo(x + rest, bottom, x, bottom - rest, x, bottom - corner)
    path.lineTo(x, y + corner)
    path.cubicTo(x, y + rest, x + rest, y, x + corner, y)
    path.closeSubpath()


def _rounded_left(path: Path, height: float, corner: float) -> None:
    rest = corner * (1 - _BEND)
    path.moveTo(FACE, height)
    path.lineTo(corner, height)
    path.cubicTo(rest, height, 0, height - rest, 0, height - corner)
    path.lineTo(0, corner)
    path.cubicTo(0, rest, rest, 0, corner, 0)
    path.lineTo(FACE, 0)
    path.closeSubpath()


# ---------------------------------------------------------------- ports


def port_place(node: Node, output: bool, name: str) -> tuple[float, float]:
    """Where a port stands on the node: rows in the middle of a side, refused rows at its foot."""
    ports = node.ports.outputs if output else node.ports.inputs
    rows = [port.name for port in ports if port.carries is Carries.ROWS]
    x = NODE_WIDTH if output else 0.0
    if name in rows and len(rows) > 1:
        margin = 16.0
        return x, margin + rows.index(name) * (node.height - 2 * margin) / (len(rows) - 1)
    others = [port.name for port in ports if port.carries is not Carries.ROWS]
    if name in others:
        inset = 5.0 if form_of(node.kind) == Category.ROW_SYNCHRONIZED else 1.0
        return x - inset, node.height - 9 - 15 * others.index(name)
    return x, node.height / 2


# ---------------------------------------------------------------- drawing


def draw_node(
    sheet: Sheet,
    node: Node,
    chosen: bool = False,
    named: bool = True,
    hot: tuple[bool, str] | None = None,
) -> None:
    """A node at the sheet's origin. `named`: its ports have their names; `hot`: the port that the pointer is on."""
    form = form_of(node.kind)
    blocking = form == Category.BLOCKING
    if chosen:
        sheet.shape(outline, form, node.height, line=("accent", 70), width=8)
    border = "error" if form == "unknown" else "muted" if blocking else "node_border"
    sheet.shape(
        outline,
        form,
        node.height,
        fill="recordset" if form == "recordset" else "node",
        line="accent" if chosen else border,
        width=2.2 if chosen or blocking else 1.4,
    )
    _draw_face(sheet, node, form)
    for output, ports in ((False, node.ports.inputs), (True, node.ports.outputs)):
        for port in ports:
            near = hot == (output, port.name)
            _draw_port(sheet, node, output, port, near, named and (near or len(ports) > 1))
    if node.level is not None:
        _draw_badge(sheet, node.level)


def wing_ink(wing: str | None) -> str:
    """The colour of a part of the butterfly; grey where a node has none."""
    return wing if wing in ("left", "body", "right") else "faint"


def _draw_face(sheet: Sheet, node: Node, form: str) -> None:
    """The wing's colour behind the icon, the title and the operator's name."""
    sheet.shape(face, form, node.height, fill=wing_ink(node.wing))
    middle = node.height / 2
    left = 12.0 if form == Category.ROW_SYNCHRONIZED else 10.0
    sheet.icon(node.operator, node.kind.family if node.kind else "", left, middle - ICON / 2, ICON)
    two = len(node.title_lines) > 1
    for number, line in enumerate(node.title_lines):
        sheet.words(WORDS_LEFT, middle - (9 if two else 2) + 16 * number, line, "title", "text")
    sheet.words(WORDS_LEFT, middle + (22 if two else 16), node.operator_line, "small", "muted")


def _draw_port(sheet: Sheet, node: Node, output: bool, port: Port, hot: bool, named: bool) -> None:
    x, y = port_place(node, output, port.name)
    refused = port.carries is Carries.REFUSED
    ink = "refused" if refused else "accent" if hot else "muted"
    full = hot or (output, port.name) in node.connected
    missing = not output and port.required and not full and node.level is Level.ERROR
    sheet.dot(x, y, PORT + 2 if hot else PORT, ink if full else "node", "error" if missing else ink, 1.8)
    if named:
        below = 14 if refused else -5
        sheet.words(x + (11 if output else -11), y + below, port.name, "tiny", ink, before=not output)


def _draw_badge(sheet: Sheet, level: Level) -> None:
    x, y = NODE_WIDTH - 6, 3.0
    sheet.dot(x, y, 9.5, "error" if level is Level.ERROR else "warning", "canvas", 2)
    sheet.stroke([(x, y - 4.5), (x, y + 0.8)], "#ffffff", 2.2)
    sheet.dot(x, y + 4.6, 1.1, "#ffffff")
