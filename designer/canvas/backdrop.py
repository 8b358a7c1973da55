"""What lies behind the nodes: the grid, the butterfly's lanes, and the regions of an overlay."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPainterPathStroker, QPen, QPixmap

from designer.canvas import node as look
from designer.document.layout import NODE_WIDTH
from designer.text import tr
from designer.theme.theme import theme

if TYPE_CHECKING:
    from designer.canvas.scene import CanvasScene

OVERLAYS = ("trees", "subflows", "strata", "categories")
_PAD = 15.0
_LANE = 44.0
_ROUND = 14.0


@dataclass(frozen=True)
class Region:
    """Nodes that belong together in an overlay, with the name and colour of the legend."""

    label: str
    color: QColor
    nodes: tuple[str, ...]


def _around(places: list[tuple[float, float, float]]) -> QRectF:
    """The frame around nodes, by their left, top and bottom."""
    lefts, tops, bottoms = zip(*places, strict=True)
    left, top = min(lefts), min(tops)
    return QRectF(left, top, max(lefts) + NODE_WIDTH - left, max(bottoms) - top)


class Backdrop:
    """Paints the background of a scene. What it computed is kept until the workflow changes."""

    def __init__(self, scene: CanvasScene) -> None:
        self.scene = scene
        self.lanes = True
        self.overlay: str | None = None
        self._regions: list[tuple[Region, QPainterPath]] | None = None
        self._bands: list[tuple[str, QRectF]] | None = None
        self._grid: QPixmap | None = None

    def forget(self) -> None:
        """Compute anew at the next painting."""
        self._regions = None
        self._bands = None

    def restyle(self) -> None:
        """Take the theme's colours."""
        self._grid = None
        self.forget()

    def show_overlay(self, name: str | None) -> None:
        """Switch to an overlay, or to none."""
        self.overlay = name
        self.forget()
        self.scene.update()

    def show_lanes(self, shown: bool) -> None:
        """Show the butterfly's lanes or not."""
        self.lanes = shown
        self.scene.update()

    # -- painting

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """Everything behind the nodes."""
        colors = theme()
        painter.fillRect(rect, colors.canvas)
        zoom = painter.worldTransform().m11()
        if zoom >= 0.45:
            painter.fillRect(rect, QBrush(self._grid_texture()))
        if self.lanes:
            self._paint_lanes(painter, rect, zoom)
        for region, path in self.regions():
            if path.controlPointRect().intersects(rect):
                fill = QColor(region.color)
                fill.setAlpha(58)
                painter.setPen(QPen(region.color, 1.6))
                painter.setBrush(fill)
                painter.drawPath(path)

    def _grid_texture(self) -> QPixmap:
        if self._grid is None:
            self._grid = QPixmap(40, 40)
            self._grid.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._grid)
            painter.fillRect(QRectF(0, 0, 2, 2), theme().grid)
            painter.end()
        return self._grid

    def _paint_lanes(self, painter: QPainter, rect: QRectF, zoom: float) -> None:
        colors = theme()
        names = {"left": tr("LEFT WING"), "body": tr("BODY"), "right": tr("RIGHT WING")}
        for wing, band in self.bands():
            if not band.intersects(rect):
                continue
            fill = QColor(colors.wing(wing))
            fill.setAlpha(26 if colors.is_dark else 18)
            if band.top() + _ROUND < rect.top() and rect.bottom() < band.bottom() - _ROUND:
                painter.fillRect(band.intersected(rect), fill)  # no corner is seen, and this takes a fifth of the time
            else:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(fill)
                painter.drawRoundedRect(band, _ROUND, _ROUND)
            if zoom >= 0.25:
                painter.setFont(look.TITLE)
                painter.setPen(colors.wing(wing))
                painter.drawText(QPointF(band.left() + 16, band.top() + 24), names[wing])

    # -- what is painted

    def bands(self) -> list[tuple[str, QRectF]]:
        """The three parts of the butterfly as bands of one height."""
        if self._bands is None:
            self._bands = []
            analysis = self.scene.analysis
            corners: dict[str, list[tuple[float, float, float]]] = {}  # of each wing: left, top, bottom
            for id_, wing in (analysis.wings if analysis else {}).items():
                item = self.scene.nodes.get(id_)
                if item is not None and item.isVisible():
                    at = item.pos()
                    corners.setdefault(wing, []).append((at.x(), at.y(), at.y() + item.height))
            frames = {wing: _around(places) for wing, places in corners.items()}
            if len(frames) > 1:
                whole = QRectF()
                for frame in frames.values():
                    whole = whole.united(frame)
                order = sorted(frames.items(), key=lambda entry: entry[1].left())
                gaps = [right[1].left() - left[1].right() for left, right in pairwise(order)]
                room = [_LANE, *(min(max(gap / 2 - 4, 6), _LANE) for gap in gaps), _LANE]
                for number, (wing, frame) in enumerate(order):
                    frame.setTop(whole.top() - _LANE - 8)
                    frame.setBottom(whole.bottom() + _LANE)
                    self._bands.append((wing, frame.adjusted(-room[number], 0, room[number + 1], 0)))
        return self._bands

    def regions(self) -> list[tuple[Region, QPainterPath]]:
        """The overlay's regions with their outlines."""
        if self._regions is None:
            self._regions = [(region, self._outline(region)) for region in self._describe()]
        return self._regions

    def _describe(self) -> list[Region]:
        analysis, colors = self.scene.analysis, theme()
        if self.overlay is None or analysis is None:
            return []
        if self.overlay == "categories":
            names = {
                "recordset": tr("Recordset"),
                "row-synchronized": tr("Row-synchronized"),
                "semi-blocking": tr("Semi-blocking"),
                "blocking": tr("Blocking"),
            }
            members: dict[str, list[str]] = {}
            for id_, item in self.scene.nodes.items():
                members.setdefault(look.form_of(item.kind), []).append(id_)
            return [
                Region(names[form], colors.region(number), tuple(members[form]))
                for number, form in enumerate(names)
                if form in members
            ]
        parts, name = {
            "trees": (analysis.trees, tr("Execution tree {0}")),
            "subflows": (analysis.subflows, tr("Subflow {0}")),
            "strata": (analysis.strata, tr("Stratum {0}")),
        }[self.overlay]
        return [Region(name.format(id_), colors.region(number), nodes) for number, (id_, nodes) in enumerate(parts)]

    def _outline(self, region: Region) -> QPainterPath:
        """A frame around each node, and along the edges between them, as one area."""
        path = QPainterPath()
        path.setFillRule(Qt.FillRule.WindingFill)
        members = set(region.nodes)
        stroker = QPainterPathStroker()
        stroker.setWidth(16)
        stroker.setCapStyle(Qt.PenCapStyle.FlatCap)
        for id_ in region.nodes:
            item = self.scene.nodes.get(id_)
            if item is None or not item.isVisible():
                continue
            path.addRoundedRect(item.frame().adjusted(-_PAD, -_PAD, _PAD, _PAD), 16, 16)
            if self.overlay != "categories":
                for edge in self.scene.around[id_]:
                    if edge.edge.source == id_ and edge.edge.target in members:
                        path.addPath(stroker.createStroke(edge.path()))
        return path.simplified() if len(members) <= 60 else path
