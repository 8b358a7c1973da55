"""What is computed once, what is melted together, and what is as cheap to compute again."""

from __future__ import annotations

from engine.model.binding import bind
from engine.model.workflow import Workflow
from engine.operators import catalogue
from engine.partition.fused import Held, fuse

PARQUET = {"operator": "parquet_source", "settings": {"path": "in/p"}}
CSV = {"operator": "csv_source", "settings": {"path": "in/c.csv", "columns": {"a": "int"}}}
FILTER = {"operator": "filter", "settings": {"condition": "a > 1"}}
SORT = {"operator": "sort", "settings": {"by": [{"column": "a"}]}}
COPY = {"operator": "copy"}


def target(name, operator="parquet_target", **settings):
    return {"operator": operator, "settings": {"path": f"out/{name}", **settings}}


def units(nodes, *edges):
    document = {
        "papilio": 1,
        "nodes": nodes,
        "edges": [dict(zip(("from", "to"), edge.split(">"), strict=True)) for edge in edges],
    }
    bound = bind(Workflow.model_validate(document), catalogue())
    assert not bound.errors, [problem.text() for problem in bound.errors]
    return {unit.id: (unit.held, unit.nodes, unit.reads) for unit in fuse(bound).units}


def test_a_line_is_one_unit():
    found = units({"s": PARQUET, "f": FILTER, "o": SORT, "t": target("t")}, "s>f", "f>o", "o>t")
    assert found == {"t": (Held.TARGET, ("s", "f", "o", "t"), ())}


def test_a_costly_result_that_two_read_is_staged_once():
    nodes = {"s": PARQUET, "o": SORT, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>o", "o>x", "o>y", "x>t", "y>u")
    assert found["o"] == (Held.STAGED, ("s", "o"), ())
    assert found["t"] == (Held.TARGET, ("x", "t"), ("o",))


def test_filters_over_columnar_files_are_computed_again_where_that_is_cheaper():
    nodes = {"s": PARQUET, "f": FILTER, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>f", "f>x", "f>y", "x>t", "y>u")
    assert set(found) == {"t", "u"}
    assert found["u"][1] == ("s", "f", "y", "u")


def test_text_files_are_not_parsed_twice():
    nodes = {"s": CSV, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>x", "s>y", "x>t", "y>u")
    assert found["s"][0] == Held.STAGED


def test_a_target_that_holds_the_rows_serves_the_other_readers():
    nodes = {"s": PARQUET, "o": SORT, "x": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>o", "o>t", "o>x", "x>u")
    assert found == {"t": (Held.TARGET, ("s", "o", "t"), ()), "u": (Held.TARGET, ("x", "u"), ("t",))}


def test_a_target_that_loses_types_or_holds_older_rows_too_does_not_serve_others():
    for keeper in (target("t", "csv_target"), target("t", mode="append")):
        found = units({"s": PARQUET, "o": SORT, "x": COPY, "t": keeper, "u": target("u")}, "s>o", "o>t", "o>x", "x>u")
        assert found["o"][0] == Held.STAGED


def test_values_that_differ_from_time_to_time_are_computed_once():
    random = {"operator": "derive", "settings": {"columns": [{"name": "r", "expression": "rand()"}]}}
    nodes = {"s": PARQUET, "r": random, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    assert units(nodes, "s>r", "r>x", "r>y", "x>t", "y>u")["r"][0] == Held.STAGED


def test_rows_that_are_counted_on_the_way_are_counted_once():
    check = {"operator": "not_null", "settings": {"columns": ["a"]}}
    nodes = {"s": PARQUET, "n": check, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    assert units(nodes, "s>n", "n>x", "n>y", "x>t", "y>u")["n"][0] == Held.STAGED


def test_both_ports_of_a_split_over_a_costly_input_are_staged_together():
    nodes = {"s": PARQUET, "o": SORT, "f": FILTER, "x": COPY, "y": COPY, "t": target("t"), "u": target("u")}
    found = units(nodes, "s>o", "o>f", "f.match>x", "f.rest>y", "x>t", "y>u")
    assert found["f"] == (Held.STAGED, ("s", "o", "f"), ())
