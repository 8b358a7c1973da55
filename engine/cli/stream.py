"""`papilio stream`: a streaming warehouse, live on Spark or simulated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from engine.cli._workflow import Given, takes_workflow, trust_option
from engine.cli.store import json_option, print_json


@click.group(name="stream")
def command() -> None:
    """Keep the tables of a streaming warehouse as fresh as they can be."""


@dataclass(frozen=True)
class Kept:
    """How long a run lasts, what it leaves behind, and what it prints."""

    for_s: float | None
    run_dir: Path | None
    events: str | None
    as_json: bool

    @property
    def quiet(self) -> bool:
        """Whether standard output belongs to a program."""
        return self.as_json or self.events == "-"

    def print(self, summary: dict[str, Any], for_person: Callable[[dict[str, Any]], None]) -> None:
        """What came of the run, to whoever asked for it."""
        if self.as_json:
            print_json(summary)
        elif not self.quiet:
            for_person(summary)


# What a live run and a simulated one share: how updates are scheduled, and what is kept.
_OPTIONS = (
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
    click.option(
        "--chop-periods",
        is_flag=True,
        help="Chop at so many periods also where loading more takes no longer, as the paper does.",
    ),
    click.option("--no-chop", is_flag=True, help="All that waits in one job."),
    click.option("--no-bounds", is_flag=True, help="A table weighs no more when its staleness bound is near."),
    click.option("--no-together", is_flag=True, help="Never one job for several tables that scan the same."),
    click.option(
        "--for",
        "for_s",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="How long; a live run is stopped by Ctrl-C else, and a simulated one lasts its --count.",
    ),
    click.option("--run-dir", type=click.Path(path_type=Path), help="Where the run keeps its log and its files."),
    click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output."),
    json_option,
)


def takes_schedule(function: Any) -> Any:
    """The options of a run, handed over as one `Settings` of the scheduler and one `Kept`."""

    @functools.wraps(function)
    def wrapped(
        *given: Any,
        policy: str, sharing: str, tracks: int, k: float, plain: bool, some_tracks: bool, inheritance: str,
        max_plus_k: float, chop: float, chop_periods: bool, no_chop: bool, no_bounds: bool, no_together: bool,
        for_s: float | None, run_dir: Path | None, events: str | None, as_json: bool, **others: Any,
    ) -> None:  # fmt: skip
        from engine.refresh.inheritance import Inheritance
        from engine.refresh.scheduler import Settings

        settings = Settings(
            policy=policy, sharing=sharing, tracks=tracks, k=k, aggressive=not plain, all_tracks=not some_tracks,
            inheritance=Inheritance(inheritance), max_plus_k=max_plus_k, chop=None if no_chop else chop,
            chop_by_cost=not chop_periods, bounds=not no_bounds, together=not no_together,
        )  # fmt: skip
        function(*given, schedule=settings, kept=Kept(for_s, run_dir, events, as_json), **others)

    for decorate in reversed(_OPTIONS):
        wrapped = decorate(wrapped)
    return wrapped


@command.command()
@takes_workflow
@takes_schedule
@click.option("--master", default="local[*]", show_default=True, help="Where Spark is: local[n] or spark://host:port.")
@click.option("--driver-memory", type=click.IntRange(512), metavar="MB", help="Default: a quarter of the machine's.")
@trust_option
def run(given: Given, schedule: Any, kept: Kept, master: str, driver_memory: int | None, trust: bool) -> None:
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
    with StreamDisplay([plan.name for plan in plans], quiet=kept.quiet) as display:
        from engine.errors import RunFailed
        from engine.refresh.live.launch import StreamSettings, held_back, launch_stream
        from engine.refresh.live.warehouse import LiveSettings
        from engine.spark.session import SparkSettings

        spark = SparkSettings(master=master, driver_memory_mb=driver_memory)
        settings = StreamSettings(LiveSettings(schedule, kept.for_s), spark, kept.run_dir, trust)
        summary = launch_stream(
            bound, settings, store=given.store, events=kept.events, listener=display.show, reopen=given.open
        )
    kept.print(summary, display.print_summary)
    if summary["held"]:
        raise RunFailed(held_back(summary["held"]))


@command.command()
@takes_workflow
@takes_schedule
@click.option(
    "--count", type=click.IntRange(1), default=20_000, show_default=True, help="Arrivals and finished updates in all."
)
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
def simulate(
    given: Given, schedule: Any, kept: Kept, count: int, slowdown: float, normal_s: float, slow_s: float,
    spread: float, seed: int,
) -> None:  # fmt: skip
    """Simulate a streaming warehouse on a virtual clock, under the very scheduler that runs it live.

    What updates cost comes from the tables' hints (alpha_s, beta), from the last live run, or is assumed.
    """
    bound = given.open()
    bound.raise_errors()
    from dataclasses import replace

    from engine.cli._stream_display import print_simulated
    from engine.refresh.simulation import Conditions, launch_simulation

    conditions = Conditions(count, kept.for_s or float("inf"), spread, slowdown, normal_s, slow_s, seed)
    schedule = replace(schedule, seed=seed)  # of the policy `random`
    summary = launch_simulation(bound, schedule, conditions, folder=kept.run_dir, store=given.store, events=kept.events)
    kept.print(summary, print_simulated)


@command.command()
@takes_workflow
@json_option
def show(given: Given, as_json: bool) -> None:
    """What every table of a warehouse holds as published now: rows, freshness, late records, what was put aside."""
    import time

    from engine.partition.tables import tables_of
    from engine.spark.stream_versions import QUARANTINE, published

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
