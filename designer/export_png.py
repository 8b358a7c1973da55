"""`python -m designer.export_png FILE PICTURE` draws a workflow into a PNG file, without a window."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from designer.export import main


def write_png(svg: str, picture: Path) -> None:
    """Let Qt paint it. It comes last of all: once Qt is there, it reads the source of every module that is loaded."""
    from PySide6.QtGui import QGuiApplication

    from designer import png, raster

    application = QGuiApplication(["papilio"])
    png.write_png(raster.rasterise(svg.encode(), str(picture)), picture)
    application.quit()


if __name__ == "__main__":
    code = main(sys.argv[1:], write_png)
    sys.stderr.flush()
    os._exit(code)  # Qt would take as long to put everything in order as it takes to paint; all goes with the process
