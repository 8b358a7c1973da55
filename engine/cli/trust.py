"""`papilio trust`: let a file's own Python code run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="trust")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--revoke", is_flag=True, help="Trust it no longer.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(file: Path, revoke: bool, yes: bool) -> None:
    """Show the Python code in a workflow and, if you agree, let it run from now on.

    Changed code must be trusted anew. Workflows without Python operators need no trust.
    """
    from engine.cli._workflow import Given
    from engine.store.trust import code_hash, trust

    bound = Given(file).open()
    bound.raise_errors()
    if revoke:
        trust(bound, trusted=False)
        click.echo(f"{file}: its code will not run.")
        return
    if code_hash(bound) is None:
        click.echo(f"{file}: holds no code of its own; nothing to trust.")
        return
    for node, operator in bound.operators.items():
        if operator.needs_trust:
            click.secho(f"node {node} ({operator.name}):", bold=True)
            for value in operator.model_dump(mode="json").values():
                if isinstance(value, str) and "\n" in value:
                    click.echo(value.rstrip() + "\n")
    if yes or click.confirm("Let this code run with your own rights?"):
        trust(bound)
        click.echo(f"{file}: trusted as it stands.")
