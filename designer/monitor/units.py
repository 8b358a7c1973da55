"""Numbers with their units, short enough for a headline and an axis."""

from __future__ import annotations

_BYTES = ("B", "kB", "MB", "GB", "TB")


def bytes_text(value: float) -> str:
    """1.2 MB."""
    size, unit = value, 0
    while abs(size) >= 1000 and unit < len(_BYTES) - 1:
        size, unit = size / 1000, unit + 1
    text = f"{size:,.0f}" if unit == 0 or abs(size) >= 100 else f"{size:,.1f}".removesuffix(".0")
    return f"{text} {_BYTES[unit]}"


def count_text(value: float) -> str:
    """1,234 or 12.3 k or 4.5 M."""
    if abs(value) < 10_000:
        return f"{value:,.0f}"
    if abs(value) < 1_000_000:
        return f"{value / 1000:,.3g} k" if abs(value) < 999_500 else "1 M"
    return f"{value / 1e6:,.3g} M" if abs(value) < 1e9 else f"{value / 1e9:,.3g} G"


def short_text(value: float) -> str:
    """As few letters as three digits need: 405, 4.05 k, 8 k."""
    return f"{value / 1000:.3g} k" if 1000 <= abs(value) < 10_000 else count_text(value)


def measure_text(measure: str, value: float) -> str:
    """An amount of packs, rows or bytes."""
    return bytes_text(value) if measure == "bytes" else f"{count_text(value)} {measure}"


def seconds_text(value: float) -> str:
    """3.2 s, 1:05, 1:02:03."""
    if value < 0:
        return "−" + seconds_text(-value)
    if value < 60:
        return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
    minutes, seconds = divmod(value, 60)
    if minutes < 60:
        return f"{int(minutes)}:{seconds:04.1f}" if value < 600 else f"{int(minutes)}:{int(seconds):02d}"
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{int(seconds):02d}"
