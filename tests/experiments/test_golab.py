"""The streaming warehouse's figures: what they are made of, and the findings that a short simulation already shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.experiments import bench, bench_refresh, golab
from engine.experiments.experiment import Options, Verdict, find, names
from engine.experiments.golab import JOBS, PLAIN, Case, JobClass, lateness
from engine.experiments.golab_heterogeneous import JOB_CLASSES
from engine.refresh.algorithms.max_benefit_lookahead import MaxBenefitLookahead
from engine.refresh.inheritance import Inheritance
from engine.refresh.scheduler import Settings
from engine.refresh.simulator import simulate

EVENTS = 25_000


def test_there_is_one_for_each_figure() -> None:
    assert {f"golab-fig{number}" for number in range(4, 12)} <= set(names())


def test_a_case_offers_the_utilization_that_it_says() -> None:
    """Without slow periods and with a track for every job, tracks are as busy as the offered load says."""
    case = Case((JobClass(JOBS),), 0.5, slowdown=1.0)
    world = case.world(seed=1)
    alone = simulate(world, Settings(sharing="one", tracks=JOBS, chop=None), events=20_000)
    assert alone.busy_s / alone.clock_s / case.tracks == pytest.approx(0.5, rel=0.02)
    slowed = replace(case, slowdown=3.0).world(seed=1)
    assert slowed.slow_s == slowed.normal_s  # thrice as long for half of the time: twice as long on average
    assert slowed.costs["jobs0_chain0_0"].alpha_s == pytest.approx(world.costs["jobs0_chain0_0"].alpha_s / 2)


def test_a_figure_is_written_with_its_error_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golab, "QUICK_EVENTS", 3_000)
    report = find("golab-fig7")(Options(quick=True))
    report.write(tmp_path)
    lines = (tmp_path / "golab_fig7.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "utilization,Max Benefit,± Max Benefit,EDF,± EDF,Random,± Random"
    assert len(lines) == 8
    drawing = (tmp_path / "golab_fig7.svg").read_text(encoding="utf-8")
    assert drawing.count("<polyline") == 3
    assert drawing.count("<path") >= 15  # whiskers
    assert all(claim.verdict in Verdict and claim.figures for claim in report.claims)


def test_priorities_that_are_known_keep_what_matters_fresh() -> None:
    case = Case((JobClass(JOBS // 2), JobClass(JOBS // 2, (10.0,))), 0.9)
    known, edf, chance = lateness(
        case, [PLAIN, *(replace(PLAIN, policy=name) for name in ("edf", "random"))], 1, EVENTS
    )
    assert known - 1 < 0.5 * (min(edf, chance) - 1)


def test_looking_ahead_chooses_the_same_job_where_jobs_are_alike_and_another_where_short_ones_matter_more() -> None:
    def others(*classes: JobClass) -> float:
        world = Case(classes, 1.0).world(seed=1)
        algorithm = simulate(world, replace(PLAIN, policy="max-benefit-lookahead"), events=EVENTS).scheduler.algorithm
        assert isinstance(algorithm, MaxBenefitLookahead)
        return algorithm.others / algorithm.choices

    assert others(JobClass(JOBS)) == 0
    assert 0.01 < others(JobClass(JOBS // 2), JobClass(JOBS // 2, (10.0,))) < 0.2


def test_without_inheritance_base_tables_starve() -> None:
    case = Case(tuple(JobClass(3, (0.001, 1.0, priority)) for priority in (1.0, 10.0, 100.0)), 0.9)
    none, best = lateness(case, [PLAIN, replace(PLAIN, inheritance=Inheritance.MAX)], 1, EVENTS)
    assert none > 2 * best


def test_sharing_all_tracks_protects_short_jobs_from_long_ones() -> None:
    basic = replace(PLAIN, sharing="proportional")
    shared = [replace(basic, all_tracks=True), replace(basic, all_tracks=True, aggressive=True)]
    one, some, every, aggressive = lateness(Case(JOB_CLASSES, 0.5), [PLAIN, basic, *shared], 1, EVENTS)
    assert max(every, aggressive) < min(one, some)


def test_the_benchmark_of_the_simulator_reports_how_time_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_refresh, "EVENTS", (1_000, 2_000))
    monkeypatch.setattr(bench_refresh, "TABLES", (40, 80))
    report = bench_refresh.benchmark(bench.Options(rounds=1))
    assert set(report.ratios) == {
        "30 tables, 2,000 events / 30 tables, 1,000 events",
        "80 tables, 3,200 events / 40 tables, 1,600 events",
    }
    assert len(report.claims) == 3
    assert all(0.1 < contender.figure("utilization") <= 1 for contender in report.contenders.values())
