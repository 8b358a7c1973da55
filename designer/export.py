"""`python -m designer.export FILE PICTURE` draws a workflow into an SVG or a PNG file, without Qt."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.drawing import INSTALL, write_picture
from engine.errors import EnvironmentProblem, PapilioError

if TYPE_CHECKING:
    from designer.document.analysis import Analysis
    from designer.document.document import Document


def draw(file: Path) -> str:
    """A workflow as the canvas shows it, in the light theme."""
    from designer.document.analysis import analyse
    from designer.document.document import Document
    from designer.document.layout import positions
    from designer.drawing.workflow import draw_workflow
    from engine.operators import catalogue

    document = Document.open(file, catalogue())
    analysis = analyse(document)
    if len(positions(document.workflow)) < len(document.workflow.nodes):
        _place(document, analysis)
    return draw_workflow(document, analysis)


def _place(document: Document, analysis: Analysis) -> None:
    """Find a place for the nodes that have none."""
    from designer.canvas.arrange import arrange, place_missing

    try:
        place_missing(document, arrange(document, analysis.wings))
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            f"{document.path}: not all nodes have a place, and {error.name}, which finds one, "
            f"is not installed: {INSTALL}"
        ) from None


def main(arguments: Sequence[str]) -> int:
    """Draw; return the exit code. What is wrong with the file is told before anything is written."""
    gc.disable()  # this process draws one picture and ends: what could go meanwhile is not worth being looked for
    atexit.register(gc.freeze)
    file, picture = map(Path, arguments)
    try:
        write_picture(draw(file), picture)
    except PapilioError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
