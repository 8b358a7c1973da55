"""The paper's worked examples, to the digit (streaming warehouse, sections 2 and 3)."""

from __future__ import annotations

import pytest

from engine.refresh.inheritance import Inheritance
from engine.refresh.model import TableSpec, Warehouse
from engine.refresh.scheduler import Scheduler, Settings
from engine.refresh.tracks.edf_partitioned import home_tracks
from engine.refresh.tracks.proportional import clusters, track_ranges


def table(name: str, seconds: float, priority: float = 1.0, period: float | None = None) -> TableSpec:
    """A base table whose updates always take the same time."""
    return TableSpec(name, priority=priority, period_s=period, alpha_s=seconds, beta=0.0)


def total_staleness(order: tuple[str, str]) -> dict[str, float]:
    """Run the two jobs of section 3.1 in an order, and add up the staleness from their release on."""
    warehouse = Warehouse([table("T1", 3), table("T2", 2)])
    scheduler = Scheduler(warehouse, Settings(tracks=1, sharing="one"), freshness={"T1": -10, "T2": -5})
    now = 0.0
    for name in order:
        scheduler.arrive(name, 0.0, now)
        (job,) = scheduler.start(now)
        now += job.expected_s
        scheduler.finish(job, now)
    scheduler.account(5.0)
    return {name: one.area for name, one in scheduler.tables.items()}


def test_max_benefit_first_gives_80_and_the_other_order_85() -> None:
    assert total_staleness(("T1", "T2")) == {"T1": 42.5, "T2": 37.5}
    assert sum(total_staleness(("T2", "T1")).values()) == 85


@pytest.mark.parametrize(
    ("policy", "first"), [("max-benefit", "T1"), ("max-benefit-lookahead", "T1"), ("fifo", "T2"), ("edf", "T2")]
)
def test_of_two_jobs_released_together(policy: str, first: str) -> None:
    warehouse = Warehouse([table("T1", 3, period=20), table("T2", 2, period=10)])
    scheduler = Scheduler(warehouse, Settings(policy, "one", 1), freshness={"T1": -10, "T2": -5})
    scheduler.arrive("T2", 0.0, 0.0)
    scheduler.arrive("T1", 0.0, 0.0)
    (job,) = scheduler.start(0.0)
    assert job.tables == (first,)


def expecting_a_better_one(policy: str) -> Scheduler:
    """J1 and J2 are released at 0, and J3 (priority 10, E = 3, a delta of 50) is expected at 1."""
    warehouse = Warehouse([table("T1", 3), table("T2", 2), table("T3", 3, priority=10, period=50)])
    settings = Settings(policy, "one", 1, chop=None)
    scheduler = Scheduler(warehouse, settings, now=-49.0, freshness={"T1": -10, "T2": -5, "T3": -99})
    scheduler.arrive("T3", -49.0, -49.0)
    (job,) = scheduler.start(-49.0)
    scheduler.finish(job, -46.0)
    for name in ("T1", "T2"):
        scheduler.arrive(name, 0.0, 0.0)
    return scheduler


def test_lookahead_finds_505_over_5_for_j2_and_j3_and_runs_j2() -> None:
    scheduler = expecting_a_better_one("max-benefit-lookahead")
    ((expected, coming, delta),) = scheduler.expected_releases(0.0, 3.0, 8)
    assert (expected, coming.name, delta) == (1.0, "T3", 50.0)
    j2 = scheduler.tables["T2"]
    together = (j2.weight * j2.delta + coming.weight * delta) / (j2.seconds + coming.alpha + coming.beta * delta)
    assert together == 505 / 5 == 101
    assert scheduler.tables["T1"].benefit == 10 / 3
    assert [job.tables for job in scheduler.start(0.0)] == [("T2",)]


def test_max_benefit_without_lookahead_runs_j1_all_the_same() -> None:
    assert [job.tables for job in expecting_a_better_one("max-benefit").start(0.0)] == [("T1",)]


PARTITIONED = [
    table("J1", 1, period=4),
    table("J2", 1, period=4),
    table("J3", 2, period=8),
    table("J4", 1.25, period=10),
]


def test_edf_partitioned_puts_two_jobs_on_each_track_and_only_j4_can_be_promoted() -> None:
    scheduler = Scheduler(Warehouse(PARTITIONED), Settings(sharing="edf-partitioned", tracks=2))
    homes = home_tracks(list(scheduler.tables.values()))
    assert [([one.name for one in home.tables], home.utilization) for home in homes] == [
        (["J1", "J2"], 0.5),
        (["J3", "J4"], 0.375),
    ]
    promotable = {one.name: group.promotable for group in scheduler.partition.groups for one in group.tables}
    assert promotable == {"J1": (), "J2": (), "J3": (), "J4": (0,)}
    assert scheduler.partition.fits


def test_edf_is_schedulable_up_to_one_minus_the_longest_over_the_shortest_period() -> None:
    scheduler = Scheduler(Warehouse(PARTITIONED), Settings(tracks=2))
    first, second = home_tracks(list(scheduler.tables.values()))
    j3, j4 = scheduler.tables["J3"], scheduler.tables["J4"]
    assert not first.schedulable_with(j3)  # 0.75 > 1 - 2/4
    assert first.schedulable_with(j4)  # 0.625 <= 1 - 1.25/4
    assert not second.schedulable_with(scheduler.tables["J1"])  # 0.625 > 1 - 2/4


def test_proportional_with_k_2_makes_two_clusters_that_share_the_second_track() -> None:
    scheduler = Scheduler(Warehouse(PARTITIONED), Settings(sharing="proportional", tracks=2, k=2))
    tables = list(scheduler.tables.values())
    found = clusters(tables, 2)
    assert [sorted(one.name for one in cluster) for cluster in found] == [["J1", "J2"], ["J3", "J4"]]
    loads = [sum(one.utilization for one in cluster) for cluster in found]
    assert sum(loads) == 0.875
    (low, high), (lowest, middle) = track_ranges(loads, 2)
    assert (lowest, high) == (0.0, pytest.approx(2.0))
    assert low == middle == pytest.approx(0.375 * 2 / 0.875)
    # C0 has both tracks, its own first; C1 has the one that they share.
    assert [group.home for group in scheduler.partition.groups] == [(1, 0), (0,)]


def test_a_rarely_updated_table_with_little_data_is_no_part_of_the_cluster_of_the_often_updated_ones() -> None:
    often = [table(f"often_{number}", 0.05 + 0.001 * number, period=1.0) for number in range(6)]
    rarely = [table(f"rarely_{number}", seconds, period=30.0) for number, seconds in enumerate((0.052, 0.054, 12.0))]
    scheduler = Scheduler(Warehouse([*often, *rarely]), Settings(sharing="proportional", tracks=2, k=10))
    found = clusters(list(scheduler.tables.values()), 10)
    assert [{one.name.split("_")[0] for one in cluster} for cluster in found] == [{"often"}, {"rarely"}]
    assert [len(cluster) for cluster in found] == [6, 3]


@pytest.mark.parametrize(
    ("way", "weights"),
    [
        (Inheritance.NONE, [0.001, 1.0, 10.0]),
        (Inheritance.SUM, [11.001, 11.0, 10.0]),
        (Inheritance.MAX, [10.0, 10.0, 10.0]),
        (Inheritance.MAX_PLUS, [40.0, 20.0, 10.0]),
    ],
)
def test_a_chain_inherits_the_priority_of_its_last_view(way: Inheritance, weights: list[float]) -> None:
    chain = [
        TableSpec("base", priority=0.001),
        TableSpec("view", ("base",), priority=1.0),
        TableSpec("last", ("view",), priority=10.0),
    ]
    scheduler = Scheduler(Warehouse(chain), Settings(inheritance=way, max_plus_k=2.0))
    assert [one.weight for one in scheduler.tables.values()] == weights


def test_fig_2_two_batches_loaded_together_make_the_staleness_drop_to_2() -> None:
    scheduler = Scheduler(Warehouse([TableSpec("T", alpha_s=1.0, beta=0.0)]), Settings(tracks=1), now=0.0)
    scheduler.arrive("T", 3.0, 4.0)
    (job,) = scheduler.start(4.0)
    scheduler.finish(job, 5.0)
    assert scheduler.tables["T"].staleness(5.0) == 2.0
    scheduler.arrive("T", 7.0, 7.0)
    assert scheduler.tables["T"].delta == 4.0
    scheduler.arrive("T", 9.0, 9.0)
    (job,) = scheduler.start(10.0)
    assert job.loads[0].batches == 2
    scheduler.finish(job, 11.0)
    assert scheduler.tables["T"].staleness(11.0) == 2.0
    assert scheduler.tables["T"].peak == 8.0


def test_a_view_goes_up_to_the_safe_trailing_edge_of_its_sources() -> None:
    """Section 2.2: T1 at 10:00 with nothing before 9:58 to come, T2 at 10:05 with nothing before 10:01."""
    warehouse = Warehouse([TableSpec("T1", lateness_bound_s=120), TableSpec("T2"), TableSpec("D", ("T1", "T2"))])
    ten = 36_000.0
    scheduler = Scheduler(warehouse, Settings(tracks=3), now=ten - 3600)
    scheduler.punctuate("T2", ten - 60, ten - 30)
    for name, upto in (("T1", ten), ("T2", ten + 300)):
        scheduler.arrive(name, upto, ten + 300)
    scheduler.punctuate("T2", ten + 60, ten + 300)
    for job in scheduler.start(ten + 300):
        scheduler.finish(job, ten + 301)
    (job,) = scheduler.start(ten + 301)
    assert job.tables == ("D",)
    assert job.loads[0].upto == ten - 120
