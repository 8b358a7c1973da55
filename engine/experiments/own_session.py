"""A Spark session that a script opens itself, outside Papilio.

`shipped` is the session of a script that says nothing of it but where it runs and how much memory it may take;
`tuned` is that of somebody who knows Spark and has time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.experiments.apart import answer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings(kind: str, cores: int) -> dict[str, str]:
    """What the script says of its session beyond its master and its memory."""
    if kind == "shipped":
        return {}
    return {
        "spark.scheduler.mode": "FAIR",  # its threads share the cores
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }


def answer_in(kind: str, cores: int, memory_mb: int, run: Callable[[SparkSession, dict[str, Any]], None]) -> None:
    """Open the session and run in it whatever is asked."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.master(f"local[{cores}]").config("spark.driver.memory", f"{memory_mb}m")
    for name, value in settings(kind, cores).items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    jvm: Any = spark._jvm
    try:
        answer(lambda asked: run(spark, asked), settle=jvm.java.lang.System.gc)
    finally:
        spark.stop()
