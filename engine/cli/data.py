"""`papilio data`: generate data sets for workflows and experiments."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from engine.experiments.data import Generated, Progress
    from engine.experiments.dirt import Dirt

_F = TypeVar("_F", bound=Callable[..., Any])

_scale = click.option("--scale", type=float, required=True, help="1 is about 1 GB as text, 330 MB as Parquet.")
_to = click.option("--to", "folder", type=click.Path(path_type=Path), required=True, help="Folder for the tables.")
_replace = click.option("--replace", is_flag=True, help="Replace data of another kind.")
_json = click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")


def _share(kind: str, what: str) -> Callable[[_F], _F]:
    """An option for the share of the rows that a kind of dirt hits."""
    return click.option(f"--{kind}", type=float, default=0.0, metavar="SHARE", help=f"Share of the rows: {what}.")


def _dirt(broken: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options for dirt, which a command gets as one; `broken` says which formats are broken."""
    options = [
        _share("nulls", "a NULL in a column that must have a value"),
        _share("duplicates", "come twice"),
        _share("broken", f"{broken} in a broken format"),
        _share("key-misses", "a foreign key that leads nowhere"),
        click.option("--seed", type=int, default=1, show_default=True, help="Another seed makes other rows dirty."),
    ]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def given(nulls: float, duplicates: float, broken: float, key_misses: float, seed: int, **others: Any) -> None:
            from engine.experiments.dirt import Dirt

            command(dirt=Dirt(nulls, duplicates, broken, key_misses, seed), **others)

        for option in reversed(options):
            given = option(given)
        return given

    return add


@click.group()
def command() -> None:
    """Generate data sets."""


@command.command()
@_scale
@_to
@click.option("--format", type=click.Choice(["parquet", "tbl", "csv"]), default="parquet", show_default=True)
@click.option("--tables", help="Only these tables, separated by commas. [default: all eight]")
@_dirt("a phone number, brand, priority or shipping mode")
@_replace
@_json
def tpch(
    scale: float,
    folder: Path,
    format: str,
    tables: str | None,
    dirt: Dirt,
    replace: bool,
    as_json: bool,
) -> None:
    """Generate the tables of TPC-H, one file each.

    Tables that are there already are kept. A generation that fails or is cancelled leaves nothing behind. Dirt is
    dialled in by the share of the rows it hits, 0.05 for one in twenty; the same seed hits the same rows.
    """
    from engine.experiments.data import TPCH_TABLES, generate_tpch

    wanted = [name.strip() for name in tables.split(",") if name.strip()] if tables is not None else TPCH_TABLES
    with _progress(f"TPC-H at scale {scale:g}") as show:
        answer = generate_tpch(folder, scale, format=format, tables=wanted, replace=replace, dirt=dirt, progress=show)
    _tell(answer, as_json)


@command.command()
@_scale
@_to
@_dirt("a phone number, brand or shipping mode")
@_replace
@_json
def ssb(scale: float, folder: Path, dirt: Dirt, replace: bool, as_json: bool) -> None:
    """Generate the tables of the star schema benchmark, derived from TPC-H of the same scale.

    They are lineorder, customer, supplier, part and date, one Parquet file each. The workflow `tpch_to_ssb` makes the
    same tables step by step. Tables that are there already are kept. Dirt is dialled in by the share of the rows it
    hits, as for TPC-H; `date` stays clean.
    """
    from engine.experiments.ssb import generate_ssb

    with _progress(f"SSB at scale {scale:g}") as show:
        answer = generate_ssb(folder, scale, replace=replace, dirt=dirt, progress=show)
    _tell(answer, as_json)


@contextlib.contextmanager
def _progress(title: str) -> Iterator[Progress]:
    """A bar on the terminal, where there is one; yields what moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn(title),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, expected: int) -> None:
            bar.update(task, completed=done, total=max(done, expected))

        yield show


def _tell(answer: Generated, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(_as_json(answer), indent=2))
    else:
        _print(answer)


def _as_json(answer: Generated) -> dict[str, object]:
    data = answer.data
    return {
        "folder": str(answer.folder),
        "benchmark": data.benchmark,
        "scale": data.scale,
        "format": data.format,
        "dirt": data.dirt,
        "dirtied": data.dirtied,
        "kept": answer.kept,
        "rows": data.rows,
        "bytes": data.bytes,
        "seconds": round(answer.seconds, 3),
        "tables": {
            name: {"rows": table.rows, "bytes": table.bytes, "path": str(answer.folder / table.file)}
            for name, table in data.tables.items()
        },
    }


def _print(answer: Generated) -> None:
    from engine.experiments.data import TITLES

    data = answer.data
    title = f"{TITLES[data.benchmark]} at scale {data.scale:g}"
    if answer.kept:
        click.echo(f"{title} is already in {answer.folder}: {data.rows:,} rows, kept.")
        return
    for name, table in data.tables.items():
        hit = ", ".join(f"{rows:,} {kind.replace('_', ' ')}" for kind, rows in data.dirtied.get(name, {}).items())
        click.echo(f"  {name:<10}{table.rows:>14,} rows {table.bytes / 1e6:>10,.1f} MB  {hit}".rstrip())
    click.echo(f"{title}: {data.rows:,} rows in {answer.folder}, {answer.seconds:.1f} s")
