"""Graphs of the paper and random ones, made without a workflow file."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from engine.model.physical import (
    HashBased,
    Key,
    Passing,
    Physical,
    SortBased,
    Sorting,
    black_box,
    filtering,
    grouping,
    joining,
    ordered_by,
    sorting,
)
from engine.plan.graph import Activity, Edge, Graph, Recordset


class Sketch:
    """A graph drawn node by node."""

    def __init__(self) -> None:
        self.nodes: dict[str, Recordset | Activity] = {}
        self.edges: list[Edge] = []

    def recordset(self, id_: str, rows: int, of: str | None = None, stored: bool = True) -> str:
        self.nodes[id_] = Recordset(id_, rows, stored)
        if of is not None:
            self._edge(of, id_, 0)
        return id_

    def activity(self, id_: str, physical: Physical, rows: int, *of: str, held: bool = False) -> str:
        self.nodes[id_] = Activity(id_, physical, rows, held=held)
        for number, source in enumerate(of):
            self._edge(source, id_, number)
        return id_

    def _edge(self, source: str, target: str, number: int) -> None:
        node = self.nodes[source]
        rows = node.rows if isinstance(node, Recordset) else node.rows_out
        self.edges.append(Edge(source, target, number, rows))

    def graph(self) -> Graph:
        return Graph(self.nodes, tuple(self.edges))


def group(*columns: str, hashing: bool = False) -> Physical:
    return grouping(columns, Passing(renamed={name: name for name in columns}, only=True), hashing)


def where(column: str, descending: bool = False) -> Physical:
    return filtering(Passing(), Key(column, descending))


def in_parts(physical: Physical) -> Physical:
    """A template over rows that are divided among tasks, as on Spark."""
    ways = tuple(
        dataclasses.replace(way, by_parts=True) if isinstance(way, HashBased | SortBased | Sorting) else way
        for way in physical.implementations
    )
    return dataclasses.replace(physical, implementations=ways)


def join(*columns: str) -> Physical:
    return joining(columns, columns, Passing())


def balanced(rows: int = 100_000, body: int = 30_000) -> Graph:
    """Fig. 5."""
    draw = Sketch()
    draw.recordset("R", rows)
    draw.activity("1", where("A"), rows // 10, "R")
    draw.recordset("S", rows)
    draw.activity("2", group("A"), rows * 4 // 10, "S")
    draw.recordset("P", rows * 4 // 10, "2")
    draw.activity("3", join("A"), body, "1", "P")
    draw.recordset("V", body, "3")
    draw.activity("4", group("A"), body // 10, "V")
    draw.recordset("Z", body // 10, "4")
    draw.activity("5", group("B"), body // 10, "V")
    draw.recordset("W", body // 10, "5")
    return draw.graph()


def right_deep() -> Graph:
    """Fig. 8."""
    draw = Sketch()
    draw.recordset("R", 100_000)
    draw.activity("1", where("A"), 80_000, "R")
    draw.recordset("V", 80_000, "1")
    draw.activity("3", where("A"), 48_000, "V")
    draw.recordset("U", 48_000, "3")
    draw.activity("4", group("B"), 4_800, "U")
    draw.recordset("Z", 4_800, "4")
    draw.activity("2", group("B", "C"), 64_000, "V")
    draw.recordset("T", 64_000, "2")
    draw.activity("5", group("B"), 6_400, "T")
    draw.recordset("W", 6_400, "5")
    draw.activity("6", group("A"), 8_000, "V")
    draw.recordset("Q", 8_000, "6")
    return draw.graph()


# ---------------------------------------------------------------- random graphs

COLUMNS = st.sampled_from(["A", "B", "C"])


@st.composite
def templates(draw: st.DrawFn) -> Physical:
    """A template of an activity with one input, in one part or in several."""
    made = draw(_templates())
    return in_parts(made) if draw(st.booleans()) else made


@st.composite
def _templates(draw: st.DrawFn) -> Physical:
    kind = draw(
        st.sampled_from(["filter", "plain", "group", "both", "pair", "sort", "window", "box", "loses", "renames"])
    )
    column = draw(COLUMNS)
    match kind:
        case "filter":
            return where(column, draw(st.booleans()))
        case "plain":
            return filtering(Passing(), None)
        case "group":
            return group(column)
        case "both":
            return group(column, hashing=True)
        case "pair":
            return group(*draw(st.permutations(["A", "B", "C"]))[:2])
        case "sort":
            return sorting(ordered_by(column), Passing())
        case "window":
            order = (Key(column), *draw(st.sampled_from([(), (Key("D"),), (Key("D", True),)])))
            return sorting(order, Passing(), groups=1, anew=draw(st.booleans()))
        case "box":
            return black_box()
        case "loses":
            return black_box(Passing(lost=frozenset({column})))
        case _:
            return black_box(Passing(renamed={"A": "B"}, lost=frozenset({"B"})))


@st.composite
def graphs(draw: st.DrawFn, activities: int = 5) -> Graph:
    """Small workflows of any shape: lines, joins, forks, splits that meet again."""
    sketch = Sketch()
    rows = st.integers(0, 5_000)
    ends = [sketch.recordset(f"S{number}", draw(rows)) for number in range(draw(st.integers(1, 2)))]
    inner: list[str] = []
    for number in range(draw(st.integers(1, activities))):
        id_ = str(number)
        places = ends + inner
        if len(places) > 1 and draw(st.integers(0, 3)) == 0:
            sources = (draw(st.sampled_from(places)), draw(st.sampled_from(places)))
            keys = draw(st.sampled_from([("A",), ("B",), ("A", "B")]))
            sketch.activity(id_, join(*keys), draw(rows), *sources)
        else:
            held = draw(st.integers(0, 5)) == 0
            sketch.activity(id_, draw(templates()), draw(rows), draw(st.sampled_from(places)), held=held)
        if draw(st.booleans()):
            stored = sketch.nodes[id_]
            assert isinstance(stored, Activity)
            ends.append(sketch.recordset(f"T{number}", stored.rows_out, id_, draw(st.integers(0, 4)) > 0))
        else:
            inner.append(id_)
    used = {edge.source for edge in sketch.edges}
    for id_ in inner:
        if id_ not in used:
            node = sketch.nodes[id_]
            assert isinstance(node, Activity)
            sketch.recordset(f"E{id_}", node.rows_out, id_)
    return sketch.graph()
