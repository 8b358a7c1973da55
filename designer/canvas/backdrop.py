"""What lies behind the nodes: the grid, the butterfly's lanes, and the regions of an overlay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPainterPathStroker, QPen, QPixmap

from designer.canvas.sheet import QtSheet
from designer.drawing.backdrop import GRID, GRID_DOT, LANES, bands, draw_lane
from designer.drawing.node import form_of
from designer.text import tr
from designer.theme.theme import theme

if TYPE_CHECKING:
    from designer.canvas.scene import CanvasScene

OVERLAYS = ("trees", "subflows", "strata", "categories")
_PAD = 15.0
NAMED = 0.25  # from this zoom on a lane has its name


@dataclass(frozen=True)
class Region:
    """Nodes that belong together in an overlay, with the name and colour of the legend."""

    label: str
    color: QColor
    nodes: tuple[str, ...]


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
            sheet = QtSheet(painter, rect)
            for wing, band in self.bands():
                if band.intersects(rect):
                    frame = (band.x(), band.y(), band.width(), band.height())
                    draw_lane(sheet, wing, frame, tr(LANES[wing]) if zoom >= NAMED else "", colors.name)
        for region, path in self.regions():
            if path.controlPointRect().intersects(rect):
                fill = QColor(region.color)
                fill.setAlpha(58)
                painter.setPen(QPen(region.color, 1.6))
                painter.setBrush(fill)
                painter.drawPath(path)

    def _grid_texture(self) -> QPixmap:
        if self._grid is None:
            self._grid = QPixmap(GRID, GRID)
            self._grid.fill(Qt.GlobalColor.transparent)
            painter = QPainter(self._grid)
            painter.fillRect(QRectF(0, 0, GRID_DOT, GRID_DOT), theme().grid)
            painter.end()
        return self._grid

    # -- what is painted

    def bands(self) -> list[tuple[str, QRectF]]:
        """The three parts of the butterfly as bands of one height."""
        if self._bands is None:
            analysis = self.scene.analysis
            corners: dict[str, list[tuple[float, float, float]]] = {}  # of each wing: left, top, bottom
            for id_, wing in (analysis.wings if analysis else {}).items():
                item = self.scene.nodes.get(id_)
                if item is not None and item.isVisible():
                    at = item.pos()
                    corners.setdefault(wing, []).append((at.x(), at.y(), at.y() + item.height))
            self._bands = [(wing, QRectF(*band)) for wing, band in bands(corners)]
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
                members.setdefault(form_of(item.kind), []).append(id_)
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
