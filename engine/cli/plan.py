"""`papilio plan`: the cheapest physical implementations of a workflow, as signatures."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json
from engine.errors import BadInput

if TYPE_CHECKING:
    from engine.model.binding import Bound
    from engine.plan.constraints import Limit
    from engine.plan.costs import CostModel
    from engine.plan.graph import Graph
    from engine.plan.planner import Ranking
    from engine.plan.rows import Rows
    from engine.plan.space import Plan
    from engine.plan.views import Rewrite


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
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Microseconds for a row of each step, as `papilio bench plan-steps` writes them.",
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
@click.option(
    "--rewrite", "nodes", multiple=True, metavar="NODE|all", help="Take an offer: answer it from a finer view."
)
@click.option("--write", type=click.Path(path_type=Path), metavar="FILE", help="Save the workflow with these rewrites.")
@click.option("--explain", is_flag=True, help="Say what each line of the first plan costs, and why.")
@json_option
def command(
    given: Given,
    top: int,
    costs: str,
    prices: Path | None,
    search: str,
    pins: tuple[str, ...],
    bans: tuple[str, ...],
    memory_rows: int | None,
    limits: tuple[str, ...],
    resumption: float | None,
    signature: str | None,
    nodes: tuple[str, ...],
    write: Path | None,
    explain: bool,
    as_json: bool,
) -> None:
    """List the cheapest physical implementations of a workflow, with their sorters."""
    from engine.plan.constraints import constraints
    from engine.plan.costs import MeasuredCosts, cost_model, units
    from engine.plan.graph import graph_of
    from engine.plan.planner import Search, only, rank
    from engine.store.statistics import known_rows

    bound = given.open()
    bound.raise_errors()
    rows = known_rows(bound, given.store)
    model = cost_model(costs, _prices(prices, costs))
    measured = model.name == MeasuredCosts.name
    try:
        asked = constraints(
            [_choice(text, "--pin") for text in pins],
            [_choice(text, "--forbid") for text in bans],
            memory_rows=memory_rows,
            limits=[_limit(text) for text in limits],
            resumption=resumption,
            planning=bound.workflow.plan,
        )

        def graph_with(bound: Bound, rows: Rows) -> Graph:
            return graph_of(bound, rows, on_spark=measured)

        def best_cost(bound: Bound, rows: Rows) -> float:
            return units(rank(graph_with(bound, rows), model, asked, 1).best.cost)

        views = _Views(given, bound, rows, best_cost)
        bound, rows = views.take(nodes, write)
        graph = graph_with(bound, rows)
        begun = time.perf_counter()
        if signature is None:
            ranking = rank(graph, model, asked, top, Search(search))
        else:
            ranking = only(signature, graph_of(bound, rows), model, asked)
        seconds = time.perf_counter() - begun
    except BadInput as error:
        raise BadInput(f"{given.file}: {error}") from None
    taken = _taken(bound, given.store) if measured and not nodes else None
    if as_json:
        _print_json(ranking, seconds, rows, model, explain, views.left(), taken)
    else:
        _print(ranking, seconds, rows, model, explain, views.left())
        if taken is not None:
            click.secho(f"papilio run takes {taken}", err=True)


def _taken(bound: Bound, store: str | None) -> str | None:
    """The plan that a run would take, which is more careful than the list."""
    from engine.plan.planner import TooLarge
    from engine.store.plans import plan_for_run

    try:
        plan = plan_for_run(bound, url=store)
    except TooLarge:
        return None
    return plan.signature if plan is not None else None


class _Views:
    """The aggregates that finer ones can answer: what is offered, and the workflow with what was taken."""

    def __init__(self, given: Given, bound: Bound, rows: Rows, cost: Callable[[Bound, Rows], float]) -> None:
        from engine.plan.views import offers

        self.given, self.bound, self.rows, self.cost = given, bound, rows, cost
        self.offers = offers(bound, rows)
        self.taken: list[Rewrite] = []

    def take(self, nodes: tuple[str, ...], write: Path | None) -> tuple[Bound, Rows]:
        """The workflow with some offers taken, and its rows."""
        from engine.model.file import save
        from engine.plan.views import chosen, rewritten

        if write is not None and not nodes:
            raise BadInput(f"--write {write}: there is nothing to save without --rewrite")
        self.taken = chosen(self.offers, nodes, self.bound.workflow)
        if not self.taken:
            return self.bound, self.rows
        if write is not None:
            save(rewritten(self.bound.workflow, self.taken, self.rows), write)
        return self._with(self.taken)

    def left(self) -> list[tuple[Rewrite, float]]:
        """The offers that were neither taken nor refused, each with what the best plan costs if it is taken."""
        from engine.plan.views import offered

        return [
            (offer, self.cost(*self._with([*self.taken, offer])))
            for offer in offered(self.offers, self.bound.workflow)
            if offer not in self.taken
        ]

    def _with(self, rewrites: list[Rewrite]) -> tuple[Bound, Rows]:
        from engine.plan.rows import rows_of
        from engine.plan.views import recorded_after, rewritten
        from engine.store.statistics import source_rows

        bound = self.given.rebound(self.bound, rewritten(self.bound.workflow, rewrites, self.rows))
        return bound, rows_of(bound, source_rows(bound), recorded_after(self.rows, rewrites))


def _prices(file: Path | None, costs: str) -> dict[str, Any] | None:
    from engine.store.prices import kept_prices, read_prices

    if file is None:
        return kept_prices() if costs == "measured" else None
    if costs != "measured":
        raise BadInput(f"--prices {file}: prices are for --cost measured")
    return read_prices(file)


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


def _print_json(
    ranking: Ranking,
    seconds: float,
    rows: Rows,
    model: CostModel,
    explain: bool,
    left: list[tuple[Rewrite, float]],
    taken: str | None,
) -> None:
    from engine.plan.explain import as_dict

    print_json(
        {
            "signatures": ranking.signatures,
            "seconds": round(seconds, 6),
            "search": ranking.search.value,
            "cost": model.name,
            "unit": model.unit,
            "best": ranking.signature(ranking.best),
            **({"run": taken} if taken is not None else {}),
            "top": [as_dict(ranking, plan, explain) for plan in ranking.plans],
            "rows": {node: {"rows": rows.out(node), "from": rows.origins[node].value} for node in rows.totals},
            "remarks": list(ranking.remarks),
            "rewrites": [
                {
                    "node": offer.node,
                    "finer": offer.finer,
                    "reads": ".".join(offer.source),
                    "expressions": dict(offer.expressions),
                    "rows_now": offer.rows_now,
                    "rows_then": offer.rows_then,
                    "exact": offer.exact,
                    "best_cost": round(cost),
                }
                for offer, cost in left
            ],
        }
    )


def _print(
    ranking: Ranking, seconds: float, rows: Rows, model: CostModel, explain: bool, left: list[tuple[Rewrite, float]]
) -> None:
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
    for offer, cost in left:
        change = f"the best plan costs {cost:,.0f} then, {units(ranking.best.cost):,.0f} now"
        click.secho(f"Offer: {offer.text()}; {change} (--rewrite {offer.node})", fg="green", err=True)
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
