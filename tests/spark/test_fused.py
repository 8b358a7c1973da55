"""Fused units on Spark: whose work the cores take first, and by what the rows of a view are divided."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from engine.events import LogReader, UnitDecided
from engine.model.binding import Bound, bind
from engine.model.file import workflow_from
from engine.operators import catalogue
from engine.spark.backend import FIRST_POOL, Classic
from engine.spark.launch import launch
from engine.spark.runner import RunSettings
from engine.spark.session import SparkSettings, lent
from engine.spark.targets import FileDelivery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT = [{"name": "n", "expression": "count(*)"}]


@pytest.fixture
def butterfly(tmp_path: Path) -> Bound:
    """A fine view with a coarser one behind it, said to be large, and a target that nobody reads."""
    rows = "SELECT i AS a, i % 2000 AS b FROM range(3000) t(i)"
    with duckdb.connect() as database:
        database.execute(f"COPY ({rows}) TO '{tmp_path}/s.parquet' (FORMAT parquet)")

    def node(operator: str, rows: int | None = None, **settings: Any) -> dict[str, Any]:
        return {"operator": operator, "settings": settings, **({"hints": {"rows": rows}} if rows else {})}

    document = {
        "papilio": 1,
        "name": "views",
        "roots": {"here": str(tmp_path)},
        "nodes": {
            "s": node("parquet_source", 1_000_000, path="${here}/s.parquet"),
            "copy": node("copy"), "aside": node("parquet_target", path="${here}/aside"),
            "fine": node("aggregate", 900_000, group=["a", "b"], aggregates=COUNT),
            "v": node("parquet_target", path="${here}/v"),
            "coarse": node("aggregate", 200_000, group=["b"], aggregates=[{"name": "n", "expression": "sum(n)"}]),
            "w": node("parquet_target", path="${here}/w"),
        },
        "edges": [
            {"from": "s", "to": "copy"}, {"from": "copy", "to": "aside"},
            {"from": "s", "to": "fine"}, {"from": "fine", "to": "v"},
            {"from": "v", "to": "coarse"}, {"from": "coarse", "to": "w"},
        ],
    }  # fmt: skip
    bound = bind(workflow_from(document, "views"), catalogue())
    bound.raise_errors()
    return bound


def run(bound: Bound, spark: SparkSession, folder: Path) -> None:
    with lent(spark):
        summary = launch(
            bound, RunSettings(SparkSettings("local[2]"), folder=folder / "run"), store=str(folder / "store.db")
        )
    assert summary["status"] == "done"


def test_who_has_others_behind_is_first(
    butterfly: Bound, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: dict[str, str] = {}
    enter = Classic.enter

    def noted(self: Classic, group: str, unit: str, first: bool = False) -> None:
        enter(self, group, unit, first)
        pools[unit] = str(spark.sparkContext.getLocalProperty("spark.scheduler.pool"))

    monkeypatch.setattr(Classic, "enter", noted)
    run(butterfly, spark, tmp_path)
    assert pools == {"v": FIRST_POOL, "aside": "aside", "w": "w"}, "behind v nobody waits for anybody"
    context: Any = spark.sparkContext._jsc.sc()
    assert context.getPoolForName(FIRST_POOL).get().minShare() > context.defaultParallelism()
    decided = [event for event in LogReader(tmp_path / "run" / "events.jsonl") if isinstance(event, UnitDecided)]
    assert decided[0].candidates == [["v", 2], ["aside", 1]]


def test_the_rows_of_a_fine_view_go_to_where_the_coarser_one_groups_them(
    butterfly: Bound, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: dict[str, str] = {}
    write = FileDelivery.write

    def noted(self: FileDelivery, frame: Any) -> None:
        plans[self.node] = frame._jdf.queryExecution().executedPlan().toString()
        write(self, frame)

    monkeypatch.setattr(FileDelivery, "write", noted)
    run(butterfly, spark, tmp_path)
    assert re.findall(r"Exchange hashpartitioning\((\w)#", plans["v"]) == ["b"], plans["v"]
    told = json.loads((tmp_path / "run" / "summary.json").read_text())["plan"]["remarks"]
    assert told == ["`fine`: its rows are divided by b alone, for the sake of a coarser view behind it"]
    with duckdb.connect() as database:
        wrong = f"""SELECT b, sum(n) FROM (SELECT i % 2000 AS b, 1 AS n FROM range(3000) t(i)) GROUP BY b
            EXCEPT SELECT b, n FROM '{tmp_path}/w/*.parquet'"""
        assert database.execute(wrong).fetchall() == []
