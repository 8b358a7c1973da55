"""Signatures: written as the paper writes them, and read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import BadInput
from engine.model.physical import Key, Passing, filtering
from engine.plan.costs import PaperCosts, units
from engine.plan.fast import fast_search
from engine.plan.graph import Graph
from engine.plan.signature import parse, read_signature, signature
from engine.plan.space import Space
from tests.plan.graphs import Sketch, balanced, graphs, group, join, right_deep, where
from tests.plan.published import FIG_6, FIG_9


@given(graphs(), st.integers(1, 20))
@settings(max_examples=200)
def test_a_signature_read_back_is_the_plan_it_was_written_for(graph: Graph, top: int):
    space = Space(graph, PaperCosts())
    texts = set()
    for number in fast_search(space, top).numbers:
        text = signature(graph, space.plan(number))
        assert read_signature(text, space).number == number
        texts.add(text)
    assert len(texts) == len(fast_search(space, top).numbers)  # and no two plans share one


@pytest.mark.parametrize(("graph", "published"), [(balanced(), FIG_6), (right_deep(), FIG_9)], ids=["fig6", "fig9"])
def test_published_signatures_are_read_and_cost_what_is_printed_beside_them(graph, published):
    space = Space(graph, PaperCosts())
    for text, cost, sorters, _ in published:
        plan = read_signature(text, space)
        assert (round(units(plan.cost)), len(plan.sorters)) == (cost, sorters)
        assert signature(graph, plan) == text


def test_branches_may_be_named_in_any_order_with_spaces_and_needless_parentheses():
    space = Space(right_deep(), PaperCosts())
    text = " R.(1).V . V!(B, C).((6@SO.Q)//(2@SO.T.5@SO.W)//(3.U.4@SO.Z)) "
    assert read_signature(text, space).number == read_signature(FIG_9[0][0], space).number


def test_the_paper_s_example_with_a_hash_based_aggregate_is_read():
    draw = Sketch()
    draw.recordset("R", 1_000)
    draw.activity("1", where("A"), 900, "R")
    draw.activity("2", where("A"), 800, "1")
    draw.recordset("S", 1_000)
    draw.activity("3", group("A", hashing=True), 700, "S")
    draw.recordset("P", 700, "3")
    draw.activity("4", join("A"), 600, "2", "P")
    draw.recordset("T", 600, "4")
    for activity, view, columns in (("5", "Z", "A"), ("6", "W", "B"), ("7", "V", "AB")):
        draw.activity(activity, group(*columns), 60, "T")
        draw.recordset(view, 60, activity)
    space = Space(draw.graph(), PaperCosts())
    first = "((R.1.2)//(S.S!(A).3@HB.P)).4@NL.T.(((5@SO.Z)//(6@SO.W))//(7@SO.V))"
    plan = read_signature(first, space)
    assert (plan.implementations["3"], plan.implementations["4"]) == ("HB", "NL")
    second = "((R.1.2.2_4(A))//(S.S!(A).3@HB.P)).4@MJ.T.(((5@SO.Z)//(6@SO.W))//(7@SO.V))"
    with pytest.raises(BadInput, match="`4@MJ` does not fit: a merge join needs rows in order of A"):
        read_signature(second, space)  # hashing leaves no order, so P needs a sorter of its own
    plan = read_signature(second.replace("HB.P", "HB.P.P!(A)"), space)
    assert plan.implementations["4"] == "MJ"


def test_a_filter_that_reads_all_of_a_sorted_input_is_named():
    draw = Sketch()
    draw.recordset("R", 100)
    draw.activity("1", filtering(Passing(), Key("odd name", descending=True)), 10, "R")
    draw.recordset("T", 10, "1")
    space = Space(draw.graph(), PaperCosts())
    sorted_ = read_signature("R.R!(`odd name` desc).1.T", space)
    assert sorted_.implementations == {"1": "SF"}
    assert signature(space.graph, sorted_) == "R.R!(`odd name` desc).1.T"
    assert read_signature("R.1@F.T", space).number == read_signature("R.1.T", space).number
    with pytest.raises(BadInput, match="`1@SF`: a sorted filter needs rows in order of `odd name` desc"):
        read_signature("R.1@SF.T", space)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R.1.V.((3.U.4@SO.Z)", "position 20: `\\)` is expected, found nothing more"),
        ("R.1.§", "cannot be read at '§'"),
        ("R..1", "position 3: a node is expected, found `.`"),
        ("R.1.V!(A", "`\\)` is expected"),
        ("R.1.V!(1.2)", "`\\)` is expected, found `.`"),
    ],
)
def test_what_is_not_a_signature_is_refused_with_its_place(text, message):
    with pytest.raises(BadInput, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (("4@SO", "4@SX"), "node `4` has no implementation `SX`; it has SO"),
        (("6@SO.Q", "6.Q"), "does not say how `6` is implemented"),
        ((".U.", ".X."), "names `X`, and the workflow has no such node"),
        (("//(6@SO.Q)", ""), "leaves out `6`, `Q`"),
        (("3.U.4@SO.Z", "3.U.U!(C).4@SO.Z"), r"`U!` by \(C\) serves nobody; it could be by \(B\)"),
        (("3.U.4@SO.Z", "3.3_U(B).U.4@SO.Z"), "no place for the sorter `3_U`"),
        (("V!(B,C)", "U!(B)"), "`U!` stands behind `V`"),
        (("(6@SO.Q)", "(4.6@SO.Q)"), "from `V` to `4`, and the workflow does not"),
        (("6@SO.Q", "6@SO.6@SO.Q"), "says twice how `6` is implemented"),
    ],
)
def test_what_does_not_belong_to_the_workflow_is_named(changed, message):
    with pytest.raises(BadInput, match=message):
        read_signature(FIG_9[0][0].replace(*changed), Space(right_deep(), PaperCosts()))


def test_a_path_that_leaves_and_comes_back_is_written_with_a_second_mention():
    draw = Sketch()
    draw.recordset("R", 100)
    draw.activity("1", group("A"), 10, "R")
    draw.activity("2", join("A"), 100, "R", "1")
    draw.recordset("T", 100, "2")
    space = Space(draw.graph(), PaperCosts())
    plan = space.plan(fast_search(space, 1).numbers[0])
    text = signature(space.graph, plan)
    assert text == "((R.R!(A).1@SO)//(((R)//(1)).2@MJ.T))"
    assert read_signature(text, space).number == plan.number
