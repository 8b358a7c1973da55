"""Pictures as SVG and PNG, without Qt. Those of workflows the designer draws, in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from engine.errors import BadInput, EnvironmentProblem

INSTALL = "pip install 'papilio[designer]'"


def can_draw() -> bool:
    """Whether PNG pictures can be made: what paints them comes with the designer."""
    return importlib.util.find_spec("resvg") is not None


def draw_workflow(file: Path, picture: Path) -> None:
    """The canvas of a workflow, as SVG or PNG by the picture's ending. The designer reads the file, nobody else."""
    if picture.suffix.lower() == ".png":
        _need_painter()
    done = subprocess.run(
        [sys.executable, "-m", "designer.export", str(file), str(picture)],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    said = done.stderr.strip()
    if done.returncode == BadInput.exit_code:
        raise BadInput(said)
    if done.returncode:
        reason = said.splitlines()[-1] if said else f"{picture}: the designer ended with {done.returncode}"
        raise EnvironmentProblem(reason)


def check_picture(option: str, picture: Path) -> None:
    """Refuse a place that no picture can be written to, before anything is reckoned."""
    if picture.suffix.lower() not in (".svg", ".png"):
        raise BadInput(f"{option} {picture}: the name of a picture ends in .svg or .png")
    if not picture.parent.is_dir():
        raise BadInput(f"{option} {picture}: there is no folder {picture.parent}")
    if picture.suffix.lower() == ".png":
        _need_painter()


def write_picture(svg: str, picture: Path) -> None:
    """Write an SVG document as the ending of the path says, `.svg` or `.png`."""
    data = svg.encode() if picture.suffix.lower() == ".svg" else _painted(svg)
    try:
        picture.write_bytes(data)
    except OSError:
        raise EnvironmentProblem(f"{picture}: cannot be written") from None


def _painted(svg: str) -> bytes:
    _need_painter()
    from engine.raster import rasterise

    return rasterise(svg)


def _need_painter() -> None:
    if not can_draw():
        raise EnvironmentProblem(f"resvg, which paints PNG pictures, is not installed: {INSTALL}")
