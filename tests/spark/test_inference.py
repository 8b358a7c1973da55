"""What we infer without Spark is what Spark's own analyser says."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from engine.model.expressions import aggregates, parse
from engine.model.functions import AGGREGATE, SCALAR, WINDOW
from engine.model.inference import Scope, infer
from engine.model.types import ddl
from tests.model.test_expressions import SCOPE, TYPES

QUALIFIED = ("left.", "right.")


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame([], ddl(SCOPE.schema))


def test_spark_gives_every_expression_the_type_we_infer(frame):
    different = {}
    for text, kind in TYPES.items():
        if not text.startswith(QUALIFIED):
            column = F.expr(text).alias("x")
            selected = frame.agg(column) if aggregates(parse(text)) else frame.select(column)
            actual = dict(selected.dtypes)["x"]
            if kind is not None and actual != kind:
                different[text] = (kind, actual)
    assert not different


# Calls that most functions accept, tried one after the other.
ARGUMENTS = ["a", "s", "d", "ts", "arr", "m", "f", "b", "t", "a, a", "s, s", "arr, 1", "arr, arr", "m, m", "d, 1", "d, d",
             "s, 1", "s, s, s", "", "m, 'k'", "s, 1, 1", "st", "f, f", "s, 1, s", "ts, 's'", "'s', ts", "b, 1", "d, 'Mon'",
             "'MM', d", "d, 'MM'", "2024, 1, 1", "s, 'x', 1", "'a', a", "1, s, s", "s, 'k'", "'UTF-8'", "s, 'UTF-8'",
             "t, a, a", "a, 'x'", "s, '9'", "ts, 'UTC'", "f, 0.5", "2024, 1, 1, 1, 1, 1", "'UTC', 'UTC', ts", "a, 10, 2",
             "f, 0, 1, 5", "arr, 1, 1", "arr, x -> x > 1", "'s'", "arr, 's'", "b, 'x'"]  # fmt: skip


@pytest.mark.slow  # thousands of calls that Spark refuses, each with a stack trace to carry over
def test_the_functions_of_the_allow_list_have_the_types_that_spark_gives(frame):
    """Every rule against Spark, on the first arguments that both take."""
    wrong, untried = {}, []
    for name in (*SCALAR, *AGGREGATE, *WINDOW):
        over = " over (partition by s order by a)" if name in WINDOW else ""
        for arguments in ARGUMENTS:
            text = f"{name}({arguments}){over}"
            try:
                kind = infer(parse(text), Scope(SCOPE.schema))
                column = F.expr(text).alias("x")
                actual = dict((frame.agg(column) if name in AGGREGATE else frame.select(column)).dtypes)["x"]
            except Exception:
                continue
            if kind is not None and not _same(kind, actual):
                wrong[text] = (kind, actual)
            break
        else:
            untried.append(name)
    assert not wrong
    assert len(untried) <= 40, untried  # those that need arguments of a very own kind


def _same(ours: str, spark: str) -> bool:
    return ours == spark or (ours == "interval" and spark.startswith("interval"))
