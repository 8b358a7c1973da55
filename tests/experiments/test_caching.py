"""The shared-caching paper's figures 12 to 17 on Spark, at a scale at which only their shape and their answers count."""

from __future__ import annotations

import json

import pytest

from engine.experiments import caching
from engine.experiments.experiment import Options, Verdict, find, names

FIGURES = [f"caching-fig{number}" for number in range(12, 18)]
TINY = 0.002


def test_every_figure_is_there_with_its_title():
    assert set(FIGURES) <= set(names())
    assert all(find(name).__doc__ for name in FIGURES)


@pytest.mark.slow
def test_the_ordinary_tool_copies_rows_and_the_framework_does_not(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(caching, "FIRST_QUERIES", ("q11",))
    report = find("caching-fig16")(Options(quick=True, scale=TINY, folder=tmp_path, spark=spark))
    assert [row[0] for row in report.tables[0].rows] == ["Q1.1"]
    assert all(value > 0 for value in report.tables[0].rows[0][1:])
    verdicts = [claim.verdict for claim in report.claims]
    assert verdicts[0] in (Verdict.REPRODUCED, Verdict.NOT_REPRODUCED)
    assert verdicts[1:] == [Verdict.NOT_REPRODUCIBLE], "Kettle is not here, and all answers were the same"


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_made_and_every_claim_judged(name, spark, tmp_path):
    report = find(name)(Options(quick=True, scale=TINY * 2, folder=tmp_path, spark=spark))
    assert json.loads(json.dumps(report.as_dict()))["claims"]
    assert not [claim for claim in report.claims if claim.text == "every way of running it gives the same answer"]
    assert {file.suffix for file in report.write(tmp_path / "out")} == {".csv", ".svg", ".png", ".json"}


def test_what_went_wrong_is_a_claim_that_does_not_hold(spark, tmp_path):
    with caching.runs(Options(quick=True, folder=tmp_path, spark=spark)) as here:
        here.here.report.facts["differences"] = ["a and b differ in answer"]
        (claim,) = here.problems()
    assert claim.verdict is Verdict.NOT_REPRODUCED
    assert claim.figures == "a and b differ in answer"


def test_three_sizes_double_each_time():
    assert caching.scales(Options()) == [0.1, 0.2, 0.4]
    assert caching.scales(Options(scale=1.0)) == [0.25, 0.5, 1.0]
