"""What the scheduler does with arrivals, tracks, bounds, shared scans, and tables that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import BadInput
from engine.refresh.estimates import CostEstimate, Learnt, PeriodEstimate
from engine.refresh.jobs import Load
from engine.refresh.local import algorithm_named
from engine.refresh.model import TableSpec, Warehouse
from engine.refresh.partition import tracks_named
from engine.refresh.report import bounds_report
from engine.refresh.scheduler import Scheduler, Settings
from engine.refresh.simulator import Cost, Stream, World, simulate

ONE = Settings(sharing="one", tracks=1)


def base(name: str, **given: object) -> TableSpec:
    return TableSpec(name, **{"alpha_s": 1.0, "beta": 0.0, "period_s": 10.0, **given})  # type: ignore[arg-type]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ([TableSpec("a", ("b",)), TableSpec("b", ("a",))], "w.yaml: table `a`: is derived from itself: a ← b ← a"),
        ([TableSpec("a", ("a",))], "table `a`: is derived from itself: a ← a"),
        ([TableSpec("sales"), TableSpec("v", ("sale",))], "table `v`: is derived from `sale`, which is no table; did you mean `sales`?"),
        ([TableSpec("a", period_s=-1)], "table `a`: period_s is -1; it cannot be negative"),
        ([TableSpec("a", period_s=0)], "period_s is 0"),
        ([TableSpec("a", staleness_bound_s=float("nan"))], "staleness_bound_s is nan"),
        ([TableSpec("a", priority=-2)], "priority is -2"),
        ([TableSpec("a"), TableSpec("a")], "table `a`: is described twice"),
        ([TableSpec("a"), TableSpec("v", ("a",), lateness_bound_s=3)], "lateness_bound_s belongs to base tables"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_warehouse_names_file_table_and_reason(tables: list[TableSpec], told: str) -> None:
    with pytest.raises(BadInput) as caught:
        Warehouse(tables, "w.yaml")
    assert str(caught.value).startswith("w.yaml: table `")
    assert told in str(caught.value)


def test_unknown_algorithms_are_told_with_their_near_match() -> None:
    with pytest.raises(BadInput, match="did you mean `max-benefit`"):
        algorithm_named("max-benfit")
    with pytest.raises(BadInput, match="did you mean `proportional`"):
        tracks_named("proportionl")
    with pytest.raises(BadInput, match="tracks is 0"):
        Settings(tracks=0)


def test_a_table_with_views_cannot_be_removed() -> None:
    scheduler = Scheduler(Warehouse([TableSpec("a"), TableSpec("v", ("a",))]), ONE)
    with pytest.raises(BadInput, match="cannot be removed: v derive from it"):
        scheduler.remove_table("a", 1.0)


# ---------------------------------------------------------------- releasing, merging, chopping


def test_updates_cascade_breadth_first() -> None:
    tables = [base("a"), TableSpec("v1", ("a",), alpha_s=1, beta=0), TableSpec("v2", ("a",), alpha_s=1, beta=0)]
    tables += [TableSpec("w", ("v1",), alpha_s=1, beta=0)]
    scheduler = Scheduler(Warehouse(tables), replace(ONE, policy="fifo"))
    scheduler.arrive("a", 1.0, 1.0)
    order = []
    now = 1.0
    while jobs := scheduler.start(now):
        order += [name for job in jobs for name in job.tables]
        now += 1
        for job in jobs:
            scheduler.finish(job, now)
    assert order == ["a", "v1", "v2", "w"]


def test_pending_updates_merge_and_chopping_cuts_at_whole_batches() -> None:
    whole = Scheduler(Warehouse([base("a", beta=1.0)]), replace(ONE, chop=None))
    chopped = Scheduler(Warehouse([base("a", beta=1.0)]), replace(ONE, chop=3.0))
    for scheduler in (whole, chopped):
        for number in range(1, 8):
            scheduler.arrive("a", 10.0 * number, 10.0 * number)
    assert whole.start(70.0)[0].loads == (Load("a", 0.0, 70.0, 7),)
    (job,) = chopped.start(70.0)
    assert job.loads == (Load("a", 0.0, 30.0, 3),)
    chopped.finish(job, 71.0)
    assert chopped.start(71.0)[0].loads == (Load("a", 30.0, 60.0, 3),)


def test_an_update_is_not_chopped_where_that_would_not_make_it_shorter() -> None:
    """alpha is ten times what a period's data take: seven periods are done in less than thrice the usual time."""
    scheduler = Scheduler(Warehouse([base("a", alpha_s=1.0, beta=0.01)]), replace(ONE, chop=3.0))
    for number in range(1, 8):
        scheduler.arrive("a", 10.0 * number, 10.0 * number)
    (job,) = scheduler.start(70.0)
    assert job.loads[0].batches == 7
    assert job.expected_s < 3 * scheduler.tables["a"].usual_seconds


def test_the_paper_chops_at_periods_whatever_an_update_costs() -> None:
    tables = [base("a", alpha_s=1.0, beta=0.01)]
    scheduler = Scheduler(Warehouse(tables), replace(ONE, chop=3.0, chop_by_cost=False))
    for number in range(1, 8):
        scheduler.arrive("a", 10.0 * number, 10.0 * number)
    assert scheduler.start(70.0)[0].loads[0].batches == 3


@pytest.mark.parametrize("learnt", [0, 5], ids=["nothing was seen yet", "always as much"])
def test_after_an_overload_an_update_of_unknown_cost_is_chopped_at_periods(learnt: int) -> None:
    scheduler = Scheduler(Warehouse([base("a", alpha_s=None, beta=None)]), replace(ONE, chop=3.0))
    now = 0.0
    for _ in range(learnt):
        now += 10.0
        scheduler.arrive("a", now, now)
        (job,) = scheduler.start(now)
        scheduler.finish(job, now + 1.0)
    assert scheduler.tables["a"].beta == 0.0
    for number in range(1, 101):
        scheduler.arrive("a", now + 10.0 * number, now + 10.0 * number)
    now += 1000.0
    (job,) = scheduler.start(now)
    assert job.loads[0].batches == 3


def test_more_is_loaded_at_once_step_by_step_where_it_is_seen_to_take_no_longer() -> None:
    scheduler = Scheduler(Warehouse([base("a", alpha_s=None, beta=None)]), replace(ONE, chop=3.0))
    for number in range(1, 101):
        scheduler.arrive("a", 10.0 * number, 10.0 * number)
    now, batches = 1000.0, []
    while jobs := scheduler.start(now):
        batches.append(jobs[0].loads[0].batches)
        now += 1.0
        scheduler.finish(jobs[0], now)
    assert batches == [3, 3, 3, 9, 27, 55]


def test_a_table_that_is_held_waits_and_others_go_on() -> None:
    scheduler = Scheduler(
        Warehouse([base("a"), base("b", priority=0.1), TableSpec("v", ("a",), alpha_s=1, beta=0)]), ONE
    )
    scheduler.arrive("a", 10.0, 10.0)
    (job,) = scheduler.start(10.0)
    scheduler.finish(job, 11.0, failed=True, hold=["a"])
    scheduler.arrive("a", 20.0, 20.0)
    scheduler.arrive("b", 20.0, 20.0)
    scheduler.check()
    (other,) = scheduler.start(20.0)
    assert other.tables == ("b",)
    scheduler.finish(other, 21.0)
    assert scheduler.start(21.0) == []
    scheduler.resume("a", 22.0)
    scheduler.check()
    assert scheduler.start(22.0)[0].loads == (Load("a", 0.0, 20.0, 2),)


def test_a_failed_job_is_loaded_again_with_what_came_meanwhile() -> None:
    scheduler = Scheduler(Warehouse([base("a")]), ONE)
    scheduler.arrive("a", 10.0, 10.0)
    (job,) = scheduler.start(10.0)
    scheduler.arrive("a", 20.0, 20.0)
    scheduler.finish(job, 21.0, failed=True)
    assert scheduler.tables["a"].freshness == 0.0
    assert scheduler.start(21.0)[0].loads == (Load("a", 0.0, 20.0, 2),)


PERIODS = replace(ONE, chop=3.0, chop_by_cost=False)


def view_that_cannot_move() -> Scheduler:
    """`v` reads `a`, which has fifty periods' data, and `b`, which its driver knows to hold nothing yet."""
    tables = [base("a"), base("b"), TableSpec("v", ("a", "b"), alpha_s=1, beta=1)]
    scheduler = Scheduler(Warehouse(tables), PERIODS, now=1000.0, freshness={"a": 0.0, "v": 0.0})
    scheduler.arrive("a", 500.0, 1000.0)
    (job,) = scheduler.start(1000.0)
    scheduler.finish(job, 1001.0)
    return scheduler


def test_a_view_that_could_not_move_waits_for_its_sources_and_is_not_tried_over_and_over() -> None:
    scheduler = view_that_cannot_move()
    (job,) = scheduler.start(1001.0)
    job.loads = (job.loads[0]._replace(upto=0.0),)
    scheduler.finish(job, 1002.0)
    scheduler.check()
    assert scheduler.start(1002.0) == []
    scheduler.arrive("b", 1003.0, 1003.0)
    (job,) = scheduler.start(1003.0)
    scheduler.finish(job, 1004.0)
    assert scheduler.start(1004.0)[0].loads == (Load("v", 0.0, 30.0),)


def test_a_view_that_could_not_move_is_tried_again_where_a_source_moved_meanwhile() -> None:
    scheduler = view_that_cannot_move()
    scheduler.tables["b"].safe = float("-inf")
    (job,) = scheduler.start(1001.0)
    scheduler.punctuate("b", 700.0, 1001.5)
    job.loads = (job.loads[0]._replace(upto=0.0),)
    scheduler.finish(job, 1002.0)
    scheduler.check()
    assert scheduler.start(1002.0)[0].loads == (Load("v", 0.0, 30.0),)


def test_a_base_table_is_as_fresh_and_safe_as_its_driver_says() -> None:
    """The newest of what arrived was gone when it was to be loaded."""
    tables = [base("a"), TableSpec("v", ("a",), alpha_s=1, beta=0)]
    scheduler = Scheduler(Warehouse(tables), ONE)
    scheduler.arrive("a", 10.0, 10.0)
    scheduler.arrive("a", 900.0, 10.0)
    (job,) = scheduler.start(10.0)
    job.loads = (job.loads[0]._replace(upto=10.0),)
    scheduler.finish(job, 12.0, safe={"a": 10.0})
    scheduler.check()
    table = scheduler.tables["a"]
    assert (table.freshness, table.available, table.safe) == (10.0, 10.0, 10.0)
    assert scheduler.tables["v"].available == 10.0


def test_tables_that_begin_earlier_take_the_promises_with_them_that_wait() -> None:
    tables = [base("a"), TableSpec("v", ("a",), alpha_s=1, beta=0)]
    scheduler = Scheduler(Warehouse(tables), ONE, now=1000.0)
    scheduler.tables["a"].safe = float("-inf")
    scheduler.arrive("a", 1000.0, 1000.0)
    scheduler.punctuate("a", 50.0, 1000.0)
    (job,) = scheduler.start(1000.0)
    scheduler.begin_from(["a", "v"], 90.0, 1000.5)
    scheduler.arrive("a", 100.0, 1000.5)
    job.loads = (job.loads[0]._replace(upto=90.0),)
    scheduler.finish(job, 1001.0, safe={"a": 50.0})
    scheduler.check()
    assert scheduler.tables["a"].staleness(1001.0) == 911.0
    (job,) = scheduler.start(1001.0)
    assert job.loads == (Load("a", 90.0, 100.0, 1),)
    scheduler.finish(job, 1002.0)
    assert scheduler.start(1002.0)[0].loads == (Load("v", 90.0, 100.0),)


def test_a_clock_that_goes_backwards_moves_nothing_back() -> None:
    scheduler = Scheduler(Warehouse([base("a")]), ONE)
    scheduler.arrive("a", 10.0, 10.0)
    (job,) = scheduler.start(10.0)
    scheduler.finish(job, 4.0)
    assert scheduler.now == 10.0
    assert scheduler.backwards == 1
    assert scheduler.tables["a"].area == 50.0


# ---------------------------------------------------------------- tracks


def heterogeneous(sharing: str, *, aggressive: bool) -> Scheduler:
    """Two short jobs and one long one on two tracks, one of which is the long one's home."""
    tables = [base("s1"), base("s2"), base("long", period_s=1000.0, alpha_s=200.0)]
    return Scheduler(Warehouse(tables), Settings(sharing=sharing, tracks=2, aggressive=aggressive, k=2))


def test_a_long_job_never_takes_the_track_of_short_ones() -> None:
    scheduler = heterogeneous("proportional", aggressive=True)
    scheduler.arrive("long", 1000.0, 1000.0)
    (long,) = scheduler.start(1000.0)
    assert long.track == 0
    scheduler.arrive("s1", 1000.0, 1000.0)
    assert [job.track for job in scheduler.start(1000.0)] == [1]


def test_a_promoted_job_gives_way_unless_it_is_aggressive() -> None:
    tracks = {}
    for aggressive in (False, True):
        scheduler = heterogeneous("edf-partitioned", aggressive=aggressive)
        homes = {table.name: group for group in scheduler.partition.groups for table in group.tables}
        homes["s1"].promotable = homes["s2"].promotable = homes["long"].home
        for name in ("s1", "s2", "long"):
            scheduler.arrive(name, 10.0, 10.0)
        tracks[aggressive] = [job.tables[0] for job in scheduler.start(10.0)]
    assert tracks[False] == ["s1", "long"]
    assert tracks[True] == ["s1", "s2"]


def on_three_tracks(*longs: str, aggressive: bool) -> dict[str, int]:
    """Two short jobs with one track of their own, and long ones whose two tracks they may use; released together."""
    tables = [base("s1", priority=9.0), base("s2", priority=8.0), *(base(name, period_s=1000.0) for name in longs)]
    settings = Settings(sharing="proportional", tracks=3, aggressive=aggressive, k=2)
    scheduler = Scheduler(Warehouse(tables), settings)
    short, long = (scheduler.tables[name].group for name in ("s1", "l1"))
    short.home, short.promotable, long.home = (2,), (0, 1), (1, 0)
    for table in tables:
        scheduler.arrive(table.name, 10.0, 10.0)
    return {job.tables[0]: job.track for job in scheduler.start(10.0)}


@pytest.mark.parametrize("aggressive", [False, True])
def test_a_job_is_promoted_to_a_track_that_no_job_at_home_there_would_be_scheduled_on(aggressive: bool) -> None:
    """Step 2e: the long job takes the first of its tracks, and the second would stay idle."""
    assert on_three_tracks("l1", aggressive=aggressive) == {"s1": 2, "s2": 0, "l1": 1}


def test_a_job_is_not_promoted_to_a_track_that_one_at_home_would_be_scheduled_on() -> None:
    assert on_three_tracks("l1", "l2", aggressive=False) == {"s1": 2, "l1": 1, "l2": 0}
    assert on_three_tracks("l1", "l2", aggressive=True) == {"s1": 2, "s2": 0, "l1": 1}


def test_basic_proportional_leaves_tracks_free_that_any_job_may_use() -> None:
    """A load of 0.8 needs one of three tracks; two are free, and are tried after a job's own."""
    tables = [base("s1", alpha_s=2.0), base("s2", alpha_s=2.0), base("long", period_s=1000.0, alpha_s=400.0)]
    scheduler = Scheduler(Warehouse(tables), Settings(sharing="proportional", tracks=3, all_tracks=False, k=2))
    assert scheduler.partition.free == (1, 2)
    assert {group.home for group in scheduler.partition.groups} == {(0,)}
    for name in ("long", "s1", "s2"):
        scheduler.arrive(name, 1000.0, 1000.0)
    assert sorted(job.track for job in scheduler.start(1000.0)) == [0, 1, 2]
    whole = Scheduler(Warehouse(tables), Settings(sharing="proportional", tracks=3, k=2))
    assert whole.partition.free == ()
    assert {track for group in whole.partition.groups for track in group.home} == {0, 1, 2}


def test_edf_partitioned_leaves_tracks_free_that_it_does_not_need() -> None:
    scheduler = Scheduler(Warehouse([base("a"), base("b")]), Settings(sharing="edf-partitioned", tracks=3))
    assert scheduler.partition.free == (1, 2)
    for name in ("a", "b"):
        scheduler.arrive(name, 10.0, 10.0)
    assert [(job.tables[0], job.track) for job in scheduler.start(10.0)] == [("a", 0), ("b", 1)]


def test_prioritized_edf_goes_by_priority_and_then_by_deadline() -> None:
    """Deadlines 25, 14, 31 and 22; the two of priority 5 come first, the nearer deadline before the other."""
    tables = [
        base("low_late", period_s=20.0), base("low_soon", period_s=8.0),
        base("high_late", period_s=30.0, priority=5.0), base("high_soon", period_s=15.0, priority=5.0),
    ]  # fmt: skip
    orders = {}
    for policy in ("edf-p", "edf"):
        scheduler = Scheduler(Warehouse(tables), replace(ONE, policy=policy))
        for name, at in (("high_late", 1.0), ("low_late", 5.0), ("low_soon", 6.0), ("high_soon", 7.0)):
            scheduler.arrive(name, at, at)
        orders[policy], now = [], 7.0
        while jobs := scheduler.start(now):
            orders[policy] += jobs[0].tables
            now += 1.0
            scheduler.finish(jobs[0], now)
    assert orders["edf-p"] == ["high_soon", "high_late", "low_soon", "low_late"]
    assert orders["edf"] == ["low_soon", "high_soon", "low_late", "high_late"]


def test_what_edf_partitioned_cannot_fit_shares_the_last_track() -> None:
    scheduler = Scheduler(
        Warehouse([base(f"t{number}", alpha_s=6.0) for number in range(5)]),
        Settings(sharing="edf-partitioned", tracks=2),
    )
    assert not scheduler.partition.fits
    assert [len(group.tables) for group in scheduler.partition.groups] == [1, 4]


def test_tracks_are_shared_anew_when_tables_come_and_when_parameters_change_much() -> None:
    scheduler = Scheduler(Warehouse([base("a", alpha_s=None, beta=None), base("b")]), Settings(tracks=2))
    assert scheduler.repartitions == 1
    scheduler.add_table(base("c"), 1.0)
    assert scheduler.repartitions == 2
    for number in range(1, 4):
        scheduler.arrive("a", 10.0 * number, 10.0 * number)
        (job,) = scheduler.start(10.0 * number)
        scheduler.finish(job, 10.0 * number + 4.0)
    assert scheduler.tables["a"].usual_seconds == pytest.approx(4.0)
    scheduler.start(40.0)
    assert scheduler.repartitions == 3


# ---------------------------------------------------------------- learning


def test_of_many_tables_that_are_learnt_the_tracks_are_not_shared_anew_for_each() -> None:
    many = 400
    specs = [base(f"t{number}", alpha_s=None, beta=None) for number in range(many)]
    scheduler = Scheduler(Warehouse(specs), Settings(tracks=4))
    for round_ in range(1, 4):
        now = 10.0 * round_
        for spec in specs:
            scheduler.arrive(spec.name, now, now)
        while jobs := scheduler.start(now):
            now += 0.02
            for job in jobs:
                scheduler.finish(job, now)
    assert 2 <= scheduler.repartitions <= 2 + 3 * 8
    assert all(table.shared_s == pytest.approx(0.02) for table in scheduler.tables.values()), "and none is forgotten"


def test_alpha_and_beta_are_learnt_from_updates() -> None:
    estimate = CostEstimate(None, None)
    for n in (10.0, 20.0, 50.0, 15.0, 80.0):
        estimate.observe(n, 2.0 + 0.3 * n)
    assert estimate.values() == pytest.approx((2.0, 0.3))


def test_what_was_given_stays_and_the_rest_is_learnt() -> None:
    estimate = CostEstimate(2.0, None)
    estimate.observe(10.0, 7.0)
    assert estimate.values() == pytest.approx((2.0, 0.5))
    assert not CostEstimate(1.0, 0.1).learns


def test_one_update_that_took_far_too_long_teaches_little() -> None:
    estimate = CostEstimate(None, None)
    for _ in range(20):
        estimate.observe(1.0, 0.05)
    estimate.observe(1.0, 5.0)  # the machine stood still
    assert estimate.alpha + estimate.beta < 2 * 0.05
    for _ in range(60):  # and what stays slow is believed
        estimate.observe(1.0, 5.0)
    assert estimate.alpha + estimate.beta == pytest.approx(5.0, rel=0.1)


def test_what_was_learnt_of_a_view_is_not_forgotten_with_its_first_update() -> None:
    tables = [base("a"), TableSpec("v", ("a",))]
    scheduler = Scheduler(Warehouse(tables), ONE)
    now = 0.0
    for number in range(1, 12):
        now = 10.0 * number
        upto = now if number % 3 else now - 5.0
        scheduler.arrive("a", upto, now)
        while jobs := scheduler.start(now):
            (load,) = jobs[0].loads
            now += 1.0 if load.table == "a" else 2.0 + 0.1 * (load.upto - load.after)
            scheduler.finish(jobs[0], now)
    learnt = scheduler.learnt()
    assert (learnt["v"].alpha_s, learnt["v"].beta, learnt["v"].period_s) == pytest.approx((2.0, 0.1, 10.0), rel=0.05)
    again = Scheduler(Warehouse(tables), ONE, learnt=learnt)
    view = again.tables["v"]
    assert view.cost.known
    view.cost.observe(10.0, 3.0)
    assert view.cost.values() == pytest.approx((2.0, 0.1), rel=0.05)
    assert view.periods.value is None, "its period is its ancestors', whatever it was"


def test_the_first_update_in_a_process_is_cold_and_nothing_is_learnt_from_it() -> None:
    scheduler = Scheduler(Warehouse([TableSpec("a", period_s=1.0)]), ONE, learnt={"a": Learnt(0.05, 0.0, 1.0, 9)})
    expected = scheduler.tables["a"].usual_seconds
    for number in range(3):
        scheduler.arrive("a", 10.0 * number + 1, 10.0 * number + 1)
        (job,) = scheduler.start(10.0 * number + 1)
        scheduler.finish(job, job.started + (6.0 if number == 0 else 0.05), cold=number == 0)
    assert scheduler.tables["a"].usual_seconds == pytest.approx(expected, rel=0.01)


def test_a_period_is_learnt_when_it_is_not_given() -> None:
    estimate = PeriodEstimate(None)
    for at in (0.0, 9.0, 20.0, 30.0, 40.0):
        estimate.observe(at)
    assert estimate.value == pytest.approx(10.0, rel=0.05)


def test_a_period_that_was_learnt_is_not_lost_at_the_first_gap_after_a_restart() -> None:
    specs = [base("a", period_s=None)]
    scheduler = Scheduler(Warehouse(specs), ONE, learnt={"a": Learnt(1.0, 0.0, 10.0, 40)})
    scheduler.arrive("a", 1.0, 1.0)
    scheduler.arrive("a", 101.0, 101.0)
    assert scheduler.tables["a"].periods.value == pytest.approx(10.0 + 0.05 * 90.0)


def test_what_a_run_learnt_is_where_the_next_begins() -> None:
    world = World(
        Warehouse([TableSpec("a"), TableSpec("v", ("a",))]),
        {"a": Stream(10.0, 0.0, jitter=0.2)},
        {"a": Cost(1.0, 0.1), "v": Cost(0.5, 0.05)},
    )
    learnt = simulate(world, Settings(tracks=1), events=3_000).scheduler.learnt()
    assert learnt["a"].period_s == pytest.approx(10.0, rel=0.1)
    again = Scheduler(world.warehouse, Settings(tracks=1), learnt=learnt)
    assert again.tables["a"].usual_seconds == pytest.approx(2.0, rel=0.25)
    assert again.tables["v"].period == again.tables["a"].period
    assert again.learnt() == {} or isinstance(again.learnt()["a"], Learnt)


# ---------------------------------------------------------------- beyond the paper


def busy_world(bounded: float | None) -> World:
    """Twelve tables that load one track fully after slow periods; the first has a bound and the lowest priority."""
    tables = [
        base(f"t{number}", priority=1.0 if number == 0 else 3.0, alpha_s=0.5, beta=0.02,
             staleness_bound_s=bounded if number == 0 else None)
        for number in range(12)
    ]  # fmt: skip
    return World(
        Warehouse(tables),
        {table.name: Stream(10.0, 0.8 * number) for number, table in enumerate(tables)},
        {table.name: Cost(0.5, 0.02) for table in tables},
        slowdown=2.5,
        normal_s=200.0,
        slow_s=100.0,
    )


def test_a_table_that_begins_beyond_its_bound_has_broken_it() -> None:
    tables = [
        base("a", staleness_bound_s=5.0),
        TableSpec("v", ("a",), staleness_bound_s=5.0),
        base("b", staleness_bound_s=5.0),
    ]
    scheduler = Scheduler(Warehouse(tables), ONE, now=100.0, freshness={"a": 10.0, "v": 100.0, "b": 98.0})
    scheduler.begin_from(["v"], 20.0, 101.0)
    scheduler.account(102.0)
    assert bounds_report(scheduler) == {"kept": ["b"], "broken": ["a", "v"]}
    assert [(table.breaks, table.broken_s) for table in scheduler.tables.values()] == [(1, 2.0), (0, 0.0), (1, 1.0)]


def test_a_table_about_to_break_its_bound_gains_weight() -> None:
    world = busy_world(25.0)
    with_gain = simulate(world, ONE, events=20_000).scheduler.tables["t0"]
    without = simulate(world, replace(ONE, bounds=False), events=20_000).scheduler.tables["t0"]
    assert without.breaks > 0
    assert with_gain.broken_s < 0.5 * without.broken_s


def test_the_sources_of_a_view_whose_bound_is_near_gain_weight_too() -> None:
    tables = [base("a"), TableSpec("v", ("a",), 1.0, staleness_bound_s=8.0, alpha_s=1, beta=0), base("b", priority=5.0)]
    scheduler = Scheduler(Warehouse(tables), ONE)
    for name in ("a", "b"):
        scheduler.arrive(name, 7.0, 7.0)
    assert scheduler.start(7.0)[0].tables == ("a",)  # 10 against 5
    assert scheduler.tables["v"].weight == 10.0


def test_in_a_diamond_all_sources_lose_the_weight_again_that_a_near_bound_gave_them() -> None:
    tables = [base("a"), TableSpec("m", ("a",), alpha_s=1, beta=0),
              TableSpec("v", ("a", "m"), 1.0, staleness_bound_s=8.0, alpha_s=1, beta=0)]  # fmt: skip
    scheduler = Scheduler(Warehouse(tables), ONE)
    scheduler.arrive("a", 7.0, 7.0)
    for at in (7.0, 8.0, 9.0):
        (job,) = scheduler.start(at)
        assert scheduler.tables[job.tables[0]].weight == 10.0
        scheduler.finish(job, at + 1)
    assert {name: table.weight for name, table in scheduler.tables.items()} == {"a": 1.0, "m": 1.0, "v": 1.0}


def test_a_view_over_buckets_is_never_chopped_shorter_than_a_bucket() -> None:
    tables = [base("a"), TableSpec("v", ("a",), period_s=1.0, alpha_s=0.1, beta=1.0, step_s=60.0)]
    scheduler = Scheduler(Warehouse(tables), ONE)
    scheduler.arrive("a", 300.0, 300.0)
    (job,) = scheduler.start(300.0)
    scheduler.finish(job, 301.0)
    (job,) = scheduler.start(301.0)
    (load,) = job.loads
    assert (load.after, load.upto) == (0.0, 60.0)


def siblings(scan_share: float) -> Scheduler:
    views = [
        TableSpec(f"v{number}", ("a",), alpha_s=1.0, beta=0.1, priority=3.0 - number, scan_share=scan_share)
        for number in range(3)
    ]
    scheduler = Scheduler(Warehouse([base("a"), *views]), ONE)
    scheduler.arrive("a", 10.0, 10.0)
    (job,) = scheduler.start(10.0)
    scheduler.finish(job, 11.0)
    return scheduler


def test_views_that_scan_the_same_partitions_are_updated_by_one_job_where_that_is_cheaper() -> None:
    (job,) = siblings(0.8).start(11.0)
    assert job.tables == ("v0", "v1", "v2")
    assert job.expected_s == pytest.approx(1.6 + 3 * 0.4)  # the scan once, and the rest of each
    assert {load[1:] for load in job.loads} == {(0.0, 10.0, 0)}


def test_and_one_by_one_where_the_first_would_be_held_up() -> None:
    assert siblings(0.0).start(11.0)[0].tables == ("v0",)
    # v1 would bring 2/1.8 a second of its own, less than the 3/2 that v0 brings by itself.
    assert siblings(0.1).start(11.0)[0].tables == ("v0",)


def unknown_scans(settings: Settings = ONE) -> Scheduler:
    views = [TableSpec(f"v{number}", ("a",), alpha_s=1.0, beta=0.0, scan_share=None) for number in range(3)]
    return Scheduler(Warehouse([base("a"), *views]), settings)


def together(scheduler: Scheduler, number: int, seconds: float) -> tuple[str, ...]:
    """A batch arrives and is loaded, then the first job of the views takes so long; the tables that it was for."""
    at = 100.0 * number
    scheduler.arrive("a", at, at)
    (job,) = scheduler.start(at)
    scheduler.finish(job, at + 1.0)
    (job,) = scheduler.start(at + 1.0)
    scheduler.finish(job, at + 1.0 + seconds)
    for late in range(3):  # whoever was not in it
        for other in scheduler.start(at + 50.0 + late):
            scheduler.finish(other, at + 50.5 + late)
    return job.tables


def test_what_one_job_for_several_views_saves_is_learnt_from_such_jobs() -> None:
    scheduler = unknown_scans()
    assert together(scheduler, 1, 1.4) == ("v0", "v1", "v2")
    # 3 s one by one and 1.4 s together: 0.8 of each is what they share.
    assert scheduler.tables["v1"].scan.value == pytest.approx(0.8)
    assert scheduler.tables["v1"].scan.value == scheduler.tables["v2"].scan.value
    assert together(unknown_scans(replace(ONE, together=False)), 1, 1.0) == ("v0",)


def test_and_it_is_given_up_where_one_job_proves_no_cheaper() -> None:
    scheduler = unknown_scans()
    assert together(scheduler, 1, 4.0) == ("v0", "v1", "v2")
    assert together(scheduler, 2, 1.0) == ("v0",)


def test_one_job_for_several_views_is_not_so_long_that_others_wait_for_it() -> None:
    views = [TableSpec(f"v{number}", ("a",), alpha_s=1.0, beta=0.0, scan_share=0.2) for number in range(9)]
    scheduler = Scheduler(Warehouse([base("a"), *views]), ONE)
    # 0.2 and 0.8 for each: three of them take less than three times as long as one, four take more.
    assert together(scheduler, 1, 2.6) == ("v0", "v1", "v2")


def test_one_job_for_several_views_keeps_them_fresher_where_they_mostly_scan() -> None:
    def world(scan_share: float) -> World:
        views = [TableSpec(f"v{number}", ("a",), alpha_s=1, beta=0.1, scan_share=scan_share) for number in range(6)]
        costs = {name: Cost(1.0, 0.1) for name in ("a", *(view.name for view in views))}
        return World(Warehouse([base("a", alpha_s=1.0, beta=0.1), *views]), {"a": Stream(10.0, 0.0)}, costs)

    alone, together = (simulate(world(share), ONE, events=4_000) for share in (0.0, 0.8))
    assert together.jobs < together.scheduler.tables["v0"].updates + together.scheduler.tables["a"].updates + 100
    assert together.weighted_staleness < 0.7 * alone.weighted_staleness
