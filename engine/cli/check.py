"""`papilio check`: problems and the schema of every port."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json


@click.command(name="check")
@takes_workflow
@json_option
def command(
    given: Given,
    as_json: bool,
) -> None:
    """Say what is wrong with a workflow, and the schema of every port. Starts nothing."""
    from engine.model.operator import Source, Target
    from engine.model.problems import Problem

    bound = given.open()
    if not bound.errors:
        # A source that is missing or has drifted is told here already, where that costs no connection.
        paths = bound.place()
        for node in bound.order:
            operator = bound.operators[node]
            if isinstance(operator, Source | Target) and not operator.remote:
                reason = operator.missing(paths)
                if reason is None and isinstance(operator, Source):
                    reason = operator.drift(paths)
                if reason:
                    from engine.experiments.data import how_to_make

                    hint = how_to_make(bound, reason)
                    bound.problems.append(Problem(f"{reason}; {hint}" if hint else reason, node))
        if any(operator.family == "streams" for operator in bound.operators.values()):
            from engine.partition.tables import cut, is_streaming

            if is_streaming(bound):
                bound.problems.extend(cut(bound)[1])
    if as_json:
        print_json(
            {
                "problems": [problem.as_dict() for problem in bound.problems],
                "schemas": {
                    f"{node}.{port}": dict(schema)
                    for (node, port), schema in bound.schemas.items()
                    if schema is not None
                },
            }
        )
    else:
        _print(bound, given.file)
    if bound.errors:
        sys.exit(2)


def _print(bound, file: Path) -> None:  # type: ignore[no-untyped-def]
    from engine.model.problems import Level
    from engine.model.shape import shape

    for problem in bound.problems:
        colour = "red" if problem.level is Level.ERROR else "yellow"
        click.secho(problem.text(str(file)), fg=colour, err=problem.level is Level.ERROR)
    if bound.errors:
        return
    known = sum(schema is not None for schema in bound.schemas.values())
    kind = shape(bound).archetype.value
    nodes = f"{len(bound.order)} nodes, {len(bound.links)} edges, {kind}"
    click.echo(f"{file}: {nodes}; the schemas of {known} of {len(bound.schemas)} ports are known")
    if not bound.problems:
        click.secho("No problems.", fg="green")
