"""`papilio run`: run a workflow on Spark."""

from __future__ import annotations

from pathlib import Path

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json
from engine.errors import BadInput


@click.command(name="run")
@takes_workflow
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Where Spark is: local[n], local-cluster[n,cores,MB] or spark://host:port.",
)
@click.option("--driver-memory", type=click.IntRange(512), metavar="MB", help="Default: a quarter of the machine's.")
@click.option("--spark-conf", "confs", multiple=True, metavar="K=V", help="One of Spark's own settings.")
@click.option("--parallel", type=click.IntRange(1), metavar="N", help="Units at a time. Default: one a core.")
@click.option("--run-dir", type=click.Path(path_type=Path), help="Where the run keeps its log and its files.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@click.option("--trust", is_flag=True, help="Let the file's own Python code run, this time.")
@json_option
def command(
    given: Given,
    master: str,
    driver_memory: int | None,
    confs: tuple[str, ...],
    parallel: int | None,
    run_dir: Path | None,
    events: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Run a workflow on Spark. Its targets change only if all of it went well.

    Ctrl-C cancels and leaves the targets as they were.
    """
    bound = given.open()
    bound.raise_errors()
    from engine.cli._display import Display

    quiet = as_json or events == "-"
    with Display(bound, quiet=quiet) as display:
        # Spark's own modules take a moment to load; the display is up by then.
        from engine.spark.launch import launch
        from engine.spark.runner import RunSettings
        from engine.spark.session import SparkSettings

        settings = RunSettings(
            spark=SparkSettings(master=master, driver_memory_mb=driver_memory, extra=dict(map(_conf, confs))),
            folder=run_dir,
            parallel_units=parallel,
            trusted=trust,
        )
        summary = launch(bound, settings, store=given.store, events=events, listener=display.show)
    if as_json:
        print_json(summary)
    elif not quiet:
        display.print_summary(summary)


def _conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadInput(f"--spark-conf {text}: write it as name=value")
    return name, value
