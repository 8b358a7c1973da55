"""`papilio compare`: runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.cli.store import json_option, print_json, store_option
from engine.errors import BadInput

if TYPE_CHECKING:
    from engine.recording.compare import Comparison
    from engine.recording.recording import RunRecording


@click.command(name="compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write a report to this file.")
@click.option("--csv", "table", type=click.Path(path_type=Path, dir_okay=False), help="Write the table to this file.")
@json_option
@store_option
def command(runs: tuple[str, ...], page: Path | None, table: Path | None, as_json: bool, place: str | None) -> None:
    """Compare runs: time, queue memory, activations. RUN is a run's id, `last`, its folder or its log."""
    from engine.recording.compare import Comparison

    comparison = Comparison.of([_recorded(run, place) for run in runs])
    for target, text in ((page, comparison.html), (table, comparison.csv)):
        if target is not None:
            try:
                target.write_text(text(), encoding="utf-8")
            except OSError as error:
                raise BadInput(f"{target}: cannot be written: {error.strerror}") from None
    if as_json:
        print_json(comparison.as_dict())
    else:
        _print(comparison)


def _recorded(run: str, place: str | None) -> RunRecording:
    from engine.control import is_alive
    from engine.recording.recording import RunRecording
    from engine.store.runs import find_run

    path = Path(run)
    if not path.is_file():
        path = find_run(run, place)
    over = not is_alive(path.parent if path.is_file() else path)  # first: what it wrote before is read after
    recording = RunRecording.load(path)
    recording.over = over
    if recording.flaw is not None:
        click.secho(recording.flaw, fg="yellow", err=True)
    if recording.started is None:
        raise BadInput(f"{recording.path}: holds no run")
    return recording


def _print(comparison: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    from engine.recording.compare import FROM

    table = Table(
        "Run", "Policy", "s", "MB", "peak", "Packs", "peak", "Turns", "Queues", title="Queues: average and peak"
    )
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for column in table.columns[2:-1]:
        column.justify = "right"
    for one in comparison.figures:
        ended = "" if one.status == "done" else f" ({one.status})"
        table.add_row(
            one.run + ended,
            one.policy,
            f"{one.seconds:.2f}",
            f"{one.avg_bytes / 1e6:,.2f}",
            f"{one.max_bytes / 1e6:,.2f}",
            f"{one.avg_packs:,.0f}",
            f"{one.max_packs:,}",
            f"{one.activations:,}",
            FROM[one.queues_from],
        )
    Console().print(table)
