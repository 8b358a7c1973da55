"""`python -m designer.raster SVG...` writes each picture once more, as PNG beside it, without a window."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QByteArray
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from designer.png import MAX_PIXELS, write_png

SCALE = 2.0  # of the picture's own size: sharp on a projector
WHITE = 0xFFFFFFFF  # as a pixel: Qt's names of colours come with all that it has names for, which load slowly


def rasterise(svg: bytes, name: str) -> QImage:
    """An SVG picture as an image, on white. Its name is told where it is none."""
    renderer = QSvgRenderer(QByteArray(svg))
    size = renderer.defaultSize()
    if not renderer.isValid() or size.isEmpty():
        raise OSError(f"{name}: is no SVG picture")
    scale = min(SCALE, MAX_PIXELS / max(size.width(), size.height()))
    image = QImage(size * scale, QImage.Format.Format_RGB32)
    image.fill(WHITE)
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    renderer.render(painter)
    painter.end()
    return image


def main(arguments: Sequence[str]) -> int:
    """Draw; return the exit code."""
    application = QGuiApplication(["papilio"])
    try:
        for picture in map(Path, arguments):
            write_png(rasterise(picture.read_bytes(), str(picture)), picture.with_suffix(".png"))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        application.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
