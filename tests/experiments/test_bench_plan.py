"""The benchmark of plans says where the measured model predicts wrongly."""

from __future__ import annotations

from types import SimpleNamespace

import psutil

from engine.experiments.bench import Contender, Report
from engine.experiments.bench_plan import BEST, CASES, NONE, PAPER, _named, _wrong

CASE = CASES[0]


def told(best: float, none: float, predicted: float) -> tuple[list[str], Report]:
    """What is said of a case by which two contenders kept all processors busy for so many seconds."""
    report = Report({_named(CASE, BEST): Contender(), _named(CASE, NONE): Contender()})
    for name, seconds in ((BEST, best), (NONE, none)):
        contender = report.contenders[_named(CASE, name)]
        contender.seconds.append(seconds)
        contender.add(processor_s=seconds * (psutil.cpu_count() or 1))
    report.facts[CASE.title] = {f"predicted: s that {other} takes longer": predicted for other in (NONE, PAPER)}
    return _wrong(SimpleNamespace(report=report), CASE), report  # type: ignore[arg-type]


def test_a_prediction_that_is_off_by_more_than_a_share_of_the_run_is_told_with_both_figures():
    (line,), report = told(best=30, none=40, predicted=22)
    assert line == (
        f"{CASE.title}: {NONE} takes 10.0 s longer than the best plan (of 40.0 s of busy processors), predicted 22.0 s"
    )
    assert report.facts[CASE.title][f"measured: s that {NONE} takes longer"] == 10


def test_it_is_told_also_where_less_was_predicted_and_not_where_it_came_close():
    assert len(told(best=30, none=40, predicted=2)[0]) == 1
    assert told(best=30, none=40, predicted=15)[0] == []
    assert told(best=40, none=39, predicted=0)[0] == []
