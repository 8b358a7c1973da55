"""Plans that are kept from one update to the next: the same rows as a plan made anew gives, whatever it reads."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from engine.spark.compile import CountedRows
from engine.spark.stream_plans import RECORD_BYTES, KeptPlans, collect_anew


def some(count: int) -> pa.Table:
    """Rows with a column of every plain type, some of their values missing."""
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "at": pa.array(
                [begin + datetime.timedelta(microseconds=n) if n % 7 else None for n in range(count)],
                pa.timestamp("us", "UTC"),
            ),
            "day": pa.array([begin.date() + datetime.timedelta(n) for n in range(count)], pa.date32()),
            "price": pa.array([Decimal(f"{n}.25") for n in range(count)], pa.decimal128(12, 2)),
            "name": pa.array([f"ä{n}" if n % 5 else None for n in range(count)], pa.string()),
            "raw": pa.array([bytes([n % 256]) for n in range(count)], pa.binary()),
            "real": pa.array([n / 3 for n in range(count)], pa.float64()),
            "single": pa.array([n / 3 for n in range(count)], pa.float32()),
            "n": pa.array(range(count), pa.int64()),
            "small": pa.array([n % 3 for n in range(count)], pa.int8()),
            "even": pa.array([n % 2 == 0 for n in range(count)], pa.bool_()),
        }
    )


def test_a_kept_plan_gives_what_one_made_anew_gives_and_is_made_once(spark):
    plans = KeptPlans(spark)

    def make(inputs, counted):
        return inputs["one"].where("n % 4 <> 1").withColumn("more", F.expr("price * 2"))

    for count in (5, 0, 300, 3):
        found, _ = plans.collect("some", {"one": some(count)}, make)
        expected, _ = collect_anew(spark, {"one": some(count)}, make)
        assert found.equals(expected), count
    assert plans.made == 1


def test_rows_that_do_not_fit_or_have_other_columns_are_handed_over_anew(spark):
    plans = KeptPlans(spark)

    def make(inputs, counted):
        return inputs["one"].groupBy().agg(F.count("n").alias("n"))

    def count(rows: pa.Table) -> int:
        return plans.collect("count", {"one": rows}, make)[0]["n"][0].as_py()

    large = pa.table({"n": pa.array(["x" * RECORD_BYTES])})
    assert [count(some(4)), count(some(20_000)), count(large), count(some(7))] == [4, 20_000, 1, 7]
    nested = pa.table({"n": pa.array([[1, 2], [3]])})
    assert count(nested) == 2


@pytest.mark.parametrize("expression", ["uuid()", "current_timestamp()", "rand()"])
def test_what_is_another_value_each_time_is_another_value_each_time(spark, expression):
    plans = KeptPlans(spark)

    def make(inputs, counted):
        return inputs["one"].select(F.expr(expression).alias("value"))

    found = {plans.collect("one", {"one": some(1)}, make)[0]["value"][0].as_py() for _ in range(3)}
    assert len(found) == 3


SHUFFLED = {
    "repartitioned": lambda one: one.repartition(3, "n").groupBy("small").count(),
    "sorted": lambda one: one.orderBy("n").groupBy("small").count(),
    "joined": lambda one: one.join(F.broadcast(one.select("n")), "n").groupBy("small").count(),
    "grouped": lambda one: one.coalesce(1).groupBy("small").count(),
}


@pytest.mark.parametrize("kind", SHUFFLED)
def test_a_plan_that_is_run_again_sees_the_new_rows_alone(spark, kind):
    plans = KeptPlans(spark)

    def make(inputs, counted):
        return SHUFFLED[kind](inputs["one"])

    for count in (3, 9, 6):
        rows, _ = plans.collect(kind, {"one": some(count)}, make)
        assert sorted(rows["count"].to_pylist()) == [count // 3] * 3
    assert plans.made == 1


def test_a_plan_that_counts_rows_in_passing_counts_those_of_each_run(spark):
    plans = KeptPlans(spark)

    def make(inputs, counted):
        seen = Observation()
        counts = [F.count(F.lit(1)).alias("total"), F.count_if(F.expr("even")).alias("refused")]
        counted.append(CountedRows("node", ("refused",), lambda: inputs["one"].agg(*counts), seen))
        return inputs["one"].observe(seen, *counts)

    for count in (4, 10):
        _, (counted,) = plans.collect("counted", {"one": some(count)}, make)
        assert counted.get() == (count, {"refused": count // 2})


def test_a_run_that_fails_tells_its_reason_and_the_next_one_goes_on(spark):
    plans = KeptPlans(spark)

    def make(inputs, counted):
        return inputs["one"].select(F.expr("1 / (n - 2)").alias("value"))

    assert plans.collect("divided", {"one": some(2)}, make)[0].num_rows == 2
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        plans.collect("divided", {"one": some(4)}, make)
    assert plans.collect("divided", {"one": some(1)}, make)[0].num_rows == 1
