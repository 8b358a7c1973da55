"""The plan a run is carried out by: the best one that what is known of the workflow's rows can vouch for."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from engine.errors import BadInput, PapilioError
from engine.model.binding import Bound
from engine.plan.apply import Applied, applied
from engine.plan.constraints import constraints, implementations
from engine.plan.costs import cost_model, units
from engine.plan.explain import as_dict
from engine.plan.graph import Graph, graph_of
from engine.plan.planner import Ranking, only, rank
from engine.plan.rows import Origin, Rows
from engine.store.statistics import known_rows

BEST, NONE = "best", "none"


@dataclass(frozen=True)
class RunPlan:
    """A chosen plan, and what it asks of the run."""

    signature: str
    cost: float
    unit: str
    applied: Applied
    remarks: tuple[str, ...]
    ranking: Ranking


def plan_for_run(bound: Bound, choice: str = BEST, url: str | None = None, costs: str = "measured") -> RunPlan | None:
    """The plan that was asked for: the `best`, `none`, or the one of a signature.

    The best plan asks for an implementation only where the rows that come in are known: where they are assumed, Spark,
    which sees them, chooses better. A signature is taken at its word.
    """
    if choice == NONE:
        return None
    rows = known_rows(bound, url)
    graph = graph_of(bound, rows)
    model = cost_model(costs)
    bans = _no_nested_loops(graph, bound) if choice == BEST else []
    asked = constraints(bans=bans, planning=bound.workflow.plan)
    try:
        ranking = rank(graph, model, asked, 1) if choice == BEST else only(choice, graph, model, asked)
    except BadInput as error:
        raise BadInput(f"{bound.file or bound.name}: {error}") from None
    plan = ranking.best
    work = applied(graph, plan)
    if choice == BEST:
        known = vouched(bound, rows)
        work = replace(work, settings={key: value for key, value in work.settings.items() if key[0] in known})
    return RunPlan(ranking.signature(plan), units(plan.cost), model.unit, work, ranking.remarks, ranking)


def _no_nested_loops(graph: Graph, bound: Bound) -> list[tuple[str, str]]:
    """Joins that can be done otherwise: nested loops over more rows than were counted on would take for ever."""
    pinned = bound.workflow.plan.pin if bound.workflow.plan is not None else {}
    joins = ((node, implementations(graph.activity(node))) for node in graph.nodes if node not in pinned)
    return [(node, "NL") for node, ways in joins if "NL" in ways and len(ways) > 1]


def vouched(bound: Bound, rows: Rows) -> set[str]:
    """The nodes of which all rows that come in are known: by hint, run, or footer, and what follows exactly."""
    certain: set[str] = set()
    known: set[str] = set()
    for node in bound.order:
        producers = {producer for producer, _ in bound.producers(node)}
        if producers <= certain:
            known.add(node)
        hints = bound.workflow.nodes[node].hints
        counted = hints is not None and hints.rows is not None
        if counted or (producers <= certain and rows.origins[node] is not Origin.ASSUMED):
            certain.add(node)
    return known


def remember_plan(bound: Bound, plan: RunPlan, url: str | None = None) -> None:
    """Keep a plan with the workflow it is of. A store that fails costs the memory only."""
    from engine.store import MetadataStore, PlanRecord
    from engine.store.records import now

    with contextlib.suppress(PapilioError), MetadataStore(url) as store:
        store.put_plan(
            PlanRecord(
                workflow=bound.name,
                content_hash=bound.workflow.content_hash(),
                signature=plan.signature,
                cost=plan.cost,
                made=now(),
                document=as_dict(plan.ranking, plan.ranking.best, with_lines=True),
            )
        )
