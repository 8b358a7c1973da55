"""`papilio export`: a workflow as a PySpark script, as XML or as a picture."""

from __future__ import annotations

from pathlib import Path

import click

from engine.cli._workflow import Given, takes_workflow
from engine.errors import BadInput


@click.command(name="export")
@takes_workflow
@click.option(
    "--to",
    "form",
    type=click.Choice(["pyspark", "xml", "svg", "png"]),
    required=True,
    help="A script that runs on its own, the metadata store's XML, or the canvas as a picture.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write it there instead of printing it.")
def command(
    given: Given,
    form: str,
    output: Path | None,
) -> None:
    """Write a workflow in another form."""
    if form in ("svg", "png"):
        _picture(given.file, form, output)
        return
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


def _picture(file: Path, form: str, output: Path | None) -> None:
    """Let the designer draw it."""
    from engine.drawing import draw_workflow

    if output is None or output.suffix.lower() != f".{form}":
        raise BadInput(f"{file}: a picture needs a file to be written to: --output NAME.{form}")
    draw_workflow(file, output)
