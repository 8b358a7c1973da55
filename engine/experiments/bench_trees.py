"""SSB Q4.1 as a dataflow at every granularity: what execution trees save, and how far the same query in SQL is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, contest, importable
from engine.experiments.ssb import SSB_TABLES, generate_ssb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 0.3
ROUNDS = 2
TIMES = 4.7
OPERATOR, TREE = "operator rr", "tree rr"
# The grouping and the order make `profit` whole numbers and the rows few: the time is that of the joins.
Q41 = """SELECT d_year, c_nation, sum(CAST(lo_revenue - lo_supplycost AS bigint)) AS profit
FROM lineorder
JOIN customer ON lo_custkey = c_custkey
JOIN supplier ON lo_suppkey = s_suppkey
JOIN part ON lo_partkey = p_partkey
JOIN date ON lo_orderdate = d_datekey
WHERE c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')
GROUP BY d_year, c_nation ORDER BY d_year, c_nation"""


def benchmark(options: Options) -> Report:
    """SSB Q4.1: operators against subflows, execution trees and fused plans, beside Spark SQL and DuckDB."""
    scale = options.scale or SCALE
    data = options.folder / f"ssb-{scale:g}"
    options.say(f"SSB scale {scale:g}")
    generate_ssb(data, scale)
    with contest(options) as here:
        here.report.facts["scale"] = scale
        here.hold(list(_entries(here, data)))
        here.at_least(f"tree is at least {TIMES} times as fast as operator", OPERATOR, TREE, TIMES)
        best = min((name for name in here.report.contenders if here.report.finished(name) and "rr" in name),
                   key=lambda name: here.report.contenders[name].median, default=None)  # fmt: skip
        for slower, faster in (
            (OPERATOR, "subflow rr"),
            (OPERATOR, "fused rr"),
            (TREE, "tree rr, degree 2"),
            (TREE, "tree rr, degree auto"),
            (best or TREE, "Spark SQL"),
            (best or TREE, "DuckDB"),
        ):
            here.compare(slower, faster)
        return here.report


def _entries(here: Contest, data: Path) -> Iterator[Entry]:
    for granularity in ("operator", "subflow", "tree", "fused"):
        for policy in ("rr", "mixed"):
            run = here.papilio("ssb_q41", data, granularity=granularity, policy=policy)
            yield Entry(f"{granularity} {policy}", run)
    for degree, name in ((2, "2"), (None, "auto")):
        run = here.papilio("ssb_q41", data, granularity="tree", policy="rr", degree=degree)
        yield Entry(f"tree rr, degree {name}", run)
    yield Entry("Spark SQL", lambda out: in_spark_sql(here.spark, data, out))
    skipped = importable("duckdb")
    if skipped:
        here.report.facts["DuckDB"] = skipped
    else:
        yield Entry("DuckDB", lambda out: in_duckdb(data, out))


def in_spark_sql(spark: SparkSession, data: Path, out: Path) -> None:
    """The query as one writes it for Spark."""
    for table in SSB_TABLES:
        spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)
    spark.sql(Q41).coalesce(1).write.option("header", True).csv(f"{out}/answer.csv")


def in_duckdb(data: Path, out: Path) -> None:
    """The query by the machine's limit."""
    import duckdb

    with duckdb.connect() as connection:
        for table in SSB_TABLES:
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{data}/{table}.parquet'")
        connection.execute(f"COPY ({Q41}) TO '{out}/answer.csv' (HEADER)")
