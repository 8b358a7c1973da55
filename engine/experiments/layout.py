"""Positions for the nodes of a workflow that a program made: data flows from left to right, nothing overlaps.

A layered drawing: each node stands right of all that feed it, and as close to what reads it as can be. The order inside
a column follows the neighbours' (barycentres), and each node is moved as near to the middle of its neighbours as the
ones above and below it allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

STEP_X, STEP_Y = 220, 110  # from one node to the next, in the canvas's units
SWEEPS = 6


def lay_out(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """A position for every node of an acyclic graph, the first at the top left. Nearly linear in its size."""
    names = list(nodes)
    following: dict[str, list[str]] = {node: [] for node in names}
    before: dict[str, list[str]] = {node: [] for node in names}
    for source, target in dict.fromkeys(edges):
        following[source].append(target)
        before[target].append(source)
    level = _levels(names, following, before)
    columns, right, left = _columns(names, level, following)
    place = {item: float(index) for column in columns for index, item in enumerate(column)}
    for sweep in range(SWEEPS):
        forwards = sweep % 2 == 0
        for column in columns if forwards else reversed(columns):
            _order(column, left if forwards else right, place)
    height = {item: place[item] for column in columns for item in column}
    for sweep in range(SWEEPS):
        forwards = sweep % 2 == 0
        for column in columns if forwards else reversed(columns):
            _settle(column, left if forwards else right, height)
    # In half steps, so that lines are straight; nodes a step apart stay a step apart.
    rows = {node: math.floor(2 * height[node] + 0.5) for node in names}
    top = min(rows.values(), default=0)
    return {node: (level[node] * STEP_X, (rows[node] - top) * STEP_Y // 2) for node in names}


def _levels(
    names: Sequence[str], following: Mapping[str, Sequence[str]], before: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """The column of each node: behind all that feed it, just before the first that reads it."""
    waiting = {node: len(before[node]) for node in names}
    ready = [node for node in names if not waiting[node]]
    level = dict.fromkeys(ready, 0)
    for node in ready:  # grows while it is walked
        for target in following[node]:
            level[target] = max(level.get(target, 0), level[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    for node in reversed(ready):
        if following[node]:
            level[node] = min(level[target] for target in following[node]) - 1
    return level


def _columns(
    names: Sequence[str], level: Mapping[str, int], following: Mapping[str, Sequence[str]]
) -> tuple[list[list[str]], dict[str, list[str]], dict[str, list[str]]]:
    """The nodes of each column, with a bend in every column that an edge passes, and the neighbours of each."""
    columns: list[list[str]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    right: dict[str, list[str]] = {}
    left: dict[str, list[str]] = {}
    for node in _lines_together(names, following):
        columns[level[node]].append(node)
    for source in names:
        for target in following[source]:
            at = source
            for passed in range(level[source] + 1, level[target]):
                bend = f"{source} > {target} @ {passed}"
                columns[passed].append(bend)
                right.setdefault(at, []).append(bend)
                left.setdefault(bend, []).append(at)
                at = bend
            right.setdefault(at, []).append(target)
            left.setdefault(target, []).append(at)
    return columns, right, left


def _lines_together(names: Sequence[str], following: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes depth first, so that what hangs together starts out together."""
    found: dict[str, None] = {}
    for start in names:
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found[node] = None
                waiting.extend(reversed(following[node]))
    return list(found)


def _order(column: list[str], neighbours: Mapping[str, Sequence[str]], place: dict[str, float]) -> None:
    """Sort a column by the middle of each node's neighbours; those without stay where they are."""
    middle = {}
    for item in column:
        others = neighbours.get(item)
        middle[item] = sum(place[other] for other in others) / len(others) if others else place[item]
    column.sort(key=middle.__getitem__)
    place.update((item, float(index)) for index, item in enumerate(column))


def _settle(column: Sequence[str], neighbours: Mapping[str, Sequence[str]], height: dict[str, float]) -> None:
    """Move each node to the middle of its neighbours, as far as order and distance allow.

    With the distances taken off, the nearest heights in order are an isotonic regression: nodes that would change
    places share the mean of what they want.
    """
    groups: list[tuple[float, int]] = []  # the height a group of nodes wants, and how many they are
    for index, item in enumerate(column):
        others = neighbours.get(item)
        wanted = sum(height[other] for other in others) / len(others) if others else height[item]
        mean, size = wanted - index, 1
        while groups and groups[-1][0] >= mean:
            above, count = groups.pop()
            mean, size = (above * count + mean * size) / (count + size), count + size
        groups.append((mean, size))
    index = 0
    for mean, size in groups:
        for _ in range(size):
            height[column[index]] = mean + index
            index += 1
