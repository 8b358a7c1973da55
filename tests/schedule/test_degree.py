"""The degree of pipelining: theorem 1 and algorithm 3 of the shared-caching paper (section 4.2)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.schedule.degree import (
    PAYS,
    TreeMeasures,
    corrected,
    least_seconds,
    measured,
    optimal_degree,
    pipeline_seconds,
    with_pipeline,
)

MEASURES = st.builds(
    TreeMeasures,
    activities=st.integers(1, 12),
    rows=st.integers(1, 400),
    net_seconds=st.floats(0.01, 50),
    misc_seconds=st.floats(0.001, 2),
    row_seconds=st.floats(0, 0.05),
)


def test_theorem_1_in_whole_numbers():
    # c = 100 s in all, of which 1,000 rows of 64 ms are the staggering activity's; t0 = 1 s: m = sqrt(36 / 1) = 6.
    measures = TreeMeasures(activities=5, rows=1000, net_seconds=100, misc_seconds=1, row_seconds=0.064)
    assert optimal_degree(measures) == 6
    assert pipeline_seconds(measures, 6) == pytest.approx(36 / 6 + 6 * 1 + 64 + 4 * 1)
    assert least_seconds(measures) == pytest.approx(2 * math.sqrt(1 * 36) + 64 + 4)


def test_the_time_of_a_pipeline_is_that_of_its_stages():
    # Three activities of 2, 5 and 3 s for each of 4 splits, 1 s of it miscellaneous: 2 + 4 * 5 + 3.
    measures = TreeMeasures(activities=3, rows=8, net_seconds=4 * (1 + 4 + 2), misc_seconds=1, row_seconds=4 * 4 / 8)
    assert pipeline_seconds(measures, 4) == pytest.approx(2 + 4 * 5 + 3)


def test_without_pipelining_the_activities_follow_each_other():
    measures = TreeMeasures(activities=3, rows=8, net_seconds=28, misc_seconds=1, row_seconds=2)
    assert pipeline_seconds(measures, 1) == pytest.approx(28 + 3 * 1)


@given(MEASURES)
def test_no_other_number_of_splits_takes_less_time(measures):
    best = optimal_degree(measures)
    assert 1 <= best <= measures.rows
    least = pipeline_seconds(measures, best)
    if measures.net_seconds >= measures.row_seconds * measures.rows:  # no activity takes more than all of them
        for splits in range(1, measures.rows + 1):
            assert least <= pipeline_seconds(measures, splits) + 1e-9
        assert least >= least_seconds(measures) - 1e-9


@given(MEASURES)
def test_theorem_1_s_time_is_the_limit_at_the_exact_root(measures):
    rest = measures.net_seconds - measures.row_seconds * measures.rows
    if rest > 0:
        root = math.sqrt(rest / measures.misc_seconds)
        slowest = measures.row_seconds * measures.rows
        exact = rest / root + measures.misc_seconds * (root + measures.activities - 1) + slowest
        assert least_seconds(measures) == pytest.approx(exact)


def test_one_activity_that_takes_all_the_time_leaves_nothing_to_overlap():
    assert optimal_degree(TreeMeasures(1, 1000, net_seconds=10, misc_seconds=0.1, row_seconds=0.01)) == 1


def test_never_more_splits_than_rows_and_one_for_no_rows():
    assert optimal_degree(TreeMeasures(4, 3, net_seconds=1e6, misc_seconds=1e-3, row_seconds=0)) == 3
    assert optimal_degree(TreeMeasures(4, 3, net_seconds=1e6, misc_seconds=0, row_seconds=0)) == 3
    assert optimal_degree(TreeMeasures(4, 0, net_seconds=1, misc_seconds=0, row_seconds=0)) == 1


def test_algorithm_3_finds_the_staggering_activity_and_the_three_measures():
    found = measured(["lookup", "filter", "derive"], [1000, 1000, 400], empty_seconds=0.3,
                     sequential=[0.6, 2.1, 0.5], input_rows=1000)  # fmt: skip
    assert found.staggering == "filter"
    assert found.activities == 3
    assert found.misc_seconds == pytest.approx(0.1), "t0: the time over no rows, for each activity"
    assert found.net_seconds == pytest.approx(3.2 - 0.3), "c: T_s - T_0"
    assert found.rows == 1000
    assert found.row_seconds == pytest.approx(2.0 / 1000), "lambda"


def test_the_staggering_activity_may_take_fewer_rows_than_the_tree():
    found = measured(["filter", "derive"], [1000, 100], empty_seconds=0.2, sequential=[0.3, 1.1], input_rows=1000)
    assert found.staggering == "derive"
    assert found.rows == 100
    assert found.row_seconds == pytest.approx(1.0 / 100)


def test_an_activity_quicker_than_the_empty_run_counts_as_nothing():
    found = measured(["a", "b"], [10, 10], empty_seconds=1.0, sequential=[0.1, 2.0], input_rows=10)
    assert found.net_seconds == pytest.approx(1.5)


def test_a_sample_s_measures_scale_with_the_rows():
    whole = measured(["a", "b"], [100, 100], 0.2, [1.1, 3.1], input_rows=100).for_input(10_000)
    assert whole.rows == 10_000
    assert whole.net_seconds == pytest.approx(400)
    assert (whole.misc_seconds, whole.row_seconds) == (pytest.approx(0.1), pytest.approx(0.03))
    assert optimal_degree(whole) == round(math.sqrt((400 - 300) / 0.1))


def test_measures_scale_with_the_rows_of_the_tree_and_not_of_the_staggering_activity():
    # The filter drops nine of ten rows, and only the others reach the slow activity.
    sample = measured(["filter", "derive"], [1000, 100], 0.2, [1.1, 1.6], input_rows=1000)
    whole = sample.for_input(4000)
    assert (whole.rows, whole.input_rows) == (400, 4000)
    assert whole.net_seconds == pytest.approx(4 * sample.net_seconds)
    assert optimal_degree(whole) == round(math.sqrt(4 * (2.5 - 1.5) / 0.1))


@given(MEASURES, st.integers(2, 16))
def test_line_4_finds_lambda_from_the_time_of_a_pipeline(measures, splits):
    seconds = pipeline_seconds(measures, splits)
    slowest = measures.row_seconds * measures.rows
    if seconds < PAYS * pipeline_seconds(measures, 1) and slowest <= measures.net_seconds:
        blind = TreeMeasures(**{**vars(measures), "row_seconds": 0.0})
        found = with_pipeline(blind, splits, seconds)
        assert found.row_seconds == pytest.approx(measures.row_seconds, abs=1e-6)


@given(MEASURES, st.integers(2, 16), st.floats(PAYS, 3))
def test_a_pipeline_that_is_no_quicker_is_not_chosen(measures, splits, factor):
    found = with_pipeline(measures, splits, factor * pipeline_seconds(measures, 1))
    assert optimal_degree(found) == 1


def test_turns_that_take_longer_than_the_sample_promised_bring_the_degree_down_to_one():
    # One job keeps all cores busy: so many splits take as long as one, and a little longer each.
    def really(rows, splits):
        return rows / 1000 + 0.2 * splits

    found = TreeMeasures(activities=4, rows=100, net_seconds=0.4, misc_seconds=0.05, row_seconds=0, input_rows=100)
    assert optimal_degree(found.for_input(10_000)) > 1
    for _ in range(8):
        found = corrected(found, 10_000, 1, really(10_000, 1))
    assert optimal_degree(found.for_input(10_000)) > 1, "it was not tried yet"
    for _ in range(8):
        degree = optimal_degree(found.for_input(10_000))
        found = corrected(found, 10_000, degree, really(10_000, degree))
    assert optimal_degree(found.for_input(10_000)) == 1
    assert found.net_seconds == pytest.approx(10, rel=0.1), (
        "and what a row takes is that of the turns, not the sample's"
    )


def test_turns_that_keep_what_the_sample_promised_change_nothing():
    found = TreeMeasures(activities=4, rows=100, net_seconds=4, misc_seconds=0.05, row_seconds=0.01, input_rows=100)
    degree = optimal_degree(found.for_input(1000))
    assert degree > 1
    again = corrected(found, 1000, degree, pipeline_seconds(found.for_input(1000), degree))
    assert again.row_seconds == pytest.approx(found.row_seconds)
    assert optimal_degree(again.for_input(1000)) == degree


def test_a_turn_over_few_rows_tells_nothing():
    found = TreeMeasures(activities=4, rows=100, net_seconds=4, misc_seconds=0.05, row_seconds=0.01, input_rows=100)
    assert corrected(found, 40, 1, 9.0) is found
    assert corrected(found, 0, 1, 9.0) is found
