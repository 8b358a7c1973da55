"""Charts as SVG, written by hand: lines or bars of named series, with axes, ticks and a legend."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 52, 52, 64
LABELS = 16  # at most so many stand below an axis
MARK = 11  # between the names of two marks, which stand upright
LETTER = 6.6  # about as wide as a letter is
DOTS = 120  # a line of more points is drawn without them
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
    errors: Mapping[str, Sequence[float]] = field(default_factory=dict)  # of lines: how far each point may be off
    levels: Mapping[str, float] = field(default_factory=dict)  # limits, as dashed lines across
    marks: Sequence[tuple[float, str]] = field(default_factory=list)  # moments worth a vertical line, over numbers
    right: Mapping[str, Sequence[float]] = field(default_factory=dict)  # by an axis of their own
    y_right: str = ""


def stacked(charts: Sequence[Chart]) -> str:
    """Several charts below each other as one SVG document."""
    parts = (
        f'<g transform="translate(0 {number * HEIGHT})">\n{_body(chart)}\n</g>' for number, chart in enumerate(charts)
    )
    return _document("\n".join(parts), max(len(charts), 1) * HEIGHT)


def draw(chart: Chart) -> str:
    """The chart as an SVG document."""
    return _document(_body(chart), HEIGHT)


def _document(body: str, height: int) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    )
    return f"{head}\n{body}\n</svg>\n"


def _body(chart: Chart) -> str:
    high = [
        value + error
        for name, errors in chart.errors.items()
        for value, error in zip(chart.series[name], errors, strict=True)
    ]
    scale = _Scale(chart, [*_values(chart), *high, *chart.levels.values()])
    title = f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{escape(chart.title)}</text>'
    parts = [
        title,
        *_axes(chart, scale),
        *(_mark(scale, at) for at, _ in chart.marks),
        *(_bars if chart.bars else _lines)(chart, scale),
        *_right(chart),
        *_levels(chart, scale),
        *_mark_names(chart, scale),
        *_legend(chart),
    ]
    return "\n".join(parts)


def _values(chart: Chart) -> list[float]:
    return [value for some in chart.series.values() for value in some if math.isfinite(value)]


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
            if max(chart.levels.values(), default=0.0) >= self.high:
                self.high += step  # a limit is never the upper edge
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
    labelled = list(enumerate(chart.xs))[::every]
    if not scale.labels and every > 1:  # round numbers instead of whatever the points have
        step = _step(scale.last - scale.first)
        rounded = (step * number for number in range(math.ceil(scale.first / step), math.floor(scale.last / step) + 1))
        labelled = list(enumerate(rounded))
    for index, value in labelled:
        text = value if isinstance(value, str) else _number(value)
        yield f'<text x="{scale.x(index, value):.1f}" y="{bottom + 18}" text-anchor="middle">{escape(text)}</text>'
    yield f'<line x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}" stroke="#4a5568"/>'
    middle = (TOP + bottom) / 2
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{bottom + 38}" text-anchor="middle">{escape(chart.x)}</text>'
    yield (
        f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">{escape(chart.y)}</text>'
    )


def _lines(chart: Chart, scale: _Scale) -> Iterable[str]:
    for colour, (name, values) in zip(_colours(chart), chart.series.items(), strict=False):
        yield from _error_bars(chart, scale, colour, values, chart.errors.get(name, ()))
        points = [
            (scale.x(index, x), scale.y(value))
            for index, (x, value) in enumerate(zip(chart.xs, values, strict=False))
            if math.isfinite(value)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        if len(points) <= DOTS:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points)


def _right(chart: Chart) -> Iterable[str]:
    """By the axis on the right: stairs over numbers (nodes, say), dots on a line over labels."""
    if not chart.right:
        return
    top = max((value for some in chart.right.values() for value in some if math.isfinite(value)), default=1.0)
    scale = _Scale(Chart(chart.name, "", "", "", chart.right, chart.xs, chart.bars), [top])
    edge = WIDTH - RIGHT
    for tick in scale.ticks:
        if tick == int(tick):
            yield f'<text x="{edge + 4}" y="{scale.y(tick) + 4:.1f}" fill="#4a5568">{_number(tick)}</text>'
    colours = _colours(chart)[len(chart.series) :]
    for colour, values in zip(colours, chart.right.values(), strict=True):
        points = [
            (scale.x(index, x), scale.y(value))
            for index, (x, value) in enumerate(zip(chart.xs, values, strict=False))
            if math.isfinite(value)
        ]
        if scale.labels:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (points if scale.labels else _stairs(points)))
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="5 2"/>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield (
        f'<text x="{WIDTH - 6}" y="{middle}" text-anchor="middle" fill="#4a5568" '
        f'transform="rotate(-90 {WIDTH - 6} {middle})">{escape(chart.y_right)}</text>'
    )


def _stairs(points: Sequence[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    """Through points in stairs, each as wide on its left as on its right: the same whichever way one came."""
    yield points[0]
    for (left, before), (right, after) in itertools.pairwise(points):
        middle = (left + right) / 2
        yield from ((middle, before), (middle, after))
    yield points[-1]


def _levels(chart: Chart, scale: _Scale) -> Iterable[str]:
    for name, value in chart.levels.items():
        y = scale.y(value)
        yield (
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#c53030" '
            'stroke-width="1.5" stroke-dasharray="6 4"/>'
        )
        at = y - 5 if y > TOP + 16 else y + 14  # not over the legend
        yield _ground(LEFT + 4, at - 11, LETTER * len(name) + 4, 14)
        yield f'<text x="{LEFT + 6}" y="{at:.1f}" fill="#c53030">{escape(name)}</text>'


def _mark(scale: _Scale, at: float) -> str:
    x = scale.x(0, at)
    return f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#cbd5e0"/>'


def _mark_names(chart: Chart, scale: _Scale) -> Iterable[str]:
    """Beside their lines, at the end where the lines of the chart are not; those that are close stand side by side."""
    shares = [(HEIGHT - BOTTOM - scale.y(value)) / (HEIGHT - TOP - BOTTOM) for value in _values(chart)]
    low = sum(shares) < 0.4 * len(shares)
    beside = 0.0
    for at, name in sorted(chart.marks):
        length = 5.7 * len(name)
        x = beside = max(scale.x(0, at) - 3, beside + MARK)
        y = TOP + length + 4 if low else HEIGHT - BOTTOM - 4
        yield _ground(x - 9, y - length - 1, MARK, length + 2)
        yield (
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="10" fill="#4a5568" '
            f'transform="rotate(-90 {x:.1f} {y:.1f})">{escape(name)}</text>'
        )


def _ground(x: float, y: float, width: float, height: float) -> str:
    """Something white to write on: what is below still shows through."""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="white" fill-opacity="0.8"/>'


def _error_bars(
    chart: Chart, scale: _Scale, colour: str, values: Sequence[float], errors: Sequence[float]
) -> Iterable[str]:
    """A whisker through each point, from one error below it to one above."""
    for index, (x, value, error) in enumerate(zip(chart.xs, values, errors, strict=False)):
        if math.isfinite(value) and error > 0 and value - error > 0:
            at, high, low = scale.x(index, x), scale.y(value + error), scale.y(value - error)
            yield (
                f'<path d="M{at:.1f} {high:.1f}V{low:.1f}M{at - 3:.1f} {high:.1f}h6M{at - 3:.1f} {low:.1f}h6" '
                f'fill="none" stroke="{colour}"/>'
            )


def _bars(chart: Chart, scale: _Scale) -> Iterable[str]:
    slot = (WIDTH - LEFT - RIGHT) / scale.count
    width = slot * 0.8 / max(len(chart.series), 1)
    for number, (colour, values) in enumerate(zip(_colours(chart), chart.series.values(), strict=False)):
        for index, value in enumerate(values):
            if math.isfinite(value):
                x = LEFT + index * slot + slot * 0.1 + number * width
                y = scale.y(value)
                height = HEIGHT - BOTTOM - y
                yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _legend(chart: Chart) -> Iterable[str]:
    x = float(LEFT)
    for colour, name in zip(_colours(chart), [*chart.series, *chart.right], strict=True):
        yield f'<rect x="{x:.0f}" y="34" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{x + 14:.0f}" y="43">{escape(name)}</text>'
        x += 30 + 7 * len(name)


def _colours(chart: Chart) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(chart.series) + len(chart.right))]


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


ROW, NAME_LETTERS = 22, 46


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
