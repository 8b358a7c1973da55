"""`papilio run`: run a workflow on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json

if TYPE_CHECKING:
    from engine.cli._display import Display
    from engine.model.binding import Bound


@click.command(name="run")
@takes_workflow
@click.option(
    "--granularity",
    type=click.Choice(["fused"]),
    default="fused",
    show_default=True,
    help="What runs as one Spark plan.",
)
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
    granularity: str,
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

    extra = dict(conf.split("=", 1) for conf in confs if "=" in conf)
    quiet = as_json or events == "-"
    with Display(bound, quiet=quiet) as display:
        summary = _run(bound, master, driver_memory, extra, parallel, run_dir, events, trust, given.store, display)
    if as_json:
        print_json(summary)
    elif not quiet:
        display.print_summary(summary)


def _run(
    bound: Bound,
    master: str,
    driver_memory: int | None,
    extra: dict[str, str],
    parallel: int | None,
    run_dir: Path | None,
    events: str | None,
    trust: bool,
    store: str | None,
    display: Display,
) -> dict[str, Any]:
    from engine.spark.launch import launch
    from engine.spark.runner import RunSettings
    from engine.spark.session import SparkSettings

    settings = RunSettings(
        spark=SparkSettings(master=master, driver_memory_mb=driver_memory, extra=extra),
        folder=run_dir,
        parallel_units=parallel,
        trusted=trust,
    )
    return launch(bound, settings, store=store, events=events, listener=display.show)
