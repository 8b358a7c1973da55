"""Looking at the rows that leave by a port."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.errors import BadInput
from engine.model.binding import Bound, bind
from engine.model.file import WorkflowFile
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.spark.failures import NodeFailed
from engine.spark.preview import column_figures, preview


def test_numbers_are_spread_over_bars_from_the_least_to_the_greatest() -> None:
    figures = column_figures("a", "int", [*range(100), None, None])
    assert len(figures.bars) == 12
    assert max(figures.bars) == 1
    assert figures.labels == ["0", "99"]
    assert figures.nulls == pytest.approx(2 / 102)
    assert figures.distinct == 100


def test_few_values_are_counted_one_by_one_the_most_frequent_first() -> None:
    figures = column_figures("a", "string", ["x", "y", "x", None])
    assert figures.labels == ["x (2)", "y (1)"]
    assert figures.bars == [1.0, 0.5]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [float("nan"), 1.0] * 20,
        [decimal.Decimal(number) for number in range(40)],
        [datetime.date(2024, 1, 1) + datetime.timedelta(number) for number in range(40)],
        [{"a": [1]}, {"a": None}],
        [b"\x00\xff"],
        [True, False, None],
    ],
)
def test_any_values_have_figures(values: list[Any]) -> None:
    figures = column_figures("a", "?", values)
    assert all(0 <= bar <= 1 for bar in figures.bars)
    assert 0 <= figures.nulls <= 1


def bound(folder: Path, **settings: Any) -> Bound:
    (folder / "in.csv").write_text("a,b\n1,x\n2,\n3,z\n")
    nodes: dict[str, Any] = {
        "rows": {"operator": "csv_source", "settings": {"path": "in.csv", "columns": {"a": "int", "b": "string"}}},
        "some": {"operator": "filter", "settings": {"condition": "a > 1", **settings}},
        "table": {"operator": "parquet_target", "settings": {"path": "out"}},
        "broken": {"operator": "filter"},
    }
    edges = [("rows.out", "some.in"), ("some.match", "table.in"), ("table.out", "broken.in")]
    data = {"papilio": 1, "nodes": nodes, "edges": [{"from": source, "to": target} for source, target in edges]}
    return bind(WorkflowFile(Workflow.model_validate(data), folder / "x.butterfly.yaml"), catalogue())


def test_rows_are_computed_and_nothing_is_written(spark: SparkSession, tmp_path: Path) -> None:
    found = preview(bound(tmp_path), "table", "out", spark)
    assert found["rows"] == [["2", None], ["3", "z"]]
    assert [(column["name"], column["type"], column["nulls"]) for column in found["columns"]] == [
        ("a", "int", 0.0),
        ("b", "string", 0.5),
    ]
    assert not (tmp_path / "out").exists()
    assert preview(bound(tmp_path), "some", "rest", spark)["rows"] == [["1", "x"]]


def test_what_cannot_be_computed_names_its_node(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="broken"):
        preview(bound(tmp_path), "broken", "match", spark)
    with pytest.raises(NodeFailed) as told:
        preview(bound(tmp_path, condition="1 / (a - 2) > 0"), "some", "match", spark)
    assert told.value.node == "some"
