"""`papilio stream`: a streaming warehouse, live on Spark or simulated."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click

from engine.cli._workflow import Given, takes_workflow
from engine.cli.store import json_option, print_json


@click.group(name="stream")
def command() -> None:
    """Keep the tables of a streaming warehouse as fresh as they can be."""


def takes_schedule(function: Any) -> Any:
    """The options by which updates are scheduled, handed over as one `Settings`."""

    @functools.wraps(function)
    def wrapped(
        *given: Any,
        policy: str, sharing: str, tracks: int, k: float, plain: bool, some_tracks: bool, inheritance: str,
        max_plus_k: float, chop: float, no_chop: bool, no_bounds: bool, **others: Any,
    ) -> None:  # fmt: skip
        from engine.refresh.inheritance import Inheritance
        from engine.refresh.scheduler import Settings

        settings = Settings(
            policy=policy, sharing=sharing, tracks=tracks, k=k, aggressive=not plain, all_tracks=not some_tracks,
            inheritance=Inheritance(inheritance), max_plus_k=max_plus_k, chop=None if no_chop else chop,
            bounds=not no_bounds,
        )  # fmt: skip
        function(*given, schedule=settings, **others)

    for decorate in reversed(
        (
            click.option(
                "--policy",
                default="max-benefit",
                show_default=True,
                help="The local algorithm: edf, edf-p, max-benefit, max-benefit-lookahead, fifo or random.",
            ),
            click.option(
                "--sharing",
                default="proportional",
                show_default=True,
                help="How the tracks are shared: proportional, edf-partitioned or one.",
            ),
            click.option(
                "--tracks", type=click.IntRange(1), default=2, show_default=True, help="How many updates run at a time."
            ),
            click.option(
                "--k",
                type=click.FloatRange(1),
                default=10.0,
                show_default=True,
                help="Proportional: the width of a cluster of jobs.",
            ),
            click.option("--plain", is_flag=True, help="Promote a job only to a track that nobody else waits for."),
            click.option("--some-tracks", is_flag=True, help="Proportional: leave tracks free that are not needed."),
            click.option(
                "--inheritance",
                type=click.Choice(["none", "sum", "max", "max-plus"]),
                default="max",
                show_default=True,
                help="How a table inherits the priority of its views.",
            ),
            click.option(
                "--max-plus-k", type=click.FloatRange(1), default=2.0, show_default=True, help="The factor of max-plus."
            ),
            click.option(
                "--chop",
                type=click.FloatRange(1),
                default=3.0,
                show_default=True,
                help="So many periods' data at most in one job.",
            ),
            click.option("--no-chop", is_flag=True, help="All that waits in one job."),
            click.option("--no-bounds", is_flag=True, help="A table weighs no more when its staleness bound is near."),
        )
    ):
        wrapped = decorate(wrapped)
    return wrapped


@command.command()
@takes_workflow
@takes_schedule
@click.option(
    "--for",
    "for_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after so long; else by Ctrl-C.",
)
@click.option("--master", default="local[*]", show_default=True, help="Where Spark is: local[n] or spark://host:port.")
@click.option("--driver-memory", type=click.IntRange(512), metavar="MB", help="Default: a quarter of the machine's.")
@click.option("--run-dir", type=click.Path(path_type=Path), help="Where the run keeps its log and its files.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@json_option
def run(
    given: Given,
    schedule: Any,
    for_s: float | None,
    master: str,
    driver_memory: int | None,
    run_dir: Path | None,
    events: str | None,
    as_json: bool,
) -> None:
    """Run a streaming warehouse on Spark: data arrive, and its tables follow.

    Ctrl-C stops after the jobs that run, a second one at once. The next start goes on where this one ended. Tables
    that are added to the file or removed from it meanwhile join and leave.
    """
    bound = given.open()
    bound.raise_errors()
    from engine.cli._stream_display import StreamDisplay
    from engine.partition.tables import tables_of
    from engine.refresh.described import warehouse_of

    plans = tables_of(bound)
    warehouse_of(bound, plans)
    with StreamDisplay([plan.name for plan in plans], quiet=as_json or events == "-") as display:
        from engine.refresh.live.launch import StreamSettings, launch_stream
        from engine.refresh.live.warehouse import LiveSettings
        from engine.spark.session import SparkSettings

        settings = StreamSettings(
            LiveSettings(schedule, for_s), SparkSettings(master=master, driver_memory_mb=driver_memory), run_dir
        )
        summary = launch_stream(
            bound, settings, store=given.store, events=events, listener=display.show, reopen=given.open
        )
    if as_json:
        print_json(summary)
    elif events != "-":
        display.print_summary(summary)


@command.command()
@takes_workflow
@takes_schedule
@click.option(
    "--count", type=click.IntRange(1), default=20_000, show_default=True, help="Arrivals and finished updates in all."
)
@click.option("--for", "for_s", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Virtual seconds.")
@click.option("--slowdown", type=click.FloatRange(1), default=1.0, help="How much longer updates take in slow periods.")
@click.option("--normal-s", type=click.FloatRange(0), default=0.0, help="How long normal periods last.")
@click.option("--slow-s", type=click.FloatRange(0), default=0.0, help="How long slow periods last.")
@click.option(
    "--spread",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="An update takes between so many times its usual time and one more.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The beginning of chance.")
@click.option("--run-dir", type=click.Path(path_type=Path), help="Where the run keeps its log.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@json_option
def simulate(
    given: Given,
    schedule: Any,
    count: int,
    for_s: float | None,
    slowdown: float,
    normal_s: float,
    slow_s: float,
    spread: float,
    seed: int,
    run_dir: Path | None,
    events: str | None,
    as_json: bool,
) -> None:
    """Simulate a streaming warehouse on a virtual clock, under the very scheduler that runs it live.

    What updates cost comes from the tables' hints (alpha_s, beta), from the last live run, or is assumed.
    """
    bound = given.open()
    bound.raise_errors()
    from engine.refresh.simulation import Conditions, launch_simulation

    conditions = Conditions(count, for_s or float("inf"), spread, slowdown, normal_s, slow_s, seed)
    summary = launch_simulation(bound, schedule, conditions, folder=run_dir, store=given.store, events=events)
    if as_json:
        print_json(summary)
    elif events != "-":
        from engine.cli._stream_display import print_simulated

        print_simulated(summary)


@command.command()
@takes_workflow
@json_option
def show(given: Given, as_json: bool) -> None:
    """What every table of a warehouse holds as published now: rows, freshness, late records, what was put aside."""
    import time

    from engine.partition.tables import tables_of
    from engine.spark.stream_store import QUARANTINE, published

    bound = given.open()
    place = bound.place()
    found: dict[str, dict[str, Any]] = {}
    for plan in tables_of(bound):
        folder = place.path(plan.operator.path)
        version = published(folder)
        aside = folder / QUARANTINE
        found[plan.name] = {
            "version": version.number,
            "rows": version.rows,
            "staleness_s": None if version.fresh_us is None else round(time.time() - version.fresh_us / 1e6, 3),
            "late_rows": version.late_rows,
            "quarantined": [path.name for path in aside.iterdir() if path.suffix != ".reason"]
            if aside.is_dir()
            else [],
            "follow": plan.follow.value,
            "folder": str(folder),
        }
    if as_json:
        print_json({"tables": found})
        return
    for name, table in found.items():
        stale = "empty" if table["staleness_s"] is None else f"{table['staleness_s']:,.1f} s stale"
        click.echo(
            f"{name:24} {table['rows']:>12,} rows  {stale:>16}  {table['late_rows']:,} late  "
            f"{len(table['quarantined'])} put aside  {table['follow']}"
        )
