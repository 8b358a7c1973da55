"""`papilio plan`: the cheapest physical implementations of a workflow, as signatures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json
from engine.errors import BadInput

if TYPE_CHECKING:
    from engine.plan.constraints import Limit
    from engine.plan.costs import CostModel
    from engine.plan.planner import Ranking
    from engine.plan.rows import Rows
    from engine.plan.space import Plan


@click.command(name="plan")
@takes_workflow
@click.option("--top", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many plans to list.")
@click.option(
    "--cost",
    "costs",
    type=click.Choice(["paper", "measured"]),
    default="paper",
    show_default=True,
    help="What a step costs: rows as the paper counts them, or measured microseconds.",
)
@click.option(
    "--search",
    type=click.Choice(["fast", "exhaustive"]),
    default="fast",
    show_default=True,
    help="Both find the same plans; exhaustive looks at every one.",
)
@click.option("--pin", "pins", multiple=True, metavar="NODE=IMPL", help="Only plans with this implementation.")
@click.option("--forbid", "bans", multiple=True, metavar="NODE=IMPL", help="Only plans without it.")
@click.option("--memory-rows", type=click.IntRange(0), help="Rows that one implementation may keep in memory.")
@click.option("--limit", "limits", multiple=True, metavar="NODE,NODE=COST", help="What a part may cost at most.")
@click.option("--resumption", type=float, metavar="COST", help="What may have to be done again after a failure.")
@click.option("--signature", metavar="TEXT", help="Only this plan, written as a signature.")
@click.option("--explain", is_flag=True, help="Say what each line of the first plan costs, and why.")
@json_option
def command(
    given: Given,
    top: int,
    costs: str,
    search: str,
    pins: tuple[str, ...],
    bans: tuple[str, ...],
    memory_rows: int | None,
    limits: tuple[str, ...],
    resumption: float | None,
    signature: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """List the cheapest physical implementations of a workflow, with their sorters."""
    from engine.plan.constraints import constraints
    from engine.plan.costs import cost_model
    from engine.plan.graph import graph_of
    from engine.plan.planner import Search, rank
    from engine.store.statistics import known_rows

    bound = given.open()
    bound.raise_errors()
    rows = known_rows(bound, given.store)
    graph = graph_of(bound, rows)
    model = cost_model(costs)
    try:
        asked = constraints(
            [_choice(text, "--pin") for text in pins],
            [_choice(text, "--forbid") for text in bans],
            memory_rows=memory_rows,
            limits=[_limit(text) for text in limits],
            resumption=resumption,
            planning=bound.workflow.plan,
        )
        begun = time.perf_counter()
        if signature is None:
            ranking = rank(graph, model, asked, top, Search(search))
        else:
            from engine.plan.planner import only

            ranking = only(signature, graph, model, asked)
        seconds = time.perf_counter() - begun
    except BadInput as error:
        raise BadInput(f"{given.file}: {error}") from None
    if as_json:
        _print_json(ranking, seconds, rows, model, explain)
    else:
        _print(ranking, seconds, rows, model, explain)


def _choice(text: str, option: str) -> tuple[str, str]:
    node, equals, name = text.partition("=")
    if not equals or not node or not name:
        raise BadInput(f"{option} {text}: write it as node=implementation")
    return node, name


def _limit(text: str) -> Limit:
    from engine.plan.constraints import Limit

    nodes, _, cost = text.rpartition("=")
    try:
        limit = Limit(frozenset(nodes.split(",")), float(cost), text)
    except ValueError:
        limit = None
    if limit is None or not nodes or not limit.cost >= 0:
        raise BadInput(f"--limit {text}: write it as node,node=cost")
    return limit


def _print_json(ranking: Ranking, seconds: float, rows: Rows, model: CostModel, explain: bool) -> None:
    from engine.plan.explain import as_dict

    print_json(
        {
            "signatures": ranking.signatures,
            "seconds": round(seconds, 6),
            "search": ranking.search.value,
            "cost": model.name,
            "unit": model.unit,
            "best": ranking.signature(ranking.best),
            "top": [as_dict(ranking, plan, explain) for plan in ranking.plans],
            "rows": {node: {"rows": rows.out(node), "from": rows.origins[node].value} for node in rows.totals},
            "remarks": list(ranking.remarks),
        }
    )


def _print(ranking: Ranking, seconds: float, rows: Rows, model: CostModel, explain: bool) -> None:
    from engine.plan.costs import units

    width = max(len(f"{units(plan.cost):,.0f}") for plan in ranking.plans)
    width = max(width, len("cost"))
    click.secho(f"    {'cost':>{width}}  sorters  {'their cost':>{width}}        signature", bold=True)
    for number, plan in enumerate(ranking.plans, start=1):
        share = 100 * plan.sorter_cost / plan.cost if plan.cost else 0.0
        click.echo(
            f"{number:>3} {units(plan.cost):>{width},.0f}  {len(plan.sorters):>7}  "
            f"{units(plan.sorter_cost):>{max(width, 10)},.0f} {share:>3.0f} %  {ranking.signature(plan)}"
        )
    if explain:
        _explain(ranking, ranking.plans[0])
    click.secho(
        f"{ranking.signatures:,} signatures, {ranking.search.value} search in {seconds:.3f} s; costs in {model.unit} "
        f"({model.name})",
        dim=True,
        err=True,
    )
    for remark in ranking.remarks:
        click.secho(remark, fg="yellow", err=True)
    assumed = rows.assumed()
    if assumed:
        names = ", ".join(f"{node} ({rows.out(node):,})" for node in assumed[:8])
        more = f" and {len(assumed) - 8} more" if len(assumed) > 8 else ""
        click.secho(f"Assumed, for nothing is known of their rows: {names}{more}. Hints would help.", err=True)


def _explain(ranking: Ranking, plan: Plan) -> None:
    from engine.plan.explain import explain

    lines = explain(ranking, plan)
    widths = [max(len(getattr(line, name)) for line in lines) for name in ("what", "title", "rows")]
    click.secho(f"\n{ranking.signature(plan)}", bold=True)
    for line in lines:
        click.secho(
            f"  {line.what:<{widths[0]}}  {line.title:<{widths[1]}}  {line.rows:<{widths[2]}}  "
            f"{line.cost:>13,.0f}  {line.why}",
            fg="cyan" if line.is_sorter else None,
        )
