"""Pipelines side by side inside a unit: how many, measured on a sample (shared caching, section 4.2).

On Spark a pipeline is a job over one split of the unit's input. Several at a time hide what each spends outside of
its tasks: planning, starting, listing and moving files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from pyspark.sql import DataFrame

from engine.schedule.degree import TreeMeasures, measured, optimal_degree

MOST_PER_CORE = 2  # pipelines at a time: more of them only take memory from each other


class Pipelines:
    """The degrees of a run's units."""

    def __init__(self, degree: int | None, known: Mapping[str, Mapping[str, float]], cores: int) -> None:
        """`degree` None has them measured; `known` are the measures of an earlier run."""
        self.degree = degree
        self.most = MOST_PER_CORE * cores
        # One without the rows of its sample says nothing of another input: it is measured again.
        self.measures = {
            unit: TreeMeasures(**found)  # type: ignore[arg-type]
            for unit, found in known.items()
            if found.get("input_rows")
        }

    def must_measure(self, unit: str) -> bool:
        """Whether the unit's degree is asked for and not known."""
        return self.degree is None and unit not in self.measures

    def splits(self, unit: str, rows: int) -> int:
        """How many splits for so many rows of input (theorem 1)."""
        if self.degree is not None:
            return self.degree
        found = self.measures.get(unit)
        return optimal_degree(found.for_input(rows)) if found and found.input_rows and rows else 1

    def measure(
        self,
        unit: str,
        nodes: Sequence[str],
        feeds: Mapping[str, str | None],
        frames: Callable[[bool], Mapping[str, DataFrame]],
        input_rows: int,
    ) -> TreeMeasures:
        """Algorithm 3: the unit over no rows, then each of its activities over a sample, one after the other.

        `feeds` names the activity before each one, `frames(sample)` gives each one's result over the sample or over
        no rows; the sample has `input_rows`. Spark has no activity of its own to time, so each is run with all before
        it, and those subtracted.
        """
        over_sample, over_nothing = frames(True), frames(False)
        _seconds(over_nothing[nodes[-1]])  # the first time, Spark compiles
        empty = _seconds(over_nothing[nodes[-1]])
        until = {}
        for node in nodes:
            _seconds(over_sample[node])
            until[node] = _seconds(over_sample[node])
        misc = empty / len(nodes)
        own = [misc + max(0.0, until[node] - (until[before] if (before := feeds[node]) else empty)) for node in nodes]
        slowest = nodes[max(range(len(nodes)), key=own.__getitem__)]
        fed_by = feeds[slowest]
        rows = over_sample[fed_by].count() if fed_by else input_rows
        self.measures[unit] = measured(nodes, [rows] * len(nodes), empty, own, input_rows)
        return self.measures[unit]

    def as_dict(self) -> dict[str, dict[str, float]]:
        """The measures as plain data, for the store."""
        return {unit: asdict(found) for unit, found in self.measures.items()}


def _seconds(frame: DataFrame) -> float:
    begun = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - begun
