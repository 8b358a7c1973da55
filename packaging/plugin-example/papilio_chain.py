"""A plugin for Papilio: one file, one scheduling policy. `resources/help/plugins.md` explains how it is found.

Chain scheduling (Babcock, Babu, Datar and Motwani: Chain: operator scheduling for memory minimization in data stream
systems, SIGMOD 2003). A row on its way down a line takes time and shrinks: that is the line's progress chart. Its
lower envelope joins the units of a line into chains, each as steep as the rows shrink in it, and the unit on the
steepest chain goes on. So a unit that drops nothing itself goes on as well where the one behind it drops much, which
minimum memory, looking at one unit at a time, does not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from engine.schedule.graph import ScheduleGraph, Work
from engine.schedule.policy import Candidate, Policy

UNMEASURED = 1e12  # the score of a unit that has rows and never ran: it is measured first
BRINGS_IN = -1e12  # and of one that only brings rows into memory: it goes on when nobody else can

Point = tuple[float, float]  # seconds for a row so far, and what is left of it


def lower_envelope(points: Sequence[Point]) -> list[float]:
    """How steeply rows shrink on each step between the points of a progress chart, step by step."""
    slopes: list[float] = []
    at = 0
    while at < len(points) - 1:
        seconds, size = points[at]
        steepest, end = max(
            ((size - later[1]) / max(later[0] - seconds, 1e-12), place)
            for place, later in enumerate(points[at + 1 :], start=at + 1)
        )
        slopes += [steepest] * (end - at)
        at = end
    return slopes


class Chain(Policy):
    """The unit on the steepest chain of its line's progress chart, for one time slot."""

    name: ClassVar[str] = "chain"
    title: ClassVar[str] = "Chain"
    timed: ClassVar[bool] = True

    def begin(self, graph: ScheduleGraph) -> None:
        """Find the lines: rows pass straight on, and a line ends where they leave memory, fork or meet others."""
        works = {unit.id: unit.work for unit in graph.units}
        line_of: dict[str, list[str]] = {}
        for unit in graph.units:
            if unit.work is Work.SOURCE:
                continue  # what it reads is no row in memory yet
            inputs = graph.inputs[unit.id]
            before = inputs[0].producer if len(inputs) == 1 else None
            if before in line_of and works[before] is Work.STREAM and len(graph.outputs[before]) == 1:
                line = line_of[before]
            else:
                line = []
            line.append(unit.id)
            line_of[unit.id] = line
        self._lines = line_of
        self._ends = {id_ for id_, work in works.items() if work is Work.BLOCK}
        self._measured: dict[str, tuple[int, int, float]] = {}

    def pick(self, candidates: Sequence[Candidate], last: int) -> Candidate:
        self._look(candidates)
        slopes = self._slopes()

        def rank(candidate: Candidate) -> tuple[float, int]:
            # On one chain the rows that have come farthest go first; of those that read, the first one reads.
            place = candidate.number if candidate.queue_rows else -candidate.number
            return self._steepness(candidate, slopes), place

        return max(candidates, key=rank)

    def score(self, candidate: Candidate, last: int) -> float:
        """How much of a row's memory each second of work frees, on the candidate's chain."""
        self._look([candidate])
        return self._steepness(candidate, self._slopes())

    def _look(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            if candidate.rows_in and candidate.seconds > 0:
                self._measured[candidate.id] = (candidate.rows_in, candidate.rows_out, candidate.seconds)

    def _steepness(self, candidate: Candidate, slopes: Mapping[str, float]) -> float:
        if not candidate.queue_rows:
            return BRINGS_IN
        return slopes.get(candidate.id, UNMEASURED)

    def _slopes(self) -> dict[str, float]:
        """The slope of each measured unit's chain; a line is known as far as all of it was measured."""
        found: dict[str, float] = {}
        for line in {id(line): line for line in self._lines.values()}.values():
            points: list[Point] = [(0.0, 1.0)]
            known: list[str] = []
            for unit in line:
                if unit not in self._measured:
                    break
                rows_in, rows_out, seconds = self._measured[unit]
                spent, size = points[-1]
                # What a blocking unit or a writer takes is out of memory, whatever comes of it later.
                left = 0.0 if unit in self._ends else size * rows_out / rows_in
                points.append((spent + size * seconds / rows_in, left))
                known.append(unit)
            found.update(zip(known, lower_envelope(points), strict=True))
        return found
