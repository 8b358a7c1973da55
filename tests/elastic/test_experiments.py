"""The elastic paper's figures: every claim on them is reproduced, and their tables are what the figures show."""

from __future__ import annotations

import pytest

from engine.experiments.experiment import Options, Verdict, find, names

FIGURES = [10, 11, 13, 14, 15, 16, 17, 18]


def test_all_figures_of_section_5_that_show_measurements_are_there():
    assert {f"ascale-fig{number}" for number in FIGURES} <= set(names())


@pytest.mark.parametrize("number", FIGURES)
def test_the_claims_of_a_figure_hold(number):
    report = find(f"ascale-fig{number}")(Options(quick=True))
    assert len(report.claims) >= 3
    assert [(claim.text, claim.figures) for claim in report.claims if claim.verdict is not Verdict.REPRODUCED] == []
    assert report.tables[0].rows
    assert report.charts
