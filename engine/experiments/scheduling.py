"""The workflows of the scheduling paper's experiments, for simulated runs: archetypes, and larger ones made of them.

They are real workflows of real operators; hints say how many rows there are and how many pass, so nothing is read.
The sizes are those of TPC-H's tables, the selectivities those of a cleansing that drops few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from engine.experiments.generate import experiment_workflows
from engine.model.binding import Bound, bind
from engine.model.workflow import Hints, Workflow
from engine.operators import catalogue
from engine.operators.file_sources import ParquetSource
from engine.plan.rows import Rows, rows_of
from engine.schedule.costs import cost_us

TPCH_ROWS = {  # at scale 1
    "lineitem": 6_001_215,
    "orders": 1_500_000,
    "partsupp": 800_000,
    "part": 200_000,
    "customer": 150_000,
    "supplier": 10_000,
}
KEPT = 0.95  # the share of rows that a check lets pass
GROUPS = 0.1  # groups for each row, in a view


class Builder:
    """A workflow under construction: nodes by kind, with what is known of their rows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[str, dict[str, Any]] = {}
        self.edges: list[dict[str, str]] = []

    def add(self, operator: str, *inputs: str, hints: dict[str, float] | None = None, **settings: Any) -> str:
        """A node behind others; an input is a node or `node.port > port`."""
        id_ = f"{operator}_{len(self.nodes) + 1:02d}"
        self.nodes[id_] = {"operator": operator, "settings": settings, **({"hints": hints} if hints else {})}
        for text in inputs:
            source, _, port = text.partition(" > ")
            self.edges.append({"from": source, "to": f"{id_}.{port}" if port else id_})
        return id_

    def source(self, rows: int) -> str:
        """A recordset of so many rows."""
        return self.add("parquet_source", path=f"in/{len(self.nodes)}", hints={"rows": rows})

    def check(self, at: str, kept: float = KEPT, **hints: float) -> str:
        """A check that drops some rows."""
        return self.add("filter", at, condition="a > 1", hints={"selectivity": kept, **hints})

    def compute(self, at: str, **hints: float) -> str:
        """A derivation that keeps every row."""
        return self.add("derive", at, columns=[{"name": "b", "expression": "a + 1"}], hints=hints or None)

    def line(self, at: str, steps: int, chance: Random | None = None, cost_us: float | None = None) -> str:
        """Checks and derivations behind each other."""
        cost = {"cost_us": cost_us} if cost_us is not None else {}
        for step in range(steps):
            keeps = chance.random() < 0.6 if chance else bool(step % 2)
            at = self.compute(at, **cost) if keeps else self.check(at, **cost)
        return at

    def join(self, left: str, right: str, selectivity: float = 0.5) -> str:
        """A sort-merge join; the default gives about as many rows as one of two like inputs has."""
        keys = [{"left": "a", "right": "a"}]
        return self.add(
            "join", f"{left} > left", f"{right} > right", keys=keys, form="merge", hints={"selectivity": selectivity}
        )

    def look_up(self, at: str, reference: str, selectivity: float) -> str:
        """A surrogate key, looked up; the selectivity is over the rows of both inputs."""
        return self.add(
            "lookup",
            f"{at} > main",
            f"{reference} > reference",
            keys=[{"main": "a", "reference": "a"}],
            take=[{"column": "k", "name": f"k{len(self.nodes)}"}],
            hints={"selectivity": selectivity},
        )

    def view(self, at: str, selectivity: float = GROUPS) -> str:
        """An aggregation."""
        aggregates = [{"name": "n", "expression": "count(*)"}]
        return self.add("aggregate", at, group=["a"], aggregates=aggregates, hints={"selectivity": selectivity})

    def route(self, at: str, ways: int) -> list[str]:
        """A router; each way gets about the same rows."""
        routes = [{"port": f"way_{way}", "condition": f"a % {ways} = {way}"} for way in range(ways - 1)]
        router = self.add("router", at, routes=routes)
        return [f"{router}.way_{way}" for way in range(ways - 1)] + [f"{router}.rest"]

    def target(self, at: str) -> str:
        """A table that the rows are written to."""
        return self.add("parquet_target", at, path=f"out/{len(self.nodes)}")

    def bound(self) -> Bound:
        """The workflow, bound."""
        document = {"papilio": 1, "name": self.name, "nodes": self.nodes, "edges": self.edges}
        bound = bind(Workflow.model_validate(document), catalogue())
        bound.raise_errors()
        return bound


def rows_of_table(table: str, scale: float) -> int:
    """The rows of a TPC-H table at a scale."""
    return round(TPCH_ROWS[table] * scale)


# ---------------------------------------------------------------- archetypes (section 7.1, figures 1 and 7)


def line(scale: float, kept: float = KEPT) -> Bound:
    """Filters, a function and an aggregation over one table on its way to one target."""
    flow = Builder("line")
    at = flow.source(rows_of_table("partsupp", scale))
    at = flow.compute(flow.check(flow.check(at, kept), kept))
    flow.target(flow.view(at))
    return flow.bound()


def wishbone(scale: float, kept: float = KEPT) -> Bound:
    """Two parallel lines joined into one."""
    flow = Builder("wishbone")
    left = flow.compute(flow.check(flow.source(rows_of_table("partsupp", scale)), kept))
    right = flow.compute(flow.check(flow.source(rows_of_table("part", scale)), kept))
    flow.target(flow.check(flow.join(left, right, 0.8), kept))
    return flow.bound()


def primary_flow(scale: float, kept: float = KEPT) -> Bound:
    """A table that is enriched with several surrogate keys, one lookup after the other."""
    flow = Builder("primary flow")
    rows = rows_of_table("partsupp", scale)
    at = flow.compute(flow.check(flow.source(rows), kept))
    rows = round(rows * kept)
    for table in ("part", "supplier", "customer", "part"):
        reference = rows_of_table(table, scale)
        at = flow.look_up(at, flow.source(reference), rows / (rows + reference) if rows else 0.0)
    flow.target(at)
    return flow.bound()


def tree(scale: float, kept: float = KEPT) -> Bound:
    """Several sources joined, and aggregated."""
    flow = Builder("tree")
    lines = [
        flow.compute(flow.check(flow.source(rows_of_table(table, scale)), kept))
        for table in ("partsupp", "part", "supplier")
    ]
    at = flow.join(flow.join(lines[0], lines[1], 0.8), lines[2], 0.95)
    flow.target(flow.view(at))
    return flow.bound()


def fork(scale: float, kept: float = KEPT) -> Bound:
    """One table on which many views are kept."""
    flow = Builder("fork")
    at = flow.compute(flow.check(flow.source(rows_of_table("partsupp", scale)), kept))
    table = flow.target(at)
    for _ in range(4):
        flow.target(flow.view(flow.compute(table)))
    return flow.bound()


def butterfly(scale: float, kept: float = KEPT) -> Bound:
    """Figure 1: two cleansed tables, joined, and four views by successive aggregations."""
    flow = Builder("butterfly")
    left = flow.compute(flow.check(flow.source(rows_of_table("partsupp", scale)), kept))
    right = flow.compute(flow.check(flow.source(rows_of_table("supplier", scale)), kept))
    joined = flow.target(flow.join(flow.target(left), flow.target(right), kept / (1 + 10_000 / 800_000)))
    for first, second in ((0.9, 0.3), (0.0125, 1.0)):
        view = flow.target(flow.view(joined, first))
        flow.target(flow.view(view, second))
    return flow.bound()


Archetype = Callable[..., Bound]
ARCHETYPES: dict[str, Archetype] = {
    "line": line,
    "wishbone": wishbone,
    "primary flow": primary_flow,
    "tree": tree,
    "fork": fork,
    "butterfly": butterfly,
}


@cache
def archetype(name: str, scale: float, kept: float = KEPT) -> Bound:
    """An archetype at a scale; `kept` is the share of rows that its checks let pass."""
    return ARCHETYPES[name](scale, kept)


def with_other_costs(bound: Bound, chance: Random, factor: float = 5.0) -> Bound:
    """The same workflow, where each node costs up to so many times more or less than by default."""
    rows = rows_of(bound)
    nodes = {}
    for id_, node in bound.workflow.nodes.items():
        cost = cost_us(bound, id_, rows) * factor ** chance.uniform(-1, 1)
        nodes[id_] = node.model_copy(update={"hints": (node.hints or Hints()).model_copy(update={"cost_us": cost})})
    return bind(bound.workflow.model_copy(update={"nodes": nodes}), catalogue())


# ---------------------------------------------------------------- workflows for the mixed policy (section 7.4)


def extract(rows: int, chance: Random, lines: int = 5) -> Bound:
    """Five lines, three long and two short, into a tree of joins, and a short line behind it."""
    flow = Builder("extract")
    ends = []
    for number in range(lines):
        steps = chance.randint(8, 12) if number < 3 and lines == 5 else chance.randint(3, 6)
        ends.append(flow.line(flow.source(_about(rows, chance)), steps, chance))
    at = ends[0]
    for other in ends[1:]:
        at = flow.join(at, other, 0.5)
    flow.target(flow.line(at, 4 if lines == 5 else 2, chance))
    return flow.bound()


def transform(rows: int, chance: Random) -> Bound:
    """A butterfly with a union and two aggregations as its body, and four lines of costly steps."""
    flow = Builder("transform")
    left = [
        flow.line(flow.source(_about(rows, chance)), chance.randint(3, 7), chance, chance.uniform(4, 10))
        for _ in range(2)
    ]
    body = flow.add("union", *left)
    for _ in range(2):
        flow.target(flow.line(flow.view(body, 0.5), chance.randint(3, 7), chance, chance.uniform(4, 10)))
    return flow.bound()


def load(rows: int, chance: Random) -> Bound:
    """Three forks that load two, three and six targets, with lines before and behind them."""
    flow = Builder("load")
    for targets in (2, 3, 6):
        at = flow.line(flow.source(_about(rows, chance)), chance.randint(1, 3), chance)
        for way in flow.route(at, targets):
            flow.target(flow.line(way, 1, chance))
    return flow.bound()


def _about(rows: int, chance: Random) -> int:
    return round(rows * chance.uniform(0.6, 1.4))


KINDS: dict[str, Callable[[int, Random], Bound]] = {"extract": extract, "transform": transform, "load": load}


def mixed_workflows(count: int = 20, rows: int = 80_000, seed: int = 1) -> list[tuple[str, Bound]]:
    """Workflows of 20 to 45 nodes of the paper's three kinds, in turn."""
    made: list[tuple[str, Bound]] = []
    chance = Random(seed)
    while len(made) < count:
        kind = list(KINDS)[len(made) % len(KINDS)]
        bound = KINDS[kind](rows, chance)
        if 20 <= len(bound.order) <= 45:
            made.append((kind, bound))
    return made


def generated_workflows(count: int = 20, scale: float = 0.1) -> list[tuple[str, Bound, Rows]]:
    """Workflows of `papilio generate` with the rows that TPC-H's tables have at a scale."""
    made = []
    for workflow in experiment_workflows(count):
        bound = bind(workflow, catalogue())
        bound.raise_errors()
        sources = {
            node: rows_of_table(Path(operator.path).name.partition(".")[0], scale)
            for node, operator in bound.operators.items()
            if isinstance(operator, ParquetSource)
        }
        made.append((bound.name.partition("_")[0], bound, rows_of(bound, sources)))
    return made
