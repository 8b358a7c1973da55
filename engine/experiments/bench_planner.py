"""The planner's two searches beside each other, on the paper's scenarios and on workflows of 100 nodes."""

from __future__ import annotations

import time

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.planning import Scenario, large, right_wings, scenario
from engine.plan.planner import EXHAUSTIVE_STATES, Search
from engine.plan.space import Space

PAPER_SECONDS = {"balanced butterfly": 28, "right-deep butterfly": 14, "right wing of 15": 311}


def benchmark(options: Options) -> Report:
    """Plan the paper's butterflies, a right wing of 15 nodes and workflows of 100 nodes, exhaustively and fast."""
    cases: dict[str, Scenario] = {
        "balanced butterfly": scenario("plan_balanced"),
        "right-deep butterfly": scenario("plan_right_deep"),
        "right wing of 15": right_wings()[4].scenario(),
        "100 nodes": large(100),
    }
    report = Report(identical=True)
    for name, given in cases.items():
        first = given.rank()
        report.facts[f"{name}: signatures"] = first.signatures
        searches = [Search.FAST]
        if Space(given.graph, first.space.model, given.asked).states() <= EXHAUSTIVE_STATES:
            searches.append(Search.EXHAUSTIVE)
        report.contenders.update({f"{name}, {search}": Contender() for search in searches})
        for number in range(options.rounds):
            options.say(f"round {number + 1}: {name}")
            for search in searches:
                begun = time.perf_counter()
                found = given.rank(search=search)
                report.contenders[f"{name}, {search}"].seconds.append(time.perf_counter() - begun)
                same = [plan.number for plan in found.plans] == [plan.number for plan in first.plans]
                report.identical = bool(report.identical and same)
        if len(searches) > 1:
            report.ratio(f"{name}, exhaustive", f"{name}, fast")
        if name in PAPER_SECONDS:
            report.facts[f"{name}: the paper's seconds"] = PAPER_SECONDS[name]
    slowest = {name: max(report.contenders[f"{name}, fast"].seconds) for name in cases}
    for text, name, limit in (
        ("the balanced butterfly is planned in under 0.1 s", "balanced butterfly", 0.1),
        ("a right wing of 15 nodes is planned in under 1 s", "right wing of 15", 1),
        ("a workflow of 100 nodes is planned in under 5 s", "100 nodes", 5),
    ):
        report.claim(text, slowest[name] < limit, f"{slowest[name]:.3f} s in the slowest round")
    return report
