"""`papilio partition`: how a workflow is cut: trees, subflows, strata, wings."""

from __future__ import annotations

from typing import Any

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json


@click.command(name="partition")
@takes_workflow
@json_option
def command(
    given: Given,
    as_json: bool,
) -> None:
    """Show a workflow's execution trees, subflows, strata and wings."""
    from engine.model.shape import shape
    from engine.partition.flow import flow_of
    from engine.partition.fused import fuse
    from engine.partition.subflows import break_into_subflows, with_readers_and_writers
    from engine.partition.trees import execution_trees

    bound = given.open()
    bound.raise_errors()
    flow = flow_of(bound)
    trees = execution_trees(flow)
    subflows = break_into_subflows(with_readers_and_writers(flow))
    answer: dict[str, Any] = {
        "trees": [{"id": tree.id, "root": tree.root, "nodes": list(tree.nodes)} for tree in trees.trees],
        "tree_edges": [list(edge) for edge in trees.edges],
        "subflows": [{"id": one.id, "nodes": list(one.nodes)} for one in subflows.subflows],
        "subflow_edges": [list(edge) for edge in subflows.edges],
        "strata": [list(stratum) for stratum in subflows.strata],
        "fused": [
            {"id": unit.id, "nodes": list(unit.nodes), "reads": list(unit.reads), "held": unit.held.value}
            for unit in fuse(bound).units
        ],
        **shape(bound).as_dict(),
    }
    if as_json:
        print_json(answer)
    else:
        _print(answer)


def _print(answer: dict[str, Any]) -> None:
    click.secho(answer["archetype"], bold=True)
    for wing, nodes in answer["wings"].items():
        click.echo(f"  {wing + (' wing' if wing != 'body' else ''):<11}{', '.join(nodes) or '-'}")
    _section("Execution trees", answer["trees"])
    _section("Units of the granularity fused", answer["fused"])
    click.secho("Subflows by strata", bold=True)
    nodes = {subflow["id"]: subflow["nodes"] for subflow in answer["subflows"]}
    for number, stratum in enumerate(answer["strata"]):
        for id_ in stratum:
            click.echo(f"  {number:<3}{id_:<5}{', '.join(nodes[id_])}")


def _section(title: str, parts: list[dict[str, Any]]) -> None:
    click.secho(title, bold=True)
    width = max((len(part["id"]) for part in parts), default=0) + 2
    for part in parts:
        click.echo(f"  {part['id']:<{width}}{', '.join(part['nodes'])}")
