"""The turns of one unit, with running sums: what it had done by any moment is found, not counted again."""

from __future__ import annotations

import numpy as np

from engine.recording.columns import Columns, Floats

SUMS = ("turns", "packs_in", "rows_in", "packs_out", "rows_out", "seconds", "active")


class Lane(Columns):
    """Turns in the order of time: when each began and ended, and the sums up to its end.

    `seconds` is what the unit worked, `active` what passed between the decision and the end of the turn.
    """

    def __init__(self) -> None:
        super().__init__("begin", "end", *SUMS)

    def add_turns(self, turns: Floats) -> None:
        """Turns as an array: begin, end, turns, packs in, rows in, packs out, rows out, seconds; one column each."""
        before = self.last("end")
        rows = self.room(turns.shape[1])
        np.maximum(turns[0], before, out=rows[0])
        np.maximum(turns[1], rows[0], out=rows[1])
        rows[2:8] = turns[2:]
        np.subtract(rows[1], rows[0], out=rows[8])
        if self.count:
            rows[2:, 0] += self._data[2:, self.count - 1]
        np.cumsum(rows[2:], axis=1, out=rows[2:])
        self.count += turns.shape[1]

    def ended(self, at: float) -> int:
        """How many turns had ended by a moment."""
        if at >= self.last("end"):  # as of most units at most moments
            return self.count
        return int(self["end"].searchsorted(at, side="right"))

    def sums(self, turns: int) -> list[float]:
        """All sums after so many turns, in the order of `SUMS`."""
        return self._data[2:, turns - 1].tolist() if turns else [0.0] * len(SUMS)

    def grown_at(self, name: str, at: float) -> float:
        """A sum at one moment, as if it grew evenly during a turn."""
        ended = self.ended(at)
        before = self.at(name, ended - 1)
        if ended >= self.count:
            return before
        begin, end = self.at("begin", ended), self.at("end", ended)
        if at <= begin or end <= begin:
            return before
        return before + (self.at(name, ended) - before) * (at - begin) / (end - begin)

    def grown(self, name: str, at: Floats) -> Floats:
        """A sum at each of these moments, as if it grew evenly during a turn."""
        end, begin, total = self["end"], self["begin"], self[name]
        count = min(len(end), len(begin), len(total))
        if not count:
            return np.zeros(len(at))
        place = np.searchsorted(end[:count], at, side="right")
        inside = np.minimum(place, count - 1)
        before = np.where(place > 0, total[np.maximum(place, 1) - 1], 0.0)
        length = end[inside] - begin[inside]
        part = np.clip((at - begin[inside]) / np.where(length > 0, length, 1.0), 0.0, 1.0)
        part = np.where((place < count) & (length > 0), part, 0.0)
        return before + part * (total[inside] - before) * (place < count)

    def within(self, start: float, stop: float) -> tuple[Floats, Floats]:
        """Begin and end of the turns that touch a span of time."""
        begin, end = self["begin"], self["end"]
        count = min(len(begin), len(end))
        first = int(np.searchsorted(end[:count], start, side="left"))
        last = int(np.searchsorted(begin[:count], stop, side="right"))
        return begin[first:last], end[first:last]
