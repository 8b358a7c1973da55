"""`papilio history`: the runs the metadata store knows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from engine.cli.store import json_option, print_json, store_option

if TYPE_CHECKING:
    from engine.store import RunRecord

RUNNING, INTERRUPTED = "running", "interrupted"


@click.command(name="history")
@click.option("--workflow", metavar="NAME", help="Only runs of this workflow.")
@click.option(
    "--status",
    metavar="STATUS",
    help="Only runs with this status: done, failed, cancelled, simulated, running or interrupted.",
)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="At most so many runs.")
@json_option
@store_option
def command(workflow: str | None, status: str | None, limit: int, as_json: bool, place: str | None) -> None:
    """List runs, newest first. One whose process is gone without a last word is interrupted."""
    from engine.control import status_of
    from engine.store.runs import kept_runs

    going = status in (RUNNING, INTERRUPTED)  # the store has both as running
    asked = RUNNING if going else status
    found = kept_runs(place, workflow=workflow, status=asked, limit=None if going else limit)
    told = [replace(run, status=status_of(run)) for run in found]
    runs = [run for run in told if not going or run.status == status][:limit]
    if as_json:
        print_json([_describe(run) for run in runs])
    elif runs:
        _print_table(runs)
    else:
        click.echo("No such run." if workflow or status else "No workflow has been run yet.")


def _describe(run: RunRecord) -> dict[str, Any]:
    return {
        "run": run.run,
        "workflow": run.workflow,
        "status": run.status,
        "seconds": run.seconds,
        "policy": run.policy,
        "granularity": run.granularity,
        "master": run.master,
        "started": run.started.isoformat(),
        "finished": run.finished.isoformat() if run.finished else None,
        "file": run.file,
        "folder": run.folder,
        "content_hash": run.content_hash,
        "summary": run.summary,
    }


def _print_table(runs: list[RunRecord]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styles = {"done": "green", "failed": "red", "cancelled": "yellow", INTERRUPTED: "red"}
    table = Table("Run", "Workflow", "Status", "Seconds", "Policy", "When", box=None, pad_edge=False)
    table.columns[0].no_wrap = True  # it is what other commands are given
    table.columns[2].no_wrap = True
    table.columns[5].min_width = 10  # the date, with the time below it
    table.columns[3].justify = "right"
    for run in runs:
        seconds = "" if run.seconds is None else f"{run.seconds:.1f}"
        table.add_row(
            Text(run.run),
            Text(run.workflow),
            Text(run.status, style=styles.get(run.status, "")),
            seconds,
            Text(f"{run.policy} / {run.granularity}"),
            f"{run.started.astimezone():%Y-%m-%d %H:%M:%S}",
        )
    Console().print(table)
