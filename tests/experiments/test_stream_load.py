"""The warehouse that `papilio bench stream` runs: thirty tables, three hierarchies, two classes of periods."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from engine.experiments import bench_stream
from engine.experiments.bench import Contender, Report
from engine.experiments.stream_load import (
    TABLES,
    Load,
    Try,
    at_rate,
    best_try,
    described,
    is_fast,
    next_rate,
    utilization,
)
from engine.experiments.stream_seen import Seen
from engine.partition.tables import Follow, tables_of
from engine.refresh.described import warehouse_of
from engine.refresh.estimates import Learnt
from engine.refresh.report import weighted_staleness
from engine.refresh.scheduler import Scheduler, Settings
from engine.refresh.simulator import Cost, Result, Stream, World, simulate


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


def test_with_more_slow_records_only_their_base_tables_cost_more():
    costs = {"fast_0": 0.05, "fast_3": 0.05, "slow_0": 3.0, "slow_1": 0.1, "bulk_0": 5.0, "bulk_4": 0.1}
    assert at_rate(costs, 2.0) == costs | {"slow_0": 6.0, "bulk_0": 10.0}
    lines = bench_stream._as_line(Load(10, 30.0, 1000.0), costs)
    period = {name: 1.0 if is_fast(name) else 30.0 for name in costs}
    assert {name: line.alpha_s + line.beta * period[name] for name, line in lines.items()} == pytest.approx(costs)
    heavy = {name for name, line in lines.items() if line.beta * period[name] > line.alpha_s}
    assert heavy == {"slow_0", "bulk_0"}


@pytest.mark.parametrize("seconds", [20.0, 37.3, 300.0])
def test_a_run_of_any_length_has_periods_that_a_warehouse_can_have(tmp_path, seconds):
    assert warehouse_of(described(Load(4, bench_stream.slow_period(seconds), 1000.0), tmp_path)).tables


def test_the_load_is_found_on_the_line_through_the_last_tries():
    assert next_rate([Try(1000.0, 0.3, 0.1)], 0.7) == pytest.approx(4000.0)
    assert next_rate([Try(1000.0, 0.3, 0.2), Try(4000.0, 0.3, 0.3)], 0.7) == pytest.approx(7000.0)
    costs = {"fast_0": 0.1, "fast_1": 0.1, "slow_0": 3.0, "bulk_0": 6.0}
    assert utilization(Load(4, 30.0, 1.0), costs, 2) == pytest.approx((0.1, 0.15))


def test_a_load_that_piles_up_is_too_much_however_cheap_its_merged_updates_seem():
    cheap = Try(8000.0, 0.3, 0.5, left=0.3)
    assert not cheap.keeps_up
    assert next_rate([cheap], 0.9) < 8000, "by its costs alone it would be more"
    between = next_rate([Try(4000.0, 0.3, 0.2), cheap], 0.9)
    assert 4000 < between < 8000
    tries = [Try(4000.0, 0.3, 0.2), cheap, Try(6000.0, 0.3, 0.48), Try(7000.0, 0.3, 0.6, left=0.2)]
    assert best_try(tries, 0.9) == 2
    assert best_try([cheap, tries[3]], 0.9) == 1, "where none keeps up, the least of them"


@pytest.mark.parametrize("dearer", [1.0, 1.4, 2.2])
def test_the_search_ends_at_a_load_that_fills_the_tracks_and_keeps_up(dearer):
    """On a machine whose updates get dearer the busier it is, and cheaper where they are merged."""

    def tried(rate: float) -> Try:
        slow = rate / 10_000 * dearer * (1 + 0.3 * (rate / 10_000))
        left = max(0.25 + slow - 1, 0.0)
        return Try(rate, 0.25, slow / (1 + left), left)

    tries = [tried(2500.0)]
    while len(tries) < 5 and not (tries[-1].keeps_up and abs(tries[-1].asked - 0.92) < 0.04):
        tries.append(tried(next_rate(tries, 0.92)))
    found = tries[best_try(tries, 0.92)]
    assert found.keeps_up
    assert 0.85 < found.asked < 0.99


def test_the_default_is_run_as_it_is_and_one_track_is_one_queue_for_all_processors(tmp_path):
    contenders = bench_stream.CONTENDERS
    tracks = contenders["default"].tracks
    assert contenders["default"] == Settings(tracks=tracks)
    assert contenders["EDF, one track"].policy == "edf"
    assert contenders["EDF, one track"].tracks == tracks, "as many processors as the default has"
    warehouse = warehouse_of(described(Load(4, 30.0, 1000.0), tmp_path))
    (group,) = Scheduler(warehouse, contenders["EDF, one track"]).partition.groups
    assert list(group.home) == list(range(tracks))


def test_the_default_is_judged_against_one_queue_of_edf_and_bounds_by_the_costs_of_the_run_itself():
    figures = {"default": 10.0, "FIFO": 30.0, "EDF, one track": 18.0, "EDF, one job at a time": 90.0}
    report = Report(
        facts={
            bench_stream.ASKED: 0.95,
            bench_stream.BY_TRIALS: {"default": {"predicted to hold": 30, "of them broken": ["fast_0"]}},
            bench_stream.BY_OWN: {"default": {"predicted to hold": 20, "of them broken": []}},
        }
    )
    for name, value in figures.items():
        report.contenders[name] = Contender([60.0])
        report.contenders[name].add(weighted_staleness=value, asked=0.9, utilization=0.6 if name == "default" else 0.9)
    bench_stream._judge(report)
    broken = [text for text, holds in report.claims.items() if not holds]
    assert broken == ["the default's weighted staleness is at most half of EDF, one track's"]
    assert report.evidence[broken[0]] == "0.56"
    bounds = "no bound is broken that simulation predicts to hold"
    assert report.evidence[bounds] == "0 of 20 by the run's own costs; by those of the trials 1 of 30"
    report.facts[bench_stream.BY_OWN]["default"]["of them broken"] = ["slow_1"]
    bench_stream._judge(report)
    assert not report.claims[bounds]


# ---------------------------------------------------------------- what a run shows


def watched(load: Load, folder: Path, settings: Settings, cost: Cost, seconds: float) -> tuple[Seen, Result]:
    """A simulated warehouse, watched as a live one is."""
    warehouse = warehouse_of(described(load, folder))
    streams = {name: Stream(spec.period_s, spec.period_s) for name, spec in warehouse.tables.items() if spec.is_base}
    seen = Seen()
    world = World(warehouse, streams, dict.fromkeys(warehouse.tables, cost))
    result = simulate(world, settings, events=10**9, until_s=seconds, observer=seen.observer())
    result.scheduler.account(seconds)
    return seen, result


def test_what_was_watched_gives_the_staleness_and_the_broken_bounds_that_the_scheduler_counted(tmp_path):
    for alpha in (0.02, 0.5):
        seen, result = watched(Load(10, 10.0, 100.0), tmp_path, Settings(tracks=2), Cost(alpha, 0.01), 100.0)
        staleness, broken = seen.judged(100.0)
        assert staleness == pytest.approx(weighted_staleness(result.scheduler, 100.0))
        assert broken == {name for name, table in result.scheduler.tables.items() if table.breaks}
    assert broken, "of an overloaded one"


def test_what_is_over_after_the_asked_time_does_not_count(tmp_path):
    seen, _ = watched(Load(10, 10.0, 100.0), tmp_path, Settings(tracks=2), Cost(0.02, 0.01), 100.0)
    cut, _ = watched(Load(10, 10.0, 100.0), tmp_path, Settings(tracks=2), Cost(0.02, 0.01), 60.0)
    assert seen.judged(60.0) == cut.judged(60.0)
    assert seen.busy(0, 60.0) == pytest.approx(cut.busy(0, 60.0), abs=0.01)


@pytest.mark.parametrize("together", [False, True])
def test_a_runs_own_costs_and_arrivals_give_the_run_again(tmp_path, together):
    """Costs that nobody foretold: simulated by them, the same bounds hold and about the same staleness comes out."""
    load, cost, seconds = Load(10, 10.0, 100.0), Cost(0.03, 0.05), 200.0
    settings = Settings(tracks=2, together=together)
    seen, _ = watched(load, tmp_path, settings, cost, seconds)
    assert any(len(job.loads) > 1 for job in seen.jobs) == together
    wrong = dict.fromkeys(seen.scheduler.tables, 0.01)
    own = seen.own_costs(wrong, is_fast)
    fast = [cost_.alpha_s + cost_.beta for name, cost_ in own.items() if is_fast(name)]
    slow = [cost_.alpha_s + 10 * cost_.beta for name, cost_ in own.items() if not is_fast(name)]
    assert statistics.fmean(fast) == pytest.approx(0.08, rel=0.1)
    assert statistics.fmean(slow) == pytest.approx(0.53, rel=0.1)
    known = {name: Learnt(one, 0.0, None, 0) for name, one in wrong.items()}
    world = bench_stream._world(load, tmp_path, own, seen)
    assert len(world.arrived) == 200 + 2 * 20
    staleness, holds = bench_stream._predicted(world, known, settings, seconds)
    real, broken = seen.judged(seconds)
    assert staleness == pytest.approx(real, rel=0.1)
    assert not broken & holds
    cheap = bench_stream._world(load, tmp_path, bench_stream._as_line(load, wrong), seen)
    assert bench_stream._predicted(cheap, known, settings, seconds)[0] < 0.9 * real, "the costs make the difference"


def test_a_trial_tells_what_a_period_costs_and_what_it_leaves_undone(tmp_path):
    load = Load(10, 10.0, 100.0)
    one_by_one = Settings(tracks=2, together=False)
    seen, _ = watched(load, tmp_path, one_by_one, Cost(0.01, 0.03), 29.9)
    costs = seen.period_costs(load.period_s, is_fast)
    assert costs["slow_3"] == pytest.approx(0.31, rel=0.5)
    assert not [name for name in seen.unloaded(29.9) if not is_fast(name)]
    seen, _ = watched(load, tmp_path, one_by_one, Cost(0.01, 0.3), 29.9)
    assert [name for name in seen.unloaded(29.9) if not is_fast(name)], "20 tables at 3 s each do not fit"
