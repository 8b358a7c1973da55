"""Execution trees: Algorithm 1 of the shared-caching paper.

The paper's listing tests `visited` before it looks at a component's kind, so that a block component first reached
through one tree never gets the edge from another tree that feeds it as well. Here every edge between two trees is
kept. A lookup belongs to the tree of its main rows, never to that of its reference, which it needs whole. A
component that two trees reach belongs to the first.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.partition.flow import Flow, Kind, crossing


@dataclass(frozen=True, slots=True)
class Tree:
    """Components that pass one shared cache from hand to hand, from the root on."""

    id: str
    root: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trees:
    """The execution trees and the edges over which rows are copied from tree to tree."""

    trees: tuple[Tree, ...]
    edges: tuple[tuple[str, str], ...]


def execution_trees(flow: Flow) -> Trees:
    """Depth first from the sources; a block or semi-block component is the root of a new tree. Linear."""
    members, tree_of = grown(flow)
    ids = [f"T{number}" for number in range(1, len(members) + 1)]
    trees = [Tree(id_, flow.names[nodes[0]], flow.named(nodes)) for id_, nodes in zip(ids, members, strict=True)]
    between = crossing(tree_of, flow.edges)
    return Trees(tuple(trees), tuple([(ids[source], ids[target]) for source, target in between]))


def grown(flow: Flow) -> tuple[list[list[int]], list[int]]:
    """The nodes of each tree, and the tree of each node."""
    size, kinds, references = len(flow.names), flow.kinds, flow.references
    behind = flow.successors
    roots = [kind is Kind.BLOCKING or kind is Kind.SEMI_BLOCKING for kind in kinds]
    fed = [False] * size
    for _, target in flow.edges:
        fed[target] = True
    tree_of = [-1] * size
    members: list[list[int]] = []
    for source in range(size):
        if fed[source]:
            continue
        waiting = [(source, -1)]  # with the node by which each is reached
        while waiting:
            node, before = waiting.pop()
            while tree_of[node] < 0 and not (references and (before, node) in references):
                if before < 0 or roots[node]:
                    tree_of[node] = len(members)
                    members.append([node])
                else:
                    own = tree_of[node] = tree_of[before]
                    members[own].append(node)
                before, following = node, behind[node]
                if not following:
                    break
                node = following[0]  # the others later, the last of them last
                if len(following) > 1:
                    waiting += [(other, before) for other in following[:0:-1]]
    return members, tree_of
