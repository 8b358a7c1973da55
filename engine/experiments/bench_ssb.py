"""SSB's Q1.1, Q2.1, Q3.1 and Q4.1: what a query costs as a dataflow, where it could have been written as SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, contest, importable
from engine.experiments.ssb import generate_ssb
from engine.experiments.ssb_queries import QUERIES, answer_in_sql, in_duckdb, in_spark_sql

# At scale 1 a query takes less than a second, and what a run costs beside its query shows: binding, the journal, the
# log and an atomic target. At 4 there are four times as many facts, and whatever grows with them shows as well.
WARM_ROUNDS = {1.0: 8, 4.0: 3}  # scale → rounds that do not count, in which Java compiles
OTHER_WARM_ROUNDS = 3
LIMIT = 1.10  # the share of Spark SQL's time that a dataflow may take


def benchmark(options: Options) -> Report:
    """SSB Q1.1, Q2.1, Q3.1, Q4.1 as dataflows against the same queries in Spark SQL, beside DuckDB."""
    scales = [options.scale] if options.scale else list(WARM_ROUNDS)
    for scale in scales:
        options.say(f"SSB scale {scale:g}")
        generate_ssb(_data(options, scale), scale)
    with contest(options) as here:
        here.report.facts["scales"] = scales
        for scale in scales:
            for query in QUERIES:
                entries = list(_entries(here, query, scale))
                here.hold(entries, warm_rounds=WARM_ROUNDS.get(scale, OTHER_WARM_ROUNDS))
        for scale in scales:
            for query in QUERIES:
                _conclude(here, _title(query, scale))
        return here.report


def _data(options: Options, scale: float) -> Path:
    return options.folder / f"ssb-{scale:g}"


def _title(query: str, scale: float) -> str:
    return f"Q{query[1]}.{query[2]} at {scale:g}"


def _conclude(here: Contest, title: str) -> None:
    papilio, spark_sql = f"{title} papilio", f"{title} Spark SQL"
    text = f"{title}: the dataflow takes at most {LIMIT:g} times as long as Spark SQL"
    here.at_most(text, papilio, spark_sql, LIMIT)
    for other in ("Spark SQL, tables known", "DuckDB"):
        here.compare(papilio, f"{title} {other}")
    if here.report.finished(papilio, spark_sql):
        beyond = here.report.contenders[papilio].median - here.report.contenders[spark_sql].median
        here.report.facts[f"{title}: seconds beyond Spark SQL"] = round(beyond, 2)


def _entries(here: Contest, query: str, scale: float) -> Iterator[Entry]:
    name, data = _title(query, scale), _data(here.options, scale)
    yield Entry(f"{name} papilio", here.papilio(f"ssb_{query}", data), answer=name)
    yield Entry(f"{name} Spark SQL", lambda out: in_spark_sql(here.spark, query, data, out), answer=name)
    # The views that the one before made: what a query costs where a catalogue knows the tables.
    yield Entry(f"{name} Spark SQL, tables known", lambda out: answer_in_sql(here.spark, query, out), answer=name)
    skipped = importable("duckdb")
    if skipped:
        here.report.facts["DuckDB"] = skipped
    else:
        yield Entry(f"{name} DuckDB", lambda out: in_duckdb(query, data, out), answer=name)
