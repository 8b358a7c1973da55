"""SSB's Q1.1, Q2.1, Q3.1 and Q4.1: what a query costs as a dataflow, where it could have been written as SQL.

The SQL runs twice: in a session of its own as Spark ships it, which is what a person has who does without Papilio, and
in Papilio's session, where the settings are the same and what is left between them is the dataflow's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from engine.experiments.apart import Apart
from engine.experiments.bench import Options, Report
from engine.experiments.contest import OURS, OWN, Contest, Entry, contest, importable, in_own_session, missing_data
from engine.experiments.ssb import generate_ssb
from engine.experiments.ssb_queries import QUERIES, answer_in_sql, in_spark_sql

# At scale 1 a query takes less than a second, and what a run costs beside its query shows: binding, the journal, the
# log and an atomic target. At 4 there are four times as many facts, and whatever grows with them shows as well.
WARM_ROUNDS = {1.0: 8, 4.0: 3}  # scale → rounds that do not count, in which Java compiles
OTHER_WARM_ROUNDS = 3
WARM_RUNS = 5  # of a query in the first round of a session of its own, in which nothing else runs
LIMIT = 1.10  # the share of Spark SQL's time that a dataflow may take


def benchmark(options: Options) -> Report:
    """SSB Q1.1, Q2.1, Q3.1, Q4.1 as dataflows against the same queries in Spark SQL, beside DuckDB."""
    scales = [options.scale] if options.scale else list(WARM_ROUNDS)
    missing = missing_data(
        options, {f"SSB scale {scale:g}": partial(generate_ssb, _data(options, scale), scale) for scale in scales}
    )
    with contest(options) as here:
        here.report.facts["scales"] = scales
        here.versions("duckdb")
        session = here.own_session("ssb_apart", "shipped")
        duckdb = None if importable("duckdb") else here.apart("ssb_apart", "duckdb")
        for scale in scales:
            for query in QUERIES:
                entries = list(_entries(here, query, scale, session, duckdb))
                if reason := missing.get(f"SSB scale {scale:g}"):
                    here.leave_out(entries, reason)
                else:
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
    papilio = f"{title} papilio"
    for where in (OWN, OURS):
        spark_sql = f"{title} Spark SQL, {where}"
        text = f"{title}: the dataflow takes at most {LIMIT:g} times as long as Spark SQL {where}"
        here.at_most(text, papilio, spark_sql, LIMIT)
        if here.report.finished(papilio, spark_sql):
            beyond = here.report.contenders[papilio].median - here.report.contenders[spark_sql].median
            here.report.facts[f"{title}: seconds beyond Spark SQL {where}"] = round(beyond, 2)
    for other in (f"Spark SQL, tables known, {OURS}", "DuckDB"):
        here.compare(papilio, f"{title} {other}")


def _entries(here: Contest, query: str, scale: float, session: Apart, duckdb: Apart | None) -> Iterator[Entry]:
    name, data = _title(query, scale), _data(here.options, scale)
    yield Entry(f"{name} papilio", here.papilio(f"ssb_{query}", data), answer=name)
    own = in_own_session(session, data, WARM_RUNS, query=query)
    yield Entry(f"{name} Spark SQL, {OWN}", own, answer=name)
    yield Entry(f"{name} Spark SQL, {OURS}", lambda out: in_spark_sql(here.spark, query, data, out), answer=name)
    # The views that the one before made: what a query costs where a catalogue knows the tables.
    known = f"{name} Spark SQL, tables known, {OURS}"
    yield Entry(known, lambda out: answer_in_sql(here.spark, query, out), answer=name)
    if duckdb is None:
        here.report.facts["DuckDB"] = importable("duckdb")
    else:
        yield Entry(f"{name} DuckDB", lambda out: duckdb.ask(query=query, data=str(data), out=str(out)), answer=name)
