"""Execution trees: Algorithm 1 of the shared-caching paper.

The paper's listing tests `visited` before it looks at a component's kind, so that a block component first reached
through one tree never gets the edge from another tree that feeds it as well. Here every edge between two trees is
kept. A lookup belongs to the tree of its main rows, never to that of its reference, which it needs whole. A
component that two trees reach belongs to the first.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.partition.flow import Flow, Kind


@dataclass(frozen=True)
class Tree:
    """Components that pass one shared cache from hand to hand, from the root on."""

    id: str
    root: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Trees:
    """The execution trees and the edges over which rows are copied from tree to tree."""

    trees: tuple[Tree, ...]
    edges: tuple[tuple[str, str], ...]


def execution_trees(flow: Flow) -> Trees:
    """Depth first from the sources; a block or semi-block component is the root of a new tree. Linear."""
    tree_of = [-1] * len(flow.names)
    members: list[list[int]] = []

    def plant(root: int) -> None:
        tree_of[root] = len(members)
        members.append([root])

    fed = {target for _, target in flow.edges}
    for source in range(len(flow.names)):
        if source in fed or tree_of[source] >= 0:
            continue
        plant(source)
        ways = [iter(flow.successors[source])]
        path = [source]
        while ways:
            node = next(ways[-1], None)
            if node is None:
                ways.pop()
                path.pop()
                continue
            if tree_of[node] >= 0 or (path[-1], node) in flow.references:
                continue
            if flow.kinds[node] in (Kind.BLOCKING, Kind.SEMI_BLOCKING):
                plant(node)
            else:
                own = tree_of[node] = tree_of[path[-1]]
                members[own].append(node)
            ways.append(iter(flow.successors[node]))
            path.append(node)
    ids = [f"T{number}" for number in range(1, len(members) + 1)]
    trees = [Tree(id_, flow.names[nodes[0]], flow.named(nodes)) for id_, nodes in zip(ids, members, strict=True)]
    between = {(tree_of[source], tree_of[target]): None for source, target in flow.edges}
    return Trees(tuple(trees), tuple([(ids[source], ids[target]) for source, target in between if source != target]))
