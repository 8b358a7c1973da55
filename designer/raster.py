"""`python -m designer.raster SVG...` writes each picture once more, as PNG beside it, without a window."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

SCALE = 2.0  # of the picture's own size: sharp on a projector
MAX_PIXELS = 16_000  # on a side


def write_png(picture: Path) -> Path:
    """An SVG picture as PNG, on white."""
    renderer = QSvgRenderer(str(picture))
    size = renderer.defaultSize()
    if not renderer.isValid() or size.isEmpty():
        raise OSError(f"{picture}: is no SVG picture")
    scale = min(SCALE, MAX_PIXELS / max(size.width(), size.height()))
    image = QImage(size * scale, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    renderer.render(painter)
    painter.end()
    target = picture.with_suffix(".png")
    if not image.save(str(target)):
        raise OSError(f"{target}: cannot be written")
    return target


def main(arguments: Sequence[str]) -> int:
    """Draw; return the exit code."""
    application = QGuiApplication(["papilio"])
    try:
        for picture in arguments:
            write_png(Path(picture))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        application.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
