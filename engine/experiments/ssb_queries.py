"""The first query of each of SSB's four kinds as SQL, and who answers it: Spark SQL, and DuckDB as the machine's limit.

Each writes one CSV file with the order the query asks for, as the workflow `ssb_qNN` does.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from engine.experiments.ssb import SSB_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Sums are of whole numbers, so that every engine finds the same digits.
QUERIES = {
    "q11": """SELECT sum(CAST(lo_extendedprice * lo_discount AS bigint)) AS revenue
FROM lineorder
JOIN date ON lo_orderdate = d_datekey
WHERE d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25""",
    "q21": """SELECT d_year, p_brand1, sum(CAST(lo_revenue AS bigint)) AS revenue
FROM lineorder
JOIN part ON lo_partkey = p_partkey
JOIN supplier ON lo_suppkey = s_suppkey
JOIN date ON lo_orderdate = d_datekey
WHERE p_category = 'MFGR#12' AND s_region = 'AMERICA'
GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1""",
    "q31": """SELECT c_nation, s_nation, d_year, sum(CAST(lo_revenue AS bigint)) AS revenue
FROM lineorder
JOIN customer ON lo_custkey = c_custkey
JOIN supplier ON lo_suppkey = s_suppkey
JOIN date ON lo_orderdate = d_datekey
WHERE c_region = 'ASIA' AND s_region = 'ASIA' AND d_year BETWEEN 1992 AND 1997
GROUP BY c_nation, s_nation, d_year ORDER BY d_year, revenue DESC""",
    "q41": """SELECT d_year, c_nation, sum(CAST(lo_revenue - lo_supplycost AS bigint)) AS profit
FROM lineorder
JOIN customer ON lo_custkey = c_custkey
JOIN supplier ON lo_suppkey = s_suppkey
JOIN part ON lo_partkey = p_partkey
JOIN date ON lo_orderdate = d_datekey
WHERE c_region = 'AMERICA' AND s_region = 'AMERICA' AND (p_mfgr = 'MFGR#1' OR p_mfgr = 'MFGR#2')
GROUP BY d_year, c_nation ORDER BY d_year, c_nation""",
}


def _tables(query: str) -> list[str]:
    return [table for table in SSB_TABLES if re.search(rf"(FROM|JOIN) {table}\b", QUERIES[query])]


def in_spark_sql(spark: SparkSession, query: str, data: Path, out: Path) -> None:
    """The query as one writes it for Spark: the fact table first, the dimension that drops most next."""
    for table in _tables(query):
        spark.read.parquet(f"{data}/{table}.parquet").createOrReplaceTempView(table)
    answer_in_sql(spark, query, out)


def answer_in_sql(spark: SparkSession, query: str, out: Path) -> None:
    """The query over tables that Spark knows by their names."""
    spark.sql(QUERIES[query]).coalesce(1).write.option("header", True).csv(f"{out}/answer.csv")


def in_duckdb(query: str, data: Path, out: Path) -> None:
    """The query by the machine's limit."""
    import duckdb

    with duckdb.connect() as connection:
        for table in _tables(query):
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{data}/{table}.parquet'")
        connection.execute(f"COPY ({QUERIES[query]}) TO '{out}/answer.csv' (HEADER)")
