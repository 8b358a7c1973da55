"""`papilio run`: run a workflow on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json
from engine.errors import BadInput
from engine.partition.granularity import Granularity


@click.command(name="run")
@takes_workflow
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Where Spark is: local[n], local-cluster[n,cores,MB] or spark://host:port.",
)
@click.option(
    "--granularity",
    type=click.Choice([kind.value for kind in Granularity]),
    help="What is scheduled as one: operators, subflows, execution trees, or as few Spark plans as sensible "
    "(fused, the default on Spark).",
)
@click.option("--policy", default="mixed", show_default=True, help="Who is next: rr, mc, mm, mixed, or a plugin's.")
@click.option(
    "--theta",
    "thetas",
    multiple=True,
    metavar="[SUBFLOW=]N",
    help="Mixed: a subflow with more memory-intensive activities than this runs under mm.",
)
@click.option(
    "--backend",
    type=click.Choice(["spark", "simulated"]),
    default="spark",
    show_default=True,
    help="Run it, or reckon from costs and selectivities what a run would do.",
)
@click.option("--pack-rows", type=click.IntRange(1), metavar="N", help="Rows in a pack.")
@click.option("--queue-packs", type=click.IntRange(1), metavar="N", help="Packs in a queue.")
@click.option(
    "--queue-mb", type=click.FloatRange(min=0, min_open=True), metavar="MB", help="Size of a queue, beside its packs."
)
@click.option("--queue-memory", type=click.IntRange(0), metavar="MB", help="Memory of all packs; then disk.")
@click.option("--slot-ms", type=click.FloatRange(min=0, min_open=True), metavar="N", help="The time slot of mm.")
@click.option("--degree", metavar="N|auto", help="Pipelines side by side in a tree; auto measures it.")
@click.option("--no-telemetry", is_flag=True, help="No decisions and no queue snapshots in the log.")
@click.option("--resume", metavar="RUN", help="Finish a killed run from where it was.")
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
    granularity: str | None,
    backend: str,
    policy: str,
    thetas: tuple[str, ...],
    pack_rows: int | None,
    queue_packs: int | None,
    queue_mb: float | None,
    queue_memory: int | None,
    slot_ms: float | None,
    degree: str | None,
    no_telemetry: bool,
    resume: str | None,
    driver_memory: int | None,
    confs: tuple[str, ...],
    parallel: int | None,
    run_dir: Path | None,
    events: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Run a workflow on Spark, or simulate it. Its targets change only if all of it went well.

    Ctrl-C cancels and leaves the targets as they were.
    """
    bound = given.open()
    bound.raise_errors()
    from engine.cli._display import Display

    quiet = as_json or events == "-"
    theta, own = _thetas(thetas)
    policy_known(policy)
    chosen: dict[str, Any] = {
        "pack_rows": pack_rows, "queue_packs": queue_packs, "queue_mb": queue_mb, "slot_ms": slot_ms, "theta": theta
    }  # fmt: skip
    chosen = {name: value for name, value in chosen.items() if value is not None}
    if backend == "simulated":
        if resume:
            raise BadInput("--resume: a simulated run is over in seconds; simulate it anew")
        from engine.schedule.costs import SimulationSettings
        from engine.simulation import launch_simulated

        kind = Granularity(granularity or "operator")
        simulation = SimulationSettings(granularity=kind, policy=policy, thetas=own, **chosen)
        summary = launch_simulated(
            bound, simulation, folder=run_dir, store=given.store, events=events, telemetry=not no_telemetry
        )
        if as_json:
            print_json(summary)
        elif not quiet:
            Display(bound).print_simulated(summary)
        return
    with Display(bound, quiet=quiet) as display:
        # Spark's own modules take a moment to load; the display is up by then.
        from engine.spark.launch import launch
        from engine.spark.runner import RunSettings, ScheduleSettings
        from engine.spark.session import SparkSettings

        schedule = ScheduleSettings(
            granularity=Granularity(granularity or "fused"),
            policy=policy,
            thetas=own,
            queue_memory_mb=queue_memory,
            degree=_degree(degree),
            telemetry=not no_telemetry,
            **chosen,
        )
        settings = RunSettings(
            schedule=schedule,
            resume=resume,
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


def policy_known(policy: str) -> None:
    """Refuse a policy that nobody knows, before anything starts."""
    from engine.schedule.policy import MIXED, policy_named

    if policy != MIXED:
        policy_named(policy)


def _thetas(texts: tuple[str, ...]) -> tuple[int | None, dict[str, int]]:
    """The theta of all subflows, and those of single ones."""
    theta, own = None, {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not value.isdecimal() or (equals and not name):
            raise BadInput(f"--theta {text}: write it as a number, or as subflow=number")
        if equals:
            own[name] = int(value)
        else:
            theta = int(value)
    return theta, own


def _degree(text: str | None) -> int | None:
    """How many pipelines; None has it measured."""
    if text == "auto":
        return None
    if text is None:
        return 1
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"--degree {text}: write a number from 1 on, or auto")
    return int(text)


def _conf(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadInput(f"--spark-conf {text}: write it as name=value")
    return name, value
