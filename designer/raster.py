"""`python -m designer.raster SVG...` writes each picture once more, as PNG beside it, without a window.

`python -m designer.raster - PICTURE` takes one from who writes it to the standard input.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from designer.png import MAX_PIXELS, write_png

SCALE = 2.0  # of the picture's own size: sharp on a projector


def rasterise(svg: bytes, name: str) -> QImage:
    """An SVG picture as an image, on white. Its name is told where it is none."""
    renderer = QSvgRenderer(QByteArray(svg))
    size = renderer.defaultSize()
    if not renderer.isValid() or size.isEmpty():
        raise OSError(f"{name}: is no SVG picture")
    scale = min(SCALE, MAX_PIXELS / max(size.width(), size.height()))
    image = QImage(size * scale, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    renderer.render(painter)
    painter.end()
    return image


def main(arguments: Sequence[str]) -> int:
    """Draw; return the exit code."""
    application = QGuiApplication(["papilio"])
    try:
        if arguments[0] == "-":
            svg = sys.stdin.buffer.read()
            if svg:  # else who was to write it says why there is none
                write_png(rasterise(svg, "the standard input"), Path(arguments[1]))
        else:
            for picture in map(Path, arguments):
                write_png(rasterise(picture.read_bytes(), str(picture)), picture.with_suffix(".png"))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        application.quit()
    return 0


if __name__ == "__main__":
    gc.disable()  # this process draws and ends
    ended = main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(ended)  # without Qt's taking leave: what it would put in order goes with the process
