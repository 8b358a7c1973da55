"""The area below a curve, painted by hand where the curve has a point in every few pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage, QPaintEngine, QPainter


class Area(pg.PlotCurveItem):
    """A curve that may be filled. Where its edges need not be smooth, each column of pixels is filled on its own.

    That is the same picture as that of the polygon, whose many teeth take ten times as long.
    """

    def paint(self, painter: QPainter, option: Any, widget: Any = None) -> None:
        x, y = self.getData()
        filled = self.opts["fillLevel"] is not None and self.opts["brush"] is not None and self.opts["pen"] is None
        raster = painter.paintEngine().type() == QPaintEngine.Type.Raster
        if filled and raster and not self.opts["antialias"] and x is not None and len(x):
            self._paint_columns(painter, x, y)
        else:
            super().paint(painter, option, widget)

    def _paint_columns(self, painter: QPainter, x: Any, y: Any) -> None:
        place = painter.deviceTransform()
        seen = place.mapRect(self.getViewBox().viewRect()).toAlignedRect().adjusted(-1, -1, 1, 1)  # clipped by the view
        columns = (np.arange(seen.left(), seen.right() + 1) + 0.5 - place.dx()) / place.m11()
        tops = np.interp(columns, x, y, np.nan, np.nan) * place.m22() + place.dy()
        foot = float(self.opts["fillLevel"]) * place.m22() + place.dy()
        rows = np.arange(seen.top(), min(seen.bottom(), round(foot) - 1) + 1) + 0.5
        color = self.opts["brush"].color().rgba64().premultiplied().toArgb32()
        pixels = np.where(rows[:, None] >= tops, np.uint32(color), np.uint32(0))
        if not pixels.size:
            return
        height, width = pixels.shape
        image = QImage(pixels.data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
        ratio = painter.device().devicePixelRatio()
        image.setDevicePixelRatio(ratio)
        painter.save()
        painter.resetTransform()
        painter.drawImage(QPointF(seen.left(), seen.top()) / ratio, image)
        painter.restore()
