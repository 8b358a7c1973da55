"""Charts as SVG, written by hand: lines or bars of named series, with axes, ticks and a legend."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 24, 52, 64
LABELS = 16  # at most so many stand below an axis
COLOURS = ("#2b6cb0", "#dd6b20", "#2f855a", "#b83280", "#6b46c1", "#c53030", "#4a5568", "#b7791f")


@dataclass(frozen=True)
class Chart:
    """Series of points; `bars` draws them side by side over the labels `xs`, else they are lines over numbers."""

    name: str
    title: str
    x: str
    y: str
    series: Mapping[str, Sequence[float]]
    xs: Sequence[float | str] = field(default_factory=list)
    bars: bool = False
    log_y: bool = False


def draw(chart: Chart) -> str:
    """The chart as an SVG document."""
    values = [value for some in chart.series.values() for value in some if math.isfinite(value)]
    scale = _Scale(chart, values)
    body = [*_axes(chart, scale), *(_bars if chart.bars else _lines)(chart, scale), *_legend(chart)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{escape(chart.title)}</text>'
    )
    return "\n".join([head, *body, "</svg>\n"])


class _Scale:
    """Where a value stands in the picture."""

    def __init__(self, chart: Chart, values: list[float]) -> None:
        self.log = chart.log_y and bool(values) and min(values) > 0
        top = max(values, default=1.0)
        self.low: float
        self.high: float
        if self.log:
            self.low, self.high = math.floor(math.log10(min(values))), math.ceil(math.log10(top))
            self.high = max(self.high, self.low + 1)
            self.ticks = [10.0**power for power in range(self.low, self.high + 1)]
        else:
            step = _step(top or 1.0)
            self.low, self.high = 0, max(math.ceil((top or 1.0) / step), 1) * step
            self.ticks = [step * number for number in range(round(self.high / step) + 1)]
        numbers = [value for value in chart.xs if isinstance(value, (int, float))]
        self.labels = chart.bars or len(numbers) < len(chart.xs)
        self.count = max(len(chart.xs), 1)
        self.first, self.last = (0.0, 1.0) if self.labels or not numbers else (min(numbers), max(numbers))

    def y(self, value: float) -> float:
        at = math.log10(value) if self.log else value
        return HEIGHT - BOTTOM - (at - self.low) / (self.high - self.low) * (HEIGHT - TOP - BOTTOM)

    def x(self, index: int, value: float | str) -> float:
        width = WIDTH - LEFT - RIGHT
        if self.labels or isinstance(value, str) or self.last == self.first:
            return LEFT + (index + 0.5) / self.count * width
        return LEFT + (value - self.first) / (self.last - self.first) * width


def _step(top: float) -> float:
    """A round distance between ticks: some five of them."""
    power = 10.0 ** math.floor(math.log10(top / 5))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * 5.001 >= top)


def _axes(chart: Chart, scale: _Scale) -> Iterable[str]:
    bottom = HEIGHT - BOTTOM
    for tick in scale.ticks:
        y = scale.y(tick)
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e2e8f0"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
    every = max(math.ceil(len(chart.xs) / LABELS), 1)
    for index, value in list(enumerate(chart.xs))[::every]:
        text = value if isinstance(value, str) else _number(value)
        yield f'<text x="{scale.x(index, value):.1f}" y="{bottom + 18}" text-anchor="middle">{escape(text)}</text>'
    yield f'<line x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}" stroke="#4a5568"/>'
    middle = (TOP + bottom) / 2
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{bottom + 38}" text-anchor="middle">{escape(chart.x)}</text>'
    yield (
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">{escape(chart.y)}</text>'
    )


def _lines(chart: Chart, scale: _Scale) -> Iterable[str]:
    for colour, values in zip(_colours(chart), chart.series.values(), strict=True):
        points = [
            (scale.x(index, x), scale.y(value))
            for index, (x, value) in enumerate(zip(chart.xs, values, strict=False))
            if math.isfinite(value)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)


def _bars(chart: Chart, scale: _Scale) -> Iterable[str]:
    slot = (WIDTH - LEFT - RIGHT) / scale.count
    width = slot * 0.8 / max(len(chart.series), 1)
    for number, (colour, values) in enumerate(zip(_colours(chart), chart.series.values(), strict=True)):
        for index, value in enumerate(values):
            if math.isfinite(value):
                x = LEFT + index * slot + slot * 0.1 + number * width
                y = scale.y(value)
                height = HEIGHT - BOTTOM - y
                yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _legend(chart: Chart) -> Iterable[str]:
    x = float(LEFT)
    for colour, name in zip(_colours(chart), chart.series, strict=True):
        yield f'<rect x="{x:.0f}" y="34" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 14:.0f}" y="43">{escape(name)}</text>'
        x += 30 + 7 * len(name)


def _colours(chart: Chart) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(chart.series))]


def _number(value: float) -> str:
    if value and (abs(value) >= 1e6 or abs(value) < 1e-3):
        return f"{value:.3g}"
    return f"{value:,.10g}"


# ---------------------------------------------------------------- measured values side by side


@dataclass(frozen=True)
class Measured:
    """A measured value with the least and the most of its rounds."""

    name: str
    value: float
    least: float
    most: float


ROW, LETTER, NAME_LETTERS = 22, 6.6, 46


def draw_measured(title: str, unit: str, values: Sequence[Measured]) -> str:
    """A bar for each value, the longest across the whole width, and a line from its least to its most."""
    names = max((min(len(one.name), NAME_LETTERS) for one in values), default=0) * LETTER + 16
    height, width = TOP + ROW * len(values) + 12, WIDTH - names - 96
    top = max((one.most for one in values), default=0.0) or 1.0
    body = []
    for index, one in enumerate(values):
        y, name = TOP + ROW * index, one.name if len(one.name) <= NAME_LETTERS else one.name[: NAME_LETTERS - 1] + "…"
        middle, end = y + ROW / 2 - 2, names + one.most / top * width
        body += [
            f'<text x="{names - 8:.0f}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{names:.0f}" y="{y}" width="{max(one.value / top * width, 1):.1f}" height="{ROW - 6}" '
            f'fill="{COLOURS[0]}"/>',
            f'<line x1="{names + one.least / top * width:.1f}" y1="{middle:.1f}" x2="{end:.1f}" y2="{middle:.1f}" '
            'stroke="#1a202c" stroke-width="2"/>',
            f'<text x="{end + 6:.1f}" y="{middle + 4:.1f}">{_number(float(f"{one.value:.3g}"))} {escape(unit)}</text>',
        ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="{WIDTH / 2}" y="26" text-anchor="middle" font-size="15">{escape(title)}</text>'
    )
    return "\n".join([head, *body, "</svg>\n"])
