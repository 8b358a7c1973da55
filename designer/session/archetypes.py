"""The butterfly archetypes as workflows to begin with: drawn, connected, and waiting for their settings."""

from __future__ import annotations

from engine.model.workflow import Workflow

# Each line is a way that rows take: `id:operator > id:operator.port > …`. An operator is named once.
_DRAWN = {
    "line": ("Line", "One source, cleansed and loaded.", [
        "orders:parquet_source > clean:not_null > sum:derive > warehouse:parquet_target",
    ]),
    "wishbone": ("Wishbone", "Two lines that meet in one join.", [
        "orders:parquet_source > clean_orders:not_null > join:join.left",
        "customers:parquet_source > clean_customers:not_null > join:join.right",
        "join > warehouse:parquet_target",
    ]),
    "primary flow": ("Primary flow", "A line that looks up its dimensions on the way.", [
        "sales:parquet_source > customer:lookup.main > product:lookup.main > warehouse:parquet_target",
        "customers:parquet_source > customer.reference",
        "products:parquet_source > product.reference",
    ]),
    "tree": ("Tree", "Several lines that meet two by two.", [
        "a:parquet_source > clean_a:not_null > ab:join.left",
        "b:parquet_source > clean_b:not_null > ab.right",
        "c:parquet_source > clean_c:not_null > abc:join.right",
        "ab > abc.left",
        "abc > warehouse:parquet_target",
    ]),
    "fork": ("Fork", "One table, and views over it.", [
        "table:parquet_source > by_month:aggregate > months:parquet_target",
        "table > by_region:aggregate > regions:parquet_target",
        "table > by_product:aggregate > products:parquet_target",
    ]),
    "balanced butterfly": ("Balanced butterfly", "Lines meet in a table, views spread from it.", [
        "orders:parquet_source > clean_orders:not_null > join:join.left",
        "customers:parquet_source > clean_customers:not_null > join:join.right",
        "join > facts:parquet_target",
        "facts > by_month:materialized_view > months:parquet_target",
        "facts > by_region:materialized_view > regions:parquet_target",
    ]),
    "right-deep hierarchy": ("Right-deep hierarchy", "Views over views over one table.", [
        "sales:parquet_source > clean:filter > facts:parquet_target",
        "facts > by_day:materialized_view > days:parquet_target > by_month:materialized_view > months:parquet_target",
        "months > by_year:materialized_view > years:parquet_target",
        "facts > by_product:materialized_view > products:parquet_target",
    ]),
}  # fmt: skip


def archetypes() -> list[tuple[str, str, str]]:
    """Every archetype: its id, its name and what it is for."""
    return [(id_, name, about) for id_, (name, about, _) in _DRAWN.items()]


def archetype(id_: str) -> Workflow:
    """An archetype as a workflow."""
    name, about, ways = _DRAWN[id_]
    nodes: dict[str, dict[str, str]] = {}
    edges: list[dict[str, str]] = []
    for way in ways:
        before: str | None = None
        for step in way.split(" > "):
            path, _, operator = step.partition(":")
            node, _, port = path.partition(".")
            kind, _, operator_port = operator.partition(".")
            if kind:
                nodes[node] = {"operator": kind}
            port = port or operator_port
            if before is not None:
                edges.append({"from": before, "to": f"{node}.{port}" if port else node})
            before = node
    return Workflow.model_validate({"papilio": 1, "name": name, "description": about, "nodes": nodes, "edges": edges})
