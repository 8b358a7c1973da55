"""`papilio packs`: look into the queues of a paused run."""

from __future__ import annotations

from typing import Any

import click

from engine.cli.store import json_option, print_json, store_option


@click.command(name="packs")
@click.argument("run")
@click.argument("queue", required=False)
@click.option("--rows", type=click.IntRange(0), default=3, show_default=True, help="Rows of each pack to print.")
@json_option
@store_option
def command(run: str, queue: str | None, rows: int, as_json: bool, place: str | None) -> None:
    """List the packs of every queue of a paused run, or look into those of one queue.

    A queue is named as in `papilio watch`. Only a scheduled run on Spark has packs with rows in them.
    """
    from engine.spark.peek import held_packs, peek
    from engine.store.runs import find_run

    folder = find_run(run, place)
    if queue is None:
        held = held_packs(folder)
        if as_json:
            print_json({id_: [{key: pack[key] for key in ("pack", "rows", "bytes")} for pack in packs]
                        for id_, packs in held.items()})  # fmt: skip
        else:
            _print_queues(held)
        return
    found = peek(folder, queue)
    if as_json:
        print_json(found)
    else:
        _print_packs(found, rows)


def _print_queues(held: dict[str, list[dict[str, Any]]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("Queue", "Packs", "Rows", "Bytes")
    for column in table.columns[1:]:
        column.justify = "right"
    for id_, packs in held.items():
        rows, size = (sum(pack[key] for pack in packs) for key in ("rows", "bytes"))
        table.add_row(id_, f"{len(packs):,}", f"{rows:,}", f"{size:,}")
    Console().print(table)


def _print_packs(found: dict[str, Any], rows: int) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    console = Console()
    names = [escape(column["name"]) for column in found["columns"]]
    for pack in found["packs"]:
        title = f"{pack['pack']}  {pack['rows']:,} rows  {pack['bytes']:,} bytes"
        table = Table(*names, title=title, title_justify="left")
        for row in pack["first"][:rows]:
            table.add_row(*(Text("null" if cell is None else cell, "dim" if cell is None else "") for cell in row))
        console.print(table)
    if found["left_out"]:
        console.print(f"… and {found['left_out']} packs more")
