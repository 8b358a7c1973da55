"""Views over streams: at every state in which one is published, it is what a computation from scratch gives."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from engine.operators.streams import MICROS
from engine.partition.tables import Follow, tables_of
from engine.spark.stream_feeds import feed_of
from engine.spark.stream_store import RecentRows, TableStore, between
from engine.spark.stream_update import Updater
from tests.spark.streaming import SCRATCH, bound_in, sorted_rows

BEGIN = 1_800_000_000.0


class Warehouse:
    """The small warehouse without a scheduler: a test says what is updated next."""

    def __init__(self, folder: Path, spark) -> None:
        self.bound = bound_in(folder)
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
            return sorted_rows(database.execute(SCRATCH[name]).fetchall())

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
