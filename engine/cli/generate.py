"""`papilio generate`: a butterfly of asked size and shape."""

from __future__ import annotations

from pathlib import Path

import click

from engine.cli.store import json_option, print_json
from engine.errors import BadInput

SHAPES = ("line", "wishbone", "primary", "tree", "fork", "butterfly", "right-deep")


@click.command(name="generate")
@click.option("--nodes", type=click.IntRange(1), required=True, help="How many nodes, up to 10,000.")
@click.option("--shape", type=click.Choice(SHAPES), default="butterfly", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed makes another workflow.")
@click.option("--to", "file", type=click.Path(path_type=Path), required=True, help="The file, NAME.butterfly.yaml.")
@click.option("--replace", is_flag=True, help="Replace a file that is there.")
@json_option
def command(nodes: int, shape: str, seed: int, file: Path, replace: bool, as_json: bool) -> None:
    """Make a workflow over TPC-H by chance, valid and ready to run.

    The same size, shape and seed make the same workflow.
    """
    from engine.experiments.generate import Shape, generate
    from engine.model.file import save
    from engine.model.workflow import FILE_ENDING

    if not file.name.endswith(FILE_ENDING):
        raise BadInput(f"{file}: the name of a workflow file ends with {FILE_ENDING}")
    if file.exists() and not replace:
        raise BadInput(f"{file} is there already; choose another name, or replace it with --replace")
    workflow = generate(nodes, Shape(shape), seed)
    save(workflow, file)
    answer = {"file": str(file), "nodes": nodes, "edges": len(workflow.edges), "shape": shape, "seed": seed}
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{file}: {nodes:,} nodes, {len(workflow.edges):,} edges, {shape}, seed {seed}")
