"""The physical-design paper's scenarios, as shipped, and changed as its experiments change them."""

from __future__ import annotations

import importlib.resources
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.experiments.experiment import Table
from engine.model.binding import bind
from engine.model.file import load
from engine.model.physical import Key, Passing, Physical, filtering, grouping, joining
from engine.model.workflow import Hints
from engine.operators import catalogue
from engine.plan.constraints import Constraints, constraints
from engine.plan.costs import CostModel, PaperCosts, units
from engine.plan.graph import Activity, Edge, Graph, Recordset, graph_of
from engine.plan.planner import Ranking, Search, rank
from engine.plan.rows import rows_of

# Signature, cost, number of sorters and what they cost, as printed.
Published = tuple[str, int, int, int]

FIG_6: tuple[Published, ...] = (
    ("((R.1.1_3(A))//(S.S!(A).2@SO.P)).3@MJ.V.((4@SO.Z)//(5@SO.W))", 2_560_021, 2, 1_803_841),
    ("((R.1.1_3(A))//(S.2@SO.P)).3@MJ.V.((4@SO.Z)//(5@SO.W))", 2_560_021, 1, 142_877),
    ("((R.1)//(S.S!(A).2@SO.P)).3@HJ.V.V!(A).((4@SO.Z)//(5@SO.W))", 2_943_325, 2, 2_107_144),
    ("((R.1)//(S.S!(A).2@SO.P)).3@HJ.V.V!(B).((4@SO.Z)//(5@SO.W))", 2_943_325, 2, 2_107_144),
    ("((R.1)//(S.S!(A).2@SO.P)).3@HJ.V.((4@SO.Z)//(5@SO.W))", 2_943_325, 1, 1_660_964),
    ("((R.1)//(S.2@SO.P)).3@HJ.V.V!(A).((4@SO.Z)//(5@SO.W))", 2_943_325, 1, 446_180),
    ("((R.1)//(S.2@SO.P)).3@HJ.V.V!(B).((4@SO.Z)//(5@SO.W))", 2_943_325, 1, 446_180),
    ("((R.1)//(S.2@SO.P)).3@HJ.V.((4@SO.Z)//(5@SO.W))", 2_943_325, 0, 0),
    ("((R.1)//(S.S!(A).2@SO.P)).3@SMJ.V.((4@SO.Z)//(5@SO.W))", 2_996_202, 1, 1_660_964),
    ("((R.1)//(S.2@SO.P)).3@SMJ.V.((4@SO.Z)//(5@SO.W))", 2_996_202, 0, 0),
)
FIG_9: tuple[Published, ...] = (
    ("R.1.V.V!(B,C).((((3.U.4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 3_058_034, 1, 1_303_017),
    ("R.1.V.V!(A).((((3.U.U!(B).4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 3_772_470, 2, 2_049_453),
    ("R.1.V.V!(A).((((3.U.4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 3_772_470, 1, 1_303_017),
    ("R.1.V.V!(B,C).((((3.U.U!(B).4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 3_804_470, 2, 2_049_453),
    ("R.1.V.((((3.U.U!(B).4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 3_804_470, 1, 746_436),
    ("R.1.V.((((3.U.4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 3_804_470, 0, 0),
    ("R.1.V.V!(B,C).((((3.U.4@SO.Z)//(2@SO.T.T!(B).5@SO.W)))//(6@SO.Q))", 4_079_844, 2, 2_324_827),
    ("R.R!(A).1.V.((((3.U.U!(B).4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 4_110_417, 2, 2_407_400),
    ("R.R!(A).1.V.((((3.U.4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 4_110_417, 1, 1_660_964),
    ("R.1.V.V!(B).((((3.U.4@SO.Z)//(2@SO.T.5@SO.W)))//(6@SO.Q))", 4_361_051, 1, 1_303_017),
)

Row = tuple[str, int, int, int]


@dataclass(frozen=True)
class Scenario:
    """A graph to plan, and what its file asks of plans."""

    graph: Graph
    asked: Constraints

    def rank(self, top: int = 10, search: Search = Search.FAST, model: CostModel | None = None) -> Ranking:
        """The scenario's cheapest plans."""
        return rank(self.graph, model or PaperCosts(), self.asked, top, search)


def scenario(name: str, hints: Mapping[str, Mapping[str, Any]] | None = None) -> Scenario:
    """A shipped workflow, with other hints for some of its nodes."""
    with importlib.resources.as_file(importlib.resources.files("workflows") / f"{name}.butterfly.yaml") as path:
        file = load(path)
    for node, changed in (hints or {}).items():
        file.workflow.nodes[node].hints = Hints.model_validate(changed)
    bound = bind(file, catalogue())
    bound.raise_errors()
    return Scenario(graph_of(bound, rows_of(bound)), constraints(planning=bound.workflow.plan))


def rows_in(ranking: Ranking) -> list[Row]:
    """A ranking as the paper prints it."""
    return [
        (ranking.signature(plan), round(units(plan.cost)), len(plan.sorters), round(units(plan.sorter_cost)))
        for plan in ranking.plans
    ]


def beside(name: str, rows: list[Row], published: tuple[Published, ...]) -> Table:
    """What was found beside what is printed."""
    return Table(
        name,
        ("cost", "paper", "sorters", "paper's", "sorters cost", "paper's cost", "share %", "same", "signature"),
        [
            (row[1], printed[1], row[2], printed[2], row[3], printed[3], round(100 * row[3] / row[1]),
             "yes" if row == printed else "no", row[0])
            for row, printed in zip(rows, published, strict=False)
        ],
    )  # fmt: skip


def timed(given: Scenario, search: Search, rounds: int = 3) -> tuple[Ranking, float]:
    """A ranking, and the least seconds it took."""
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        ranking = given.rank(search=search)
        seconds.append(time.perf_counter() - begun)
    return ranking, min(seconds)


# ---------------------------------------------------------------- right wings


class Wing:
    """A right wing behind a body of 100,000 rows, drawn node by node."""

    def __init__(self) -> None:
        self.nodes: dict[str, Recordset | Activity] = {"V": Recordset("V", 100_000)}
        self.edges: list[Edge] = []

    def view(self, of: str, *activities: str) -> str:
        """Activities one behind the other and the view they fill: `σA` filters by A, `γBC` aggregates by B and C."""
        at, rows = of, self._rows(of)
        for text in activities:
            id_ = f"{text}{len(self.nodes)}"
            made = _filter(text[1:]) if text.startswith("σ") else _aggregate(text[1:])
            self.edges.append(Edge(at, id_, 0, rows))
            rows = rows * 4 // 5 if text.startswith("σ") else rows * 3 // 5
            self.nodes[id_] = Activity(id_, made, rows)
            at = id_
        view = f"T{len(self.nodes)}"
        self.nodes[view] = Recordset(view, rows)
        self.edges.append(Edge(at, view, 0, rows))
        return view

    def joined(self, of: str, column: str) -> str:
        """A source, cleansed and aggregated, joined to what a recordset holds; gives the recordset it is put in."""
        number = len(self.nodes)
        source, line, join, into = f"S{number}", f"γ{number}", f"⋈{number}", f"J{number}"
        self.nodes[source] = Recordset(source, 100_000)
        self.nodes[line] = Activity(line, _aggregate(column), 40_000)
        rows = self._rows(of)
        self.nodes[join] = Activity(join, joining(column, column, Passing()), rows)
        self.nodes[into] = Recordset(into, rows)
        self.edges += [
            Edge(source, line, 0, 100_000),
            Edge(of, join, 0, rows),
            Edge(line, join, 1, 40_000),
            Edge(join, into, 0, rows),
        ]
        return into

    def scenario(self) -> Scenario:
        """The wing to be planned."""
        return Scenario(Graph(self.nodes, tuple(self.edges)), Constraints())

    def _rows(self, of: str) -> int:
        node = self.nodes[of]
        return node.rows if isinstance(node, Recordset) else node.rows_out


def _filter(column: str) -> Physical:
    return filtering(Passing(), Key(column))


def _aggregate(columns: str) -> Physical:
    return grouping(columns, Passing(renamed={name: name for name in columns}, only=True))


def right_wings() -> dict[int, Wing]:
    """The four cases of figure 10: 8, 10, 14 and 15 nodes with 2, 3, 3 and 6 places for sorters."""
    one = Wing()
    inner = one.view("V", "γAB")
    one.view(inner, "γA")
    one.view(inner, "γB")
    one.view("V", "σA")

    two = Wing()
    inner = two.view("V", "γAB")
    deeper = two.view(inner, "σA")
    two.view(deeper, "γB")
    two.view("V", "γC")
    two.view(inner, "γA")

    three = Wing()
    for column in ("AB", "BC"):
        inner = three.view("V", f"γ{column}")
        three.view(inner, f"γ{column[0]}")
        three.view(inner, f"γ{column[1]}")
    three.view("V", "γC")

    four = Wing()
    inner = four.view("V", "γAB")
    deeper = four.view(inner, "σA")
    four.view(deeper, "γB")
    four.view(deeper, "γA")
    four.view("V", "σC", "σB", "γC")
    four.view(inner, "σB", "γA")
    return {1: one, 2: two, 3: three, 4: four}


def large(nodes: int) -> Scenario:
    """A workflow of so many nodes: lines joined one after the other into a body, then views of views."""
    wing = Wing()
    body = "V"
    for number in range(nodes // 20):
        body = wing.joined(body, "ABC"[number % 3])
    views = [body]
    steps = ("σA", "γABC", "σB", "γBC", "γA", "σC", "γC")
    number = 0
    while len(wing.nodes) < nodes:
        of = views[number // 2]
        step = steps[number % len(steps)]
        views.append(wing.view(of, *((step, "σA") if number % 5 == 4 else (step,))))
        number += 1
    return wing.scenario()
