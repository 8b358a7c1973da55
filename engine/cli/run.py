"""`papilio run`: run a workflow on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from engine.cli._workflow import Given, spark_conf, takes_workflow, trust_option
from engine.cli.store import json_option, print_json
from engine.errors import BadInput
from engine.partition.granularity import Granularity


@click.command(name="run")
@takes_workflow
@click.option(
    "--master",
    default="local[*]",
    show_default=True,
    help="Where Spark is: local[n], local-cluster[n,cores,MB], spark://host:port, sc://host:port or sail.",
)
@click.option(
    "--granularity",
    type=click.Choice([kind.value for kind in Granularity]),
    help="What is scheduled as one: operators, subflows, execution trees, or as few Spark plans as sensible "
    "(fused, the default on Spark).",
)
@click.option(
    "--plan",
    default="best",
    show_default=True,
    metavar="best|none|SIGNATURE",
    help="The physical plan: the best there is, none (Spark chooses), or the one of a signature.",
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
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Simulated: so many of its seconds in one of ours; left out, as fast as it goes.",
)
@click.option(
    "--lasts",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Simulated: at such a speed that it takes about so long to watch.",
)
@click.option("--paused", is_flag=True, help="Pause before the first decision; `papilio control` goes on.")
@click.option("--no-telemetry", is_flag=True, help="No decisions and no queue snapshots in the log.")
@click.option("--resume", metavar="RUN", help="Finish a killed run from where it was.")
@click.option("--driver-memory", type=click.IntRange(512), metavar="MB", help="Default: a quarter of the machine's.")
@click.option("--spark-conf", "confs", multiple=True, metavar="K=V", help="One of Spark's own settings.")
@click.option(
    "--parallel", type=click.IntRange(1), metavar="N", help="Units at a time. Default: two a core; packs: one."
)
@click.option("--run-dir", type=click.Path(path_type=Path), help="Where the run keeps its log and its files.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@trust_option
@json_option
def command(
    given: Given,
    master: str,
    granularity: str | None,
    backend: Literal["spark", "simulated"],
    plan: str,
    policy: str,
    thetas: tuple[str, ...],
    pack_rows: int | None,
    queue_packs: int | None,
    queue_mb: float | None,
    queue_memory: int | None,
    slot_ms: float | None,
    degree: str | None,
    speed: float | None,
    lasts: float | None,
    paused: bool,
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
    from engine.cli._display import Display, print_simulated
    from engine.request import RunRequest
    from engine.schedule.policy import ELASTIC

    quiet = as_json or events == "-"
    theta, own = _thetas(thetas)
    request = RunRequest(
        backend=backend, policy=policy, granularity=granularity, master=master, pack_rows=pack_rows,
        queue_packs=queue_packs, queue_mb=queue_mb, queue_memory_mb=queue_memory, slot_ms=slot_ms, theta=theta,
        thetas=own, degree=_degree(degree), telemetry=not no_telemetry, driver_memory_mb=driver_memory,
        confs=dict(map(spark_conf, confs)), parallel=parallel, trust=trust, resume=resume, paused=paused, speed=speed,
        lasts_seconds=lasts, plan=plan,
    )  # fmt: skip
    request.check()
    if request.policy == ELASTIC:
        raise BadInput("--policy elastic: `papilio scale simulate` and `papilio scale run` keep a workflow's limits")
    simulated = backend == "simulated"
    with Display(bound, quiet=quiet or simulated) as display:
        watchable = not quiet and (not simulated or speed or lasts or paused)
        summary = request.start(
            bound,
            folder=run_dir,
            store=given.store,
            events=events,
            listener=None if display.quiet else display.show,
            begun=display.begun if watchable else None,
        )
    if as_json:
        print_json(summary)
    elif simulated and not quiet:
        print_simulated(summary)
    elif not quiet:
        display.print_summary(summary)


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


def _degree(text: str | None) -> int | Literal["auto"]:
    """How many pipelines; `auto` has it measured."""
    if text == "auto":
        return "auto"
    if text is None:
        return 1
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"--degree {text}: write a number from 1 on, or auto")
    return int(text)
