"""`papilio export`: a workflow as a PySpark script, as XML or as a picture."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import click

from engine.cli._workflow import Given, takes_workflow
from engine.errors import BadInput, EnvironmentProblem


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
    from engine.model.file import load, write_text

    if form in ("svg", "png"):
        _picture(given.file, form, output)
        return
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
    """Let the designer draw it, in a process of its own and without a window: the engine knows no Qt."""
    from engine.model.file import load

    if output is None or output.suffix.lower() != f".{form}":
        raise BadInput(f"{file}: a picture needs a file to be written to: --output NAME.{form}")
    if importlib.util.find_spec("PySide6") is None or importlib.util.find_spec("designer") is None:
        raise EnvironmentProblem(
            "the designer, which draws the picture, is not installed: pip install 'papilio[designer]'"
        )
    load(file)  # what is wrong with the file is said here
    done = subprocess.run(
        [sys.executable, "-m", "designer.export", str(file), str(output)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise EnvironmentProblem(said[-1] if said else f"{output}: the designer ended with code {done.returncode}")
