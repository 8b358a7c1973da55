"""The pictures of a comparison as SVG: curves over time, and the X-ray of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from engine.recording.palette import colour

WIDTH, LEFT, RIGHT = 960, 150, 20
_FONT = 'font-family="system-ui, sans-serif"'


def curves(title: str, series: Mapping[str, tuple[Sequence[float], Sequence[float]]], end: float) -> str:
    """Bytes over time, a line for each run."""
    height, top, bottom = 340, 56, 44
    most = max((max(values, default=0.0) for _, values in series.values()), default=0.0) or 1.0
    ticks = _ticks(most)
    high = max(most, ticks[-1])

    def at(time: float, value: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * time / max(end, 1e-9)
        return x, height - bottom - (height - top - bottom) * value / high

    parts = [_head(title, height)]
    for tick in ticks:
        _, y = at(0, tick)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#e4e8ee"/>')
        parts.append(_text(LEFT - 10, y + 5, _size(tick), "end"))
    x = float(LEFT)
    for number, (name, (times, values)) in enumerate(series.items()):
        ink = colour(number)
        points = " ".join("{:.1f},{:.1f}".format(*at(t, v)) for t, v in zip(times, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="2"/>')
        parts.append(f'<rect x="{x:.0f}" y="34" width="14" height="14" rx="3" fill="{ink}"/>')
        parts.append(_text(x + 20, 46, name, "start"))
        x += 44 + 10 * len(name)
    return "\n".join([*parts, *_time_axis(end, height - bottom), "</svg>"])


def xray(title: str, lanes: Sequence[tuple[str, int]], grid: NDArray[np.float64], end: float) -> str:
    """A lane for each unit, by name and number of colour; a bar while it is active (scheduling, figure A1)."""
    lane, top, bottom = 20, 36, 44
    height = top + lane * max(len(lanes), 1) + bottom
    width = WIDTH - LEFT - RIGHT
    parts = [_head(title, height)]
    for number, (name, place) in enumerate(lanes):
        y = top + number * lane
        if number % 2 == 0:
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{width}" height="{lane}" fill="#f3f4f7"/>')
        shown = name if len(name) <= 20 else name[:19] + "…"
        parts.append(_text(LEFT - 10, y + 15, shown, "end"))
        ink = colour(place)
        for first, last, strength in _runs(grid[number]):
            x, wide = LEFT + width * first / grid.shape[1], width * (last - first) / grid.shape[1]
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{wide:.1f}" height="{lane - 6}" fill="{ink}" '
                f'fill-opacity="{strength:.2f}"/>'
            )
    return "\n".join([*parts, *_time_axis(end, height - bottom), "</svg>"])


def _runs(line: NDArray[np.float64]) -> list[tuple[int, int, float]]:
    """The stretches of equal strength in a lane."""
    steps = np.where(line > 0, np.ceil(line * 5) / 5, 0.0)
    edges = np.flatnonzero(np.diff(steps)) + 1
    starts = np.concatenate(([0], edges))
    stops = np.concatenate((edges, [len(steps)]))
    return [
        (int(first), int(last), 0.2 + 0.8 * float(steps[first]))
        for first, last in zip(starts, stops, strict=True)
        if steps[first] > 0
    ]


def _head(title: str, height: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
        f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>'
        f'<text x="{LEFT}" y="22" font-size="17" font-weight="600" {_FONT} fill="#1b2027">'
        f"{escape(title)}</text>"
    )


def _time_axis(end: float, y: float) -> list[str]:
    parts = [f'<line x1="{LEFT}" y1="{y:.0f}" x2="{WIDTH - RIGHT}" y2="{y:.0f}" stroke="#aab3c2"/>']
    for tick in _ticks(end or 1.0, 8):
        if tick <= end * 1.001:
            x = LEFT + (WIDTH - LEFT - RIGHT) * tick / max(end, 1e-9)
            parts.append(_text(x, y + 20, f"{tick:g}", "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, y + 38, "seconds since the start", "middle"))
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="14" {_FONT} fill="#5c6675">'
        f"{escape(text)}</text>"
    )


def _ticks(most: float, count: int = 5) -> list[float]:
    """Round steps up to a value."""
    power = 10.0 ** math.floor(math.log10(most / count))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * count * 1.001 >= most)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def _size(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:g} {unit}"
    return f"{value:g} B"
