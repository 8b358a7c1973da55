"""SSB's Q1.1, Q2.1, Q3.1 and Q4.1: what a query costs as a dataflow, where it could have been written as SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, contest, importable
from engine.experiments.ssb import generate_ssb
from engine.experiments.ssb_queries import QUERIES, answer_in_sql, in_duckdb, in_spark_sql

SCALE = 1.0
WARM_ROUNDS = 8  # a query takes a second, and Java is done compiling after some ten
LIMIT = 1.10  # the share of Spark SQL's time that a dataflow may take


def benchmark(options: Options) -> Report:
    """SSB Q1.1, Q2.1, Q3.1, Q4.1 as dataflows against the same queries in Spark SQL, beside DuckDB."""
    scale = options.scale or SCALE
    data = options.folder / f"ssb-{scale:g}"
    options.say(f"SSB scale {scale:g}")
    generate_ssb(data, scale)
    with contest(options) as here:
        here.report.facts["scale"] = scale
        for query in QUERIES:
            here.hold(list(_entries(here, query, data)), warm_rounds=WARM_ROUNDS)
        for query in QUERIES:
            here.at_most(
                f"{_title(query)}: the dataflow takes at most {LIMIT:g} times as long as Spark SQL",
                f"{_title(query)} papilio", f"{_title(query)} Spark SQL", LIMIT,
            )  # fmt: skip
            for other in ("Spark SQL, tables known", "DuckDB"):
                here.compare(f"{_title(query)} papilio", f"{_title(query)} {other}")
        return here.report


def _title(query: str) -> str:
    return f"Q{query[1]}.{query[2]}"


def _entries(here: Contest, query: str, data: Path) -> Iterator[Entry]:
    name = _title(query)
    yield Entry(f"{name} papilio", here.papilio(f"ssb_{query}", data), answer=query)
    yield Entry(f"{name} Spark SQL", lambda out: in_spark_sql(here.spark, query, data, out), answer=query)
    # The views that the one before made: what a query costs where a catalogue knows the tables.
    yield Entry(f"{name} Spark SQL, tables known", lambda out: answer_in_sql(here.spark, query, out), answer=query)
    skipped = importable("duckdb")
    if skipped:
        here.report.facts["DuckDB"] = skipped
    else:
        yield Entry(f"{name} DuckDB", lambda out: in_duckdb(query, data, out), answer=query)
