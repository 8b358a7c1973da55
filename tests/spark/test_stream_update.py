"""Views over streams: at every state in which one is published, it is what a computation from scratch gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from engine.operators.streams import MICROS
from engine.partition.tables import Follow, tables_of
from engine.spark import stream_update
from engine.spark.stream_feeds import feed_of
from engine.spark.stream_store import RecentRows, TableStore, between
from engine.spark.stream_update import Updater, start_track
from tests.spark.streaming import FILE, SCRATCH, TOGETHER, TOGETHER_SCRATCH, bound_in, sorted_rows

BEGIN = 1_800_000_000.0


class Warehouse:
    """The small warehouse without a scheduler: a test says what is updated next."""

    def __init__(self, folder: Path, spark, text: str = FILE) -> None:
        self.bound = bound_in(folder, text)
        self.plans = {plan.name: plan for plan in tables_of(self.bound)}
        recent = RecentRows()
        self.stores = {
            name: TableStore(folder / "out" / name, plan.operator.time_column, plan.partition_us, recent)
            for name, plan in self.plans.items()
        }
        self.updater = Updater(self.bound, self.plans, self.stores, spark, self.bound.place())
        self.updater.prepare()
        self.feeds, self.waiting = {}, {}
        for name, plan in self.plans.items():
            if plan.is_base:
                stream = self.bound.operators[plan.stream]
                schema = self.updater.arrow[plan.stream]
                self.feeds[name] = feed_of(
                    stream, self.bound.place(), self.stores[name], schema, plan.stream_time, BEGIN, print
                )
                self.waiting[name] = []

    def rows(self, name: str) -> pa.Table:
        found = self.stores[name].read(None, None)
        return found if found is not None else self.updater.arrow[name].empty_table()

    def update(self, name: str, now: float, most: int = 99) -> None:
        plan = self.plans[name]
        if plan.is_base:
            self.waiting[name] += self.feeds[name].poll(now)
            arrivals, self.waiting[name] = self.waiting[name][:most], self.waiting[name][most:]
            if arrivals:
                self.updater.load(plan, self.feeds[name], arrivals, now)
        else:
            self.updater.follow(plan, round(now * MICROS))

    def scratch(self, name: str) -> list[tuple]:
        """The view from scratch, over the base tables as of the edge at which it was published."""
        edge = self.stores[name].version.fresh_us
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for base in ("click", "sale"):
                database.register(base, between(self.rows(base), "ts", None, edge))
            return sorted_rows(database.execute(TOGETHER_SCRATCH[name]).fetchall())

    def published(self, name: str) -> list[tuple]:
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            database.register("view", self.rows(name))
            return sorted_rows(database.execute("SELECT * FROM view").fetchall())

    def close(self) -> None:
        for store in self.stores.values():
            store.close()


def test_every_view_is_kept_in_the_cheapest_way_that_is_right(tmp_path):
    plans = {plan.name: plan for plan in tables_of(bound_in(tmp_path))}
    assert {name: plan.follow for name, plan in plans.items()} == {
        "click": Follow.APPEND, "sale": Follow.APPEND, "dear_click": Follow.APPEND, "click_second": Follow.MERGE,
        "sale_second": Follow.RECOMPUTE, "joined": Follow.RECOMPUTE, "pair": Follow.RECOMPUTE,
    }  # fmt: skip
    assert [plans[name].granule_us for name in ("click", "click_second", "pair")] == [0, MICROS, 2 * MICROS]
    assert plans["click_second"].priority == 3


def wander(warehouse: Warehouse, steps: int, seed: int) -> dict[str, int]:
    """Update tables in a random order while time passes; every view is compared whenever it is published."""
    chance = random.Random(seed)
    now, compared = BEGIN, dict.fromkeys(SCRATCH, 0)
    for _ in range(steps):
        now += chance.choice([0.0, 0.3, 0.9, 2.3])
        name = chance.choice(list(warehouse.plans))
        before = warehouse.stores[name].version.number
        warehouse.update(name, now, most=chance.choice([1, 99]))
        if name in SCRATCH and warehouse.stores[name].version.number != before:
            assert warehouse.published(name) == warehouse.scratch(name), f"{name} after {now - BEGIN:.1f} s"
            compared[name] += 1
    return compared


def test_views_are_consistent_at_every_state_they_were_published_in(spark, tmp_path):
    warehouse = Warehouse(tmp_path, spark)
    compared = wander(warehouse, steps=60, seed=3)
    assert all(compared.values()), compared
    # Nothing is lost on the way: each record is in its table, or was refused, or came too late.
    sale = warehouse.stores["sale"].version
    loaded = sale.position[0] + 1
    assert sale.rows + sale.late_rows == 20 * loaded
    assert sale.late_rows, "records that lie three seconds back come too late for a bound of two"
    assert sorted(warehouse.rows("click")["id"].to_pylist()) == [
        id_ for id_ in range(40 * (warehouse.stores["click"].version.position[0] + 1)) if id_ % 5 < 4
    ]
    warehouse.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_views_are_consistent_in_many_random_orders(spark, tmp_path, seed):
    warehouse = Warehouse(tmp_path, spark)
    assert all(wander(warehouse, steps=250, seed=seed).values())
    warehouse.close()


def test_a_batch_that_was_published_is_not_loaded_again(spark, tmp_path):
    warehouse = Warehouse(tmp_path, spark)
    plan, feed, now = warehouse.plans["click"], warehouse.feeds["click"], BEGIN + 5
    arrivals = feed.poll(now)
    first = warehouse.updater.load(plan, feed, arrivals[:3], now)
    again = warehouse.updater.load(plan, feed, arrivals, now)
    assert len(arrivals) > 3
    assert first.version.rows > 0
    assert again.late == 0
    everything = sum(arrival.rows for arrival in arrivals)
    assert again.version.rows == everything * 4 / 5, "those of the first time count once; a fifth is filtered out"
    warehouse.close()


def test_a_track_is_a_fair_pool_of_its_own(spark):
    found = []
    for number in range(2):
        track = start_track(
            spark, f"track-{number}", lambda: found.append(spark.sparkContext.getLocalProperty("spark.scheduler.pool"))
        )
        track.join(10)
    assert found == ["track-0", "track-1"]
    assert spark.sparkContext.getConf().get("spark.scheduler.mode") == "FAIR"


# ---------------------------------------------------------------- one job for several views

OVER_CLICK = ("large_click", "click_second", "click_again")  # one that appends, one that merges, one that is recomputed


def together(warehouse: Warehouse, now: float) -> Iterator[str]:
    """Update all views over `click` by one job; their names, as they are published."""
    plans = [warehouse.plans[name] for name in OVER_CLICK]
    for name, _ in warehouse.updater.follow_together(plans, round(now * MICROS)):
        yield name


def read_records(spark, jobs: list[int]) -> int:
    """How many records the stages of some jobs read, by Spark's own count."""
    status = spark.sparkContext._jsc.sc().statusStore()
    stages = {
        status.job(job).stageIds().apply(number) for job in jobs for number in range(status.job(job).stageIds().size())
    }
    return sum(status.lastStageAttempt(stage).inputRecords() for stage in stages)


@pytest.mark.slow
@pytest.mark.parametrize("small_bytes", [stream_update.SMALL_BYTES, 0], ids=["from memory", "from files"])
def test_one_job_reads_a_source_once_for_all_views_over_it(spark, tmp_path, monkeypatch, small_bytes):
    monkeypatch.setattr(stream_update, "SMALL_BYTES", small_bytes)
    warehouse = Warehouse(tmp_path, spark, TOGETHER)
    assert [warehouse.plans[name].follow for name in OVER_CLICK] == [Follow.APPEND, Follow.MERGE, Follow.RECOMPUTE]
    now = BEGIN
    for step in range(4):
        now += (1.0, 2.4, 1.3, 5.0)[step]
        warehouse.update("click", now)
        group = f"together-{small_bytes}-{step}"
        spark.sparkContext.setJobGroup(group, group)
        assert sorted(together(warehouse, now)) == sorted(OVER_CLICK)
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = list(spark.sparkContext.statusTracker().getJobIdsForGroup(group))
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        assert len(jobs) == 1
        for name in OVER_CLICK:
            assert warehouse.published(name) == warehouse.scratch(name), f"{name} after {now - BEGIN:.1f} s"
        if not small_bytes:
            rows = warehouse.stores["click"].version.rows
            # Each record once. What is read again from memory is counted by the block.
            assert read_records(spark, jobs) <= rows + 2 * len(OVER_CLICK)
    versions = [warehouse.stores[name].version.number for name in OVER_CLICK]
    assert sorted(together(warehouse, now)) == sorted(OVER_CLICK)  # there is nothing new
    assert [warehouse.stores[name].version.number for name in OVER_CLICK] == versions
    warehouse.close()


def test_a_kill_between_the_views_of_one_job_leaves_the_others_to_follow(spark, tmp_path):
    warehouse = Warehouse(tmp_path, spark, TOGETHER)
    warehouse.update("click", BEGIN + 3.0)
    list(together(warehouse, BEGIN + 3.0))
    warehouse.update("click", BEGIN + 6.5)
    published = next(together(warehouse, BEGIN + 6.5))
    warehouse.close()  # nothing more was written: as a kill would leave it
    warehouse = Warehouse(tmp_path, spark, TOGETHER)
    edges = {name: warehouse.stores[name].version.fresh_us for name in OVER_CLICK}
    assert [name for name in OVER_CLICK if edges[name] == max(edges.values())] == [published]
    for name in OVER_CLICK:
        assert warehouse.published(name) == warehouse.scratch(name), name
    # Those that are behind follow, and nothing is in any of them twice.
    assert sorted(together(warehouse, BEGIN + 6.5)) == sorted(OVER_CLICK)
    assert len({warehouse.stores[name].version.fresh_us for name in OVER_CLICK}) == 1
    for name in OVER_CLICK:
        assert warehouse.published(name) == warehouse.scratch(name), name
    warehouse.close()
