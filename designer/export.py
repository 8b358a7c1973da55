"""`python -m designer.export FILE PICTURE` draws a workflow into an SVG or PNG file, without a window."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import PapilioError

if TYPE_CHECKING:
    from designer.document.analysis import Analysis
    from designer.document.document import Document


def write_picture(document: Document, analysis: Analysis, picture: Path) -> None:
    """The workflow as the canvas shows it, in the light theme."""
    from designer.canvas.arrange import arrange, place_missing
    from designer.canvas.picture import save_picture
    from designer.canvas.scene import CanvasScene
    from designer.document.layout import positions
    from designer.theme.theme import themes

    themes().start("light")
    if len(positions(document.workflow)) < len(document.workflow.nodes):
        place_missing(document, arrange(document, analysis.wings))
    scene = CanvasScene(document)
    scene.show_analysis(analysis)
    save_picture(scene, picture)
    scene.close()


def main(arguments: Sequence[str]) -> int:
    """Draw; return the exit code. What is wrong with the file is told before Qt can say anything."""
    file, picture = map(Path, arguments)
    gc.disable()  # this process draws one picture and ends: what could go meanwhile is not worth being looked for
    atexit.register(gc.freeze)
    from designer.document.analysis import analyse
    from designer.document.document import Document
    from engine.operators import catalogue

    try:
        document = Document.open(file, catalogue())
        analysis = analyse(document)
        # Last of all: once Qt is there, it reads the source of every module that is loaded.
        from designer.app import make_drawing_application

        application = make_drawing_application(["papilio"])
        try:
            write_picture(document, analysis, picture)
        finally:
            application.quit()
    except (PapilioError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code if isinstance(error, PapilioError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
