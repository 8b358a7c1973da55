"""View hierarchies: an aggregate that a finer one, already in the workflow, can answer as well.

Both read the same rows, the coarser groups by some of the finer one's columns, and each of its figures follows from one
of the finer one's. Then it need not go through all rows again. That is offered, never done unasked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.expression_tree import Call, Expr, is_repeatable
from engine.model.expression_words import ExpressionError
from engine.model.expressions import parse
from engine.model.operator import Mode, PassOn, Role, Target, column_type, expression_type
from engine.model.problems import did_you_mean
from engine.model.types import Schema
from engine.model.workflow import Edge, Hints, Workflow
from engine.operators._sql import quoted
from engine.operators.warehouse import Aggregate
from engine.plan.rows import Recorded, Rows

# What puts the parts of a figure together.
_AGAIN = {
    "sum": "sum",
    "count": "sum",
    "min": "min",
    "max": "max",
    "bool_and": "bool_and",
    "every": "every",
    "bool_or": "bool_or",
    "some": "some",
    "any": "any",
}


@dataclass(frozen=True)
class Rewrite:
    """An aggregate that a finer one can answer: where it would read, and what it would compute there."""

    node: str
    finer: str  # the finer aggregate
    source: tuple[str, str]  # the node and port it would read: the recordset that holds the finer one's rows, or itself
    expressions: Mapping[str, str]  # its figures and what they become
    rows_now: int  # that it reads as the workflow is
    rows_then: int
    exact: bool  # false where sums of floating-point numbers may differ in their last digits

    def text(self, called: Callable[[str], str] = "`{0}`".format) -> str:
        """The offer in one sentence. `called`: what a node is called in it."""
        digits = "" if self.exact else "; sums of floating-point numbers may differ in their last digits"
        source = self.source[0]
        finer = "which" if source == self.finer else f"where {called(self.finer)}"
        return (
            f"{called(self.node)} can be answered from {called(source)}, {finer} has summed up the same rows: "
            f"{self.rows_then:,} rows instead of {self.rows_now:,}{digits}"
        )


def offers(bound: Bound, rows: Rows) -> list[Rewrite]:
    """For each aggregate the finer one with the fewest rows that can answer it."""
    aggregates = [node for node in bound.order if isinstance(bound.operators[node], Aggregate)]
    found = []
    for node in aggregates:
        possible = [
            rewrite
            for finer in aggregates
            if finer != node and (rewrite := _rewrite(bound, rows, node, finer, aggregates)) is not None
        ]
        if possible:
            found.append(min(possible, key=lambda rewrite: (rewrite.rows_then, rewrite.finer)))
    return found


def offered(found: list[Rewrite], workflow: Workflow) -> list[Rewrite]:
    """The offers that nobody has refused in the workflow's file."""
    refused = workflow.plan.as_drawn if workflow.plan is not None else ()
    return [rewrite for rewrite in found if rewrite.node not in refused]


def chosen(found: list[Rewrite], wanted: Iterable[str], workflow: Workflow) -> list[Rewrite]:
    """The offers for some nodes, or for `all` that are not refused."""
    by_node = {rewrite.node: rewrite for rewrite in found}
    names = list(dict.fromkeys(wanted))
    if "all" in names:
        return offered(found, workflow)
    for name in names:
        if name not in by_node:
            known = f"; there are offers for {', '.join(by_node)}" if by_node else "; there is no such offer"
            raise BadInput(f"no finer aggregate can answer `{name}`{did_you_mean(name, by_node) or known}")
    return [by_node[name] for name in names]


def rewritten(workflow: Workflow, rewrites: Iterable[Rewrite], rows: Rows | None = None) -> Workflow:
    """A new workflow in which aggregates read the finer ones' rows. With `rows`, hints are changed to match."""
    result = workflow.model_copy(deep=True)
    for rewrite in rewrites:
        node = result.nodes[rewrite.node]
        measures = node.settings.get("aggregates", [])
        if not isinstance(measures, list):
            raise BadInput(
                f"node `{rewrite.node}`: its aggregates are `{measures}`, and can only be rewritten as a list"
            )
        for measure, expression in zip(measures, rewrite.expressions.values(), strict=True):
            measure["expression"] = expression
        if node.hints is not None and node.hints.selectivity is not None and rows is not None:
            kept = node.hints.model_dump(exclude={"selectivity", "rows"}, exclude_none=True)
            node.hints = Hints.model_validate({**kept, "rows": rows.out(rewrite.node)})
        result.edges = [_moved(edge, rewrite) for edge in result.edges]
    return result


def recorded_after(rows: Rows, rewrites: Iterable[Rewrite]) -> dict[str, Recorded]:
    """What is known of a workflow's rows, for the workflow that rewrites make of it."""
    found = dict(rows.recorded)
    for rewrite in rewrites:
        found[rewrite.node] = Recorded(rewrite.rows_then, min(rows.out(rewrite.node), rewrite.rows_then))
    return found


def _moved(edge: Edge, rewrite: Rewrite) -> Edge:
    if edge.target != rewrite.node:
        return edge
    return edge.model_copy(update={"from_": ".".join(rewrite.source)})


# ---------------------------------------------------------------- whether a finer aggregate can answer


def _rewrite(bound: Bound, rows: Rows, node: str, finer: str, aggregates: list[str]) -> Rewrite | None:
    coarse, fine = bound.operators[node], bound.operators[finer]
    assert isinstance(coarse, Aggregate)
    assert isinstance(fine, Aggregate)
    if fine.having is not None or bound.producers(node) != bound.producers(finer):
        return None
    own, other = ({name.lower() for name in one.group} for one in (coarse, fine))
    if not own <= other or (own == other and aggregates.index(node) < aggregates.index(finer)):
        return None
    schema = bound.schemas.get((finer, "out"))
    expressions: dict[str, str] = {}
    exact = True
    for measure in coarse.aggregates:
        again = _again(measure.expression, fine, whole=not coarse.group)
        if again is None:
            return None
        before = column_type(bound.schemas.get((node, "out")), measure.name)
        expressions[measure.name] = _typed(again, before, schema)
        exact = exact and not (before in ("float", "double") and again.startswith("sum("))
    source = _held(bound, finer)
    ((producer, port),) = bound.producers(node)
    return Rewrite(
        node, finer, source, expressions, rows.of_port(producer, port), rows.of_port(finer, "out"), exact
    )  # fmt: skip


def _again(text: str, fine: Aggregate, whole: bool) -> str | None:
    """A figure from the finer aggregate's figures; None where it does not follow from one of them.

    `whole`: there is one group, which exists even where there are no rows, so that a count must not become empty.
    """
    call = _call(text)
    if call is None or call.distinct or call.name not in _AGAIN or not is_repeatable(call):
        return None
    for measure in fine.aggregates:
        other = _call(measure.expression)
        if other is not None and _plain(other) == _plain(call):
            put_together = f"{_AGAIN[call.name]}({quoted(measure.name)})"
            return f"coalesce({put_together}, 0)" if whole and call.name == "count" else put_together
    return None


def _call(text: str) -> Call | None:
    """The one call that a figure is; None where it is more than that."""
    try:
        tree = parse(text)
    except ExpressionError:
        return None
    return tree if isinstance(tree, Call) and tree.window is None else None


def _plain(value: Any) -> Any:
    """An expression without the places of its parts and the case of its names, to be compared."""
    if isinstance(value, Expr):
        fields = (getattr(value, field.name) for field in dataclasses.fields(value) if field.name not in _PLACES)
        return type(value).__name__, *map(_plain, fields)
    if isinstance(value, tuple):
        return tuple(map(_names if all(isinstance(item, str) for item in value) else _plain, value))
    return value


_PLACES = {"position", "end"}


def _names(name: str) -> str:
    return name.lower()


def _typed(text: str, before: str | None, schema: Schema | None) -> str:
    """A figure with the type it had: a sum of sums of decimals is wider than the sum."""
    after = expression_type(text, schema) if schema is not None else None
    return text if before is None or after is None or after == before else f"cast({text} as {before})"


def _held(bound: Bound, finer: str) -> tuple[str, str]:
    """Where the finer aggregate's rows can be read: the recordset that holds just them, or what leaves it."""
    for node, _ in bound.consumers(finer, "out"):
        operator = bound.operators[node]
        if len(bound.producers(node)) != 1 or not operator.output_ports():
            continue
        if operator.role is Role.STAGING:
            return node, operator.output_ports()[0].name
        if isinstance(operator, Target) and operator.lossless:
            alone = operator.mode is Mode.OVERWRITE or operator.pass_on is PassOn.DELIVERED
            if alone:
                return node, operator.output_ports()[0].name
    return finer, "out"
