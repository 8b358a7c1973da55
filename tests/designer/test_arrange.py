"""Auto-layout: layers from left to right, few crossings, wings in their lanes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from designer.canvas.arrange import COLUMN, arrange, crossings, layered
from designer.document.analysis import analyse
from designer.document.document import Document
from designer.document.layout import NODE_HEIGHT, NODE_WIDTH
from engine.experiments.bench_large_file import large_workflow
from engine.operators import catalogue
from tests.designer.examples import fig1


def overlapping(places: dict[str, tuple[float, float]]) -> list[tuple[str, str]]:
    names = sorted(places)
    return [
        (one, other)
        for number, one in enumerate(names)
        for other in names[number + 1 :]
        if abs(places[one][0] - places[other][0]) < NODE_WIDTH and abs(places[one][1] - places[other][1]) < NODE_HEIGHT
    ]


def test_fig_1_is_laid_out_without_a_crossing_and_its_body_stands_alone() -> None:
    document = fig1()
    found = arrange(document, analyse(document).wings)
    edges = [(edge.source, edge.target) for edge in document.workflow.edges]
    assert crossings(found.places, edges) == 0
    assert overlapping(found.places) == []
    body = found.places["joined"][0]
    wings = analyse(document).wings
    assert all(x < body for id_, (x, _) in found.places.items() if wings[id_] == "left")
    assert all(x > body for id_, (x, _) in found.places.items() if wings[id_] == "right")
    assert all(found.places[target][0] > found.places[source][0] for source, target in edges)


def test_an_edge_over_several_columns_bends_around_what_stands_between() -> None:
    nodes = ["a", "b", "c", "d"]
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    places, bends = layered(nodes, edges, dict.fromkeys(nodes, NODE_HEIGHT), {})
    assert set(bends) == {("a", "d")}
    passed = [places[node][1] + NODE_HEIGHT / 2 for node in ("b", "c")]
    assert all(abs(y - other) > NODE_HEIGHT / 2 for _, y in bends["a", "d"] for other in passed)


@given(st.data())
@settings(max_examples=60)
def test_any_graph_without_circles_is_laid_out_forwards_and_without_overlaps(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14))
    nodes = [f"n{number}" for number in range(count)]
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    chosen = data.draw(st.lists(pairs, unique=True, max_size=24)) if count > 1 else []
    edges = [(nodes[source], nodes[target]) for source, target in chosen]
    heights = {node: data.draw(st.sampled_from([64.0, 82.0])) for node in nodes}
    places, _ = layered(nodes, edges, heights, {})
    assert set(places) == set(nodes)
    assert overlapping(places) == []
    assert all(places[target][0] >= places[source][0] + COLUMN for source, target in edges)


def test_a_large_workflow_is_laid_out_with_fewer_crossings_than_its_own_order_has() -> None:
    document = Document(large_workflow(200), catalogue())
    found = arrange(document, analyse(document).wings)
    edges = [(edge.source, edge.target) for edge in document.workflow.edges]
    assert crossings(found.places, edges) <= len(edges) // 10
    assert overlapping(found.places) == []
