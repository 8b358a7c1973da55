"""Pictures that the designer draws for the engine, in a process of its own and without a window: no Qt in here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.errors import BadInput, EnvironmentProblem

INSTALL = "pip install 'papilio[designer]'"


def can_draw() -> bool:
    """Whether the designer is installed, with the Qt that PNG pictures need."""
    return importlib.util.find_spec("PySide6") is not None and importlib.util.find_spec("designer") is not None


def draw_workflow(file: Path, picture: Path) -> None:
    """The canvas of a workflow, as SVG or PNG by the picture's ending. The designer reads the file, nobody else."""
    if picture.suffix.lower() == ".svg":
        _designer("designer.export", file, picture)
    else:
        _need_designer()
        _designer("designer.export_png", file, picture)


def draw_png(pictures: Sequence[Path]) -> list[Path]:
    """Each SVG picture once more as PNG, beside it."""
    if pictures:
        _need_designer()
        _designer("designer.raster", *pictures)
    return [picture.with_suffix(".png") for picture in pictures]


def check_picture(option: str, picture: Path) -> None:
    """Refuse a place that no picture can be written to, before anything is reckoned."""
    if picture.suffix.lower() not in (".svg", ".png"):
        raise BadInput(f"{option} {picture}: the name of a picture ends in .svg or .png")
    if not picture.parent.is_dir():
        raise BadInput(f"{option} {picture}: there is no folder {picture.parent}")
    if picture.suffix.lower() == ".png":
        _need_designer()


def write_picture(svg: str, picture: Path) -> None:
    """Write an SVG document as the ending of the path says, `.svg` or `.png`."""
    if picture.suffix.lower() == ".svg":
        from engine.model.file import write_text  # not needed by those who have the designer draw

        write_text(picture, svg)
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix=".papilio-", dir=picture.parent) as folder:
        drawn = Path(folder) / "picture.svg"
        drawn.write_text(svg, encoding="utf-8")
        (made,) = draw_png([drawn])
        os.replace(made, picture)


def _need_designer() -> None:
    if not can_draw():
        raise EnvironmentProblem(f"the designer, which draws the picture, is not installed: {INSTALL}")


def _designer(module: str, *arguments: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    said = done.stderr.strip()
    if done.returncode == BadInput.exit_code:
        raise BadInput(said)
    if done.returncode:
        reason = said.splitlines()[-1] if said else f"{arguments[-1]}: the designer ended with {done.returncode}"
        raise EnvironmentProblem(reason)
