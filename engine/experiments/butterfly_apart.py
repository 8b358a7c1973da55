"""The contenders of `bench butterfly` in processes of their own: scripts with a session of theirs, DuckDB, Polars."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.experiments.apart import answer
from engine.experiments.bench_butterfly import hand_tuned, in_duckdb, in_polars, straight
from engine.experiments.own_session import answer_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_SPARK = {"duckdb": in_duckdb, "polars": in_polars}


def script(spark: SparkSession, asked: dict[str, Any]) -> None:
    """One of the scripts, as often as asked."""
    data, out = Path(asked["data"]), Path(asked["out"])
    run = hand_tuned if asked["script"] == "tuned" else straight
    for _ in range(asked["runs"]):
        run(spark, data, out, hint=asked.get("hint"))


def main(kind: str, *session: str) -> None:
    """Answer; of a session its cores and its memory are told."""
    if kind in WITHOUT_SPARK:
        run = WITHOUT_SPARK[kind]
        answer(lambda asked: run(Path(asked["data"]), Path(asked["out"])), settle=lambda: None)
    else:
        cores, memory_mb = map(int, session)
        answer_in(kind, cores, memory_mb, script)


if __name__ == "__main__":
    main(*sys.argv[1:])
