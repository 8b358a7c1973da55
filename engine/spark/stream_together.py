"""The results of several tables' plans as one: so that one Spark job makes them all, and each gets its rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

NUMBER, PART = "_papilio_number", "_papilio_part_"


def one_result(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all of them: each with the number of its frame, and in that frame's columns."""
    numbered = [
        frame.toDF(*[f"{PART}{number}_{place}" for place in range(len(frame.columns))]).withColumn(
            NUMBER, F.lit(number)
        )
        for number, frame in enumerate(frames)
    ]
    result = numbered[0]
    for other in numbered[1:]:
        result = result.unionByName(other, allowMissingColumns=True)
    return result


def parts(rows: pa.Table, names: Sequence[Sequence[str]]) -> list[pa.Table]:
    """The rows of each frame by themselves, under the names of its columns."""
    numbers = rows.column(NUMBER)
    found = []
    for number, columns in enumerate(names):
        mine = rows.select([f"{PART}{number}_{place}" for place in range(len(columns))])
        found.append(mine.filter(pc.equal(numbers, number)).rename_columns(list(columns)))
    return found
