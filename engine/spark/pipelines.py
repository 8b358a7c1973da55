"""Pipelines side by side inside a unit: how many, measured on a sample (shared caching, section 4.2).

On Spark a pipeline is a job over one split of the unit's input. Several at a time hide what each spends outside of
its tasks: planning, starting, listing and moving files. Where one job keeps all cores busy they cost more than they
hide, so a sample is run both ways, and what the turns really take corrects what the sample said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

from pyspark.sql import DataFrame

from engine.schedule.degree import PAYS, TreeMeasures, corrected, measured, optimal_degree, with_pipeline

MOST_PER_CORE = 2  # pipelines at a time: more of them only take memory from each other
SAMPLE_SPLITS = 2  # m' of algorithm 3
WORTH_MEASURING = 8  # times the sample's rows; for fewer, measuring takes longer than it can save


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
        if not found or not found.turns or not rows:
            return 1  # a small sample makes a row look dear; what one job takes for many is seen first
        return min(self.most, optimal_degree(found.for_input(rows)))

    def took(self, unit: str, rows: int, splits: int, seconds: float) -> None:
        """What a turn really took corrects what is kept of the unit."""
        if self.degree is None and unit in self.measures:
            self.measures[unit] = corrected(self.measures[unit], rows, splits, seconds)

    def measure(
        self,
        unit: str,
        nodes: Sequence[str],
        feeds: Mapping[str, str | None],
        frames: Callable[[Sequence[int]], Mapping[str, DataFrame]],
        rows: Sequence[int],
        together: Callable[[Sequence[Callable[[], float]]], object],
        splitting_seconds: float = 0.0,
    ) -> TreeMeasures:
        """Algorithm 3: the unit over no rows, over a sample, over the splits of the sample side by side.

        `feeds` names the activity before each one, `frames(splits)` gives each one's result over these splits of the
        sample, `rows` are those of each split, `together` runs several jobs at a time. Only pipelines need the splits,
        which took `splitting_seconds` to make.

        Where pipelines pay, each activity is run over the sample as well, to find the staggering one. Spark has no
        activity of its own to time, so each is run with all before it, and those subtracted.
        """
        last, whole, count = nodes[-1], range(len(rows)), sum(rows)
        over_sample = frames(whole)
        _seconds(over_sample[last])  # the first time, Spark compiles
        empty = _seconds(frames(())[last])
        alone = _seconds(over_sample[last])
        parts = [frames((split,))[last] for split in whole]
        begun = time.monotonic()
        together([partial(_seconds, part) for part in parts])
        piped = time.monotonic() - begun + splitting_seconds / len(rows)
        misc = min(empty, alone) / len(nodes)
        found = TreeMeasures(len(nodes), count, max(0.0, alone - empty), misc, 0.0, "", count)
        if piped < PAYS * alone:
            found = self._staggering(found, nodes, feeds, over_sample, empty, count)
        self.measures[unit] = with_pipeline(found, len(rows), piped)
        return self.measures[unit]

    def _staggering(
        self,
        found: TreeMeasures,
        nodes: Sequence[str],
        feeds: Mapping[str, str | None],
        frames: Mapping[str, DataFrame],
        empty: float,
        input_rows: int,
    ) -> TreeMeasures:
        until = {node: _seconds(frames[node]) for node in nodes}
        misc = found.misc_seconds
        own = [misc + max(0.0, until[node] - (until[before] if (before := feeds[node]) else empty)) for node in nodes]
        slowest = nodes[max(range(len(nodes)), key=own.__getitem__)]
        fed_by = feeds[slowest]
        rows = frames[fed_by].count() if fed_by else input_rows
        each = measured(nodes, [rows] * len(nodes), empty, own, input_rows)
        return replace(found, rows=each.rows, staggering=each.staggering)

    def as_dict(self) -> dict[str, dict[str, float]]:
        """The measures as plain data, for the store."""
        return {unit: asdict(found) for unit, found in self.measures.items()}


def _seconds(frame: DataFrame) -> float:
    begun = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - begun
