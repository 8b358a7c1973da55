"""Units of scheduling at each granularity: what they promise, on random workflows of real operators."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.binding import Bound
from engine.model.operator import Category, Role
from engine.partition.flow import flow_of, is_reference
from engine.partition.granularity import Granularity
from engine.partition.trees import execution_trees
from engine.partition.units import Part, divide, memory_intensive
from engine.schedule.build import pack_units
from engine.schedule.graph import ScheduleGraph, Work
from tests.partition.workflows import (
    AGGREGATE,
    COPY,
    CSV,
    FILTER,
    JOIN,
    LOOKUP,
    PARQUET,
    RANDOM,
    SORT,
    STAGING,
    bound_of,
    bound_workflows,
    target,
)

PACKED = (Granularity.OPERATOR, Granularity.SUBFLOW, Granularity.TREE)


def nodes_of(bound: Bound, granularity: Granularity) -> list[tuple[str, ...]]:
    return [part.nodes for part in divide(bound, granularity)]


# ---------------------------------------------------------------- worked cases


def test_at_operator_every_node_is_a_unit_in_topological_order():
    bound = bound_of({"s": PARQUET, "f": FILTER, "t": target("t")}, "s>f", "f>t")
    assert nodes_of(bound, Granularity.OPERATOR) == [("s",), ("f",), ("t",)]


def test_at_subflow_a_line_is_one_unit_and_the_writer_another():
    bound = bound_of(
        {"s": PARQUET, "f": FILTER, "c": COPY, "o": SORT, "d": COPY, "t": target("t")},
        "s>f", "f>c", "c>o", "o>d", "d>t",
    )  # fmt: skip
    assert nodes_of(bound, Granularity.SUBFLOW) == [("s", "f", "c"), ("o",), ("d",), ("t",)]


def test_at_tree_a_blocking_activity_takes_those_behind_it_along():
    bound = bound_of(
        {"s": PARQUET, "f": FILTER, "c": COPY, "o": SORT, "d": COPY, "t": target("t")},
        "s>f", "f>c", "c>o", "o>d", "d>t",
    )  # fmt: skip
    assert nodes_of(bound, Granularity.TREE) == [("s", "f", "c"), ("o", "d"), ("t",)]


def test_cutting_one_unit_never_joins_another_with_what_it_looks_up():
    bound = bound_of(
        {"s": PARQUET, "a": LOOKUP, "b": FILTER, "c": LOOKUP, "d": FILTER,
         "t": target("t"), "u": target("u")},
        "s>a.main", "s>a.reference", "s>c.main", "a>b", "a>d", "b.match>c.reference", "c>t", "d.match>u",
    )  # fmt: skip
    for granularity in PACKED:
        unit = {node: part.id for part in divide(bound, granularity) for node in part.nodes}
        assert not any(unit[link.source] == unit[link.target] for link in bound.links if is_reference(bound, link))


def test_a_source_that_two_read_is_a_subflow_of_its_own():
    bound = bound_of(
        {"s": PARQUET, "f": FILTER, "c": COPY, "t": target("t"), "u": target("u")}, "s>f", "s>c", "f>t", "c>u"
    )
    assert nodes_of(bound, Granularity.SUBFLOW) == [("s",), ("f",), ("c",), ("t",), ("u",)]


def test_a_lookup_is_in_the_unit_of_its_main_rows_and_reads_its_reference_from_another():
    bound = bound_of({"r": PARQUET, "s": PARQUET, "l": LOOKUP, "t": target("t")}, "s>l.main", "r>l.reference", "l>t")
    for granularity in (Granularity.SUBFLOW, Granularity.TREE):
        assert set(nodes_of(bound, granularity)) == {("s", "l"), ("r",), ("t",)}


def test_a_unit_that_would_wait_for_its_own_rows_is_cut():
    bound = bound_of(
        {"s": PARQUET, "f": FILTER, "g": AGGREGATE, "l": LOOKUP, "c": COPY, "t": target("t")},
        "s>f", "f>g", "f>l.main", "g>l.reference", "l>c", "c>t",
    )  # fmt: skip
    assert nodes_of(bound, Granularity.TREE) == [("s", "f"), ("g",), ("l", "c"), ("t",)]


def test_a_lookup_in_its_own_rows_is_cut_before_it():
    bound = bound_of(
        {"s": PARQUET, "f": FILTER, "l": LOOKUP, "t": target("t")}, "s>f", "f>l.main", "f>l.reference", "l>t"
    )
    for granularity in (Granularity.SUBFLOW, Granularity.TREE):
        assert nodes_of(bound, granularity) == [("s", "f"), ("l",), ("t",)]


def test_values_that_differ_from_time_to_time_are_computed_once():
    nodes = {"s": PARQUET, "r": RANDOM, "c": COPY, "d": COPY, "t": target("t"), "u": target("u")}
    bound = bound_of(nodes, "s>r", "r>c", "r>d", "c>t", "d>u")
    assert ("s", "r") in nodes_of(bound, Granularity.TREE), "both readers read the one result"
    nodes = {"s": PARQUET, "r": COPY, "c": COPY, "d": COPY, "t": target("t"), "u": target("u")}
    bound = bound_of(nodes, "s>r", "r>c", "r>d", "c>t", "d>u")
    assert ("s", "r", "c", "d") in nodes_of(bound, Granularity.TREE), "what is cheap need not be cut"


def test_a_text_file_is_parsed_once():
    nodes = {"s": CSV, "c": COPY, "d": COPY, "t": target("t"), "u": target("u")}
    bound = bound_of(nodes, "s>c", "s>d", "c>t", "d>u")
    assert ("s",) in nodes_of(bound, Granularity.TREE)


def test_lines_and_the_core_of_a_butterfly_are_the_subflows_of_single_operators():
    bound = bound_of(
        {
            "s1": PARQUET, "f1": FILTER, "s2": PARQUET, "f2": FILTER, "j": JOIN, "g": AGGREGATE,
            "c": COPY, "t": target("t"), "u": target("u"),
        },
        "s1>f1", "s2>f2", "f1>j.left", "f2>j.right", "j>g", "j>t", "g>c", "c>u",
    )  # fmt: skip
    group = {part.id: part.group for part in divide(bound, Granularity.OPERATOR)}
    assert group["s1"] == group["f1"]
    assert group["s2"] == group["f2"] != group["s1"]
    assert group["j"] == group["g"]
    assert group["c"] == group["u"]
    assert len(set(group.values())) == 5
    assert memory_intensive(bound, ["j", "g", "c"]) == 2


# ---------------------------------------------------------------- queues between units


def test_staging_is_no_unit_and_its_readers_read_the_packs_of_its_producer():
    bound = bound_of({"s": PARQUET, "f": FILTER, "g": STAGING, "c": COPY, "t": target("t")}, "s>f", "f>g", "g>c", "c>t")
    made = pack_units(bound, Granularity.OPERATOR, 100)
    assert [unit.id for unit in made.units] == ["s", "f", "c", "t"]
    assert {(queue.producer, queue.consumer) for queue in made.queues} == {("s", "f"), ("f", "c"), ("c", "t")}
    assert made.ports["f"] == {("f", "match"): ["g.out > c.in"]}


def test_those_behind_a_table_that_was_overwritten_read_the_rows_that_entered_it():
    bound = bound_of(
        {"s": PARQUET, "f": FILTER, "t": target("t"), "c": COPY, "u": target("u")}, "s>f", "f>t", "t>c", "c>u"
    )
    made = pack_units(bound, Granularity.OPERATOR, 100)
    assert made.ports["f"] == {("f", "match"): ["f.match > t.in", "t.out > c.in"]}, "one pack, shared by both"


def test_those_behind_a_table_with_older_rows_wait_for_the_table():
    nodes = {"s": PARQUET, "f": FILTER, "t": target("t", mode="append"), "c": COPY, "u": target("u")}
    made = pack_units(bound_of(nodes, "s>f", "f>t", "t>c", "c>u"), Granularity.OPERATOR, 100)
    assert ("t", "c") in {(queue.producer, queue.consumer) for queue in made.queues}


# ---------------------------------------------------------------- on random workflows


def check_parts(bound: Bound, parts: list[Part], granularity: Granularity) -> None:
    members = [node for part in parts for node in part.nodes]
    assert sorted(members) == sorted(bound.order), "every node in exactly one unit"
    position = {node: place for place, node in enumerate(bound.order)}
    part_of = {node: part for part in parts for node in part.nodes}
    quotient = nx.DiGraph()
    quotient.add_nodes_from(part.id for part in parts)
    for link in bound.links:
        source, target_ = part_of[link.source], part_of[link.target]
        if source is not target_:
            quotient.add_edge(source.id, target_.id)
        else:
            assert not is_reference(bound, link), "what is needed whole never comes from inside the unit"
    assert nx.is_directed_acyclic_graph(quotient), "no unit waits for itself"
    place = {part.id: number for number, part in enumerate(parts)}
    assert all(place[source] < place[target_] for source, target_ in quotient.edges), "in topological order"
    for part in parts:
        assert part.id == part.nodes[0]
        assert list(part.nodes) == sorted(part.nodes, key=position.__getitem__)
        inside = nx.Graph()
        inside.add_nodes_from(part.nodes)
        inside.add_edges_from(
            (link.source, link.target) for link in bound.links if {link.source, link.target} <= set(part.nodes)
        )
        assert nx.is_connected(inside), "a unit hangs together"
        blocking = [node for node in part.nodes if bound.operators[node].category is not Category.ROW_SYNCHRONIZED]
        assert not blocking or blocking == [part.nodes[0]], (
            "a blocking activity is the first of its unit, and the only one"
        )
        written = [node for node in part.nodes if bound.role(node) in (Role.TARGET, Role.STAGING)]
        assert not written or len(part.nodes) == 1, "a writer is a unit of its own"
        if granularity is Granularity.SUBFLOW and blocking:
            assert len(part.nodes) == 1, "a boundary is a subflow of its own"
        for node in part.nodes[1:]:
            inner = [link for link in bound.incoming[node] if link.source in part.nodes]
            assert inner, "rows come to it from inside"
            assert all(not is_reference(bound, link) for link in inner)


@settings(max_examples=150)
@given(bound_workflows())
def test_units_cover_the_workflow_and_none_waits_for_itself(bound):
    for granularity in PACKED:
        parts = divide(bound, granularity)
        check_parts(bound, parts, granularity)
        if granularity is Granularity.OPERATOR:
            assert [part.nodes for part in parts] == [(node,) for node in bound.order]


@settings(max_examples=150)
@given(bound_workflows())
def test_a_unit_at_tree_is_part_of_one_execution_tree_and_a_unit_at_subflow_has_no_boundary_inside(bound):
    tree_of = {node: tree.id for tree in execution_trees(flow_of(bound)).trees for node in tree.nodes}
    for part in divide(bound, Granularity.TREE):
        assert len({tree_of[node] for node in part.nodes}) == 1
    for part in divide(bound, Granularity.SUBFLOW):
        for node in part.nodes:
            operator = bound.operators[node]
            ports = {link.source_port for link in bound.outgoing.get(node, ())}
            boundary = operator.category is not Category.ROW_SYNCHRONIZED or len(ports) > 1
            recordset = operator.role in (Role.TARGET, Role.STAGING)
            assert len(part.nodes) == 1 or not (boundary or recordset)


@settings(max_examples=150)
@given(bound_workflows())
def test_groups_of_the_mixed_policy_do_not_wait_for_themselves(bound):
    for granularity in PACKED:
        made = pack_units(bound, granularity, 100)
        graph = ScheduleGraph(made.units, made.queues)
        providers = nx.DiGraph((provider, group) for group, found in graph.providers().items() for provider in found)
        assert nx.is_directed_acyclic_graph(providers)


@settings(max_examples=150)
@given(bound_workflows(), st.sampled_from((1, 100, None)))
def test_every_link_between_units_is_one_queue_and_stands_under_one_port(bound, capacity):
    for granularity in PACKED:
        made = pack_units(bound, granularity, capacity)
        number = {unit.id: unit.number for unit in made.units}
        assert list(number.values()) == list(range(len(number)))
        work = {unit.id: unit.work for unit in made.units}
        for queue in made.queues:
            assert queue.capacity_packs == capacity
            assert number[queue.producer] < number[queue.consumer], "numbers are a topological order"
            link = made.links[queue.id]
            assert link.target in made.parts[queue.consumer].nodes
            assert queue.reference == (is_reference(bound, link) and work[queue.consumer] is not Work.BLOCK)
        under = [id_ for ports in made.ports.values() for ids in ports.values() for id_ in ids]
        assert sorted(under) == sorted(queue.id for queue in made.queues)
        fed = {made.links[queue.id] for queue in made.queues}
        part_of = {node: id_ for id_, part in made.parts.items() for node in part.nodes}
        for link in bound.links:
            inside = link.target in part_of and part_of.get(link.source) == part_of[link.target]
            assert (link in fed) == (link.target in part_of and not inside)


def test_a_line_of_two_thousand_nodes_is_one_unit():
    # Linear time is `papilio bench partition`'s to show; here, that nothing recurses.
    size = 2000
    nodes = {f"n{i:05d}": COPY for i in range(size)} | {"a": PARQUET, "z": target("z")}
    chain = ["a", *(f"n{i:05d}" for i in range(size)), "z"]
    bound = bound_of(nodes, *(f"{a}>{b}" for a, b in itertools.pairwise(chain)))
    assert [len(part.nodes) for part in divide(bound, Granularity.TREE)] == [size + 1, 1]
    assert len(divide(bound, Granularity.OPERATOR)) == size + 2


@pytest.mark.parametrize("granularity", PACKED)
def test_an_empty_flow_behind_a_single_source(granularity):
    bound = bound_of({"s": PARQUET, "c": COPY, "t": target("t")}, "s>c", "c>t")
    assert sum(len(part.nodes) for part in divide(bound, granularity)) == 3
