"""Physical plans on Spark: the best one beside no planning, beside Spark's own choice, and beside the paper's best one.

All load the same targets. Without planning the workflow is cut into units and staged as always, and Spark chooses how
to join and to group; Spark's own choice is the exported script, where it has the whole workflow to itself. What is
known of the rows comes from one run before the contest, as it would for a workflow that runs every night.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from engine.experiments.bench import Options, Report
from engine.experiments.contest import ENDING, SHIPPED, Contest, Entry, contest
from engine.experiments.data import generate_tpch

SCALE = 0.3
RESULTS = ("--scale", "1")
ROUNDS = 2
SLOWER = 1.03  # the most that a plan may take of what no plan takes
FASTER = 1.1  # clearly faster
WRONG = 0.15  # of a run's time: a prediction that is further off than that, in either way, is wrong

BEST, NONE, SPARK, PAPER = "best plan", "no planning", "Spark's own choice", "the paper's best plan"


@dataclass(frozen=True)
class Case:
    """A shipped workflow, and whether the paper says that sorters pay on it."""

    workflow: str
    title: str
    sorters_pay: bool


CASES = (
    Case("order_fork", "fork of fine views", sorters_pay=True),
    Case("fork", "fork of coarse views", sorters_pay=False),
    Case("butterfly_fig5", "balanced butterfly", sorters_pay=False),
)


def benchmark(options: Options) -> Report:
    """Run two forks and a balanced butterfly on TPC-H by the best plan, by none, by Spark's and by the paper's."""
    scale = options.scale or SCALE
    data = options.folder / f"tpch-{scale:g}"
    options.say(f"TPC-H scale {scale:g}: lineitem and partsupp")
    generate_tpch(data, scale, tables=("lineitem", "partsupp"))
    with contest(options) as here:
        here.report.facts["scale"] = scale
        for case in CASES:
            _hold(here, case, data)
        _conclude(here)
        return here.report


def _named(case: Case, name: str) -> str:
    return f"{case.title}: {name}"


def _hold(here: Contest, case: Case, data: Path) -> None:
    """One workflow by every plan. Before it one run without a plan, by which its rows are known."""
    entries = [
        Entry(_named(case, BEST), here.papilio(case.workflow, data, plan="best"), case.workflow),
        Entry(_named(case, NONE), here.papilio(case.workflow, data, plan="none"), case.workflow),
        Entry(_named(case, SPARK), _script(here, case, data), case.workflow),
    ]
    here.options.say(f"{case.title}: a run that counts the rows")
    before = here.folder / "before"
    try:
        before.mkdir(exist_ok=True)
        here.papilio(case.workflow, data, plan="none")(before)
        plans = _plans(here, case, data)
    except Exception as error:
        here.leave_out(entries, f"no plan without its rows: {type(error).__name__}: {error}")
        return
    here.report.facts[case.title] = plans.facts()
    if plans.paper != plans.best:
        entries.append(Entry(_named(case, PAPER), here.papilio(case.workflow, data, plan=plans.paper), case.workflow))
    here.hold(entries)


@dataclass(frozen=True)
class _Plans:
    """The plans of a workflow, and what the measured model says of them."""

    best: str
    paper: str
    best_us: float  # all costs in that in which plans differ
    none_us: float  # of the cheapest plan without sorters that hashes groups, which Spark would do by itself at best
    paper_us: float

    def facts(self) -> dict[str, Any]:
        """For the report."""
        return {
            "best plan": self.best,
            "the paper's best plan": self.paper,
            f"predicted: s that {NONE} takes longer": round((self.none_us - self.best_us) / 1_000_000, 2),
            f"predicted: s that {PAPER} takes longer": round((self.paper_us - self.best_us) / 1_000_000, 2),
        }


def _plans(here: Contest, case: Case, data: Path) -> _Plans:
    from engine.plan.constraints import constraints, implementations
    from engine.plan.costs import PaperCosts, units
    from engine.plan.graph import Offered, graph_of
    from engine.plan.planner import only, rank
    from engine.store.plans import differing, plan_for_run
    from engine.store.statistics import known_rows

    bound = _bound(here, case, data, here.folder)
    chosen = plan_for_run(bound, "best", here.store)
    assert chosen is not None
    model = chosen.model
    asked = constraints(planning=bound.workflow.plan)
    graph = graph_of(bound, known_rows(bound, here.store))
    spark = chosen.ranking.space.graph
    hashed = [(node, "SO") for node in spark.nodes if {"SO", "HB"} <= set(implementations(spark.activity(node)))]
    own = constraints(bans=hashed, planning=bound.workflow.plan)
    without = rank(spark, model, own, 1, offered=Offered.NONE)
    ranking = rank(graph, PaperCosts(), asked, 1)
    paper = ranking.signature(ranking.best)
    priced = only(paper, graph, model, asked)
    costs = (units(differing(one)) for one in (chosen.ranking, without, priced))
    return _Plans(chosen.signature, paper, *costs)


def _bound(here: Contest, case: Case, data: Path, out: Path) -> Any:
    from engine.model.binding import bind
    from engine.model.file import load
    from engine.operators import catalogue
    from engine.store.sources import SourceSchemas

    folders = {"data_folder": str(data), "warehouse_folder": str(out)}
    file = load(SHIPPED / f"{case.workflow}{ENDING}")
    bound = bind(file, catalogue(), parameters=folders, discover=SourceSchemas(here.store).discover)
    bound.raise_errors()
    return bound


def _script(here: Contest, case: Case, data: Path) -> Callable[[Path], None]:
    """The exported script, run in the session that is open."""

    def run(out: Path) -> None:
        from engine.spark.export import export_pyspark

        bound = _bound(here, case, data, out)
        names: dict[str, Any] = {"__name__": case.workflow, "__file__": str(out / "script.py")}
        exec(compile(export_pyspark(bound), f"{case.workflow}.py", "exec"), names)
        names["main"]()

    return run


def _conclude(here: Contest) -> None:
    report = here.report
    for case in CASES:
        best = _named(case, BEST)
        for other in (NONE, SPARK):
            ratio = here.compare(best, _named(case, other))
            text = f"{case.title}: the best plan takes at most {SLOWER:.2f} times as long as {other}"
            report.claim(text, ratio is not None and ratio <= SLOWER, _ratios(here, best, _named(case, other)))
        if case.sorters_pay:
            text = f"{case.title}: sorters pay, the best plan is clearly faster than no planning"
            here.at_least(text, _named(case, NONE), best, FASTER)
        here.compare(_named(case, PAPER), best)
    wrong = [line for case in CASES for line in _wrong(here, case)]
    report.facts["the measured model predicts wrongly"] = wrong or "nowhere"


def _ratios(here: Contest, best: str, other: str) -> str:
    """Wall time, and processor time, which other programs on the machine disturb less."""
    if not here.report.finished(best, other):
        return "not measured"
    one, two = here.report.contenders[best], here.report.contenders[other]
    spent = one.figure("processor_s") / two.figure("processor_s")
    return f"{one.median / two.median:.2f} of its seconds, {spent:.2f} of its processor time"


def _wrong(here: Contest, case: Case) -> list[str]:
    """Where the best plan saved more or less time than was predicted.

    Prices are seconds of a busy machine, so it is the seconds of all processors, divided by them, that they predict.
    Reading the sources and writing the targets takes as long by every plan.
    """
    best, found = _named(case, BEST), []
    facts = here.report.facts.get(case.title, {})
    for other in (NONE, PAPER):
        if not here.report.finished(best, _named(case, other)):
            continue
        spent, least = (
            here.report.contenders[name].figure("processor_s") / (psutil.cpu_count() or 1)
            for name in (_named(case, other), best)
        )
        predicted = facts[f"predicted: s that {other} takes longer"]
        facts[f"measured: s that {other} takes longer"] = round(spent - least, 2)
        if abs(spent - least - predicted) > WRONG * spent:
            found.append(
                f"{case.title}: {other} takes {spent - least:.1f} s longer than the best plan (of {spent:.1f} s of "
                f"busy processors), predicted {predicted:.1f} s"
            )
    return found
