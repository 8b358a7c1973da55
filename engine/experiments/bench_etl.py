"""TPC-H to SSB: Papilio's workflow, a PySpark job written by hand, and what Python users would pick instead.

Flowfile reads and writes Parquet as the two on Spark do, at the same scale. petl, pygrametl and Bonobo work row by
row in Python, on CSV, and get a smaller scale, at which Papilio runs once more. Their seconds are those of the load
alone, without starting Python or importing; those of Papilio and PySpark are without starting Spark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.experiments import etl_jobs
from engine.experiments.bench import Options, Report
from engine.experiments.bench_butterfly import in_threads
from engine.experiments.contest import Contest, Entry, Run, contest, missing_data
from engine.experiments.data import TPCH_SMALLEST_SCALE, TPCH_UNIQUE_SCALE, generate_tpch
from engine.experiments.environments import NotThere, environment, run_job, version_in
from engine.experiments.ssb import parts_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCALE = 1.0
SMALLER = 50  # by so much is the data of those that work row by row smaller
LIMIT = 1.05
WORKFLOW = "tpch_to_ssb"
PAPILIO, BY_HAND, FLOWFILE = "papilio", "hand-written PySpark", "Flowfile"
ROW_BY_ROW = ("petl", "pygrametl", "bonobo")
JOBS = Path(etl_jobs.__file__).resolve().parent

# What the hand-written job reads of each table. Told this, Spark starts no job to find it in the files.
COLUMNS = {
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2), "
    "l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_commitdate date, "
    "l_shipmode string",
    "orders": "o_orderkey bigint, o_custkey bigint, o_totalprice decimal(15,2), o_orderdate date, "
    "o_orderpriority string, o_shippriority int",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_supplycost decimal(15,2)",
    "part": "p_partkey bigint, p_name string, p_brand string, p_type string, p_size int, p_container string",
    "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string, "
    "c_mktsegment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string",
    "nation": "n_nationkey bigint, n_name string, n_regionkey bigint",
    "region": "r_regionkey bigint, r_name string",
}


def benchmark(options: Options) -> Report:
    """TPC-H to SSB against a hand-written PySpark job, Flowfile, petl, pygrametl and Bonobo."""
    scale = options.scale or SCALE
    small = max(scale / SMALLER, TPCH_SMALLEST_SCALE)
    data, small_data, small_csv = (
        options.folder / f"tpch-{scale:g}", options.folder / f"tpch-{small:g}", options.folder / f"tpch-csv-{small:g}",
    )  # fmt: skip
    whole, row_by_row = f"TPC-H scale {scale:g}", f"TPC-H scale {small:g} for those that work row by row"

    def make_small() -> None:
        generate_tpch(small_data, small)
        generate_tpch(small_csv, small, format="csv")

    missing = missing_data(options, {whole: partial(generate_tpch, data, scale), row_by_row: make_small})
    with contest(options) as here:
        here.report.facts |= {"scale": scale, "scale of row by row": small}
        for title, entries in (
            (whole, _whole(here, data, scale)), (row_by_row, _small(here, small_data, small_csv, small)),
        ):  # fmt: skip
            if title in missing:
                here.leave_out(entries, missing[title])
            else:
                here.hold(list(entries))
        here.at_most(
            f"the workflow takes at most {LIMIT:g} times as long as the hand-written job", PAPILIO, BY_HAND, LIMIT
        )
        here.compare(FLOWFILE, PAPILIO)
        for name in ROW_BY_ROW:
            here.compare(_at(name, small), _at(PAPILIO, small))
        return here.report


def _at(name: str, scale: float) -> str:
    return f"{name}, scale {scale:g}"


def _whole(here: Contest, data: Path, scale: float) -> Iterator[Entry]:
    parts = _parts(scale)
    yield Entry(PAPILIO, _workflow(here, data, parts), answer="whole")
    repeated = scale < TPCH_UNIQUE_SCALE
    yield Entry(BY_HAND, lambda out: by_hand(here.spark, data, out, parts, repeated), answer="whole")
    yield from _elsewhere(here, "flowfile", FLOWFILE, (), data, parts, "whole")


def _small(here: Contest, data: Path, csv: Path, scale: float) -> Iterator[Entry]:
    parts = _parts(scale)
    yield Entry(_at(PAPILIO, scale), _workflow(here, data, parts), answer="small")
    for name in ROW_BY_ROW:
        yield from _elsewhere(here, name, _at(name, scale), (), csv, parts, "small")


def _parts(scale: float) -> int:
    """How many parts the star has; below scale 1 all that TPC-H has."""
    return parts_at(max(scale, 1.0))


def _workflow(here: Contest, data: Path, parts: int) -> Run:
    from engine.experiments.contest import ENDING, SHIPPED

    return here.workflow(SHIPPED / f"{WORKFLOW}{ENDING}", {"data_folder": str(data), "parts": str(parts)})


def _elsewhere(
    here: Contest, package: str, name: str, more: tuple[str, ...], data: Path, parts: int, answer: str
) -> Iterator[Entry]:
    """A contender in an environment of its own; where that cannot be, the reason is a fact of the report."""
    try:
        python = environment(here.folder / "environments", package, more, here.options.say)
    except NotThere as reason:
        here.skip(name, str(reason))
        return
    with contextlib.suppress(NotThere):  # it may run all the same
        here.report.facts["versions"][package] = version_in(python, package)
    yield Entry(name, _job(python, JOBS / f"{package}_job.py", data, parts), answer)


def _job(python: Path, job: Path, data: Path, parts: int) -> Run:
    return lambda out: run_job(python, job, data, out, parts)


# ---------------------------------------------------------------- PySpark


def by_hand(spark: SparkSession, data: Path, out: Path, parts: int, repeated: bool = False) -> None:
    """What one writes who knows Spark.

    Only the needed columns are read. What every line is looked up in (supply costs, nations) is broadcast as it was
    read, so the lines are shuffled once, to meet their orders, and nothing else is. The tables are written at the same
    time, each in a pool of its own. `repeated`: offers may stand twice, of which the cheaper counts; who knows TPC-H
    knows that they do not, except on its smallest scales.
    """

    def read(table: str) -> DataFrame:
        return spark.read.schema(COLUMNS[table]).parquet(f"{data}/{table}.parquet")

    tables: dict[str, Callable[[], DataFrame]] = {
        "lineorder": lambda: _lineorder(read, parts, repeated),
        "customer": lambda: _people(read, "customer", "c", "c_custkey", "c_mktsegment"),
        "supplier": lambda: _people(read, "supplier", "s", "s_suppkey"),
        "part": lambda: _part(read, parts),
        "date": lambda: _date(spark),
    }

    def load(name: str) -> None:
        tables[name]().write.parquet(f"{out}/{name}.parquet")

    in_threads(spark, {name: partial(load, name) for name in tables})


def _day(name: str) -> str:
    return f"year({name}) * 10000 + month({name}) * 100 + day({name})"


def _lineorder(read: Callable[[str], DataFrame], parts: int, repeated: bool) -> DataFrame:
    from pyspark.sql import functions as F

    costs = read("partsupp")
    if repeated:
        costs = costs.groupBy("ps_partkey", "ps_suppkey").agg(F.min("ps_supplycost").alias("ps_supplycost"))
    lines, orders = read("lineitem"), read("orders")
    met = lines.join(orders, lines.l_orderkey == orders.o_orderkey).join(
        F.broadcast(costs), (F.col("l_partkey") == costs.ps_partkey) & (F.col("l_suppkey") == costs.ps_suppkey)
    )
    return met.selectExpr(
        "l_orderkey AS lo_orderkey",
        "l_linenumber AS lo_linenumber",
        "CAST((o_custkey + 4) div 5 AS int) AS lo_custkey",
        f"CAST((l_partkey - 1) % {parts} + 1 AS int) AS lo_partkey",
        "CAST((l_suppkey + 4) div 5 AS int) AS lo_suppkey",
        f"{_day('o_orderdate')} AS lo_orderdate",
        "o_orderpriority AS lo_orderpriority",
        "CAST(o_shippriority AS string) AS lo_shippriority",
        "CAST(l_quantity AS int) AS lo_quantity",
        "CAST(l_extendedprice * 100 AS int) AS lo_extendedprice",
        "CAST(o_totalprice * 100 AS int) AS lo_ordtotalprice",
        "CAST(l_discount * 100 AS int) AS lo_discount",
        "CAST(CAST(l_extendedprice * 100 AS int) * (100 - CAST(l_discount * 100 AS int)) div 100 AS int) AS lo_revenue",
        "CAST(ps_supplycost * 100 AS int) AS lo_supplycost",
        "CAST(l_tax * 100 AS int) AS lo_tax",
        f"{_day('l_commitdate')} AS lo_commitdate",
        "l_shipmode AS lo_shipmode",
    )


def _people(read: Callable[[str], DataFrame], table: str, letter: str, key: str, *more: str) -> DataFrame:
    from pyspark.sql import functions as F

    nations = read("nation").join(F.broadcast(read("region")), F.expr("n_regionkey = r_regionkey"))
    people = read(table).where(f"{key} % 5 = 1").join(F.broadcast(nations), F.expr(f"{letter}_nationkey = n_nationkey"))
    return people.selectExpr(
        f"CAST(({key} + 4) div 5 AS int) AS {key}",
        f"{letter}_name",
        f"substring({letter}_address, 1, 25) AS {letter}_address",
        f"concat(rpad(substring(n_name, 1, 9), 9, ' '), right({letter}_phone, 1)) AS {letter}_city",
        f"n_name AS {letter}_nation",
        f"r_name AS {letter}_region",
        f"{letter}_phone",
        *more,
    )


def _part(read: Callable[[str], DataFrame], parts: int) -> DataFrame:
    return read("part").where(f"p_partkey <= {parts}").selectExpr(
        "CAST(p_partkey AS int) AS p_partkey",
        "substring_index(p_name, ' ', 2) AS p_name",
        "concat('MFGR#', substring(right(p_brand, 2), 1, 1)) AS p_mfgr",
        "concat('MFGR#', right(p_brand, 2)) AS p_category",
        "concat('MFGR#', right(p_brand, 2), CAST(conv(substring(md5(p_name), 1, 8), 16, 10) AS bigint) % 40 + 1) "
        "AS p_brand1",
        "split_part(p_name, ' ', 3) AS p_color",
        "p_type",
        "p_size",
        "p_container",
    )  # fmt: skip


def _date(spark: SparkSession) -> DataFrame:
    days: Any = spark.range(0, 2556, 1, 1).selectExpr("date_add(DATE'1992-01-01', CAST(id AS int)) AS d")
    return days.selectExpr(
        f"{_day('d')} AS d_datekey",
        "date_format(d, 'MMMM d, yyyy') AS d_date",
        "date_format(d, 'EEEE') AS d_dayofweek",
        "date_format(d, 'MMMM') AS d_month",
        "year(d) AS d_year",
        "year(d) * 100 + month(d) AS d_yearmonthnum",
        "date_format(d, 'MMMyyyy') AS d_yearmonth",
        "dayofweek(d) AS d_daynuminweek",
        "day(d) AS d_daynuminmonth",
        "dayofyear(d) AS d_daynuminyear",
        "month(d) AS d_monthnuminyear",
        "CAST((dayofyear(d) - 1) div 7 + 1 AS int) AS d_weeknuminyear",
        "CASE WHEN month(d) >= 11 THEN 'Christmas' WHEN month(d) >= 9 THEN 'Fall' WHEN month(d) >= 5 THEN 'Summer' "
        "WHEN month(d) = 4 THEN 'Spring' ELSE 'Winter' END AS d_sellingseason",
        "IF(dayofweek(d) = 7, '1', '0') AS d_lastdayinweekfl",
        "IF(d = last_day(d), '1', '0') AS d_lastdayinmonthfl",
        "IF(month(d) * 100 + day(d) IN (101, 220, 420, 520, 720, 820, 920, 1020, 1120, 1224), '1', '0') AS d_holidayfl",
        "IF(dayofweek(d) BETWEEN 2 AND 6, '1', '0') AS d_weekdayfl",
    )
