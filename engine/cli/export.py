"""`papilio export`: a workflow as a PySpark script or as XML."""

from __future__ import annotations

from pathlib import Path

import click

from engine.cli._workflow import Given, takes_workflow


@click.command(name="export")
@takes_workflow
@click.option(
    "--to",
    "form",
    type=click.Choice(["pyspark", "xml"]),
    required=True,
    help="A script that runs on its own, or the metadata store's XML.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
def command(
    given: Given,
    form: str,
    output: Path | None,
) -> None:
    """Write a workflow in another form."""
    from engine.model.file import load, write_text

    if form == "xml":
        from engine.store.xml import workflow_to_xml

        text = workflow_to_xml(load(given.file).workflow.document())
    else:
        from engine.spark.export import export_pyspark

        bound = given.open()
        text = export_pyspark(bound, output.name if output else "workflow.py")
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
