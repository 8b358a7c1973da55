"""What the planner's elementary steps cost on this machine: micro-benchmarks for the measured cost model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from engine.experiments.bench import Contender, Options, Report
from engine.experiments.kept import machine
from engine.model.physical import Step, ordered_by
from engine.plan.apply import Layout
from engine.plan.costs import ROW_BYTES, WIDER_BYTE
from engine.store.prices import keep_prices

ROWS = 2_000_000  # of scale 1
TELLING_ROWS = 500_000  # fewer say more about starting a job than about its rows
PAIRED = 12_000  # rows on each side of the nested loops, at any scale
WARM_ROUNDS = 3  # in which Java compiles; a run that takes long hardly knows them
COLUMNS = 3  # of the rows that are sorted, joined and stored, of eight bytes each
MORE_COLUMNS = 8  # of wide rows
MEASURES = ("sum(d)", "count(*)")  # as a view of a warehouse has them
COMMAND = "papilio bench plan-steps"


def benchmark(options: Options) -> Report:
    """Scan, sort, merge, hash, group, pair and store rows on Spark: the measured prices from then on, if they tell."""
    from engine.spark.session import SparkSettings, close_session, open_session

    rows = round(ROWS * (options.scale or 1))
    options.folder.mkdir(parents=True, exist_ok=True)
    data = generate(options.folder, rows)
    # Adaptive execution plans anew while it runs; here each step is to be what it is called.
    spark = open_session(SparkSettings(extra={"spark.sql.adaptive.enabled": "false"}, log=options.folder / "spark.log"))
    try:
        return _measured(spark, data, rows, options)
    finally:
        close_session(spark)


def _measured(spark: Any, data: Path, rows: int, options: Options) -> Report:
    from pyspark.sql import functions

    from engine.spark.sorted_staging import SETTINGS, SORT_BASED, SortedStage

    table = spark.read.parquet(str(data))
    near = spark.read.parquet(str(generate(options.folder, rows, near=True)))
    cores = spark.sparkContext.defaultParallelism
    parts = cores * 2
    spark.conf.set("spark.sql.shuffle.partitions", str(parts))
    for setting, value in SETTINGS.items():
        spark.conf.set(setting, value)
    stages = [
        SortedStage(f"papilio_{name}", options.folder / name, Layout(ordered_by("a"), 1), parts) for name in ("b", "c")
    ]
    for stage in stages:
        stage.write(table.select("a", stage.folder.name, "d"))
    in_order = [stage.read(spark) for stage in stages]
    left, right = (table.select("a", name, "d") for name in ("b", "c"))
    small = spark.range(PAIRED)
    pairs = (
        small.withColumnRenamed("id", "i").crossJoin(small.withColumnRenamed("id", "j")).where("i * 7 % 11 = j % 13")
    )
    wide = left.selectExpr("*", *(f"b + {number} AS more_{number}" for number in range(MORE_COLUMNS)))

    def aggregated(rows: Any, by: str, in_order: bool = False) -> Any:
        """Sort-based only where it is asked for, as Spark would otherwise do it over rows that come in order."""
        spark.conf.set(SORT_BASED, str(in_order).lower())
        return rows.groupBy(by).agg(*map(functions.expr, MEASURES))

    steps: dict[str, Callable[[], Any]] = {
        "read": lambda: left,
        "filter": lambda: left.where("a % 7 <> 3 AND b > 10"),
        "sort": lambda: left.repartition(parts, "a").sortWithinPartitions("a"),
        "sort near rows": lambda: near.select("a", "b", "d").repartition(parts, "a").sortWithinPartitions("a"),
        "read wide rows": lambda: wide,
        "sort wide rows": lambda: wide.repartition(parts, "a").sortWithinPartitions("a"),
        "read parts": lambda: in_order[0],
        "sort inside parts": lambda: in_order[0].sortWithinPartitions("a", "b"),
        "few groups": lambda: aggregated(table.selectExpr("b % 1000 AS g", "d"), "g"),
        "many groups": lambda: aggregated(table, "a"),
        "many groups of near rows": lambda: aggregated(near, "a"),
        "many groups, each in one part": lambda: aggregated(in_order[0], "a"),
        "many groups in order": lambda: aggregated(in_order[0], "a", in_order=True),
        "merge join in order": lambda: in_order[0].join(in_order[1].hint("merge"), "a"),
        "hash join": lambda: left.join(right.hint("shuffle_hash"), "a"),
        "sort-merge join": lambda: left.join(right.hint("merge"), "a"),
        "nested loops": lambda: pairs,
    }
    stored = options.folder / "stored"

    assert "Exchange" not in _plan(steps["merge join in order"]()), "the sorted inputs are not used"
    assert "Exchange" not in _plan(steps["many groups, each in one part"]()), "the parts are not used"
    assert "HashAggregate" in _plan(steps["many groups, each in one part"]()), "the groups are not hashed"
    assert "SortAggregate" in _plan(steps["many groups in order"]()), "the order is not used"
    report = Report({name: Contender() for name in (*steps, "store and read")})

    def store() -> None:
        left.write.mode("overwrite").parquet(str(stored))
        _carry_out(spark.read.parquet(str(stored)))

    runs = {name: partial(_carry_out_of, build) for name, build in steps.items()} | {"store and read": store}
    for number in range(1 - WARM_ROUNDS, options.rounds + 1):
        for name, run in runs.items():
            options.say(f"{f'round {number}' if number > 0 else 'warm-up'}: {name}")
            spent, begun = _processor_seconds(), time.perf_counter()
            run()
            if number > 0:
                contender = report.contenders[name]
                contender.seconds.append(time.perf_counter() - begun)
                contender.add(processor_s=_processor_seconds() - spent)
    joined = in_order[0].join(in_order[1], "a").count()
    groups = table.select("a").distinct().count()
    single = table.select("a", functions.spark_partition_id().alias("task")).distinct().count()
    for stage in stages:
        stage.delete(spark)
    # The least that each took: what else runs on the machine can only add to it. By the processors, of which a run that
    # has more to do than one step leaves none idle.
    least = {name: min(one.seconds) for name, one in report.contenders.items()}
    busy = {name: min(one.figures["processor_s"]) / cores for name, one in report.contenders.items()}
    prices = _prices(busy, rows, joined, groups, single)
    priced = {step.value: float(f"{price:.4g}") for step, price in prices.items()}
    priced |= {ROW_BYTES: 8 * COLUMNS, WIDER_BYTE: float(f"{_wider_byte(busy):.4g}")}
    known: dict[str, Any] = {
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": COMMAND,
        "rows": rows,
        "machine": machine(),
    }
    file = keep_prices(priced, options.folder, **known)
    # A join that no price was taken from: sorted on both sides, then gone through in step. The hash join has its price.
    predicted = 2 * rows * (math.log2(rows) * prices[Step.SORT] + prices[Step.MERGE]) / 1_000_000
    report.facts = {
        "rows": rows,
        "rows joined": joined,
        "groups": groups,
        "groups of single tasks": single,
        "µs for a row": priced,
        "sort-merge join predicted s": round(predicted, 3),
        "sort-merge join measured s": round(busy["sort-merge join"], 3),
        "hash join measured s": round(busy["hash join"], 3),
        # Prices are of rows in any order. Where they stand near each other, a sorter has less to do, and saves less.
        "of the price of a sort, over near rows": _share(busy, "sort near rows", "sort", "read"),
        "of what a group's way into one part costs, over near rows": _share(
            busy, "many groups of near rows", "many groups", "many groups, each in one part"
        ),
        "written": str(file),
    }
    report.claim(
        "rows in order are joined faster than rows that are sorted first",
        busy["merge join in order"] < busy["sort-merge join"],
        f"{busy['merge join in order']:.2f} and {busy['sort-merge join']:.2f} s of busy processors",
    )
    report.claim(
        "a sort-merge join takes what the prices of its steps say, to a tenth",
        abs(predicted / busy["sort-merge join"] - 1) <= 0.1,
        f"predicted {predicted:.2f} s, measured {busy['sort-merge join']:.2f} s",
    )
    report.claim(
        "the prices rank sort-merge join and hash join as the clock does",
        (predicted > busy["hash join"]) == (least["sort-merge join"] > least["hash join"]),
        f"by prices {predicted:.2f} and {busy['hash join']:.2f} s, by the clock {least['sort-merge join']:.2f} and "
        f"{least['hash join']:.2f} s",
    )
    ordered, in_part, all_over = (
        busy[name] for name in ("many groups in order", "many groups, each in one part", "many groups")
    )
    report.claim(
        "groups in order are cheaper than those in one part, and those than groups all over",
        ordered < in_part < all_over,
        f"{ordered:.2f}, {in_part:.2f} and {all_over:.2f} s of busy processors",
    )
    # A busy machine or a few rows measure what it takes to start a job, and nobody should plan by that.
    telling = rows >= TELLING_ROWS and all(report.claims.values())
    reason = f"no: it takes {TELLING_ROWS:,} rows, and claims that hold"
    report.facts["used from now on"] = str(keep_prices(priced, **known)) if telling else reason
    report.ratio("sort-merge join", "hash join")
    report.ratio("sort-merge join", "merge join in order")
    return report


def _carry_out_of(build: Callable[[], Any]) -> None:
    _carry_out(build())


def _carry_out(frame: Any) -> None:
    """Spark makes all rows, which nobody keeps."""
    frame.write.format("noop").mode("overwrite").save()


def _processor_seconds() -> float:
    """What this process and Spark's have taken of the processors so far."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def _share(seconds: dict[str, float], near: str, scattered: str, beyond: str) -> float:
    """What something takes over near rows, of what it takes over scattered ones; each beyond a simpler query."""
    whole = seconds[scattered] - seconds[beyond]
    return round((seconds[near] - seconds[beyond]) / whole, 2) if whole > 0 else 1.0


def generate(folder: Path, rows: int, near: bool = False) -> Path:
    """A table of three columns of whole numbers, each value about twice, and a column of decimals; made once.

    `near`: the same rows in the order of the first column, of which nothing tells Spark.
    """
    import numpy
    import pyarrow
    from pyarrow import parquet

    file = folder / f"{'near-' if near else ''}rows-{rows}.parquet"
    if not file.exists():
        chance = numpy.random.default_rng(7)
        numbers = {name: pyarrow.array(chance.integers(0, rows // 2, rows, dtype="int64")) for name in "abc"}
        amounts = numbers["c"].cast(pyarrow.decimal128(19, 0)).cast(pyarrow.decimal128(15, 2))
        table = pyarrow.table({**numbers, "d": amounts})
        parquet.write_table(table.sort_by("a") if near else table, file, row_group_size=max(rows // 8, 1))
    return file


def _plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _prices(seconds: dict[str, float], rows: int, joined: int, groups: int, single: int) -> dict[Step, float]:
    """Microseconds for a row of each step: what a query took beyond reading its rows, or beyond a simpler one.

    `single`: groups that single tasks found, which are what is brought together.
    """
    us = {name: value * 1_000_000 for name, value in seconds.items()}
    emit = us["read"] / rows
    return {
        Step.SCAN: us["filter"] / rows,
        Step.SORT: max(us["sort"] - us["read"], 0) / (rows * math.log2(rows)),
        Step.REORDER: max(us["sort inside parts"] - us["read parts"], 0) / (rows * math.log2(rows)),
        # What is joined in order comes from other files than what is sorted first; both are to have read alike.
        Step.MERGE: max(us["merge join in order"] + 2 * (us["read"] - us["read parts"]), 0) / (2 * rows),
        Step.HASH: max(us["hash join"] - joined * emit, 0) / (2 * rows),
        Step.EMIT: emit,
        Step.GROUP: us["few groups"] / rows,
        Step.FORM: max(us["many groups, each in one part"] - us["few groups"], 0) / groups,
        Step.GATHER: max(us["many groups"] - us["many groups, each in one part"], 0) / single,
        Step.CLOSE: max(us["many groups in order"] - us["filter"], 0) / groups,
        Step.PAIR: us["nested loops"] / PAIRED**2,
        Step.GIVE: emit,
        Step.STORE: max(us["store and read"] - us["read"], 0) / rows,
    }


def _wider_byte(seconds: dict[str, float]) -> float:
    """By how much each byte more makes sorting a row dearer."""
    narrow = seconds["sort"] - seconds["read"]
    wide = seconds["sort wide rows"] - seconds["read wide rows"]
    return max(wide / narrow - 1, 0) / (8 * MORE_COLUMNS) if narrow > 0 else 0.0
