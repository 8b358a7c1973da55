"""Orders: what they serve, how they pass an operator, and what a sorter makes of them."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from engine.model.physical import (
    NO_ORDER,
    Fit,
    Key,
    Known,
    Order,
    Passing,
    Physical,
    SortBased,
    Step,
    Work,
    arrangements,
    covers,
    joining,
    order_text,
    ordered_by,
    sorting,
    starts_with,
)
from engine.plan.costs import PaperCosts, cost_of
from engine.plan.fast import fast_search
from engine.plan.graph import Graph, Recordset, positions
from engine.plan.space import Space
from tests.plan.graphs import COLUMNS, balanced, graphs, group, in_parts, join, right_deep, templates, where

ORDERS = st.lists(st.builds(Key, COLUMNS, st.booleans()), max_size=3, unique_by=lambda key: key.column).map(tuple)


def test_an_order_serves_a_grouping_if_its_first_columns_are_the_grouping_s_however_arranged():
    assert covers(ordered_by("C", "B", "A"), ("B", "C"))
    assert not covers(ordered_by("A", "B", "C"), ("B", "C"))
    assert not covers(ordered_by("B"), ("B", "C"))
    assert covers(NO_ORDER, ())


def test_a_grouping_of_two_columns_is_offered_in_every_arrangement_and_by_each_column():
    assert arrangements(("B", "C"), prefixes=True) == tuple(ordered_by(*columns) for columns in ("BC", "CB", "B", "C"))
    assert arrangements(("A", "B"), prefixes=False) == (ordered_by("A", "B"), ordered_by("B", "A"))
    long = arrangements(tuple("ABCD"), prefixes=True)
    assert long == tuple(ordered_by(*columns) for columns in ("ABCD", "ABC", "AB", "A"))
    assert arrangements((), prefixes=True) == ()


def test_positions_are_recordsets_that_are_read_and_edges_between_activities():
    assert [(one.name, len(one.orders)) for one in positions(balanced())] == [
        ("R!", 1), ("1_3", 1), ("S!", 1), ("P!", 1), ("V!", 2),
    ]  # fmt: skip
    assert {one.name: [order_text(order) for order in one.orders] for one in positions(right_deep())} == {
        "R!": ["A"], "V!": ["A", "B,C", "C,B", "B", "C"], "U!": ["B"], "T!": ["B"],
    }  # fmt: skip


@given(templates(), ORDERS, ORDERS, st.integers(0, 1_000), st.integers(0, 1_000))
def test_a_finer_order_never_leaves_an_implementation_without_what_it_needs(
    physical: Physical, order: Order, more: Order, rows: int, out: int
):
    finer = (*order, *(key for key in more if key.column not in {one.column for one in order}))
    for way in physical.implementations:
        coarse, fine = way.fit(Work((rows,), out, (order,))), way.fit(Work((rows,), out, (finer,)))
        if coarse is not None:
            assert fine is not None
            assert cost_of(PaperCosts(), fine.steps) <= cost_of(PaperCosts(), coarse.steps)


@given(graphs())
def test_behind_a_sorter_the_rows_are_in_its_order_and_every_need_is_met(graph: Graph):
    space = Space(graph, PaperCosts())
    for number in fast_search(space, 10).numbers:
        plan = space.plan(number)
        lines = {line.node: line for line in plan.lines if not line.is_sorter}
        for position, order in plan.sorters.items():
            assert order in position.orders
            edges = graph.outgoing[position.node] if position.edge is None else (position.edge,)
            for edge in edges:
                consumer = graph.activity(edge.target)
                if consumer is not None and space.minds(consumer, edge.number):
                    assert lines[edge.target].takes[edge.number] == order
        for node, line in lines.items():
            activity = graph.activity(node)
            assert activity is not None
            (way,) = (one for one in activity.physical.implementations if one.name == line.name)
            assert way.fit(Work(line.rows_in, line.rows_out, line.takes)) is not None


@given(graphs(), st.data())
def test_a_sorter_serves_a_consumer_that_asked_for_its_order(graph: Graph, data: st.DataObject):
    places = positions(graph)
    for position in places:
        edges = graph.outgoing[position.node] if position.edge is None else (position.edge,)
        for order in position.orders:
            assert any(order in graph.interesting(edge) for edge in edges)
        assert len(set(position.orders)) == len(position.orders)


def test_a_merge_join_needs_both_sides_in_the_same_arrangement_and_direction():
    merge = join("A", "B").implementations[0]
    same = Work((10, 20), 5, (ordered_by("B", "A", "C"), ordered_by("B", "A")))
    fit = merge.fit(same)
    assert fit is not None
    assert fit.leaves == ordered_by("B", "A")
    assert merge.fit(Work((10, 20), 5, (ordered_by("A", "B"), ordered_by("B", "A")))) is None
    descending = (Key("A", True), Key("B"))
    assert merge.fit(Work((10, 20), 5, (descending, ordered_by("A", "B")))) is None
    assert merge.fit(Work((10, 20), 5, (descending, descending))) is not None


def test_a_sort_merge_join_sorts_what_is_not_in_step():
    (smj,) = (way for way in join("A", "B").implementations if way.name == "SMJ")

    def sorts(one: Order, other: Order) -> list[int]:
        fit = smj.fit(Work((10, 20), 5, (one, other)))
        assert fit is not None
        return [rows for step, rows in fit.steps if step is Step.SORT]

    ab, ba = ordered_by("A", "B"), ordered_by("B", "A")
    assert sorts(ab, ab) == []
    assert sorts(ab, NO_ORDER) == [20]
    assert sorts(NO_ORDER, NO_ORDER) == [10, 20]
    assert sorts(ab, ba) == [10]


def test_an_order_ends_before_the_first_column_that_does_not_pass():
    order = ordered_by("A", "B", "C")
    assert Passing().order(order) == order
    assert Passing(lost=frozenset("B")).order(order) == ordered_by("A")
    assert Passing(renamed={"X": "A"}, lost=frozenset("A")).order(order) == ordered_by("X", "B", "C")
    assert Passing(renamed={"A": "A", "Z": "B"}, only=True).order(order) == ordered_by("A", "Z")


def test_the_two_keys_of_a_join_are_one_column_to_those_behind_it():
    known = Known({"in": {"s_key": "ps_key"}})
    assert known.name("s_key") == "ps_key"
    dropped = Passing({"s_key": "ps_key"}, lost=frozenset({"ps_key"}))
    assert dropped.order(ordered_by("ps_key")) == ordered_by("s_key")
    assert dropped.same_behind() == {}
    assert Passing({"s_key": "ps_key"}).same_behind() == {"s_key": "ps_key"}


def test_a_join_without_usable_keys_has_nested_loops_only():
    ways = [way.name for way in joining((), (), Passing()).implementations]
    assert ways == ["NL"]
    assert joining((), (), Passing()).minds == (False, False)


def test_rows_that_are_in_order_already_are_not_sorted_again():
    (way,) = sorting(ordered_by("A"), Passing()).implementations
    fit = way.fit(Work((100,), 100, (ordered_by("A", "B"),)))
    assert fit is not None
    assert fit.steps == ((Step.SCAN, 100),)
    assert fit.leaves == ordered_by("A", "B")


def test_a_table_that_is_added_to_passes_no_order_on():
    space = Space(balanced(), PaperCosts())
    plan = space.plan(fast_search(space, 1).numbers[0])
    assert [line.takes for line in plan.lines if line.node == "4"] == [(ordered_by("A"),)]
    nodes = {id_: Recordset(id_, node.rows, id_ != "V") if isinstance(node, Recordset) else node
             for id_, node in balanced().nodes.items()}  # fmt: skip
    added = Space(Graph(nodes, balanced().edges), PaperCosts())
    plan = added.plan(fast_search(added, 1).numbers[0])
    assert [line.takes for line in plan.lines if line.node == "4"] == [(NO_ORDER,)]


def test_groups_leave_in_the_order_of_the_grouping_and_filters_change_none():
    so = group("B", "C").implementations[0]
    fit = so.fit(Work((100,), 10, (NO_ORDER,)))
    assert fit is not None
    assert fit.leaves == ordered_by("B", "C")
    fit = so.fit(Work((100,), 10, (ordered_by("C", "B", "A"),)))
    assert fit is not None
    assert (fit.leaves, fit.steps) == (ordered_by("C", "B"), ((Step.SCAN, 100), (Step.CLOSE, 10)))
    sorted_filter, plain = where("A").implementations
    assert sorted_filter.fit(Work((100,), 10, (ordered_by("B"),))) is None
    fit = plain.fit(Work((100,), 10, (ordered_by("B"),)))
    assert fit is not None
    assert fit.leaves == ordered_by("B")
    assert starts_with(fit.leaves, ordered_by("B"))


def test_groups_that_come_whole_in_one_part_are_sorted_there_and_leave_in_that_order():
    so, _ = in_parts(group("B", "C", hashing=True)).implementations
    assert isinstance(so, SortBased)
    so = dataclasses.replace(so, sorts=False)
    sorted_there = ((Step.REORDER, 100), (Step.SCAN, 100), (Step.CLOSE, 10))

    def fit(*order: Key) -> Fit | None:
        return so.fit(Work((100,), 10, (order,)))

    assert fit(Key("B"), Key("C"), Key("A")) == Fit(ordered_by("B", "C"), sorted_there[1:])
    assert fit(Key("B"), Key("A")) == Fit(ordered_by("B", "C"), sorted_there)
    # Spark goes by the columns as they are written. Who reads on would take the rows to be divided by B: they are by C.
    for order in ((Key("C"), Key("B")), (Key("C", True), Key("A"))):
        assert fit(*order) == Fit(NO_ORDER, sorted_there)
    assert fit(*ordered_by("A", "B", "C")) is None  # divided by what is no part of them


def test_on_spark_groups_in_their_very_order_are_mixed_to_be_hashed_and_others_stay_in_their_parts():
    _, hashed = in_parts(group("A", "B", hashing=True)).implementations

    def gathers(*columns: str) -> bool:
        fit = hashed.fit(Work((100,), 10, (ordered_by(*columns),)))
        assert fit is not None
        return Step.GATHER in dict(fit.steps)

    assert [gathers("A", "B"), gathers("B", "A"), gathers("A"), gathers("C", "A"), gathers()] == [
        True, False, False, True, True,
    ]  # fmt: skip


def test_rows_that_spark_orders_by_more_columns_are_sorted_however_they_come():
    (first,) = in_parts(group("A", "B")).implementations  # one row of each group, the first of an order of its own
    for order, step in (
        (ordered_by("A", "B"), Step.REORDER),
        (ordered_by("A"), Step.REORDER),
        (ordered_by("C"), Step.SORT),
    ):
        fit = first.fit(Work((100,), 10, (order,)))
        assert fit is not None
        assert fit.steps[0] == (step, 100)
        assert fit.leaves == ordered_by("A", "B")
    assert first.fit(Work((100,), 10, (ordered_by("B"),))) == Fit(
        NO_ORDER, ((Step.REORDER, 100), (Step.SCAN, 100), (Step.CLOSE, 10))
    )


def test_a_window_leaves_its_order_up_to_the_first_column_that_falls_and_a_sort_of_all_rows_leaves_none():
    def leaves(order: Order, groups: int, anew: bool = False) -> Order:
        (way,) = in_parts(sorting(order, Passing(), groups, anew)).implementations
        fit = way.fit(Work((100,), 100, (NO_ORDER,)))
        assert fit is not None
        assert fit.steps[0] == (Step.SORT, 100)
        return fit.leaves

    assert leaves(ordered_by("A", "B"), 1) == ordered_by("A", "B")
    assert leaves((Key("A"), Key("B", True), Key("C")), 1) == ordered_by("A")
    assert leaves(ordered_by("A", "B"), 1, anew=True) == ordered_by("A")
    assert leaves(ordered_by("A", "B"), 0) == NO_ORDER
