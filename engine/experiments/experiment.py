"""Experiments: a paper's table or figure made again, and each of its claims judged.

An experiment is a module `experiment_NAME` beside this one with an `experiment(options) -> Report`. It prints nothing:
what it found is tables, charts and claims, which the command line prints and writes.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from engine.drawing import can_draw, write_picture
from engine.errors import reaching
from engine.experiments import named
from engine.experiments.finite import as_json, finite
from engine.experiments.svg import Chart, draw

Cell = str | int | float | None


@dataclass(frozen=True)
class Options:
    """What a person may change about an experiment."""

    quick: bool = False  # a smaller one, in a minute
    say: Callable[[str], None] = lambda text: None
    scale: float | None = None  # how much data; none given is what the experiment finds enough
    folder: Path = Path("build/experiments")  # where data and targets are kept, if there are any
    spark: Any = None  # a session that is open already; none given opens one, if it is needed


@dataclass(frozen=True)
class Table:
    """Figures with their headings; `name` is that of its file."""

    name: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_REPRODUCIBLE = "not reproducible on this machine"


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and what was found."""

    text: str
    verdict: Verdict
    figures: str  # what was found, in figures; of what cannot be found out here, why not


def judged(text: str, holds: bool, figures: str, of: Sequence[float] = ()) -> Claim:
    """A claim that can be tested here. Where one of the numbers that it is judged by is none, it was not."""
    if not all(map(math.isfinite, of)):
        return Claim(text, Verdict.NOT_REPRODUCED, "not measured")
    return Claim(text, Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED, figures)


@dataclass
class Report:
    """What an experiment found."""

    title: str
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)

    @property
    def stands(self) -> bool:
        """Whether no claim is found not to hold."""
        return all(claim.verdict is not Verdict.NOT_REPRODUCED for claim in self.claims)

    def as_dict(self) -> dict[str, Any]:
        """The report as the command line's JSON has it."""
        return {
            "title": self.title,
            "tables": {
                table.name: [dict(zip(table.headings, finite(row), strict=True)) for row in table.rows]
                for table in self.tables
            },
            "claims": [
                {"claim": claim.text, "verdict": claim.verdict.value, "figures": claim.figures} for claim in self.claims
            ],
        }

    def write(self, folder: Path) -> list[Path]:
        """A CSV file for each table, a picture for each chart, and the claims.

        Pictures are SVG, and PNG beside it where resvg, which paints them, is installed.
        """
        with reaching(folder):
            return self._write(folder)

    def _write(self, folder: Path) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for table in self.tables:
            file = folder / f"{table.name}.csv"
            with file.open("w", encoding="utf-8", newline="") as out:
                writer = csv.writer(out, lineterminator="\n")
                writer.writerow(table.headings)
                writer.writerows(map(finite, table.rows))
            written.append(file)
        for chart in self.charts:
            svg = draw(chart)
            for form in ("svg", "png") if can_draw() else ("svg",):
                file = folder / f"{chart.name}.{form}"
                write_picture(svg, file)
                written.append(file)
        file = folder / "report.json"
        file.write_text(as_json(self.as_dict(), 2), encoding="utf-8")
        return [*written, file]


def names() -> list[str]:
    """The experiments there are."""
    return named.names("experiment")


def has_scale(name: str) -> bool:
    """Whether an experiment's data can be asked to be larger or smaller: its module says `SCALED`."""
    return bool(getattr(sys.modules[find(name).__module__], "SCALED", False))


def find(name: str) -> Callable[[Options], Report]:
    """An experiment by its name."""
    found: Callable[[Options], Report] = named.find("experiment", name, "experiment")
    return found
