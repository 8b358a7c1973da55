"""Every plan of a workflow gives the same targets: its implementations asked of Spark, its sorters carried out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from engine.model.binding import Bound, bind
from engine.model.file import load
from engine.model.operator import Role, port_frame
from engine.operators import catalogue
from engine.plan.apply import Applied, applied
from engine.plan.constraints import constraints
from engine.plan.costs import PaperCosts
from engine.plan.graph import graph_of
from engine.plan.planner import Search, rank
from engine.plan.rows import rows_of
from engine.plan.space import Plan
from engine.spark.sorted_staging import SETTINGS, SortedStage, in_order
from engine.spark.tools import build
from tests.end_to_end.helpers import WORKFLOWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILE = WORKFLOWS / "plan_balanced.butterfly.yaml"
TARGETS = {  # in DuckDB's words
    "v": "SELECT r.A, r.B, r.C, p.total FROM r JOIN (SELECT A, sum(C) AS total FROM s GROUP BY A) p ON r.A = p.A WHERE r.A < 10000",
    "z": "SELECT A, sum(total) FROM v GROUP BY A",
    "w": "SELECT B, sum(total) FROM v GROUP BY B",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    numbers = "SELECT (i * {0} % 15000)::INT AS A, (i % 37)::INT AS B, (i % 11)::INT AS C FROM range({1}) t(i)"
    with duckdb.connect() as database:
        for name, factor, rows in (("r", 7919, 2_000), ("s", 104729, 3_000)):
            database.execute(f"COPY ({numbers.format(factor, rows)}) TO '{folder}/{name}.parquet' (FORMAT parquet)")
    return folder


@pytest.fixture(scope="module")
def expected(data: Path) -> dict[str, list[tuple[int, ...]]]:
    with duckdb.connect() as database:
        for name in ("r", "s"):
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{data}/{name}.parquet')")
        for name, query in TARGETS.items():
            database.execute(f"CREATE TABLE {name} AS {query}")
        return {name: sorted(database.sql(f"SELECT * FROM {name}").fetchall()) for name in TARGETS}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


def plans(bound: Bound) -> list[tuple[Applied, Plan]]:
    """The cheapest plan with each join, and for each join the one with the most sorters."""
    graph = graph_of(bound, rows_of(bound))
    ranking = rank(graph, PaperCosts(), constraints(planning=bound.workflow.plan), 200, Search.EXHAUSTIVE)
    assert len(ranking.plans) == 180
    chosen: dict[tuple[str, bool], Plan] = {}
    for plan in ranking.plans:
        way = plan.implementations["3"]
        chosen.setdefault((way, False), plan)
        most = chosen.get((way, True))
        if most is None or len(plan.sorters) > len(most.sorters):
            chosen[way, True] = plan
    return [(applied(graph, plan), plan) for plan in chosen.values()]


def carry_out(spark: SparkSession, bound: Bound, plan: Applied, folder: Path) -> dict[str, list[tuple[int, ...]]]:
    """Node after node, every recordset staged, sorted where the plan says so."""
    held: dict[tuple[str, str], DataFrame] = {}
    stages: list[SortedStage] = []
    place = bound.place()
    try:
        for node in bound.order:
            operator = bound.operators[node]
            inputs: dict[str, list[DataFrame]] = {}
            for link in bound.incoming.get(node, ()):
                frame = held[link.source, link.source_port]
                order = plan.passed.get((link.source, link.target))
                inputs.setdefault(link.target_port, []).append(in_order(frame, order) if order else frame)
            if operator.role in (Role.TARGET, Role.STAGING):
                rows = inputs["in"][0]
            else:
                built = build(operator, inputs, spark, place)
                for port in operator.output_ports():
                    held[node, port.name] = port_frame(built, port.name)
                if operator.role is Role.ACTIVITY:
                    continue
                rows = held[node, "out"]
            if node in plan.staged:
                stages.append(SortedStage(f"papilio_{node}", folder / node, plan.staged[node], 4))
                stages[-1].write(rows)
                rows = stages[-1].read(spark)
            held[node, "out"] = rows
        return {name: sorted(map(tuple, held[name.upper(), "out"].collect())) for name in TARGETS}
    finally:
        for stage in stages:
            stage.delete(spark)


@pytest.mark.slow
def test_every_plan_gives_the_rows_that_duckdb_gives(session, data, expected, tmp_path):
    parameters = {"data_folder": str(data), "warehouse_folder": str(tmp_path)}
    bound = bind(load(FILE), catalogue(), parameters=parameters)
    bound.raise_errors()
    found = plans(bound)
    assert {plan.implementations["3"] for _, plan in found} == {"MJ", "HJ", "SMJ", "NL"}
    assert max(len(plan.sorters) for _, plan in found) == 5
    for asked, plan in found:
        planned = bind(load(FILE), catalogue(), parameters=parameters, settings=asked.settings)
        planned.raise_errors()
        assert carry_out(session, planned, asked, tmp_path / str(plan.number % 10**9)) == expected, plan.implementations
