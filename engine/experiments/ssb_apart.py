"""SSB's queries in processes of their own: in SQL in a session that Papilio has no part in, and by DuckDB."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.experiments.apart import answer
from engine.experiments.own_session import answer_in
from engine.experiments.ssb_queries import in_duckdb, in_spark_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_sql(spark: SparkSession, asked: dict[str, Any]) -> None:
    """A query, as often as asked."""
    data, out = Path(asked["data"]), Path(asked["out"])
    for number in range(asked["runs"]):
        if number:
            shutil.rmtree(out / "answer.csv")
        in_spark_sql(spark, asked["query"], data, out)


def main(kind: str, *session: str) -> None:
    """Answer; of a session its cores and its memory are told."""
    if kind == "duckdb":
        answer(lambda asked: in_duckdb(asked["query"], Path(asked["data"]), Path(asked["out"])), settle=lambda: None)
    else:
        cores, memory_mb = map(int, session)
        answer_in(kind, cores, memory_mb, in_sql)


if __name__ == "__main__":
    main(*sys.argv[1:])
