"""`papilio design`: the designer."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from engine.errors import EnvironmentProblem


@click.command(name="design")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
def command(files: tuple[Path, ...]) -> None:
    """Open the designer, with workflow files or without.

    A file that cannot be opened is told in a window; nothing on disk is touched.
    """
    open_designer(*map(str, files))


def open_designer(*arguments: str) -> NoReturn:
    """This process becomes the designer's: the engine knows no Qt, so that it runs everywhere."""
    if importlib.util.find_spec("PySide6") is None or importlib.util.find_spec("designer") is None:
        raise EnvironmentProblem("the designer is not installed here: pip install 'papilio[designer]'")
    named = os.environ.get("QT_QPA_PLATFORM")
    if sys.platform.startswith("linux") and not (
        named or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        raise EnvironmentProblem("there is no display to open a window on: neither DISPLAY nor WAYLAND_DISPLAY is set")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "designer", *arguments])
