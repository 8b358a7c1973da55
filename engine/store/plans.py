"""The plan a run is carried out by: the best one that what is known of the workflow's rows can vouch for."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import BadInput, PapilioError
from engine.model.binding import Bound
from engine.model.physical import (
    NO_ORDER,
    BroadcastJoin,
    HashBased,
    HashJoin,
    SortBased,
    Sorting,
    SortMergeJoin,
    Work,
)
from engine.plan.apply import FEW_GROUPS, Applied, applied
from engine.plan.choice import BEST, NONE
from engine.plan.constraints import Constraints, constraints, implementations
from engine.plan.costs import CostModel, MeasuredCosts, cost_model, cost_of, units
from engine.plan.explain import as_dict
from engine.plan.graph import Activity, Graph, Offered, Recordset, graph_of
from engine.plan.planner import Ranking, TooLarge, only, rank
from engine.plan.rows import Origin, Rows
from engine.plan.space import Plan
from engine.store.prices import kept_prices
from engine.store.statistics import known_rows

# What the best plan of a run may do. A signature, a pin or a ban in the file is taken at its word.
PROMISED = 0.8  # what Spark would not do by itself must promise at least so small a share of the costs
HASHED_ROWS = 2_000_000  # in a hash join's table
MOST_NODES = 2_000  # a larger workflow is left to Spark


@dataclass(frozen=True)
class RunPlan:
    """A chosen plan, and what it asks of the run."""

    signature: str
    cost: float
    model: CostModel
    choice: str
    applied: Applied
    left: tuple[str, ...]  # activities with a choice that is left to Spark
    remarks: tuple[str, ...]
    ranking: Ranking

    @property
    def unit(self) -> str:
        """What the cost is counted in."""
        return self.model.unit

    def told(self) -> dict[str, Any]:
        """The plan as a run's summary and its log tell it."""
        chosen = as_dict(self.ranking, self.ranking.best)
        return {
            "signature": self.signature,
            "cost": self.cost,
            "unit": self.unit,
            "model": self.model.name,
            "choice": self.choice,
            "implementations": {
                node: way for node, way in chosen["implementations"].items() if node in self._asked_for()
            },
            "sorters": chosen["sorter_places"],
            "left": list(self.left),
            "remarks": list(self.remarks),
        }

    def _asked_for(self) -> set[str]:
        plan, graph = self.ranking.best, self.ranking.space.graph
        named = {node for node in plan.implementations if has_choice(graph, node)}
        return named - set(self.left)


def plan_for_run(bound: Bound, choice: str = BEST, url: str | None = None, sorters: bool = True) -> RunPlan | None:
    """The plan that was asked for: the `best`, `none`, or the one of a signature.

    The best plan asks for an implementation only where the rows that come in are known: where they are assumed, Spark,
    which sees them, chooses better. A signature is taken at its word. `sorters`: whether the run can carry them out.
    """
    if choice == NONE:
        return None
    model = cost_model(MeasuredCosts.name, kept_prices())
    rows = known_rows(bound, url)
    try:
        if choice == BEST:
            return _best(bound, rows, model, sorters)
        return _given(bound, rows, model, choice, sorters)
    except TooLarge:
        raise
    except BadInput as error:
        raise BadInput(f"{bound.file or bound.name}: {error}") from None


def _given(bound: Bound, rows: Rows, model: CostModel, text: str, sorters: bool) -> RunPlan:
    """The plan of a signature: rows that are stored keep their order, as the paper has it."""
    graph = graph_of(bound, rows)
    ranking = only(text, graph, model, constraints(planning=bound.workflow.plan))
    plan = ranking.best
    if plan.sorters and not sorters:
        raise BadInput(
            "the signature has sorters, which take the granularity fused on classic Spark: rows that travel in packs "
            "cannot have them, nor can those behind Spark Connect"
        )
    work = applied(graph, plan, certain=_certain(bound, rows)[0])
    return _made(ranking, plan, model, "signature", work if sorters else _without_layouts(work))


def _best(bound: Bound, rows: Rows, model: CostModel, sorters: bool) -> RunPlan:
    if len(bound.operators) > MOST_NODES:
        raise TooLarge(f"with more than {MOST_NODES:,} nodes the physical plan is left to Spark")
    certain, known = _certain(bound, rows)
    refused: set[str] = set()

    def sortable(node: str) -> bool:
        return sorters and node in certain and node not in refused

    planning = bound.workflow.plan
    chosen = {*planning.pin, *planning.forbid} if planning is not None else set()
    limited = planning is not None and (planning.memory_rows is not None or planning.limits or planning.resumption)
    mixed: set[str] = set()
    while True:
        graph = _leaving_no_order(graph_of(bound, rows, sortable, on_spark=True), mixed)
        if not limited:
            graph = _hashing(graph, chosen)
        asked = constraints(bans=_not_unasked(graph, bound, model), planning=bound.workflow.plan)
        ranking = rank(graph, model, asked, 1)
        few = _few_groups(graph, ranking.best)
        idle = _sorted_for_few(graph, ranking.best) - mixed
        if not few and not idle:
            break
        refused |= few
        mixed |= idle
    if ranking.best.sorters:
        ranking = _worth_it(ranking, graph, model, asked)
    work = applied(graph, ranking.best, known | chosen, certain)
    if not sorters:
        work = _without_layouts(work)
    left = [node for node in graph.nodes if node not in known | chosen and has_choice(graph, node)]
    return _made(ranking, ranking.best, model, BEST, work, tuple(left))


def _without_layouts(work: Applied) -> Applied:
    """What a plan asks of a run that cannot divide and sort rows: its implementations alone, as far as Spark's own."""
    return Applied(work.settings)


def _made(
    ranking: Ranking, plan: Plan, model: CostModel, choice: str, work: Applied, left: tuple[str, ...] = ()
) -> RunPlan:
    divided = [
        f"`{node}`: its rows are divided by {', '.join(columns)} alone, for the sake of a coarser view behind it"
        for (_, node, _), columns in work.divided.items()
    ]
    remarks = (*ranking.remarks, *divided)
    return RunPlan(ranking.signature(plan), units(plan.cost), model, choice, work, left, remarks, ranking)


def has_choice(graph: Graph, node: str) -> bool:
    """Whether an activity has more than one implementation."""
    return len(implementations(graph.activity(node))) > 1


def _hashing(graph: Graph, chosen: set[str]) -> Graph:
    """Groups are not sorted for their own sake where Spark can hash them, unless a person has chosen for the node.

    By the measured prices the first view of Fig. 1, with nearly as many groups as rows, would be sorted; it is not what
    Spark is quicker with (`papilio bench butterfly`).
    """
    nodes: dict[str, Recordset | Activity] = {}
    for id_, node in graph.nodes.items():
        if isinstance(node, Activity) and id_ not in chosen:
            ways = node.physical.implementations
            if any(isinstance(way, HashBased) for way in ways):
                ways = tuple(replace(way, sorts=False) if isinstance(way, SortBased) else way for way in ways)
                node = replace(node, physical=replace(node.physical, implementations=ways))
        nodes[id_] = node
    return Graph(nodes, graph.edges)


def _worth_it(ranking: Ranking, graph: Graph, model: CostModel, asked: Constraints) -> Ranking:
    """Sorters only where they promise much: what they cost is certain, what they save is reckoned."""
    try:
        without = rank(graph, model, asked, 1, offered=Offered.NONE)
    except BadInput:
        return ranking  # what was pinned needs them
    return ranking if differing(ranking) <= PROMISED * differing(without) else without


def differing(ranking: Ranking) -> int:
    """What the best plan costs in that in which plans differ: sorters, and activities that can be done otherwise."""
    graph = ranking.space.graph
    return sum(line.cost for line in ranking.best.lines if line.is_sorter or has_choice(graph, line.node))


def _few_groups(graph: Graph, plan: Plan) -> set[str]:
    """Nodes with sorters whose rows would be divided by too few values: their coarsest view has few groups."""
    found = set()
    for position in plan.sorters:
        for edge in graph.outgoing[position.node] if position.edge is None else (position.edge,):
            activity = graph.activity(edge.target)
            if activity is None:
                continue
            way = next(
                one for one in activity.physical.implementations if one.name == plan.implementations[activity.id]
            )
            if isinstance(way, SortBased) and activity.rows_out < FEW_GROUPS:
                found.add(position.node)
    return found


def _leaving_no_order(graph: Graph, nodes: set[str]) -> Graph:
    """The same graph, in which nothing behind some activities relies on the order that they leave."""
    if not nodes:
        return graph
    changed = {
        id_: replace(node, held=True) if isinstance(node, Activity) and id_ in nodes else node
        for id_, node in graph.nodes.items()
    }
    return Graph(changed, graph.edges)


def _sorted_for_few(graph: Graph, plan: Plan) -> set[str]:
    """Activities that sort, and whose rows would be divided by fewer columns for the sake of few groups behind them."""
    found = set()
    for (_, node, _), layout in applied(graph, plan).passed.items():
        activity = graph.activity(node)
        assert activity is not None
        (way,) = (one for one in activity.physical.implementations if one.name == plan.implementations[node])
        fewer = isinstance(way, SortBased | Sorting) and 0 < layout.by < len(way.columns)
        if fewer and any(one.rows_out < FEW_GROUPS for one in _groups_behind(graph, node)):
            found.add(node)
    return found


def _groups_behind(graph: Graph, start: str) -> Iterator[Activity]:
    """The aggregates that an activity's rows reach before they are stored."""
    waiting, seen = [start], {start}
    while waiting:
        for edge in graph.outgoing[waiting.pop()]:
            activity = graph.activity(edge.target)
            if activity is None or edge.target in seen:
                continue
            seen.add(edge.target)
            waiting.append(edge.target)
            if any(isinstance(way, HashBased) for way in activity.physical.implementations):
                yield activity


def _not_unasked(graph: Graph, bound: Bound, model: CostModel) -> list[tuple[str, str]]:
    """What is never chosen unless a person pins it, each only where the activity can be carried out otherwise.

    Nested loops and large hash tables, which with more rows than were counted on do not end well; and sorting or
    dividing both sides of a join whose second is small enough for Spark to broadcast it, unless that promises much.
    """
    pinned = bound.workflow.plan.pin if bound.workflow.plan is not None else {}
    bans = []
    for node in graph.nodes:
        activity = graph.activity(node)
        if activity is None or node in pinned:
            continue
        ways = {way.name: way for way in activity.physical.implementations}
        if "NL" in ways and len(ways) > 1:
            bans.append((node, "NL"))
        hashed = ways.get("HJ")
        if isinstance(hashed, HashJoin) and "SMJ" in ways:
            inputs = [edge.rows for edge in graph.incoming[node]]
            if (min(inputs) if hashed.passing is None else inputs[-1]) > HASHED_ROWS:
                bans.append((node, "HJ"))
        bans += [(node, name) for name in _little_better(activity, graph, model)]
    return bans


def _little_better(activity: Activity, graph: Graph, model: CostModel) -> list[str]:
    """The joins that promise little beside a broadcast that is possible."""
    rows = tuple(edge.rows for edge in graph.incoming[activity.id])
    work = Work(rows, activity.rows_out, (NO_ORDER,) * len(rows))
    fits = {way.name: way.fit(work) for way in activity.physical.implementations if isinstance(way, _JOINS)}
    costs = {name: cost_of(model, fit.steps) for name, fit in fits.items() if fit is not None}
    return [name for name, cost in costs.items() if name != "BJ" and cost > PROMISED * costs.get("BJ", math.inf)]


_JOINS = (BroadcastJoin, HashJoin, SortMergeJoin)


def vouched(bound: Bound, rows: Rows) -> set[str]:
    """The nodes of which all rows that come in are known: by hint, run, or footer, and what follows exactly."""
    return _certain(bound, rows)[1]


def _certain(bound: Bound, rows: Rows) -> tuple[set[str], set[str]]:
    """The nodes whose rows that leave are known, and those whose rows that come in are."""
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
    return certain, known


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
                document={**as_dict(plan.ranking, plan.ranking.best, with_lines=True), "model": plan.model.name},
            )
        )
