"""SSB Q4.1 as a dataflow at every granularity: what execution trees save, and how far the same query in SQL is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.experiments.bench import Options, Report
from engine.experiments.contest import Contest, Entry, contest, importable
from engine.experiments.ssb import generate_ssb
from engine.experiments.ssb_queries import in_spark_sql

SCALE = 0.3
ROUNDS = 2
TIMES = 4.7
QUERY = "q41"
OPERATOR, TREE = "operator rr", "tree rr"


def benchmark(options: Options) -> Report:
    """SSB Q4.1: operators against subflows, execution trees and fused plans, beside Spark SQL and DuckDB."""
    scale = options.scale or SCALE
    data = options.folder / f"ssb-{scale:g}"
    options.say(f"SSB scale {scale:g}")
    generate_ssb(data, scale)
    with contest(options) as here:
        here.report.facts["scale"] = scale
        here.versions("duckdb")
        here.hold(list(_entries(here, data)))
        here.at_least(f"tree is at least {TIMES} times as fast as operator", OPERATOR, TREE, TIMES)
        best = min((name for name in here.report.contenders if here.report.finished(name) and "rr" in name),
                   key=lambda name: here.report.contenders[name].median, default=None)  # fmt: skip
        for slower, faster in (
            (OPERATOR, "subflow rr"),
            (OPERATOR, "fused rr"),
            (TREE, "tree rr, degree 2"),
            (TREE, "tree rr, degree auto"),
            (best or TREE, "Spark SQL"),
            (best or TREE, "DuckDB"),
        ):
            here.compare(slower, faster)
        return here.report


def _entries(here: Contest, data: Path) -> Iterator[Entry]:
    for granularity in ("operator", "subflow", "tree", "fused"):
        for policy in ("rr", "mixed"):
            run = here.papilio(f"ssb_{QUERY}", data, granularity=granularity, policy=policy)
            yield Entry(f"{granularity} {policy}", run)
    for degree, name in ((2, "2"), (None, "auto")):
        run = here.papilio(f"ssb_{QUERY}", data, granularity="tree", policy="rr", degree=degree)
        yield Entry(f"tree rr, degree {name}", run)
    yield Entry("Spark SQL", lambda out: in_spark_sql(here.spark, QUERY, data, out))
    skipped = importable("duckdb")
    if skipped:
        here.report.facts["DuckDB"] = skipped
    else:
        process = here.apart("ssb_apart", "duckdb")
        yield Entry("DuckDB", lambda out: process.ask(query=QUERY, data=str(data), out=str(out)))
