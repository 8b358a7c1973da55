"""Subflows, strata and execution trees: the papers' examples, and their definitions on random graphs."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from engine.partition.flow import Flow, Kind
from engine.partition.subflows import break_into_subflows, is_boundary, with_readers_and_writers
from engine.partition.trees import execution_trees

R, ROW, SEMI, BLOCK, ROUTER = (
    Kind.RECORDSET,
    Kind.ROW_SYNCHRONIZED,
    Kind.SEMI_BLOCKING,
    Kind.BLOCKING,
    Kind.ROUTER,
)


def flow(kinds: dict[str, Kind], *edges: str) -> Flow:
    return Flow.of(kinds, [(edge[0], edge[1]) for edge in edges])


def test_ssb_q4_1_has_three_trees_of_eight_one_and_two_components():
    kinds = dict.fromkeys("12345678", ROW) | {"1": R, "g": BLOCK, "s": BLOCK, "w": R}
    trees = execution_trees(flow(kinds, "12", "23", "34", "45", "56", "67", "78", "8g", "gs", "sw")).trees
    assert [len(tree.nodes) for tree in trees] == [8, 1, 2]
    assert [tree.root for tree in trees] == ["1", "g", "s"]


def test_one_source_into_two_targets_gives_the_four_trees_of_the_paper_s_figure():
    kinds = {"a": R, "b": ROW, "c": ROW, "d": BLOCK, "e": R, "f": SEMI, "g": ROW, "h": BLOCK, "i": R}
    trees = execution_trees(flow(kinds, "ab", "bc", "bd", "de", "cf", "bf", "fg", "gh", "hi"))
    root = {tree.id: tree.root for tree in trees.trees}
    assert len(root) == 4
    assert {(root[a], root[b]) for a, b in trees.edges} == {("a", "d"), ("a", "f"), ("f", "h")}


def test_a_node_first_reached_through_another_tree_still_gets_its_edge():
    trees = execution_trees(flow({"a": R, "b": R, "j": SEMI, "w": R}, "aj", "bj", "jw"))
    root = {tree.id: tree.root for tree in trees.trees}
    assert {(root[a], root[b]) for a, b in trees.edges} == {("a", "j"), ("b", "j")}


def test_recordsets_get_readers_and_writers_which_join_their_neighbours_subflow():
    found = break_into_subflows(with_readers_and_writers(flow({"a": R, "n": ROW, "t": ROW, "w": R}, "an", "nt", "tw")))
    assert [subflow.nodes for subflow in found.subflows] == [
        ("a",),
        ("read a for n", "n", "t", "write t to w"),
        ("w",),
    ]
    assert found.strata == (("s1",), ("s2",), ("s3",))


def test_independent_lines_share_a_stratum_and_a_join_stands_above_the_higher_of_them():
    kinds = {"a": R, "b": R, "x": ROW, "y": ROW, "s": BLOCK, "z": ROW, "j": SEMI}
    found = break_into_subflows(flow(kinds, "ax", "by", "ys", "sz", "xj", "zj"))
    name = {subflow.id: "".join(subflow.nodes) for subflow in found.subflows}
    assert [sorted(name[id_] for id_ in stratum) for stratum in found.strata] == [
        ["a", "b"], ["x", "y"], ["s"], ["z"], ["j"],
    ]  # fmt: skip


def test_a_subflow_that_an_aggregate_leads_back_into_is_cut_where_it_comes_back():
    found = break_into_subflows(flow({"a": R, "x": ROW, "g": BLOCK, "y": ROW, "w": R}, "ax", "xg", "xy", "gy", "yw"))
    assert [subflow.nodes for subflow in found.subflows] == [("a",), ("x",), ("g",), ("y",), ("w",)]
    assert found.strata == (("s1",), ("s2",), ("s3",), ("s4",), ("s5",))


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    """Random graphs in topological order, without two recordsets in a row."""
    size = draw(st.integers(1, 14))
    kinds = tuple(draw(st.sampled_from(list(Kind))) for _ in range(size))
    edges = []
    for i in range(size):
        for j in range(i + 1, size):
            two_recordsets = kinds[i] is R and kinds[j] is R
            if not two_recordsets and draw(st.integers(0, 3)) == 0:
                edges.append((i, j))
    return Flow(tuple(f"n{i}" for i in range(size)), kinds, tuple(edges))


class Named:
    """A flow by its names, as the definitions speak of it."""

    def __init__(self, by_number: Flow) -> None:
        names = by_number.names
        self.kinds = dict(zip(names, by_number.kinds, strict=True))
        self.edges = [(names[a], names[b]) for a, b in by_number.edges]
        self.references = {(names[a], names[b]) for a, b in by_number.references}
        self.successors = {names[node]: by_number.named(after) for node, after in enumerate(by_number.successors)}
        self.predecessors = {names[node]: by_number.named(before) for node, before in enumerate(by_number.predecessors)}

    def is_boundary(self, node: str) -> bool:
        return is_boundary(self.kinds[node])


@given(flows())
def test_a_flow_of_names_is_the_flow_of_their_numbers(plain):
    named = Named(plain)
    assert Flow.of(named.kinds, named.edges) == plain


@given(flows())
def test_readers_and_writers_stand_on_the_edges_of_recordsets_and_nowhere_else(plain):
    before, after = Named(plain), Named(with_readers_and_writers(plain))
    expected = set()
    for source, target in before.edges:
        if before.kinds[source] is R:
            expected |= {(source, f"read {source} for {target}"), (f"read {source} for {target}", target)}
        elif before.kinds[target] is R:
            expected |= {(source, f"write {source} to {target}"), (f"write {source} to {target}", target)}
        else:
            expected.add((source, target))
    assert sorted(after.edges) == sorted(expected)
    assert {node: kind for node, kind in after.kinds.items() if node in before.kinds} == before.kinds
    position = {node: number for number, node in enumerate(after.kinds)}
    assert all(position[source] < position[target] for source, target in after.edges), "in topological order"


@given(flows())
def test_subflows_are_the_components_between_boundaries(plain):
    cut = with_readers_and_writers(plain)
    found = break_into_subflows(cut)
    graph_flow = Named(cut)
    members = [node for subflow in found.subflows for node in subflow.nodes]
    assert sorted(members) == sorted(graph_flow.kinds), "every node in exactly one subflow"
    # By the definition: take the boundaries out, and what hangs together is a subflow.
    graph = nx.Graph(graph_flow.edges)
    graph.add_nodes_from(graph_flow.kinds)
    inner = graph.subgraph(node for node in graph if not graph_flow.is_boundary(node))
    components = [set(component) for component in nx.connected_components(inner)]
    for subflow in found.subflows:
        if len(subflow.nodes) == 1 and graph_flow.is_boundary(subflow.nodes[0]):
            continue
        assert not any(graph_flow.is_boundary(node) for node in subflow.nodes), "no boundary inside"
        (whole,) = [component for component in components if component >= set(subflow.nodes)]
        if set(subflow.nodes) != whole:  # cut only where merging all of it would make it wait for itself
            assert comes_back(graph_flow, whole)


def comes_back(graph_flow: Named, component: set[str]) -> bool:
    """Whether rows leave the component and come back to it, perhaps through other components."""
    graph = nx.Graph(graph_flow.edges)
    inner = nx.Graph(graph.subgraph(node for node in graph if not graph_flow.is_boundary(node)))
    inner.add_nodes_from(node for node in graph_flow.kinds)
    zoom = {node: number for number, part in enumerate(nx.connected_components(inner)) for node in part}
    zoomed = nx.DiGraph((zoom[a], zoom[b]) for a, b in graph_flow.edges if zoom[a] != zoom[b])
    own = zoom[min(component)]
    return own in zoomed and any(own in part for part in nx.strongly_connected_components(zoomed) if len(part) > 1)


@given(flows())
def test_subflows_of_a_stratum_are_independent_and_stand_one_above_their_highest_provider(plain):
    found = break_into_subflows(with_readers_and_writers(plain))
    graph = nx.DiGraph(found.edges)
    graph.add_nodes_from(subflow.id for subflow in found.subflows)
    assert nx.is_directed_acyclic_graph(graph), "no subflow waits for itself"
    stratum = {id_: number for number, ids in enumerate(found.strata) for id_ in ids}
    assert sorted(stratum) == sorted(graph)
    for node in graph:
        providers = [stratum[other] for other in graph.predecessors(node)]
        assert stratum[node] == (1 + max(providers) if providers else 0)
        assert not any(stratum[other] == stratum[node] for other in nx.descendants(graph, node))


def derive_si_sets(nodes: list[str], edges: set[tuple[str, str]]) -> list[set[str]]:
    """The paper's listing: stratum by stratum, what nothing feeds any more."""
    strata = []
    left = set(nodes)
    while left:
        free = {node for node in left if not any(target == node for _, target in edges)}
        assert free, "something waits for itself"
        strata.append(free)
        left -= free
        edges = {(source, target) for source, target in edges if source not in free}
    return strata


@given(flows())
def test_strata_are_those_of_the_paper_s_listing(plain):
    found = break_into_subflows(with_readers_and_writers(plain))
    peeled = derive_si_sets([subflow.id for subflow in found.subflows], set(found.edges))
    assert [set(stratum) for stratum in found.strata] == peeled


@given(flows())
def test_subflows_hang_together_and_are_as_large_as_they_can_be(plain):
    cut = with_readers_and_writers(plain)
    found = break_into_subflows(cut)
    graph_flow = Named(cut)
    subflow_of = {node: subflow.id for subflow in found.subflows for node in subflow.nodes}
    graph = nx.Graph(graph_flow.edges)
    graph.add_nodes_from(graph_flow.kinds)
    for subflow in found.subflows:
        assert nx.is_connected(graph.subgraph(subflow.nodes))
    zoomed = nx.DiGraph(found.edges)
    zoomed.add_nodes_from(subflow_of.values())
    for source, target in graph_flow.edges:
        mergeable = not graph_flow.is_boundary(source) and not graph_flow.is_boundary(target)
        if mergeable and subflow_of[source] != subflow_of[target]:  # then merging all of its kind would make a circle
            assert comes_back(graph_flow, set(nx.node_connected_component(_inner(graph, graph_flow), source)))


def _inner(graph: nx.Graph, graph_flow: Named) -> nx.Graph:
    return graph.subgraph(node for node in graph if not graph_flow.is_boundary(node))


@st.composite
def flows_with_references(draw: st.DrawFn) -> Flow:
    """Random graphs in which some row-synchronized nodes with several inputs need all but one of them whole."""
    plain = draw(flows())
    references = set()
    for node, feeders in enumerate(plain.predecessors):
        if plain.kinds[node] is ROW and len(feeders) > 1 and draw(st.booleans()):
            main = draw(st.sampled_from(feeders))
            references |= {(feeder, node) for feeder in feeders if feeder != main}
    return Flow(plain.names, plain.kinds, plain.edges, frozenset(references))


def algorithm_1(plain: Named) -> tuple[dict[str, list[str]], set[tuple[str, str]]]:
    """The paper's listing, literally, but for what it leaves out: every edge between trees, and references."""
    visited: set[str] = set()
    members: dict[str, list[str]] = {}

    def visit(at: str, tree: str) -> None:
        visited.add(at)
        for node in plain.successors[at]:
            if (at, node) in plain.references or node in visited:
                continue
            own = tree
            if plain.kinds[node] in (BLOCK, SEMI):
                own = node
                members[own] = []
            members[own].append(node)
            visit(node, own)

    for node in plain.kinds:
        if not plain.predecessors[node] and node not in visited:
            members[node] = [node]
            visit(node, node)
    tree_of = {node: root for root, nodes in members.items() for node in nodes}
    return members, {(tree_of[a], tree_of[b]) for a, b in plain.edges if tree_of[a] != tree_of[b]}


@given(flows_with_references())
def test_execution_trees_are_those_of_algorithm_1(plain):
    trees = execution_trees(plain)
    plain = Named(plain)
    members, edges = algorithm_1(plain)
    assert [(tree.root, list(tree.nodes)) for tree in trees.trees] == list(members.items())
    root = {tree.id: tree.root for tree in trees.trees}
    assert {(root[a], root[b]) for a, b in trees.edges} == edges


@given(flows_with_references())
def test_rows_reach_every_node_of_a_tree_from_its_root_without_passing_a_reference_or_a_block_component(plain):
    trees = execution_trees(plain)
    plain = Named(plain)
    members = [node for tree in trees.trees for node in tree.nodes]
    assert sorted(members) == sorted(plain.kinds), "every component in exactly one tree"
    graph = nx.DiGraph(edge for edge in plain.edges if edge not in plain.references)
    graph.add_nodes_from(plain.kinds)
    for tree in trees.trees:
        for node in tree.nodes[1:]:
            assert plain.kinds[node] not in (BLOCK, SEMI)
            ways = nx.all_simple_paths(graph, tree.root, node)
            assert any(all(plain.kinds[at] not in (BLOCK, SEMI) for at in way[1:]) for way in ways)


def test_a_lookup_is_in_the_tree_of_its_main_rows_although_its_reference_comes_first():
    edges = [("a", "l"), ("b", "l"), ("l", "w")]
    plain = Flow.of({"a": R, "b": R, "l": ROW, "w": R}, edges, references=[("a", "l")])
    assert [tree.nodes for tree in execution_trees(plain).trees] == [("a",), ("b", "l", "w")]


@given(flows())
def test_execution_trees_cover_the_flow_and_hold_block_components_at_their_roots_only(plain):
    trees = execution_trees(plain)
    plain = Named(plain)
    members = [node for tree in trees.trees for node in tree.nodes]
    assert sorted(members) == sorted(plain.kinds)
    graph = nx.DiGraph(plain.edges)
    graph.add_nodes_from(plain.kinds)
    tree_of = {node: tree for tree in trees.trees for node in tree.nodes}
    for tree in trees.trees:
        for node in tree.nodes[1:]:
            assert plain.kinds[node] not in (Kind.BLOCKING, Kind.SEMI_BLOCKING)
        assert plain.kinds[tree.root] in (Kind.BLOCKING, Kind.SEMI_BLOCKING) or not plain.predecessors[tree.root]
        reached = {tree.root} | nx.descendants(graph.subgraph(tree.nodes), tree.root)
        assert reached == set(tree.nodes), "a tree hangs together from its root"
    expected = {(tree_of[a].id, tree_of[b].id) for a, b in plain.edges if tree_of[a] is not tree_of[b]}
    assert set(trees.edges) == expected
