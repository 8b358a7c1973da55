"""The search: the paper's tables to the unit, and the fast search finds what the exhaustive one finds."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.plan import fast
from engine.plan.constraints import Constraints, Limit
from engine.plan.costs import CostModel, MeasuredCosts, PaperCosts, units
from engine.plan.exhaustive import exhaustive_ordering
from engine.plan.fast import fast_search
from engine.plan.graph import Activity, Graph
from engine.plan.planner import Search, only, rank
from engine.plan.space import Space
from tests.plan.graphs import Sketch, balanced, graphs, group, join, right_deep, where
from tests.plan.published import (
    FIG_6,
    FIG_6_COSTS,
    FIG_6_SIGNATURES,
    FIG_6_SORTERS,
    FIG_9,
    FIG_9_COSTS,
    FIG_9_SIGNATURES,
    FIG_9_SORTERS,
)


@pytest.mark.parametrize("search", list(Search))
@pytest.mark.parametrize(
    ("graph", "published", "signatures"),
    [(balanced(), FIG_6, FIG_6_SIGNATURES), (right_deep(), FIG_9, FIG_9_SIGNATURES)],
    ids=["fig6", "fig9"],
)
def test_the_published_table_comes_out_to_the_unit_in_its_order(graph, published, signatures, search):
    ranking = rank(graph, PaperCosts(), top=10, search=search)
    rows = [
        (ranking.signature(plan), round(units(plan.cost)), len(plan.sorters), round(units(plan.sorter_cost)))
        for plan in ranking.plans
    ]
    assert rows == published
    assert ranking.signatures == signatures
    exact = [plan.cost for plan in ranking.plans]  # ties are ties, not nearly so
    assert [a == b for a, b in pairwise(exact)] == [a[1] == b[1] for a, b in pairwise(published)]


def test_the_tables_that_experiments_compare_with_are_the_printed_ones():
    assert [row[1] for row in FIG_6] == FIG_6_COSTS
    assert [row[1] for row in FIG_9] == FIG_9_COSTS
    assert [row[3] for row in FIG_6] == FIG_6_SORTERS
    assert [row[3] for row in FIG_9] == FIG_9_SORTERS


def test_of_equally_cheap_plans_the_one_with_the_fewest_sorters_is_run():
    ranking = rank(balanced(), PaperCosts())
    assert ranking.signature(ranking.best) == FIG_6[1][0]


@given(graphs(), st.integers(1, 12), st.sampled_from([PaperCosts(), MeasuredCosts()]))
@settings(max_examples=150)
def test_the_fast_search_finds_what_the_exhaustive_one_finds(graph: Graph, top: int, model: CostModel):
    space = Space(graph, model)
    assume(space.states() <= 20_000)
    slow, quick = exhaustive_ordering(space, top), fast_search(space, top)
    assert quick.numbers == slow.numbers  # the same plans: cost, sorters, every decision
    assert quick.plans == slow.plans


@given(graphs(activities=4), st.data())
@settings(max_examples=80)
def test_pins_and_bans_narrow_both_searches_alike(graph: Graph, data: st.DataObject):
    ways = {
        id_: [way.name for way in node.physical.implementations]
        for id_, node in graph.nodes.items()
        if isinstance(node, Activity)
    }
    pinned = data.draw(st.fixed_dictionaries({}, optional={id_: st.sampled_from(some) for id_, some in ways.items()}))
    constraints = Constraints(pinned, memory_rows=data.draw(st.none() | st.integers(0, 2_000)))
    space = Space(graph, PaperCosts(), constraints)
    assume(space.states() <= 20_000)
    slow, quick = exhaustive_ordering(space, 5), fast_search(space, 5)
    assert quick.numbers == slow.numbers
    for number in quick.numbers:
        chosen = space.plan(number).implementations
        assert {id_: chosen[id_] for id_ in pinned} == pinned


@given(graphs(activities=4), st.data())
@settings(max_examples=120)
def test_under_limits_both_searches_find_the_same_plans_or_none(graph: Graph, data: st.DataObject):
    space = Space(graph, data.draw(st.sampled_from([PaperCosts(), MeasuredCosts()])))
    assume(space.states() <= 5_000)
    nodes = list(graph.nodes)
    some = [space.plan(number) for number in fast_search(space, 40).numbers]
    limits = []
    for _ in range(data.draw(st.integers(1, 3))):
        part = frozenset(data.draw(st.sets(st.sampled_from(nodes), min_size=1)))
        plan = data.draw(st.sampled_from(some))  # so that the limit is near what plans cost
        spent = units(sum(line.cost for line in plan.lines if line.node in part))
        limits.append(Limit(part, spent * data.draw(st.sampled_from([0.5, 0.9, 1.0, 1.0, 1.1])), "part"))
    top = data.draw(st.integers(1, 12))
    slow, quick = exhaustive_ordering(space, top, limits), fast_search(space, top, limits)
    assert quick.numbers == slow.numbers
    assert quick.plans == slow.plans, "also those that break a limit are counted"
    for number in quick.numbers:
        lines = space.plan(number).lines
        for limit in limits:
            assert units(sum(line.cost for line in lines if line.node in limit.nodes)) <= limit.cost
    asked = Constraints(limits=tuple(limits))
    if slow.numbers:
        assert rank(graph, space.model, asked, top).best.number == slow.numbers[0]
    else:
        with pytest.raises(BadInput, match=r"the cheapest way costs|cannot be kept together"):
            rank(graph, space.model, asked, top)


@given(graphs())
@settings(max_examples=100)
def test_a_plan_costs_the_sum_of_its_lines_and_never_less_than_nothing(graph: Graph):
    space = Space(graph, PaperCosts())
    for number in fast_search(space, 5).numbers:
        plan = space.plan(number)
        assert plan.number == number
        assert plan.cost == sum(line.cost for line in plan.lines)
        assert all(line.cost >= 0 for line in plan.lines)
        assert 0 <= plan.sorter_cost <= plan.cost
        assert len(plan.sorters) == space.sorters(number)


@given(graphs())
@settings(max_examples=60)
def test_searching_again_gives_the_same_list(graph: Graph):
    assert fast_search(Space(graph, PaperCosts()), 8) == fast_search(Space(graph, PaperCosts()), 8)


@given(graphs(), st.integers(1, 6))
@settings(max_examples=60)
def test_a_shorter_list_is_the_beginning_of_a_longer_one(graph: Graph, top: int):
    space = Space(graph, PaperCosts())
    assert fast_search(space, top).numbers == fast_search(space, top + 5).numbers[:top]


def test_a_workflow_too_large_for_the_exhaustive_search_is_said_so_and_planned_fast():
    draw = Sketch()
    at = draw.recordset("S", 100_000)
    for number in range(12):
        at = draw.recordset(f"T{number}", 90_000, draw.activity(str(number), where("ABC"[number % 3]), 90_000, at))
        draw.recordset(f"V{number}", 10, draw.activity(f"v{number}", group("A", "B", hashing=True), 10, at))
    ranking = rank(draw.graph(), PaperCosts(), search=Search.EXHAUSTIVE)
    assert ranking.search is Search.FAST
    assert f"{ranking.space.states():,} states" in ranking.remarks[0]
    assert len(ranking.plans) == 10


def test_one_recordset_may_feed_both_sides_of_a_join():
    draw = Sketch()
    draw.recordset("R", 1_000)
    draw.activity("1", join("A"), 500, "R", "R")
    draw.recordset("T", 500, "1")
    space = Space(draw.graph(), PaperCosts())
    assert fast_search(space, 9) == exhaustive_ordering(space, 9)
    best = space.plan(fast_search(space, 1).numbers[0])
    assert best.implementations == {"1": "HJ"}


def test_a_hundred_nodes_with_splits_that_meet_again_are_planned():
    draw = Sketch()
    at = draw.recordset("S", 100_000)
    for number in range(14):  # each a split into two filters whose rows are joined again
        left = draw.activity(f"l{number}", where("A"), 60_000, at)
        right = draw.activity(f"r{number}", where("B"), 60_000, at)
        joined = draw.activity(f"j{number}", join("A" if number % 2 else "B"), 60_000, left, right)
        at = draw.recordset(f"T{number}", 60_000, joined)
        draw.recordset(f"V{number}", 50, draw.activity(f"v{number}", group("B", "C"), 50, at))
    graph = draw.graph()
    assert len(graph.nodes) == 85
    ranking = rank(graph, PaperCosts())
    assert ranking.signatures > 10**27
    assert [plan.cost for plan in ranking.plans] == sorted(plan.cost for plan in ranking.plans)


def mesh(size: int) -> Graph:
    """Every recordset on the left joined with every one on the right: nothing like a butterfly."""
    draw = Sketch()
    for number in range(size):
        draw.recordset(f"L{number}", 1_000)
        draw.recordset(f"R{number}", 1_000)
    for left in range(size):
        for right in range(size):
            keys = ("A", "B") if left * right % 2 else ("ABC"[(left + right) % 3],)
            draw.activity(f"j{left}{right}", join(*keys), 500, f"L{left}", f"R{right}")
            draw.recordset(f"T{left}{right}", 500, f"j{left}{right}")
    return draw.graph()


def test_where_too_many_streams_meet_fewer_sorters_are_tried_and_that_is_said(monkeypatch):
    free = rank(mesh(3), PaperCosts())
    assert free.remarks == ()
    for combinations, words in ((300, "first orders only"), (10, "no sorters are tried")):
        monkeypatch.setattr(fast, "COMBINATIONS", combinations)
        found = rank(mesh(3), PaperCosts())
        assert words in found.remarks[0]
        assert found.best.cost >= free.best.cost
        assert only(found.signature(found.best), mesh(3), PaperCosts()).best.cost == found.best.cost
    monkeypatch.setattr(fast, "COMBINATIONS", 0)
    with pytest.raises(BadInput, match="too entangled"):
        rank(mesh(3), PaperCosts())
