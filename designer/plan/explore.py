"""What the plan explorer shows: a workflow's cheapest plans, what a run would take, and offers for its views.

No Qt here: it runs in a thread beside the window's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from engine.errors import PapilioError
from engine.model.binding import Bound
from engine.plan.constraints import constraints
from engine.plan.costs import PaperCosts, cost_model
from engine.plan.graph import graph_of
from engine.plan.planner import Ranking, Search, rank
from engine.plan.rows import Rows
from engine.plan.space import Plan, Space
from engine.plan.views import Rewrite, offers
from engine.store.plans import plan_for_run
from engine.store.prices import kept_prices
from engine.store.statistics import known_rows

TOP = 10
LOOKED_AT = 2_000  # states that are all looked at; more of them would be felt


@dataclass(frozen=True)
class Explored:
    """What was found of a workflow under one cost model, or why nothing was."""

    costs: str
    ranking: Ranking | None = None
    rows: Rows | None = None
    taken: str | None = None  # the signature of the plan that a run would take
    views: tuple[Rewrite, ...] = ()
    states: int = 0
    seconds: float = 0.0  # of the search
    problem: str | None = None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The cheapest plans, as they are listed."""
        return self.ranking.plans if self.ranking is not None else ()


def snapshot(bound: Bound) -> Bound:
    """The workflow as it stands now: edits replace what stands in its sections, and never change a node itself."""
    workflow = bound.workflow
    copy = workflow.model_copy(update={"nodes": dict(workflow.nodes), "edges": list(workflow.edges), "layout": {}})
    return replace(bound, workflow=copy)


def explore(bound: Bound, costs: str) -> Explored:
    """Plan a workflow. Never raises: what is wrong is said in words."""
    rows: Rows | None = None
    views: tuple[Rewrite, ...] = ()
    try:
        rows = known_rows(bound)
        views = tuple(offers(bound, rows))
        paper = costs == PaperCosts.name
        model = cost_model(costs, None if paper else kept_prices())
        graph = graph_of(bound, rows, on_spark=not paper)
        asked = constraints(planning=bound.workflow.plan)
        asked.check(graph)
        states = Space(graph, model, asked).states()
        search = Search.EXHAUSTIVE if states <= LOOKED_AT else Search.FAST
        begun = time.perf_counter()
        ranking = rank(graph, model, asked, TOP, search)
        seconds = time.perf_counter() - begun
        chosen = plan_for_run(bound)
        taken = chosen.signature if chosen is not None else None
        return Explored(costs, ranking, rows, taken, views, states, seconds)
    except (PapilioError, OSError, ValueError, RecursionError) as error:
        text = str(error).removeprefix(f"{bound.file or bound.name}: ")
        return Explored(costs, None, rows, None, views, problem=text)
