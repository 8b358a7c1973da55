"""Butterflies of any size and shape over TPC-H, made by chance from a seed: for experiments and for stress.

What is made is valid and runs. Joins meet a key that is unique on their other side, so rows never multiply; values that
are computed over and over stay within bounds; filters drop few rows. The same size, shape and seed give the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Any

from engine.errors import BadInput
from engine.experiments.layout import lay_out
from engine.model.workflow import Workflow

MOST_NODES = 10_000
MOST_FILTERS = 30  # on one way from a source; each drops one row in a hundred or so
MOST_COMPUTED = 6  # columns that the steps of a line add; further ones replace them
MOST_BROUGHT = 20  # columns that joins and lookups bring along; then a step drops them


class Shape(StrEnum):
    """The shapes there are (scheduling, section 7.1; physical design, section 5.1)."""

    LINE = "line"
    WISHBONE = "wishbone"
    PRIMARY = "primary"
    TREE = "tree"
    FORK = "fork"
    BUTTERFLY = "butterfly"
    RIGHT_DEEP = "right-deep"


@dataclass(frozen=True)
class _Table:
    """The columns of a TPC-H table that the steps use."""

    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    groups: tuple[str, ...]  # texts of few values, fit to group by
    dates: tuple[str, ...] = ()


_LINEITEM = _Table(
    keys=("l_orderkey", "l_partkey", "l_suppkey"),
    numbers=("l_quantity", "l_extendedprice", "l_discount", "l_tax"),
    texts=("l_comment", "l_shipinstruct"),
    groups=("l_shipmode", "l_returnflag", "l_linestatus"),
    dates=("l_shipdate", "l_commitdate", "l_receiptdate"),
)

#: Tables whose key a line item has: the table, the line item's column, and what the table brings along.
_PARENTS = {
    "orders": (
        "l_orderkey",
        _Table(("o_orderkey",), ("o_totalprice",), ("o_comment", "o_clerk"), ("o_orderpriority",), ("o_orderdate",)),
    ),
    "part": ("l_partkey", _Table(("p_partkey",), ("p_retailprice",), ("p_name", "p_type"), ("p_mfgr", "p_container"))),
    "supplier": ("l_suppkey", _Table(("s_suppkey",), ("s_acctbal",), ("s_address", "s_phone"), ("s_name",))),
}


@dataclass
class _Flow:
    """Where a flow of rows has come to, and the columns it has."""

    at: str  # node, or node.port
    keys: list[str]
    numbers: list[str]
    texts: list[str]
    groups: list[str]
    dates: list[str]
    filters: int = 0
    computed: int = 0

    @classmethod
    def of(cls, at: str, table: _Table) -> _Flow:
        return cls(at, list(table.keys), list(table.numbers), list(table.texts), list(table.groups), list(table.dates))


@dataclass
class _Builder:
    """Adds nodes and edges; chance decides what the steps of a line are."""

    chance: Random
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: list[dict[str, str]] = field(default_factory=list)

    def add(self, operator: str, title: str, inputs: dict[str, str], **settings: Any) -> str:
        id_ = f"{operator}_{len(self.nodes) + 1}"
        self.nodes[id_] = {"operator": operator, "title": title, "settings": settings}
        self.edges.extend({"from": source, "to": f"{id_}.{port}"} for port, source in inputs.items())
        return id_

    def source(self, name: str, table: _Table) -> _Flow:
        id_ = self.add("parquet_source", name, {}, path=f"${{data}}/{name}.parquet")
        return _Flow.of(f"{id_}.out", table)

    def target(self, flow: _Flow, title: str) -> None:
        id_ = self.add("parquet_target", title, {"in": flow.at})
        self.nodes[id_]["settings"]["path"] = f"${{warehouse}}/{id_}"
        flow.at = f"{id_}.out"

    # -- lines

    def line(self, flow: _Flow, length: int) -> None:
        """So many row-synchronized steps."""
        for _ in range(length):
            steps = [step for step in _STEPS if step.fits(flow)]
            self.chance.choice(steps).take(self, flow)

    def needed(self, flow: _Flow) -> None:
        """Keep the columns that the steps know, so that a join does not carry the others along."""
        columns = [*flow.keys, *flow.numbers, *flow.texts, *flow.groups, *flow.dates]
        id_ = self.add("select", "Needed columns", {"in": flow.at}, columns=[{"column": name} for name in columns])
        flow.at = f"{id_}.out"

    def drop_brought(self, flow: _Flow) -> None:
        """Drop what joins and lookups brought, so that a long flow stays narrow."""
        brought = [name for name in (*flow.texts, *flow.groups) if name.startswith("brought_")]
        id_ = self.add("select", "Drop columns", {"in": flow.at}, drop=brought)
        flow.at = f"{id_}.out"
        flow.texts = [name for name in flow.texts if name not in brought]
        flow.groups = [name for name in flow.groups if name not in brought]

    # -- where flows meet

    def join(self, flow: _Flow, other: _Flow, key: str, brought: str) -> None:
        """Bring a table's line to the line items: its key becomes theirs, and one of its texts comes along."""
        chosen = self.chance.choice([*other.texts, *other.groups])
        columns = [{"column": other.keys[0], "name": key}, {"column": chosen, "name": brought}]
        keyed = self.add("select", "Key and text", {"in": other.at}, columns=columns)
        self.meet(flow, f"{keyed}.out", key, key)
        (flow.groups if chosen in other.groups else flow.texts).append(brought)

    def join_sums(self, flow: _Flow, name: str, brought: str) -> None:
        """Bring sums over PartSupp to the line items, by part or by supplier."""
        key, own = self.chance.choice([("l_partkey", "ps_partkey"), ("l_suppkey", "ps_suppkey")])
        total = self.chance.choice(["sum(ps_availqty)", "min(ps_supplycost)", "count(*)"])
        summed = self.add(
            "aggregate", f"By {own}", {"in": name}, group=[own], aggregates=[{"name": brought, "expression": total}]
        )
        keyed = self.add("select", "Key and sum", {"in": f"{summed}.out"}, rename={own: key})
        self.meet(flow, f"{keyed}.out", key, key)
        flow.numbers.append(brought)

    def meet(self, flow: _Flow, right: str, left_key: str, right_key: str) -> None:
        form = self.chance.choice(["auto", "merge", "hash"])
        inputs = {"left": flow.at, "right": right}
        keys = [{"left": left_key, "right": right_key}]
        id_ = self.add("join", f"Join on {left_key[2:]}", inputs, keys=keys, form=form)
        flow.at = f"{id_}.out"

    # -- views

    def view(self, flow: _Flow, operator: str = "materialized_view") -> _Flow:
        """An aggregate over a recordset, or over a view of it, which has `total` and `lines` already."""
        if "lines" in flow.numbers:
            group = flow.groups[: max(1, len(flow.groups) - self.chance.randint(0, 1))]
            measures = {"total": "sum(total)", "lines": "sum(lines)"}
        else:
            fit = [*flow.groups[:8], "l_suppkey", "l_partkey"]
            group = self.chance.sample(fit, k=min(len(fit), self.chance.randint(1, 3)))
            measures = {"total": f"sum({self.chance.choice(flow.numbers)})", "lines": "count(*)"}
        id_ = self.add(
            operator,
            f"By {', '.join(group)}",
            {"in": flow.at},
            group=group,
            aggregates=[{"name": name, "expression": text} for name, text in measures.items()],
        )
        return _Flow(f"{id_}.out", keys=[], numbers=["total", "lines"], texts=[], groups=[*group], dates=[])


# ---------------------------------------------------------------- the steps of a line


@dataclass(frozen=True)
class _Step:
    """One kind of step: which flows it fits, and what it adds."""

    fits: Callable[[_Flow], bool]
    take: Callable[[_Builder, _Flow], None]


def _pass(builder: _Builder, flow: _Flow, operator: str, title: str, port: str = "out", **settings: Any) -> None:
    id_ = builder.add(operator, title, {"in": flow.at}, **settings)
    flow.at = f"{id_}.{port}"


def _compute(builder: _Builder, flow: _Flow, title: str, text: str) -> None:
    """One more computed number, in a new column or instead of an older one."""
    flow.computed += 1
    name = f"computed_{flow.computed % MOST_COMPUTED}"
    _pass(builder, flow, "derive", title, columns=[{"name": name, "expression": f"CAST({text} AS decimal(18,4))"}])
    if name not in flow.numbers:
        flow.numbers.append(name)


def _filter(builder: _Builder, flow: _Flow) -> None:
    flow.filters += 1
    column = builder.chance.choice(flow.keys or flow.numbers)
    modulus = builder.chance.choice([97, 101, 103, 107, 109, 113])
    condition = f"pmod(CAST({column} AS bigint), {modulus}) <> {builder.chance.randrange(modulus)}"
    _pass(builder, flow, "filter", "Filter", port="match", condition=condition)


def _number(builder: _Builder, flow: _Flow) -> None:
    one, other = builder.chance.choice(flow.numbers), builder.chance.choice(flow.numbers)
    factor = builder.chance.randint(2, 9)
    _compute(builder, flow, "Compute", f"pmod(CAST({one} * {factor} + {other} AS decimal(38,4)), 100000)")


def _days(builder: _Builder, flow: _Flow) -> None:
    one, other = builder.chance.choice(flow.dates), builder.chance.choice(flow.dates)
    _compute(builder, flow, "Days between", f"abs(date_diff({one}, {other}))")


def _clean(builder: _Builder, flow: _Flow) -> None:
    case = builder.chance.choice(["upper", "lower", "title"])
    column = builder.chance.choice(flow.texts)
    _pass(builder, flow, "clean_text", "Clean", columns=[column], case=case, collapse_spaces=True)


def _regex(builder: _Builder, flow: _Flow) -> None:
    pattern, replacement = builder.chance.choice([("[aeiou]+", "a"), ("[0-9]", "0"), (r"\s+", " "), ("-", "/")])
    column = builder.chance.choice(flow.texts)
    _pass(builder, flow, "regex", "Replace", column=column, pattern=pattern, replacement=replacement)


def _not_null(builder: _Builder, flow: _Flow) -> None:
    columns = builder.chance.sample(flow.keys, k=builder.chance.randint(1, len(flow.keys)))
    _pass(builder, flow, "not_null", "Not null", columns=columns)


def _validate(builder: _Builder, flow: _Flow) -> None:
    column = builder.chance.choice(flow.numbers)
    rule = {"name": f"{column} is plausible", "condition": f"abs({column}) < 1000000000000"}
    _pass(builder, flow, "validate", "Plausible", rules=[rule])


def _replace_null(builder: _Builder, flow: _Flow) -> None:
    _pass(builder, flow, "replace_null", "No gaps", values={builder.chance.choice(flow.numbers): "0"})


def _case(builder: _Builder, flow: _Flow) -> None:
    column, limit = builder.chance.choice(flow.numbers), builder.chance.choice([1, 10, 100, 1000])
    text = f"CASE WHEN {column} < {limit} THEN 'low' ELSE 'high' END"
    _pass(builder, flow, "derive", "Classify", columns=[{"name": "class", "expression": text}])
    if "class" not in flow.groups:
        flow.groups.append("class")


_STEPS = (
    _Step(lambda flow: flow.filters < MOST_FILTERS, _filter),
    _Step(lambda flow: bool(flow.numbers), _number),
    _Step(lambda flow: len(flow.dates) > 1, _days),
    _Step(lambda flow: bool(flow.texts), _clean),
    _Step(lambda flow: bool(flow.texts), _regex),
    _Step(lambda flow: bool(flow.keys), _not_null),
    _Step(lambda flow: bool(flow.numbers), _validate),
    _Step(lambda flow: bool(flow.numbers), _replace_null),
    _Step(lambda flow: bool(flow.numbers), _case),
)


# ---------------------------------------------------------------- the shapes


def _shares(chance: Random, total: int, parts: int) -> list[int]:
    """So many steps divided over so many lines by chance."""
    cuts = sorted(chance.randint(0, total) for _ in range(parts - 1))
    return [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]


def _need(nodes: int, least: int, shape: Shape) -> int:
    if nodes < least:
        raise BadInput(f"--nodes {nodes}: a {shape.value} takes at least {least}")
    return nodes - least


def _line(builder: _Builder, nodes: int) -> None:
    steps = _need(nodes, 3, Shape.LINE) + 1
    flow = builder.source("lineitem", _LINEITEM)
    builder.line(flow, steps)
    builder.target(flow, "DW.Lines")


def _wishbone(builder: _Builder, nodes: int) -> None:
    shares = _shares(builder.chance, _need(nodes, 6, Shape.WISHBONE), 3)
    flow = builder.source("lineitem", _LINEITEM)
    builder.line(flow, shares[0])
    builder.needed(flow)
    _arm(builder, flow, shares[1], builder.chance.choice(sorted(_PARENTS)), "brought_1")
    builder.line(flow, shares[2])
    builder.target(flow, "DW.Joined")


def _arm(builder: _Builder, flow: _Flow, steps: int, table: str, brought: str) -> None:
    """One more source with its line, joined to the flow. Three nodes and the steps."""
    key, columns = _PARENTS[table]
    other = builder.source(table, columns)
    builder.line(other, steps)
    builder.join(flow, other, key, brought)


def _left_wing(builder: _Builder, flow: _Flow, shares: Iterator[int], joins: int, sums: int) -> None:
    """The lines and joins before the body: `joins` with tables, `sums` with aggregates over PartSupp."""
    builder.line(flow, next(shares))
    builder.needed(flow)
    for number in range(1, joins + 1):
        _arm(builder, flow, next(shares), builder.chance.choice(sorted(_PARENTS)), f"brought_{number}")
        if number % MOST_BROUGHT == 0:
            builder.drop_brought(flow)
    for number in range(1, sums + 1):
        source = builder.add("parquet_source", "partsupp", {}, path="${data}/partsupp.parquet")
        builder.join_sums(flow, f"{source}.out", f"summed_{number}")
    builder.line(flow, next(shares))


def _tree(builder: _Builder, nodes: int) -> None:
    _need(nodes, 11, Shape.TREE)
    joins = max(2, (nodes - 5) // 9)
    sums = 1 if nodes - 5 - 3 * joins >= 8 else 0
    steps = _need(nodes, 3 * joins + joins // MOST_BROUGHT + 4 * sums + 4, Shape.TREE)
    shares = iter(_shares(builder.chance, steps, joins + 2))
    flow = builder.source("lineitem", _LINEITEM)
    _left_wing(builder, flow, shares, joins, sums)
    view = builder.view(flow, "aggregate")
    builder.target(view, "DW.Sums")


def _primary(builder: _Builder, nodes: int) -> None:
    _need(nodes, 7, Shape.PRIMARY)
    lookups = max(2, nodes // 5)
    steps = _need(nodes, 2 * lookups + lookups // MOST_BROUGHT + 3, Shape.PRIMARY)
    shares = iter(_shares(builder.chance, steps, lookups + 1))
    flow = builder.source("lineitem", _LINEITEM)
    builder.needed(flow)
    for number in range(1, lookups + 1):
        builder.line(flow, next(shares))
        table = builder.chance.choice(sorted(_PARENTS))
        key, columns = _PARENTS[table]
        other = builder.source(table, columns)
        taken = builder.chance.choice([*columns.texts, *columns.groups])
        found = builder.add(
            "lookup",
            f"Lookup {table}",
            {"main": flow.at, "reference": other.at},
            keys=[{"main": key, "reference": columns.keys[0]}],
            take=[{"column": taken, "name": f"brought_{number}", "default": "-"}],
        )
        flow.at = f"{found}.out"
        flow.texts.append(f"brought_{number}")
        if number % MOST_BROUGHT == 0:
            builder.drop_brought(flow)
    builder.line(flow, next(shares))
    builder.target(flow, "DW.Facts")


def _fork(builder: _Builder, nodes: int) -> None:
    _need(nodes, 7, Shape.FORK)
    views = max(2, (nodes - 3) // 4)
    shares = iter(_shares(builder.chance, _need(nodes, 2 * views + 3, Shape.FORK), views + 1))
    flow = builder.source("lineitem", _LINEITEM)
    builder.needed(flow)
    builder.line(flow, next(shares))
    builder.target(flow, "DW.Lines")
    for number in range(1, views + 1):
        view = builder.view(flow)
        builder.line(view, next(shares))
        builder.target(view, f"View {number}")


def _butterfly(builder: _Builder, nodes: int) -> None:
    _need(nodes, 10, Shape.BUTTERFLY)
    joins, views = max(1, nodes // 12), max(2, nodes // 8)
    sums = 1 if nodes - (3 * joins + 2 * views + 3) >= 4 + joins else 0
    steps = _need(nodes, 3 * joins + joins // MOST_BROUGHT + 4 * sums + 2 * views + 3, Shape.BUTTERFLY)
    shares = iter(_shares(builder.chance, steps, joins + views + 2))
    flow = builder.source("lineitem", _LINEITEM)
    _left_wing(builder, flow, shares, joins, sums)
    builder.target(flow, "DW.Facts")
    _views(builder, flow, shares, views, depth=2)


def _right_deep(builder: _Builder, nodes: int) -> None:
    _need(nodes, 9, Shape.RIGHT_DEEP)
    views = max(3, (nodes - 3) // 4)
    shares = iter(_shares(builder.chance, _need(nodes, 2 * views + 3, Shape.RIGHT_DEEP), views + 1))
    flow = builder.source("lineitem", _LINEITEM)
    builder.needed(flow)
    builder.line(flow, next(shares))
    builder.target(flow, "DW.Lines")
    _views(builder, flow, shares, views, depth=6)


def _views(builder: _Builder, body: _Flow, shares: Iterator[int], count: int, depth: int) -> None:
    """The right wing: each view reads the body or an earlier view; at most `depth` of them stand in a row.

    Two of the first three read the body and one reads a view, so that even a small wing has its shape.
    """
    open_: list[tuple[_Flow, int]] = []
    for number in range(1, count + 1):
        deep = number == 3 if number <= 3 else builder.chance.random() < (depth - 1) / depth
        parent, level = max(open_, key=lambda item: item[1]) if deep and open_ else (body, 0)
        view = builder.view(parent)
        builder.line(view, next(shares))
        builder.target(view, f"View {number}")
        if level + 1 < depth:
            open_.append((view, level + 1))
        if len(open_) > depth:
            open_.pop(0)


_SHAPES: dict[Shape, Callable[[_Builder, int], None]] = {
    Shape.LINE: _line,
    Shape.WISHBONE: _wishbone,
    Shape.PRIMARY: _primary,
    Shape.TREE: _tree,
    Shape.FORK: _fork,
    Shape.BUTTERFLY: _butterfly,
    Shape.RIGHT_DEEP: _right_deep,
}


# ---------------------------------------------------------------- the workflow


def generate(nodes: int, shape: Shape = Shape.BUTTERFLY, seed: int = 1) -> Workflow:
    """A workflow of exactly so many nodes and this shape."""
    if nodes > MOST_NODES:
        raise BadInput(f"--nodes {nodes}: {MOST_NODES:,} are the most")
    builder = _Builder(Random(f"{shape.value} {nodes} {seed}"))
    _SHAPES[shape](builder, nodes)
    assert len(builder.nodes) == nodes
    edges = [(edge["from"].partition(".")[0], edge["to"].partition(".")[0]) for edge in builder.edges]
    name = f"generated_{shape.value.replace('-', '_')}_{nodes}_{seed}"
    return Workflow.model_validate(
        {
            "papilio": 1,
            "name": name,
            "description": (
                f"Made by chance over TPC-H: {nodes} nodes in the shape {shape.value}. "
                f"`papilio generate --nodes {nodes} --shape {shape.value} --seed {seed}` makes it again."
            ),
            "parameters": {
                "data_folder": {"default": "../data/tpch", "description": "Where the TPC-H tables are"},
                "warehouse_folder": {"default": f"../warehouse/{name}", "description": "Where the results go"},
            },
            "roots": {"data": "${data_folder}", "warehouse": "${warehouse_folder}"},
            "nodes": builder.nodes,
            "edges": builder.edges,
            "layout": {"nodes": {node: list(place) for node, place in lay_out(builder.nodes, edges).items()}},
        }
    )


def experiment_workflows(count: int = 20, seed: int = 1) -> list[Workflow]:
    """The workflows of the mixed-policy experiment (scheduling, section 7.4): 20 to 45 nodes, shapes in turn."""
    chance = Random(f"experiment {seed}")
    shapes = (Shape.TREE, Shape.BUTTERFLY, Shape.FORK, Shape.PRIMARY)
    return [generate(chance.randint(20, 45), shapes[number % len(shapes)], seed + number) for number in range(count)]
