"""Side-by-side benchmarks: contenders in one run, round after round, and the ratios of their medians.

A benchmark is a module `bench_NAME` beside this one with a `benchmark(options) -> Report`.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.experiments import named
from engine.experiments.finite import finite

QUIET_LOAD = 0.5  # processes that wait for a processor, on average over a minute
CLOCKS = {
    True: "the clock counts: nothing else ran when this began",
    False: "the processor's time counts: something else ran when this began",
}


@dataclass(frozen=True)
class Options:
    """What a person may change about a benchmark."""

    rounds: int = 3
    scale: float | None = None
    folder: Path = Path("build/bench")
    say: Callable[[str], None] = lambda text: None
    full: bool = False  # also what takes long
    spark: Any = None  # a session that is open already; none given opens one
    seconds: float | None = None  # how long each contender runs, where that is a choice


@dataclass
class Contender:
    """One contender's figures, a value for each round."""

    seconds: list[float] = field(default_factory=list)
    peak_mb: list[float] = field(default_factory=list)
    figures: dict[str, list[float]] = field(default_factory=dict)  # whatever else was measured in each round
    failed: str | None = None

    def add(self, **figures: float) -> None:
        """More figures of a round."""
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(value)

    @property
    def median(self) -> float:
        """The median of its seconds."""
        return statistics.median(self.seconds)

    def figure(self, name: str) -> float:
        """The median of another figure."""
        return statistics.median(self.figures[name])

    def as_dict(self) -> dict[str, Any]:
        """The figures with their median."""
        data: dict[str, Any] = {"seconds": [round(value, 4) for value in self.seconds]}
        if self.seconds:
            data["median"] = round(self.median, 4)
            data["spread"] = round((max(self.seconds) - min(self.seconds)) / self.median, 3)
        if self.peak_mb:
            data["peak_mb"] = round(max(self.peak_mb), 1)
        data |= {name: round(self.figure(name), 4) for name in self.figures}
        if self.failed:
            data["failed"] = self.failed
        return data


@dataclass
class Report:
    """What a benchmark found."""

    contenders: dict[str, Contender] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    identical: bool | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    claims: dict[str, bool] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)  # the figures behind a claim

    def as_dict(self) -> dict[str, Any]:
        """The report as the command line's JSON has it."""
        data: dict[str, Any] = {
            "contenders": {name: contender.as_dict() for name, contender in self.contenders.items()},
            "ratios": {name: round(value, 3) for name, value in self.ratios.items()},
            "identical": self.identical,
            "facts": self.facts,
            "claims": self.claims,
            "evidence": self.evidence,
        }
        kept: dict[str, Any] = finite(data)
        return kept

    @property
    def stands(self) -> bool:
        """Whether every claim holds, no targets differ, and no contender failed; one that was skipped did not."""
        failed = any(one.failed for one in self.contenders.values())
        return all(self.claims.values()) and self.identical is not False and not failed

    def claim(self, text: str, holds: bool, figures: str) -> None:
        """State something, whether it holds, and the figures that say so."""
        self.claims[text] = holds
        self.evidence[text] = figures

    def finished(self, *names: str) -> bool:
        """Whether all of these contenders have figures, of every round: one that failed on its way proves nothing."""
        found = [self.contenders.get(name) for name in names]
        return all(one is not None and one.seconds and not one.failed for one in found)

    def ratio(self, slower: str, faster: str) -> float:
        """How many times as long the first contender took as the second, by their medians; kept as well."""
        value = self.contenders[slower].median / self.contenders[faster].median
        self.ratios[f"{slower} / {faster}"] = value
        return value


def is_quiet() -> bool:
    """Whether the machine does nothing else, so that what passed by the clock is what a person waits."""
    return os.getloadavg()[0] < QUIET_LOAD


def names() -> list[str]:
    """The benchmarks there are."""
    return named.names("bench")


def find(name: str) -> Callable[[Options], Report]:
    """A benchmark by its name."""
    found: Callable[[Options], Report] = named.find("bench", name, "benchmark")
    return found


def results_options(name: str) -> tuple[str, ...]:
    """The options of the command with which a benchmark's results are taken: its module's own `RESULTS`, if any."""
    options: tuple[str, ...] = getattr(sys.modules[find(name).__module__], "RESULTS", ())
    return options


def usual_rounds(name: str) -> int:
    """How many rounds a benchmark takes unless told: its module's own `ROUNDS`, if it is long."""
    rounds: int = getattr(sys.modules[find(name).__module__], "ROUNDS", Options.rounds)
    return rounds
