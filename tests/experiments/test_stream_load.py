"""The warehouse that `papilio bench stream` runs: thirty tables, three hierarchies, two classes of periods."""

from __future__ import annotations

import pytest

from engine.experiments import bench_stream
from engine.experiments.bench import Contender, Report
from engine.experiments.stream_load import TABLES, Load, described, next_rate, utilization
from engine.partition.tables import Follow, tables_of
from engine.refresh.described import warehouse_of
from engine.refresh.scheduler import Scheduler, Settings


@pytest.mark.parametrize("fast", [4, 13, 24])
def test_it_has_thirty_tables_in_three_hierarchies(tmp_path, fast):
    bound = described(Load(fast, 30.0, 1000.0), tmp_path)
    warehouse = warehouse_of(bound)
    assert len(warehouse.tables) == TABLES
    bases = [name for name, spec in warehouse.tables.items() if spec.is_base]
    assert bases == ["bulk_0", "fast_0", "slow_0"]
    assert len(warehouse.descendants("fast_0")) == fast - 1
    assert sum(len(warehouse.descendants(base)) for base in bases) == TABLES - 3, "no hierarchy shares a table"
    assert {spec.period_s for spec in warehouse.tables.values() if spec.is_base} == {1.0, 30.0}
    weights = {(spec.priority, warehouse.tables[name].staleness_bound_s) for name, spec in warehouse.tables.items()}
    assert weights == {(30.0, 10.0), (1.0, 90.0)}
    assert {plan.follow for plan in tables_of(bound)} == set(Follow), "all ways to follow are run"


def test_the_load_is_found_on_the_line_through_the_last_tries():
    assert next_rate([(1000.0, 0.1)], 0.4) == 4000.0
    assert next_rate([(1000.0, 0.2), (4000.0, 0.3)], 0.4) == pytest.approx(7000.0)
    costs = {"fast_0": 0.1, "fast_1": 0.1, "slow_0": 3.0, "bulk_0": 6.0}
    assert utilization(Load(4, 30.0, 1.0), costs, 2) == pytest.approx((0.1, 0.15))


def test_the_default_is_run_as_it_is_and_one_track_is_one_queue_for_all_processors(tmp_path):
    contenders = bench_stream.CONTENDERS
    tracks = contenders["default"].tracks
    assert contenders["default"] == Settings(tracks=tracks)
    assert contenders["EDF, one track"].policy == "edf"
    assert contenders["EDF, one track"].tracks == tracks, "as many processors as the default has"
    warehouse = warehouse_of(described(Load(4, 30.0, 1000.0), tmp_path))
    (group,) = Scheduler(warehouse, contenders["EDF, one track"]).partition.groups
    assert list(group.home) == list(range(tracks))


def test_the_default_is_judged_against_one_queue_of_edf_not_against_one_job_at_a_time():
    figures = {"default": 10.0, "FIFO": 30.0, "EDF, one track": 18.0, "EDF, one job at a time": 90.0}
    report = Report(facts={"asked of the tracks": 0.95, "bounds broken that simulation predicts to hold": []})
    for name, value in figures.items():
        report.contenders[name] = Contender([60.0])
        report.contenders[name].add(weighted_staleness=value, utilization=0.6 if name == "default" else 0.9)
    bench_stream._judge(report)
    broken = [text for text, holds in report.claims.items() if not holds]
    assert broken == ["the default's weighted staleness is at most half of EDF, one track's"]
    assert report.evidence[broken[0]] == "0.56"
