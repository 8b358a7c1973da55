"""Data rates over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.elastic.rates import data_rate
from engine.errors import BadInput
from engine.model.elastic import BurstsRate, DiurnalRate, RampRate, RecordedRate, StepsRate


def test_steps_and_ramps():
    steps = data_rate(
        StepsRate.model_validate(
            {"kind": "steps", "steps": [{"at_s": 5, "rows_s": 7}, {"at_s": 9, "rows_s": 3}], "seconds": 20}
        ),
        Path(),
    )
    assert [steps.at(now) for now in (0, 5, 8.9, 9, 19)] == [0, 7, 7, 3, 3]
    ramp = data_rate(RampRate(kind="ramp", from_rows_s=10, to_rows_s=20, seconds=10), Path())
    assert [ramp.at(now) for now in (0, 5, 10)] == [10, 15, 20]
    stairs = data_rate(RampRate(kind="ramp", from_rows_s=20, to_rows_s=10, stairs=3, seconds=30), Path())
    assert [stairs.at(now) for now in (0, 9.9, 10, 20, 29.9)] == [20, 20, 15, 10, 10]


def test_a_day_has_its_peak_and_its_night():
    day = data_rate(DiurnalRate(kind="diurnal", low_rows_s=10, high_rows_s=90, peak_hour=14), Path())
    assert day.at(14 * 3600) == pytest.approx(90)
    assert day.at(2 * 3600) == pytest.approx(10)
    assert day.seconds == 86_400


def test_bursts_are_the_same_each_time_and_others_with_another_seed():
    def found(seed):
        rate = data_rate(
            BurstsRate(kind="bursts", base_rows_s=1, burst_rows_s=9, every_s=50, burst_s=5, seed=seed, seconds=1000),
            Path(),
        )
        return [rate.at(now) for now in range(1000)]

    assert found(1) == found(1) != found(2)
    assert set(found(1)) == {1, 9}


def test_a_recorded_rate_is_read_from_beside_the_workflow(tmp_path):
    (tmp_path / "r.csv").write_text("seconds,rows_s\n0,5\n10,8\n30,0\n")
    rate = data_rate(RecordedRate(kind="recorded", path="r.csv"), tmp_path)
    assert (rate.seconds, rate.at(3), rate.at(12)) == (30, 5, 8)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot be read"),
        ("a,b\n1,2\n", "needs the columns `seconds` and `rows_s`"),
        ("seconds,rows_s\n0,1\n", "two lines at least"),
        ("seconds,rows_s\n0,1\n5,many\n", "r.csv:3: `seconds` and `rows_s` must be numbers"),
        ("seconds,rows_s\n0,1\n5,2\n5,3\n", "r.csv:4: the moments must grow"),
        ("seconds,rows_s\n0,1\n5,-2\n", "must be numbers from 0 on"),
    ],
)
def test_a_recorded_rate_that_is_none_says_why(tmp_path, text, reason):
    if text is not None:
        (tmp_path / "r.csv").write_text(text)
    with pytest.raises(BadInput, match=reason):
        data_rate(RecordedRate(kind="recorded", path="r.csv"), tmp_path)
