"""From a workflow file to the planner's graph: rows, orders through real operators, choices in the file."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.binding import Bound, bind
from engine.model.file import load, to_yaml, workflow_from
from engine.model.physical import Physical, order_text
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.plan.constraints import constraints
from engine.plan.costs import MeasuredCosts, PaperCosts, units
from engine.plan.graph import Activity, Graph, Recordset, graph_of
from engine.plan.planner import only, rank
from engine.plan.rows import Origin, Recorded, rows_of
from tests.end_to_end.helpers import WORKFLOWS

COLUMNS = {"a": "int", "b": "string", "c": "decimal(10,2)", "d": "date"}


def bound_of(nodes: dict[str, Any], *edges: str, **more: Any) -> Bound:
    document = {
        "papilio": 1,
        "nodes": nodes,
        "edges": [dict(zip(("from", "to"), edge.split(" -> "), strict=True)) for edge in edges],
        **more,
    }
    bound = bind(Workflow.model_validate(document), catalogue())
    bound.raise_errors()
    return bound


def node(operator: str, hints: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    return {"operator": operator, "settings": settings, **({"hints": hints} if hints else {})}


def source(rows: int | None = None, **columns: str) -> dict[str, Any]:
    return node("csv_source", {"rows": rows} if rows is not None else None, path="x.csv", columns=columns or COLUMNS)


def target(name: str, **settings: Any) -> dict[str, Any]:
    return node("parquet_target", path=name, **settings)


def between(operator: dict[str, Any], port: str = "") -> Physical:
    """How one operator between a source and a target can be carried out."""
    bound = bound_of({"s": source(100), "x": operator, "t": target("t")}, "s -> x", f"x{port} -> t")
    made = graph_of(bound, rows_of(bound)).nodes["x"]
    assert isinstance(made, Activity)
    return made.physical


# ---------------------------------------------------------------- orders of real operators


@pytest.mark.parametrize(
    ("condition", "order"),
    [
        ("a < 1000", "a"),
        ("A < 1000 AND a >= 5", "a"),
        ("a > 1000", "a desc"),
        ("a > 1000 and a >= 7", "a desc"),
        ("1000 > a", "a"),
        ("1000 <= a", "a desc"),
        ("a = 7", "a"),
        ("a BETWEEN 3 AND 9", "a"),
        ("b IS NOT NULL", "b"),
        ("d >= date '2024-01-01'", "d desc"),
        ("a <> 7", None),
        ("a NOT BETWEEN 3 AND 9", None),
        ("a = 1 OR a = 9", None),
        ("a < c", None),
        ("a + 1 < 10", None),
        ("a < 10 AND c < 5", None),
        ("b LIKE 'x%'", None),
    ],
)
def test_a_filter_knows_the_order_in_which_its_rows_stand_together(condition, order):
    physical = between(node("filter", condition=condition))
    offered = [order_text(one) for some in physical.interesting for one in some]
    assert offered == ([order] if order else [])
    assert [way.name for way in physical.implementations] == (["SF", "F"] if order else ["F"])


def test_a_filter_whose_other_rows_are_read_too_cannot_stop_early():
    bound = bound_of(
        {"s": source(100), "x": node("filter", condition="a < 5"), "t": target("t"), "u": target("u")},
        "s -> x", "x.match -> t", "x.rest -> u",
    )  # fmt: skip
    made = graph_of(bound, rows_of(bound)).nodes["x"]
    assert isinstance(made, Activity)
    assert [way.name for way in made.physical.implementations] == ["F"]


@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        (node("derive", columns=[{"name": "e", "expression": "a + 1"}]), "a,b"),
        (node("derive", columns=[{"name": "b", "expression": "upper(b)"}]), "a"),
        (node("select", columns=[{"column": "a", "name": "x"}, {"column": "b"}]), "x,b"),
        (node("select", columns=[{"column": "a", "type": "bigint"}, {"column": "b"}]), ""),
        (node("select", drop=["b"]), "a"),
        (node("select", rename={"A": "x"}), "x,b"),
        (node("not_null", columns=["a", "b"]), "a,b"),
        (node("convert", columns={"b": {"type": "int"}}), "a"),
        (node("copy"), "a,b"),
        (node("clean_text", columns=["b"]), "a"),
        (node("sample", fraction=0.5), "a,b"),
        (node("limit", rows=3), "a,b"),
        (node("sql", tables=["x"], query="SELECT a, b FROM x", columns={"a": "int", "b": "string"}), ""),
    ],
    ids=lambda value: value["operator"] if isinstance(value, dict) else "",
)
def test_an_order_passes_an_operator_as_far_as_its_columns_do(operator, kept):
    bound = bound_of(
        {"s": source(100), "o": node("sort", by=[{"column": "a"}, {"column": "b"}]), "x": operator, "t": target("t")},
        "s -> o", "o -> x", "x -> t",
    )  # fmt: skip
    plan = rank(graph_of(bound, rows_of(bound)), PaperCosts()).best
    (line,) = (line for line in plan.lines if line.node == "x" and not line.is_sorter)
    assert order_text(line.leaves) == kept


def test_the_right_key_of_an_inner_join_is_ordered_where_the_left_one_is():
    bound = bound_of(
        {
            "l": source(1_000, k="int", v="int"), "r": source(1_000, s="int", w="int"),
            "j": node("join", {"rows": 1_000}, keys=[{"left": "k", "right": "s"}], form="merge"),
            "t": target("t"),
            "g": node("aggregate", {"rows": 10}, group=["S"], aggregates=[{"name": "n", "expression": "count(*)"}]),
            "v": target("v"),
        },
        "l -> j.left", "r -> j.right", "j -> t", "t -> g", "g -> v",
    )  # fmt: skip
    graph = graph_of(bound, rows_of(bound))
    plan = rank(graph, PaperCosts(), constraints([("j", "MJ"), ("g", "SO")])).best
    (line,) = (line for line in plan.lines if line.node == "g")
    assert [order_text(order) for order in line.takes] == ["k"]
    assert units(line.cost) == 1_000  # not sorted again


@pytest.mark.parametrize(
    ("settings", "ways"),
    [
        ({"keys": [{"left": "a"}]}, ["MJ", "HJ", "SMJ", "NL", "BJ"]),
        ({"keys": [{"left": "a"}], "kind": "left"}, ["MJ", "HJ", "SMJ", "BJ"]),
        ({"keys": [{"left": "a"}], "kind": "full"}, ["MJ", "HJ", "SMJ"]),
        ({"keys": [{"left": "a"}], "form": "merge"}, ["MJ", "SMJ"]),
        ({"keys": [{"left": "a"}], "form": "broadcast"}, ["BJ"]),
        ({"keys": [{"left": "a"}], "form": "broadcast", "kind": "right"}, ["HJ"]),
        ({"kind": "cross"}, ["NL"]),
        ({"condition": "left.a < right.a"}, ["NL"]),
        ({"condition": "left.a < right.a", "kind": "left"}, ["NL"]),
    ],
)
def test_a_join_offers_what_its_settings_allow(settings, ways):
    bound = bound_of(
        {"l": source(10), "r": source(10), "j": node("join", **settings), "t": target("t")},
        "l -> j.left", "r -> j.right", "j -> t",
    )  # fmt: skip
    made = graph_of(bound, rows_of(bound)).nodes["j"]
    assert isinstance(made, Activity)
    assert [way.name for way in made.physical.implementations] == ways
    rank(graph_of(bound, rows_of(bound)), PaperCosts())


def test_every_row_of_an_outer_join_may_break_the_left_order():
    def leaves(kind: str) -> str:
        bound = bound_of(
            {"l": source(10), "r": source(10), "j": node("join", keys=[{"left": "a"}], kind=kind), "t": target("t")},
            "l -> j.left", "r -> j.right", "j -> t",
        )  # fmt: skip
        plan = rank(graph_of(bound, rows_of(bound)), PaperCosts(), constraints([("j", "MJ")])).best
        return order_text(plan.lines[-1].leaves)

    assert {kind: leaves(kind) for kind in ("inner", "left", "full")} == {"inner": "a", "left": "a", "full": ""}


def test_a_target_that_is_added_to_passes_no_order_on_unless_only_what_came_is_read():
    def stored(**settings: Any) -> bool:
        bound = bound_of(
            {"s": source(10), "x": node("copy"), "t": target("t", **settings), "y": node("copy"), "u": target("u")},
            "s -> x", "x -> t", "t -> y", "y -> u",
        )  # fmt: skip
        made = graph_of(bound, rows_of(bound)).nodes["t"]
        assert isinstance(made, Recordset)
        return made.stored

    assert stored()
    assert not stored(mode="append")
    assert stored(mode="append", pass_on="delivered")


# ---------------------------------------------------------------- rows


def test_a_hint_goes_before_a_run_and_a_run_before_what_is_assumed():
    nodes = {
        "s": source(), "f": node("filter", condition="a < 1"), "g": node("filter", condition="a < 2"),
        "h": node("filter", {"selectivity": 0.25}, condition="a < 3"), "t": target("t"),
    }  # fmt: skip
    bound = bound_of(nodes, "s -> f", "f -> g", "g -> h", "h -> t")
    recorded = {"f": Recorded(1_000, 900, 2.5), "h": Recorded(10, 10)}
    rows = rows_of(bound, {"s": 8_000}, recorded)
    assert [(rows.out(id_), rows.origins[id_]) for id_ in "sfgh"] == [
        (8_000, Origin.SOURCE), (7_200, Origin.RUN), (3_600, Origin.ASSUMED), (900, Origin.HINT),
    ]  # fmt: skip
    assert rows.assumed() == ["g"]
    assert rows.origins["t"] is Origin.EXACT
    assert graph_of(bound, rows).nodes["f"].cost_us == 2.5  # type: ignore[union-attr]


def test_the_rows_of_all_ways_are_those_that_entered():
    bound = bound_of(
        {
            "s": source(900),
            "f": node("filter", {"selectivity": 0.3}, condition="a < 1"), "x": target("x"),
            "r": node("router", routes=[{"port": "p", "condition": "a < 1"}, {"port": "q", "condition": "a < 2"}]),
            "p": target("p"), "q": target("q"), "z": target("z"),
        },
        "s -> f", "f.match -> x", "f.rest -> r", "r.p -> p", "r.q -> q", "r.rest -> z",
    )  # fmt: skip
    rows = rows_of(bound)
    assert (rows.of_port("f", "match"), rows.of_port("f", "rest")) == (270, 630)
    assert [rows.of_port("r", port) for port in ("p", "q", "rest")] == [210, 210, 210]


@pytest.mark.parametrize(
    ("operator", "rows"),
    [
        (node("not_null", columns=["a"]), 100),  # rows that are refused are the exception
        (node("sample", fraction=0.25), 25),
        (node("derive", columns=[{"name": "e", "expression": "a + 1"}]), 100),
        (node("union"), 100),
        (node("filter", condition="a < 1"), 50),
        (node("aggregate", group=["a"]), 10),
    ],
    ids=lambda value: value["operator"] if isinstance(value, dict) else "",
)
def test_where_nothing_is_known_an_operator_says_what_is_likely(operator, rows):
    bound = bound_of({"s": source(100), "x": operator, "t": target("t")}, "s -> x", "x -> t")
    assert rows_of(bound).out("x") == rows


def test_a_lookup_gives_its_main_rows_however_many_the_reference_has():
    bound = bound_of(
        {
            "s": source(100, a="int"), "d": source(7_000, a="int", c="int"),
            "k": node("lookup", keys=[{"main": "a"}], take=[{"column": "c"}]), "t": target("t"),
        },
        "s -> k.main", "d -> k.reference", "k -> t",
    )  # fmt: skip
    assert rows_of(bound).out("k") == 100


def test_a_known_cost_of_a_row_counts_in_the_measured_model_only():
    def cost(model, **hints: Any) -> float:
        bound = bound_of({"s": source(1_000), "x": node("copy", hints or None), "t": target("t")}, "s -> x", "x -> t")
        return units(rank(graph_of(bound, rows_of(bound)), model).best.cost)

    assert cost(PaperCosts()) == cost(PaperCosts(), cost_us=7) == 1_000
    assert cost(MeasuredCosts(), cost_us=7) == 7_000
    assert cost(MeasuredCosts()) != 7_000


# ---------------------------------------------------------------- what the file asks for


def test_choices_and_limits_in_the_file_are_kept_and_written_back():
    asked = {
        "pin": {"f": "F"}, "forbid": {"g": ["HB"]}, "memory_rows": 10, "resumption": 5000.5,
        "limits": [{"nodes": ["f", "g"], "cost": 1000}],
    }  # fmt: skip
    bound = bound_of(
        {
            "s": source(10), "f": node("filter", condition="a < 1"),
            "g": node("aggregate", group=["b"]), "t": target("t"),
        },
        "s -> f", "f -> g", "g -> t", plan=asked,
    )  # fmt: skip
    made = constraints(planning=bound.workflow.plan)
    assert (made.pinned, made.forbidden) == ({"f": "F"}, {"g": frozenset({"HB"})})
    assert (made.memory_rows, made.resumption, made.limits[0].name) == (10, 5000.5, "f,g=1000")
    again = constraints([("f", "SF")], planning=bound.workflow.plan)
    assert again.pinned == {"f": "SF"}  # what is asked for this time goes first
    document = bound.workflow.document()
    assert document["plan"] == asked
    text = to_yaml(bound.workflow)
    assert "memory_rows: 10" in text
    empty = Workflow.model_validate({"papilio": 1, "nodes": {}, "plan": {}})
    assert "plan" not in empty.document()
    assert workflow_from(document, "w").plan == bound.workflow.plan


def test_two_edges_from_one_node_are_numbered_by_the_ports_they_enter():
    bound = bound_of(
        {"s": source(100), "j": node("join", keys=[{"left": "a"}], right_suffix="_2"), "t": target("t")},
        "s -> j.right", "s -> j.left", "j -> t",
    )  # fmt: skip
    graph: Graph = graph_of(bound, rows_of(bound))
    assert [edge.number for edge in graph.edges if edge.target == "j"] == [1, 0]
    assert [edge.number for edge in graph.incoming["j"]] == [0, 1]


@pytest.mark.parametrize("file", sorted(WORKFLOWS.rglob("*.butterfly.yaml")), ids=lambda file: file.name)
def test_every_shipped_workflow_can_be_planned_and_its_best_plan_read_back(file):
    bound = bind(load(file), catalogue())
    bound.raise_errors()
    asked = constraints(planning=bound.workflow.plan)
    graph = graph_of(bound, rows_of(bound))
    ranking = rank(graph, PaperCosts(), asked)
    text = ranking.signature(ranking.best)
    assert only(text, graph, PaperCosts(), asked).best.number == ranking.best.number
