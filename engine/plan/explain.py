"""A plan in words: what each of its lines does, over how many rows, and why it costs what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.model.physical import Step, Steps, order_text
from engine.plan.costs import NOT_IN_PAPER, CostModel, cost_of, units
from engine.plan.planner import Ranking
from engine.plan.space import Line, Plan

_WORDS = {
    Step.SCAN: "look at {rows} rows",
    Step.SORT: "sort {rows} rows (n·log₂ n)",
    Step.REORDER: "sort {rows} rows inside their parts (n·log₂ n)",
    Step.MERGE: "go through {rows} rows in step",
    Step.HASH: "put or look up {rows} rows in a table",
    Step.EMIT: "give {rows} rows",
    Step.GROUP: "add {rows} rows to their groups",
    Step.FORM: "give {rows} groups",
    Step.GATHER: "bring {rows} groups together",
    Step.CLOSE: "close {rows} groups",
    Step.PAIR: "compare {rows} pairs",
    Step.GIVE: "give {rows} rows",
    Step.STORE: "store and read {rows} rows",
}


@dataclass(frozen=True)
class Explained:
    """One line of a plan, ready to be shown."""

    what: str
    title: str
    rows: str
    why: str
    cost: float
    is_sorter: bool


def explain(ranking: Ranking, plan: Plan) -> list[Explained]:
    """The lines of a plan in the order of the workflow."""
    return [_line(line, ranking, plan) for line in plan.lines]


def _line(line: Line, ranking: Ranking, plan: Plan) -> Explained:
    if line.is_sorter:
        what = f"{line.name}({order_text(line.leaves)})"
    else:
        what = line.node if line.node in plan.by_itself else f"{line.node}@{line.name}"
    taking = " and ".join(f"{rows:,}" for rows in line.rows_in)
    rows = f"{taking} → {line.rows_out:,}" if not line.is_sorter else taking
    activity = ranking.space.graph.activity(line.node)
    known = activity.cost_us if activity is not None and not line.is_sorter else None
    why = steps_text(line.steps, ranking.space.model, known)
    if line.width > 1:
        why = f"({why}) × {line.width:.2f} for wide rows"
    orders = [f"({order_text(order)})" for order in line.takes if order]
    if orders and not line.is_sorter:
        why += f"; rows come in order of {' and '.join(orders)}"
    return Explained(what, line.title, rows, why, units(line.cost), line.is_sorter)


def steps_text(steps: Steps, model: CostModel, cost_us: float | None = None) -> str:
    """The steps with what each costs."""
    return " + ".join(
        f"{_WORDS[step].format(rows=f'{rows:,}')} = {units(cost_of(model, ((step, rows),), cost_us)):,.0f}"
        for step, rows in steps
        if cost_of(model, ((step, rows),), cost_us) or step not in NOT_IN_PAPER
    )


def as_dict(ranking: Ranking, plan: Plan, with_lines: bool = False) -> dict[str, Any]:
    """A plan as the command line's JSON has it."""
    answer: dict[str, Any] = {
        "signature": ranking.signature(plan),
        "cost": round(units(plan.cost)),
        "sorters": len(plan.sorters),
        "sorter_cost": round(units(plan.sorter_cost)),
        "exact_cost": units(plan.cost),
        "implementations": plan.implementations,
        "sorter_places": [
            {
                "position": position.name,
                "node": position.node,
                "to": None if position.edge is None else position.edge.target,
                "order": [{"column": key.column, "descending": key.descending} for key in order],
            }
            for position, order in plan.sorters.items()
        ],
    }
    if with_lines:
        answer["lines"] = [
            {"what": one.what, "title": one.title, "rows": one.rows, "why": one.why, "cost": one.cost}
            for one in explain(ranking, plan)
        ]
    return answer
