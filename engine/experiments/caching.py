"""The shared-caching paper's evaluation (section 5) on Spark: SSB's queries as dataflows, run in its three ways.

*Separate caches*: every component is a unit of its own, and rows are copied between them (granularity `operator`).
*Shared caches*: every execution tree is a unit, in which rows pass on without a copy (granularity `tree`).
*Pipelines*: a tree's input is cut into splits, so many of them worked on at a time (`degree`).
The paper's machine has eight cores; what needs more of them than there are here is said to be not reproducible.
"""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EnvironmentProblem, reaching
from engine.experiments import bench
from engine.experiments.bench import Contender
from engine.experiments.contest import ENDING, SHIPPED, Contest, Entry, contest
from engine.experiments.experiment import Cell, Claim, Options, Report, Table, Verdict, judged
from engine.experiments.ssb import generate_ssb
from engine.experiments.svg import Chart
from engine.model.file import load, save

SCALE, QUICK_SCALE = 0.4, 0.02
ROUNDS, QUICK_ROUNDS = 3, 1
PAPER_CORES = 8
NOISE = 0.05  # two runs of the same differ by as much, however alike three rounds happen to be
FIRST_QUERIES = ("q11", "q21", "q31", "q41")

SEPARATE: Mapping[str, Any] = {"granularity": "operator", "policy": "rr"}
SHARED: Mapping[str, Any] = {"granularity": "tree", "policy": "rr"}


@dataclass(frozen=True, eq=False)
class Case:
    """One dataflow run in one way over data of one scale; `threads` are those of single components."""

    query: str
    scale: float
    way: Mapping[str, Any]
    threads: Mapping[str, int] | None = None

    @property
    def name(self) -> str:
        """A name that no other case has."""
        way = " ".join(f"{key}={value}" for key, value in sorted(self.way.items()))
        threads = "".join(f" {node}:{count}" for node, count in (self.threads or {}).items())
        return f"{self.query} at {self.scale:g}: {way}{threads}"


@dataclass(frozen=True)
class Found:
    """What a case came to, by the median of its rounds."""

    seconds: float
    utilisation: float  # the share of all cores
    beside: float = 0.0  # by what share of the median half of its rounds are beside it


def noise(found: Iterable[Found]) -> float:
    """By how much two of these have to differ before it counts."""
    return max([NOISE, *(2 * one.beside for one in found)])


def _beside(seconds: Sequence[float]) -> float:
    middle = statistics.median(seconds)
    return statistics.median(abs(value - middle) for value in seconds) / middle


class Runs:
    """Runs of the paper's dataflows on one Spark session."""

    def __init__(self, here: Contest, rounds: int) -> None:
        self.here = here
        self.rounds = rounds
        self.cores = int(here.report.facts["cores"])

    def measure(self, cases: Sequence[Case]) -> dict[Case, Found]:
        """All cases in turn, round after round; what they wrote must be the same. One that fails is left out."""
        missing = {scale: self._data_problem(scale) for scale in dict.fromkeys(case.scale for case in cases)}
        entries = []
        for case in cases:
            if reason := missing[case.scale]:
                self.here.report.contenders.setdefault(case.name, Contender()).failed = reason
            else:
                entries.append(Entry(case.name, self._run(case), answer=f"{case.query} {case.scale:g}"))
        self.here.hold(entries, self.rounds)
        found = {}
        for case in cases:
            contender = self.here.report.contenders[case.name]
            if contender.seconds:
                found[case] = Found(contender.median, contender.figure("utilisation"), _beside(contender.seconds))
        return found

    def _data_problem(self, scale: float) -> str | None:
        """Make the data of a scale. Where that cannot be, why: the figure goes on without the cases over it."""
        self.here.options.say(f"SSB scale {scale:g}")
        try:
            with reaching(self._data(scale)):
                generate_ssb(self._data(scale), scale)
        except EnvironmentProblem as error:
            self.here.options.say(f"no data at SSB scale {scale:g}: {error}")
            return str(error)
        return None

    def _data(self, scale: float) -> Path:
        return self.here.folder / f"ssb-{scale:g}"

    def _run(self, case: Case) -> Any:
        file = SHIPPED / f"ssb_{case.query}{ENDING}"
        if case.threads:
            file = self._with_threads(file, case)
        return self.here.workflow(file, {"data_folder": str(self._data(case.scale))}, **case.way)

    def _with_threads(self, file: Path, case: Case) -> Path:
        workflow = load(file).workflow
        nodes = {
            id_: node.model_copy(update={"threads": (case.threads or {}).get(id_)})
            for id_, node in workflow.nodes.items()
        }
        asked = "-".join(f"{node}-{count}" for node, count in (case.threads or {}).items())
        made = self.here.folder / f"{case.query}-{asked}{ENDING}"
        save(workflow.model_copy(update={"nodes": nodes}), made)
        return made

    def problems(self) -> list[Claim]:
        """What went wrong on the way, as claims that do not hold."""
        report = self.here.report
        failed = [f"{name}: {one.failed}" for name, one in report.contenders.items() if one.failed]
        failed += [str(note) for note in report.facts.get("differences", [])]
        text = "every way of running it gives the same answer"
        return [Claim(text, Verdict.NOT_REPRODUCED, "; ".join(failed))] if failed else []


@contextlib.contextmanager
def runs(options: Options) -> Iterator[Runs]:
    """Runs on the session that is open already, or on one of their own."""
    rounds = QUICK_ROUNDS if options.quick else ROUNDS
    with contest(bench.Options(rounds, options.scale, options.folder, options.say, spark=options.spark)) as here:
        yield Runs(here, rounds)


def largest_scale(options: Options) -> float:
    """The scale of the largest data."""
    return options.scale or (QUICK_SCALE if options.quick else SCALE)


def scales(options: Options) -> list[float]:
    """Three data sizes, each twice the one before, as the paper's 2, 4 and 8 GB."""
    top = largest_scale(options)
    return [float(f"{top / part:.3g}") for part in (4, 2, 1)]


def out_of_reach(text: str, reason: str) -> Claim:
    """A claim that this machine cannot tell."""
    return Claim(text, Verdict.NOT_REPRODUCIBLE, reason)


def more_cores(cores: int) -> str:
    """Why a figure of the paper's eight cores cannot be found here."""
    return f"this machine has {cores} cores, the paper's {PAPER_CORES}"


def judged_by_cores(text: str, holds: bool, figures: str, of: Sequence[float], cores: int) -> Claim:
    """A claim of the paper's eight cores: one that does not hold on fewer cannot be told there."""
    claim = judged(text, holds, figures, of)
    if cores >= PAPER_CORES or claim.verdict is Verdict.REPRODUCED or not all(map(math.isfinite, of)):
        return claim
    return out_of_reach(text, f"{figures}; {more_cores(cores)}")


def against_ordinary(
    options: Options, name: str, title: str, ordinary: Mapping[str, Any], framework: Mapping[str, Any], claim: str
) -> Report:
    """Four queries in the framework's way and in that of an ordinary tool, which copies rows between components."""
    scale = largest_scale(options)
    with runs(options) as here:
        both = {
            query: (Case(query, scale, ordinary), Case(query, scale, framework)) for query in FIRST_QUERIES
        }  # fmt: skip
        found: dict[Case, Found] = {}
        for pair in both.values():
            found |= here.measure(pair)
        problems = here.problems()
    titles = {query: f"Q{query[1]}.{query[2]}" for query in FIRST_QUERIES}
    seconds = {
        query: [found[case].seconds if case in found else float("nan") for case in pair] for query, pair in both.items()
    }
    names = ("separate caches", "shared caches")
    rows: list[list[Cell]] = [[titles[query], *(round(value, 3) for value in some)] for query, some in seconds.items()]
    times = {titles[query]: slow / fast for query, (slow, fast) in seconds.items()}
    apart = {titles[query]: noise(found[case] for case in pair if case in found) for query, pair in both.items()}
    return Report(
        title,
        [Table(name, ("query", *names), rows, f"seconds at scale {scale:g}")],
        [
            Chart(name, title.partition(": ")[2], "query", "seconds",
                  {one: [seconds[query][at] for query in FIRST_QUERIES] for at, one in enumerate(names)},
                  list(titles.values()), bars=True)
        ],
        [
            judged(
                claim, all(value > 1 + apart[query] for query, value in times.items()),
                ", ".join(
                    f"{query} {value:.2f} times as fast (noise {apart[query]:.0%})" for query, value in times.items()
                )
                + "; the ordinary tool is Papilio with a cache of its own for every component",
                list(times.values()),
            ),
            out_of_reach(
                "it outperforms Kettle", "Kettle cannot be installed here; separate caches, its way, stand in for it"
            ),
            *problems,
        ],
    )  # fmt: skip
