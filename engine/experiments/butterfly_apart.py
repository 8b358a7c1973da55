"""The scripts of `bench butterfly` in a process and a session of their own: what a person's script is.

`shipped` is the session of a script that says nothing of it but where it runs and how much memory it may take;
`tuned` is that of somebody who knows Spark and has time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from engine.experiments.apart import answer
from engine.experiments.bench_butterfly import hand_tuned, straight


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


def main(kind: str, cores: int, memory_mb: int) -> None:
    """Open the session and answer."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    builder = builder.master(f"local[{cores}]").config("spark.driver.memory", f"{memory_mb}m")
    for name, value in settings(kind, cores).items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    jvm: Any = spark._jvm

    def run(asked: dict[str, Any]) -> None:
        data, out = Path(asked["data"]), Path(asked["out"])
        for _ in range(asked["runs"]):
            if asked["script"] == "tuned":
                hand_tuned(spark, data, out)
            else:
                straight(spark, data, out, hint=asked.get("hint"))

    try:
        answer(run, settle=jvm.java.lang.System.gc)
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
