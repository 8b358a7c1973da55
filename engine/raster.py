"""SVG pictures of ours as PNG, painted by resvg: without Qt, without a window, in this process."""

from __future__ import annotations

import re
from collections.abc import Sequence

from resvg import render, usvg

from engine.errors import EnvironmentProblem

SCALE = 2.0  # of the picture's own size: sharp on a projector
MAX_PIXELS = 16_000  # on a side
WHITE = (255, 255, 255, 255)
# resvg knows no `sans-serif`: a family is asked for by its name. Pictures are laid out by the widths of the first.
SANS = ("DejaVu Sans", "Noto Sans", "Liberation Sans", "Ubuntu Sans", "Ubuntu", "Cantarell", "Arial", "Helvetica")
MONO = ("DejaVu Sans Mono", "Noto Sans Mono", "Liberation Mono", "Ubuntu Sans Mono", "Ubuntu Mono", "Courier New")
_FAMILY = re.compile(r'\bfont-family="([^"]*)"')


def rasterise(svg: str) -> bytes:
    """A picture as a PNG file, on white."""
    options = usvg.Options.default()
    options.load_system_fonts()
    tree = usvg.Tree.from_str(with_fonts(svg, options.list_fonts()), options)
    width, height = tree.int_size()
    scale = min(SCALE, MAX_PIXELS / max(width, height))
    size = (round(width * scale), round(height * scale))
    return render(tree, (scale, 0.0, 0.0, 0.0, scale, 0.0), bg_size=size, bg_color=WHITE)


def with_fonts(svg: str, installed: Sequence[str]) -> str:
    """A picture that asks for fonts that are installed; where none is, it would have no words and is refused."""
    if not installed:
        raise EnvironmentProblem(
            "no font is installed, and a PNG picture without one has no words: install one (fonts-dejavu-core), "
            "or have an SVG picture drawn, which needs none"
        )
    sans = _first(SANS, installed) or next((name for name in sorted(installed) if "Sans" in name), min(installed))
    mono = _first(MONO, installed) or sans
    return _FAMILY.sub(lambda found: f'font-family="{mono if "mono" in found[1] else sans}"', svg)


def _first(wanted: Sequence[str], installed: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in installed), None)
