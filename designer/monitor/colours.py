"""The colour of a node, the same in every panel. Told apart by colour-blind readers too (after Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QColor

from designer.theme.theme import theme

# On a light and on a dark ground: blue, orange, green, vermilion, purple, sky, olive, slate, wine, indigo.
_PAIRS = (
    ("#0072b2", "#4aa3e8"), ("#d98c00", "#f2b134"), ("#009e73", "#2fc79a"), ("#d55e00", "#ff8a4c"),
    ("#b5508f", "#e39bc8"), ("#4ba3d8", "#9bd3f5"), ("#8a7a00", "#d9cb52"), ("#5d6b7e", "#a9b4c4"),
    ("#882255", "#d2699a"), ("#5b4db5", "#a093f5"),
)  # fmt: skip


def colour(number: int) -> QColor:
    """The colour of the node with this number; a second round is lighter or darker than the first."""
    light, dark = _PAIRS[number % len(_PAIRS)]
    turn = number // len(_PAIRS) % 3
    return mixed(QColor(dark if theme().is_dark else light), (0.0, 0.4, 0.62)[turn])


def mixed(base: QColor, part: float) -> QColor:
    """A colour with so much of the ground in it."""
    ground = theme().base
    one, two = (base.red(), base.green(), base.blue()), (ground.red(), ground.green(), ground.blue())
    return QColor(*(round(a + (b - a) * part) for a, b in zip(one, two, strict=True)))


def clear(base: QColor, alpha: int) -> QColor:
    """The same colour, seen through."""
    result = QColor(base)
    result.setAlpha(alpha)
    return result


class Colours:
    """Colours of the units and the queues of a run. A queue has that of its producer."""

    def __init__(self, units: Sequence[str], queues: dict[str, str]) -> None:
        self._units = {unit: number for number, unit in enumerate(units)}
        self._queues = queues
        self._again: dict[str, int] = {}
        seen: dict[str, int] = {}
        for queue, producer in queues.items():
            self._again[queue] = seen.get(producer, 0)
            seen[producer] = self._again[queue] + 1

    def unit(self, unit: str) -> QColor:
        """A unit's colour."""
        return colour(self._units.get(unit, len(self._units)))

    def queue(self, queue: str) -> QColor:
        """A queue's colour; where a producer has several, the later ones are paler."""
        base = self.unit(self._queues.get(queue, ""))
        again = self._again.get(queue, 0)
        return mixed(base, min(0.3 * again, 0.6))


def level_colour(level: str) -> QColor:
    """Green, yellow, red of a queue's filling, in the theme's own colours."""
    colors = theme()
    return {"green": colors.ok, "yellow": colors.warning, "red": colors.error}[level]
