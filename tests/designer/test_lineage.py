"""Where columns come from and go, and renaming them on their way."""

from __future__ import annotations

from typing import Any

import pytest

from designer.document import changes
from designer.document.analysis import Analysis, analyse
from designer.document.document import Document
from designer.document.lineage import lineage, rename_column, rename_in_expression
from engine.model.workflow import Workflow
from engine.operators import catalogue


def joined() -> Document:
    """Orders with a sum, joined with customers, renamed, and added up."""
    nodes: dict[str, dict[str, Any]] = {
        "orders": {
            "operator": "csv_source",
            "settings": {"path": "o", "columns": {"id": "int", "price": "int", "c": "int"}},
        },
        "sum": {"operator": "derive", "settings": {"columns": [{"name": "gross", "expression": "price * 119 / 100"}]}},
        "customers": {"operator": "csv_source", "settings": {"path": "c", "columns": {"c": "int", "name": "string"}}},
        "both": {"operator": "join", "settings": {"keys": [{"left": "c", "right": "c"}], "right_suffix": "_r"}},
        "named": {"operator": "select", "settings": {"rename": {"gross": "total"}}},
        "by": {
            "operator": "aggregate",
            "settings": {"group": ["name"], "aggregates": [{"name": "all", "expression": "sum(total) + count(price)"}]},
        },
        "out": {"operator": "parquet_target", "settings": {"path": "out"}},
    }
    edges = [
        "orders.out sum.in",
        "sum.out both.left",
        "customers.out both.right",
        "both.out named.in",
        "named.out by.in",
    ]
    edges.append("by.out out.in")
    document = {
        "papilio": 1,
        "nodes": nodes,
        "edges": [dict(zip(("from", "to"), edge.split(), strict=True)) for edge in edges],
    }
    return Document(Workflow.model_validate(document), catalogue())


@pytest.fixture
def analysis() -> Analysis:
    found = analyse(joined())
    assert found.problems == []
    return found


def test_a_column_is_followed_back_through_expressions_joins_and_renames(analysis: Analysis) -> None:
    way = lineage(analysis, "by", "out", "all")
    assert set(way.before) == {
        ("named", "out", "total"), ("named", "out", "price"), ("both", "out", "gross"), ("both", "out", "price"),
        ("sum", "out", "gross"), ("sum", "out", "price"), ("orders", "out", "price"),
    }  # fmt: skip
    assert way.behind == [("out", "out", "all")]


def test_a_column_is_followed_on_to_all_that_is_made_of_it(analysis: Analysis) -> None:
    way = lineage(analysis, "orders", "out", "price")
    assert {spot for spot in way.behind if spot[0] in ("sum", "by")} == {
        ("sum", "out", "gross"), ("sum", "out", "price"), ("by", "out", "all"),
    }  # fmt: skip
    assert "customers" not in way.nodes


def test_renaming_at_the_source_changes_every_reader_in_one_step() -> None:
    document = joined()
    analysis = analyse(document)
    edit = rename_column(document, analysis, "orders", "price", "net")
    document.apply(changes.set_setting(document, "orders", "columns", {"id": "int", "net": "int", "c": "int"}))
    document.apply(edit)
    assert analyse(document).problems == []
    nodes = document.workflow.nodes
    assert nodes["sum"].settings["columns"][0]["expression"] == "net * 119 / 100"
    assert nodes["by"].settings["aggregates"][0]["expression"] == "sum(total) + count(net)"
    document.apply(edit.inverse())
    assert nodes["sum"].settings["columns"][0]["expression"] == "price * 119 / 100"


def test_a_renamed_column_is_another_from_there_on() -> None:
    document = joined()
    edit = rename_column(document, analyse(document), "sum", "gross", "brutto")
    assert set(edit.keys("nodes")) == {"named"}
    document.apply(edit)
    assert document.workflow.nodes["named"].settings == {"rename": {"brutto": "total"}}


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("price + 1", "net + 1"),
        ("PRICE + 1", "net + 1"),
        ("concat('price', price)", "concat('price', net)"),
        ("left.price > right.price", "left.net > right.net"),
        ("`price` + pricey", "net + pricey"),
        ("sum(price) / count(price)", "sum(net) / count(net)"),
        ("price +", "price +"),
    ],
)
def test_only_the_column_is_renamed_in_an_expression(text: str, new: str) -> None:
    assert rename_in_expression(text, "price", "net") == new
