"""An SVG file as a sheet. What it is written with every program understands that shows SVG: no clips, no styles."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from designer.drawing.backdrop import GRID, GRID_DOT
from designer.drawing.sheet import FONTS, Frame, Ink, Trace
from designer.theme.files import drawing, read_theme

_ICON = re.compile(r"<svg\b([^>]*)>(.*)</svg>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w:-]+)="([^"]*)"')
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # no XML file may have them
FAMILY = "system-ui, sans-serif"


def number(value: float) -> str:
    """A coordinate, to the hundredth of a pixel."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


@dataclass(frozen=True)
class Letters:
    """How some letters look."""

    pixels: float
    ink: Ink
    bold: bool = False
    slanted: bool = False
    mono: bool = False


class SvgPath:
    """The line around a shape, as SVG's `d` has it."""

    def __init__(self) -> None:
        self._steps: list[str] = []

    def moveTo(self, x: float, y: float, /) -> None:
        self._add("M", x, y)

    def lineTo(self, x: float, y: float, /) -> None:
        self._add("L", x, y)

    def cubicTo(self, x1: float, y1: float, x2: float, y2: float, x: float, y: float, /) -> None:
        self._add("C", x1, y1, x2, y2, x, y)

    def closeSubpath(self) -> None:
        self._add("Z")

    def _add(self, step: str, *values: float) -> None:
        self._steps.append(step + " ".join(map(number, values)))

    def __str__(self) -> str:
        return "".join(self._steps)


class SvgSheet:
    """A picture in the colours of a theme. `frame` is what it shows."""

    def __init__(self, frame: Frame, title: str, theme: str = "light") -> None:
        self.theme = theme
        self._colours = read_theme(theme)
        self._traced: Callable[..., str] = lru_cache(maxsize=256)(_traced)
        left, top, width, height = map(number, frame)
        edge = f'x="{left}" y="{top}" width="{width}" height="{height}"'
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="{left} {top} {width} {height}" font-family="{FAMILY}" '
            'stroke-linecap="round" stroke-linejoin="round">',
            f"<title>{_words(title)}</title>",
            f"<rect {edge}{self._inks('canvas', None, 0)}/>",
            f'<path d="{_rows(frame)}"{self._inks(None, "grid", GRID_DOT)} stroke-linecap="butt" '
            f'stroke-dasharray="{GRID_DOT} {GRID - GRID_DOT}"/>',
        ]

    def text(self) -> str:
        """The file."""
        return "\n".join([*self._parts, "</svg>\n"])

    @contextmanager
    def at(self, x: float, y: float, title: str = "") -> Iterator[None]:
        """Draw with another origin; `title` is told where the pointer rests on it."""
        self._parts.append(f'<g transform="translate({number(x)} {number(y)})">')
        if title:
            self._parts.append(f"<title>{_words(title)}</title>")
        yield
        self._parts.append("</g>")

    def shape(
        self, trace: Trace, *what: Any, fill: Ink | None = None, line: Ink | None = None, width: float = 1.0
    ) -> None:
        self._parts.append(f'<path d="{self._traced(trace, *what)}"{self._inks(fill, line, width)}/>')

    def box(
        self,
        frame: Frame,
        corner: float,
        fill: Ink | None = None,
        line: Ink | None = None,
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        left, top, wide, high = map(number, frame)
        dashes = (
            f' stroke-dasharray="{number(4 * width)} {number(2 * width)}" stroke-linecap="square"' if dashed else ""
        )
        self._parts.append(
            f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" rx="{number(corner)}"'
            f"{self._inks(fill, line, width)}{dashes}/>"
        )

    def dot(self, x: float, y: float, radius: float, fill: Ink, line: Ink | None = None, width: float = 1.0) -> None:
        place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self._parts.append(f"<circle {place}{self._inks(fill, line, width)}/>")

    def stroke(self, points: Sequence[tuple[float, float]], line: Ink, width: float) -> None:
        way = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self._parts.append(f'<polyline points="{way}"{self._inks(None, line, width)}/>')

    def words(self, x: float, y: float, text: str, font: str, ink: Ink, before: bool = False) -> None:
        pixels, weight = FONTS[font]
        self.line(x, y, [(text, Letters(pixels, ink, bold=weight > 500))], before)

    def line(self, x: float, y: float, runs: Sequence[tuple[str, Letters]], before: bool = False) -> None:
        """A line of letters that do not all look alike."""
        end = ' text-anchor="end"' if before else ""
        place = f'<text x="{number(x)}" y="{number(y)}"{end}'
        text, letters = runs[0]
        if len(runs) == 1 and text == " ".join(text.split()):
            self._parts.append(f"{place}{self._looks(letters)}>{_words(text)}</text>")
            return
        spans = (f"<tspan{self._looks(letters)}>{_words(text)}</tspan>" for text, letters in runs)
        self._parts.append(f'{place} xml:space="preserve">{"".join(spans)}</text>')

    def _looks(self, letters: Letters) -> str:
        family = ' font-family="monospace"' if letters.mono else ""
        weight = ' font-weight="600"' if letters.bold else ""
        slant = ' font-style="italic"' if letters.slanted else ""
        return f'{family} font-size="{number(letters.pixels)}"{weight}{slant}{self._inks(letters.ink, None, 0)}'

    def icon(self, operator: str, family: str, x: float, y: float, size: float) -> None:
        found = _ICON.search(drawing("operators", operator, family))
        if found is None:
            return
        own = dict(_ATTRIBUTE.findall(found[1]))
        left, top, width, _ = map(float, own.pop("viewBox").split())
        kept = " ".join(f'{name}="{value}"' for name, value in own.items() if name != "xmlns")
        scale = size / width
        place = f"translate({number(x - left * scale)} {number(y - top * scale)}) scale({scale:.4g})"
        self._parts.append(
            f'<g transform="{place}" {kept}>{found[2]}</g>'.replace("currentColor", self._colour("glyph"))
        )

    def _inks(self, fill: Ink | None, line: Ink | None, width: float) -> str:
        """What fills a mark and the line around it."""
        inks = self._ink("fill", fill)
        return inks if line is None else f'{inks}{self._ink("stroke", line)} stroke-width="{number(width)}"'

    def _ink(self, which: str, ink: Ink | None) -> str:
        if ink is None:
            return f' {which}="none"'
        name, opaque = ink if isinstance(ink, tuple) else (ink, 255)
        clear = f' {which}-opacity="{opaque / 255:.3g}"' if opaque < 255 else ""
        return f' {which}="{self._colour(name)}"{clear}'

    def _colour(self, name: str) -> str:
        return name if name.startswith("#") else str(self._colours[name])


def _rows(frame: Frame) -> str:
    """The grid's dots as lines of dashes; a pattern of tiles takes a fourth of the time of a PNG picture."""
    left, top, width, height = frame
    first, last = GRID * math.floor(left / GRID), number(left + width)
    rows = range(GRID * math.floor(top / GRID), math.ceil(top + height), GRID)
    return "".join(f"M{first} {number(row + GRID_DOT / 2)}H{last}" for row in rows)


def _words(text: str) -> str:
    return escape(_UNSEEN.sub("", text), quote=False)


def _traced(trace: Trace, *what: Any) -> str:
    path = SvgPath()
    trace(path, *what)
    return str(path)
