"""A plan put to work: the settings that ask for its implementations, and its sorters' orders."""

from __future__ import annotations

import json

from engine.model.binding import bind
from engine.model.physical import ordered_by
from engine.operators import catalogue
from engine.operators.combining import Join, JoinForm
from engine.plan.apply import Applied, Layout, applied
from engine.plan.costs import PaperCosts
from engine.plan.graph import graph_of
from engine.plan.planner import only, rank
from engine.plan.rows import rows_of
from tests.plan.test_workflow import bound_of, node, source, target


def two_sources(**settings):
    return bound_of(
        {
            "l": source(1_000), "f": node("filter", condition="a < 5"), "r": source(1_000),
            "j": node("join", keys=[{"left": "a"}], right_suffix="_2", **settings), "t": target("t"),
        },
        "l -> f", "f -> j.left", "r -> j.right", "j -> t",
    )  # fmt: skip


def test_an_implementation_becomes_the_setting_that_asks_spark_for_it():
    bound = two_sources()
    graph = graph_of(bound, rows_of(bound))
    for way, form in (("HJ", "hash"), ("SMJ", "merge"), ("NL", "nested_loops")):
        plan = only(f"((l.f)//(r)).j@{way}.t", graph, PaperCosts()).best
        asked = applied(graph, plan)
        assert asked.settings == {("j", "form"): form}
        again = bind(bound.workflow, catalogue(), settings=asked.settings)
        assert again.errors == []
        join = again.operators["j"]
        assert isinstance(join, Join)
        assert join.form is JoinForm(form)


def test_sorters_become_orders_of_recordsets_and_edges():
    bound = two_sources()
    graph = graph_of(bound, rows_of(bound))
    plan = only("((l.f.f_j(a))//(r.r!(a))).j@MJ.t", graph, PaperCosts()).best
    asked = applied(graph, plan)
    assert asked.staged == {"r": Layout(ordered_by("a"), 1)}
    assert asked.passed == {("f", "j", 0): Layout(ordered_by("a"), 1)}
    assert asked.rows == 1_000
    assert Applied.from_data(json.loads(json.dumps(asked.as_data()))) == asked
    assert asked.settings == {("j", "form"): "merge"}


def test_a_form_that_the_person_chose_is_not_overruled():
    bound = two_sources(form="broadcast")
    graph = graph_of(bound, rows_of(bound))
    assert applied(graph, rank(graph, PaperCosts()).best).settings == {}


def test_every_setting_that_a_template_asks_for_is_one_its_operator_has():
    bound = bound_of(
        {
            "s": source(10, a="int", b="int"), "d": source(10, a="int", c="int"),
            "k": node("lookup", keys=[{"main": "a", "reference": "a"}], take=[{"column": "c"}]),
            "j": node("join", keys=[{"left": "a"}], right_suffix="_2"), "t": target("t"),
        },
        "s -> k.main", "d -> k.reference", "k -> j.left", "d -> j.right", "j -> t",
    )  # fmt: skip
    graph = graph_of(bound, rows_of(bound))
    for node_id in ("k", "j"):
        activity = graph.activity(node_id)
        assert activity is not None
        names = {way.name for way in activity.physical.implementations}
        assert activity.physical.asks.keys() >= names
        for way in names:
            settings = {(node_id, key): value for key, value in activity.physical.asks[way].items()}
            assert bind(bound.workflow, catalogue(), settings=settings).errors == []
