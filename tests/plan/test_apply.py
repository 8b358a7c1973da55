"""A plan put to work: the settings that ask for its implementations, and its sorters' orders."""

from __future__ import annotations

import json

from engine.model.binding import bind
from engine.model.physical import Sorting, Step, Work, order_text, ordered_by
from engine.operators import catalogue
from engine.operators.join import Join, JoinForm
from engine.plan.apply import Applied, Layout, applied
from engine.plan.constraints import constraints
from engine.plan.costs import MeasuredCosts, PaperCosts
from engine.plan.graph import graph_of
from engine.plan.planner import only, rank
from engine.plan.rows import rows_of
from engine.store.plans import plan_for_run
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


def fork(**plan):
    """A body with three views: by a, by a and b, by b."""
    measure = [{"name": "n", "expression": "count(*)"}]
    views = {
        name: node("aggregate", {"rows": rows}, group=group, aggregates=measure)
        for name, group, rows in (("x", ["a"], 9_000), ("y", ["a", "b"], 90_000), ("z", ["a", "c"], 90_000))
    }
    nodes = {
        "s": source(100_000),
        "f": node("filter", {"rows": 100_000}, condition="a <> 0"),
        "v": target("v"),
        **views,
    }
    nodes |= {f"t{name}": target(name) for name in views}
    edges = [edge for name in views for edge in (f"v -> {name}", f"{name} -> t{name}")]
    return bound_of(nodes, "s -> f", "f.match -> v", *edges, **plan)


def test_rows_are_divided_by_as_many_keys_as_all_who_use_the_order_can_do_with():
    bound = fork()
    graph = graph_of(bound, rows_of(bound))
    both = only("s.f.v.v!(a,b).((x@SO.tx)//(y@SO.ty)//(z@HB.tz))", graph, PaperCosts()).best
    assert applied(graph, both).staged == {"v": Layout(ordered_by("a", "b"), 1)}
    finer = only("s.f.v.v!(a,b).((x@HB.tx)//(y@SO.ty)//(z@HB.tz))", graph, PaperCosts()).best
    assert applied(graph, finer).staged == {"v": Layout(ordered_by("a", "b"), 2)}


def test_on_spark_hashing_groups_that_come_whole_in_one_part_counts_as_use_and_costs_less():
    bound = fork()
    graph = graph_of(bound, rows_of(bound), on_spark=True)
    best_of_all = "s.f.v.v!(a,b).((x@SO.tx)//(y@SO.ty)//(z@SO.tz))"
    best = only("s.f.v.v!(a,b).((x@SO.tx)//(y@SO.ty)//(z@HB.tz))", graph, MeasuredCosts()).best
    asked = applied(graph, best)
    assert asked.staged["v"].by == 1  # all three find their groups in one part
    assert asked.passed == {}
    assert asked.mixed == frozenset()
    sorted_there = applied(graph, only(best_of_all, graph, MeasuredCosts()).best)
    assert sorted_there.staged["v"].by == 1
    assert sorted_there.passed == {("v", "z", 0): Layout(ordered_by("a", "c"), 0)}  # in the part that they are in
    hashed = only("s.f.v.v!(a,b).((x@SO.tx)//(y@HB.ty)//(z@HB.tz))", graph, MeasuredCosts()).best
    assert applied(graph, hashed).mixed == {("v", "y", 0)}  # it could be sort-based, and is not to be
    alone = only("s.f.v.((x@HB.tx)//(y@HB.ty)//(z@HB.tz))", graph, MeasuredCosts()).best
    in_parts, gathered = (next(line.cost for line in plan.lines if line.node == "z") for plan in (best, alone))
    assert in_parts < gathered


def test_groups_that_are_sorted_for_their_own_sake_are_sorted_on_their_way_in_if_that_is_asked_for():
    bound = fork()
    graph = graph_of(bound, rows_of(bound))
    plan = only("s.f.v.((x@SO.tx)//(y@HB.ty)//(z@HB.tz))", graph, PaperCosts()).best
    assert applied(graph, plan).passed == {("v", "x", 0): Layout(ordered_by("a"), 1)}
    assert applied(graph, plan, asked=["y"]).passed == {}


def filtered(*behind: str, **more):
    """A source, a filter from above, and what reads it."""
    nodes = {"s": source(100_000), "f": node("filter", {"rows": 10_000}, condition="a >= 90"), "t": target("t"), **more}
    return bound_of(nodes, *(behind or ("s -> f", "f.match -> t")))


def test_rows_are_kept_ascending_and_in_ranges_where_filters_alone_use_their_order():
    bound = filtered()
    graph = graph_of(bound, rows_of(bound))
    asked = applied(graph, only("s.s!(a desc).f.t", graph, PaperCosts()).best)
    assert asked.staged == {"s": Layout(ordered_by("a"), 0)}
    measure = [{"name": "n", "expression": "count(*)"}]
    grouped = filtered(
        "s -> f", "f.match -> g", "g -> t", g=node("aggregate", {"rows": 90}, group=["a"], aggregates=measure)
    )
    for on_spark in (False, True):
        graph = graph_of(grouped, rows_of(grouped), on_spark=on_spark)
        asked = applied(graph, only("s.s!(a desc).f.g@SO.t", graph, MeasuredCosts()).best)
        assert asked.staged == {"s": Layout(ordered_by("a"), 1)}, "groups must be whole in one part"
        assert asked.passed == {}


def test_on_spark_a_sorter_is_credited_only_with_what_spark_leaves_out():
    def ranked(**order):
        by = {"column": "b", **order}
        return node("window", partition=["a"], order=[by], functions=[{"name": "n", "function": "rank()"}])

    def costs(step):
        bound = bound_of({"s": source(100_000), "w": step, "t": target("t")}, "s -> w", "w -> t")
        found = []
        for on_spark in (False, True):
            graph = graph_of(bound, rows_of(bound), on_spark=on_spark)
            activity = graph.activity("w")
            assert activity is not None
            (way,) = activity.physical.implementations
            assert isinstance(way, Sorting)
            steps = [step for step, _ in way.fit(Work((100_000,), 100_000, (way.order,))).steps]
            orders = [order_text(order) for some in activity.physical.interesting for order in some]
            found.append((steps[0], orders))
        return found

    assert costs(ranked()) == [(Step.SCAN, ["a,b"]), (Step.SCAN, ["a,b"])]
    # What falls, or has its nulls elsewhere, Spark sorts by itself; that groups come whole saves their way.
    assert costs(ranked(descending=True)) == [(Step.SCAN, ["a,b desc"]), (Step.REORDER, ["a"])]
    assert costs(ranked(nulls="last")) == [(Step.SCAN, ["a,b"]), (Step.REORDER, ["a"])]
    assert costs(node("sequence", partition=["a"], order=[{"column": "b"}])) == [
        (Step.SCAN, ["a,b"]), (Step.REORDER, ["a"]),
    ]  # fmt: skip
    assert costs(node("sort", by=[{"column": "a"}])) == [(Step.SCAN, ["a"]), (Step.SORT, [])]
    bound = bound_of({"s": source(100_000), "w": ranked(), "t": target("t")}, "s -> w", "w -> t")
    graph = graph_of(bound, rows_of(bound), on_spark=True)
    asked = applied(graph, only("s.s!(a,b).w.t", graph, MeasuredCosts()).best)
    assert asked.staged == {"s": Layout(ordered_by("a", "b"), 1)}


def test_what_sorts_by_itself_is_divided_by_as_many_columns_as_those_behind_it_can_do_with():
    """Spark would divide by all of a group's columns, and do it again for groups by fewer of them."""
    measure = [{"name": "n", "expression": "count(*)"}]

    def asked(step, signature, group=("a",)):
        coarse = node("aggregate", {"rows": 90}, group=list(group), aggregates=measure)
        bound = bound_of(
            {"s": source(100_000), "x": step, "g": coarse, "t": target("t")}, "s -> x", "x -> g", "g -> t"
        )  # fmt: skip
        graph = graph_of(bound, rows_of(bound), on_spark=True)
        plan = only(signature, graph, MeasuredCosts()).best
        (line,) = (line for line in plan.lines if line.node == "g")
        assert [step for step, _ in line.steps] == [Step.SCAN, Step.CLOSE]  # neither brought together nor sorted
        return applied(graph, plan).passed

    fine = node("aggregate", {"rows": 9_000}, group=["a", "b"], aggregates=measure)
    assert asked(fine, "s.x@SO.g@SO.t") == {("s", "x", 0): Layout(ordered_by("a", "b"), 1)}
    assert asked(fine, "s.x@SO.g@SO.t", "ab") == {("s", "x", 0): Layout(ordered_by("a", "b"), 2)}
    unique = node("deduplicate", {"rows": 9_000}, keys=["a", "b"])
    assert asked(unique, "s.x@SO.g@SO.t") == {("s", "x", 0): Layout(ordered_by("a"), 1, sorts=False)}
    assert asked(unique, "s.x@SO.g@SO.t", "ab") == {}
    ranks = node("window", partition=["a", "b"], functions=[{"name": "n2", "function": "count(*)"}])
    assert asked(ranks, "s.x.g@SO.t") == {("s", "x", 0): Layout(ordered_by("a"), 1, sorts=False)}


def test_sorters_whose_rows_meet_in_step_are_divided_alike():
    measure = [{"name": "n", "expression": "count(*)"}]
    nodes = {
        "l": source(1_000), "f": node("filter", {"rows": 900}, condition="c < 5"), "v": target("v"), "r": source(1_000),
        "x": node("aggregate", {"rows": 90}, group=["a"], aggregates=measure), "tx": target("tx"),
        "j": node("join", {"rows": 900}, keys=[{"left": "a"}, {"left": "b"}], right_suffix="_2"),
        "g": node("aggregate", {"rows": 90}, group=["a"], aggregates=measure), "t": target("t"),
    }  # fmt: skip
    bound = bound_of(
        nodes, "l -> f", "f.match -> v", "v -> x", "x -> tx", "v -> j.left", "r -> j.right", "j -> g", "g -> t"
    )

    def staged(graph, x, g):
        found = rank(graph, MeasuredCosts(), constraints([("j", "MJ"), ("x", x), ("g", g)]), 300).plans
        orders = {"v": ordered_by("a", "b"), "r": ordered_by("a", "b")}
        (plan,) = (one for one in found if {place.node: order for place, order in one.sorters.items()} == orders)
        return applied(graph, plan).staged

    graph = graph_of(bound, rows_of(bound), on_spark=True)
    by_one, by_two = Layout(ordered_by("a", "b"), 1), Layout(ordered_by("a", "b"), 2)
    assert staged(graph, "SO", "HB") == {"v": by_one, "r": by_one}  # for x, which reads v beside the join
    assert staged(graph, "HB", "SO") == {"v": by_one, "r": by_one}  # for g, which stands behind it
    paper = graph_of(bound, rows_of(bound))  # in one part, hashing makes nothing of an order
    assert staged(paper, "HB", "HB") == {"v": by_two, "r": by_two}


def test_a_copy_that_several_read_comes_back_in_no_order():
    measure = [{"name": "n", "expression": "count(*)"}]
    bound = bound_of(
        {
            "s": source(100_000), "u": node("deduplicate", {"rows": 90_000}, keys=["a"]),
            "g": node("aggregate", {"rows": 90}, group=["a"], aggregates=measure), "t": target("t"),
            "w": target("w", mode="append"),
        },
        "s -> u", "u.unique -> g", "u.unique -> w", "g -> t",
    )  # fmt: skip
    plan = rank(graph_of(bound, rows_of(bound), on_spark=True), MeasuredCosts()).best
    assert [line.leaves for line in plan.lines if line.node == "u"] == [()]
    alone = rank(graph_of(bound, rows_of(bound)), MeasuredCosts()).best
    assert [line.leaves for line in alone.lines if line.node == "u"] == [ordered_by("a")]


def test_on_spark_only_rows_that_come_straight_from_files_can_be_left_unread():
    def read(before):
        nodes = {
            "s": source(100_000), "x": before, "f": node("filter", {"rows": 10}, condition="a < 9"), "t": target("t"),
        }  # fmt: skip
        bound = bound_of(nodes, "s -> x", "x -> f", "f.match -> t")
        activity = graph_of(bound, rows_of(bound), on_spark=True).activity("f")
        assert activity is not None
        fit = activity.physical.implementations[0].fit(Work((100_000,), 10, (ordered_by("a"),)))
        assert fit is not None
        return fit.steps

    assert read(node("derive", columns=[{"name": "e", "expression": "c + 1"}])) == ((Step.SCAN, 10),)
    assert read(node("deduplicate", keys=["a"])) == ((Step.SCAN, 100_000),)


def test_a_run_that_cannot_divide_and_sort_rows_is_asked_for_implementations_alone():
    bound = fork()
    asked = "s.f.v.((x@SO.tx)//(y@HB.ty)//(z@HB.tz))"
    for sorters in (True, False):
        plan = plan_for_run(bound, asked, sorters=sorters)
        assert plan is not None
        assert plan.applied.has_sorters is sorters


def test_rows_are_not_divided_by_few_values_for_the_sake_of_few_groups_behind():
    def passed(groups):
        measure = [{"name": "n", "expression": "count(*)"}]
        bound = bound_of(
            {
                "s": source(3_000_000), "u": node("deduplicate", {"rows": 2_000_000}, keys=["a", "b"]),
                "g": node("aggregate", {"rows": groups}, group=["a"], aggregates=measure), "t": target("t"),
            },
            "s -> u", "u.unique -> g", "g -> t",
        )  # fmt: skip
        plan = plan_for_run(bound)
        assert plan is not None
        return plan.applied.passed

    assert passed(1_900_000) == {("s", "u", 0): Layout(ordered_by("a"), 1, sorts=False)}
    assert passed(20) == {}
