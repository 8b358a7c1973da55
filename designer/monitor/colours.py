"""The colour of a node, the same in every panel and in the report; `engine.recording.palette` has them."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtGui import QColor

from designer.theme.theme import theme
from engine.recording import palette


def colour(number: int) -> QColor:
    """The colour of the node with this number; a second round is lighter or darker than the first."""
    colors = theme()
    return QColor(palette.colour(number, colors.base.name(), dark=colors.is_dark))


def mixed(base: QColor, part: float) -> QColor:
    """A colour with so much of the ground in it."""
    return QColor(palette.mixed(base.name(), theme().base.name(), part))


def clear(base: QColor, alpha: int) -> QColor:
    """The same colour, seen through."""
    result = QColor(base)
    result.setAlpha(alpha)
    return result


class Colours:
    """Colours of the units, tables and queues of a run, by the numbers of their nodes. A queue has its producer's."""

    def __init__(self, places: Mapping[str, int], queues: Mapping[str, str]) -> None:
        self._places = places
        self._queues = queues
        self._again: dict[str, int] = {}
        seen: dict[str, int] = {}
        for queue, producer in queues.items():
            self._again[queue] = seen.get(producer, 0)
            seen[producer] = self._again[queue] + 1

    def unit(self, name: str) -> QColor:
        """The colour of a unit, a table or a node."""
        return colour(self._places.get(name, len(self._places)))

    def queue(self, queue: str) -> QColor:
        """A queue's colour; where a producer has several, the later ones are paler."""
        base = self.unit(self._queues.get(queue, ""))
        again = self._again.get(queue, 0)
        return mixed(base, min(0.3 * again, 0.6))


def level_colour(level: str) -> QColor:
    """Green, yellow, red of a queue's filling, in the theme's own colours."""
    colors = theme()
    return {"green": colors.ok, "yellow": colors.warning, "red": colors.error}[level]
