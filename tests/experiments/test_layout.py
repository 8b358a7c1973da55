"""Positions that a program gives: from left to right, nothing on top of another."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.experiments.layout import STEP_X, STEP_Y, lay_out


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    size = draw(st.integers(0, 20))
    nodes = [f"n{number}" for number in range(size)]
    edges = [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :] if draw(st.integers(0, 4)) == 0]
    return nodes, edges


@given(graphs())
def test_every_node_has_a_place_of_its_own_right_of_all_that_feed_it(graph):
    nodes, edges = graph
    places = lay_out(nodes, edges)
    assert places.keys() == set(nodes)
    assert all(places[a][0] + STEP_X <= places[b][0] for a, b in edges)
    columns: dict[int, list[int]] = {}
    for x, y in places.values():
        columns.setdefault(x, []).append(y)
    for rows in columns.values():
        rows.sort()
        assert all(below - above >= STEP_Y for above, below in itertools.pairwise(rows))


def test_a_line_is_straight_and_a_butterfly_symmetrical():
    line = [f"n{number}" for number in range(8)]
    assert {y for _, y in lay_out(line, list(itertools.pairwise(line))).values()} == {0}
    wings = [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e"), ("d", "f")]
    places = lay_out("abcdef", wings)
    assert places["c"][1] == places["d"][1] == (places["a"][1] + places["b"][1]) / 2
    assert places["c"][1] == (places["e"][1] + places["f"][1]) / 2


def test_ten_thousand_nodes_in_a_line_of_wings_are_laid_out():
    edges = [(f"n{number}", f"n{number // 2}") for number in range(2, 10_000)]
    places = lay_out([f"n{number}" for number in range(1, 10_000)], edges)
    assert len(set(places.values())) == 9_999
