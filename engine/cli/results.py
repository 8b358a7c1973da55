"""`papilio results`: the page with the latest figures of all benchmarks and experiments."""

from __future__ import annotations

from pathlib import Path

import click

from engine.cli.store import json_option, print_json
from engine.experiments.kept import KEPT


@click.command(name="results")
@click.argument("names", nargs=-1)
@click.option("--run", "running", is_flag=True, help="Run them all, or those named, before the page is written.")
@click.option("--quick", is_flag=True, help="With --run: one round, and the experiments' small form.")
@click.option("--list", "listing", is_flag=True, help="Only say which there are and how long each took.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=KEPT,
    show_default=True,
    help="Where results are kept.",
)
@click.option(
    "--to",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("resources/help/results.md"),
    show_default=True,
    help="The page; its pictures are in `pictures` beside it.",
)
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), default=60, help="The most one may take.")
@json_option
def command(
    names: tuple[str, ...],
    running: bool,
    quick: bool,
    listing: bool,
    folder: Path,
    page: Path,
    minutes: float,
    as_json: bool,
) -> None:
    """Write the page with the latest results; with --run, make them first. One that fails does not stop the rest.

    NAMES are benchmarks and experiments (`ssb`, `caching-fig12`), or `bench` or `experiment` for all of a kind.
    """
    from engine.errors import check_folder, reaching
    from engine.experiments import results
    from engine.experiments.kept import load_average

    folder = folder.resolve()
    todo = results.tasks(folder, names)
    if listing:
        answer = [vars(task) for task in todo]
        if as_json:
            print_json(answer)
        else:
            for task in todo:
                took = "never run here" if task.last_seconds is None else f"{task.last_seconds:,.0f} s the last time"
                of = f", of revision {task.revision}" if task.revision else ""
                click.echo(f"{task.title:<30}{took}{of}{', older than the code here' if task.older else ''}")
            total = sum(task.last_seconds or 0 for task in todo) / 60
            click.echo(f"{len(todo)} in all, {total:,.0f} min the last time")
        return
    check_folder(page.parent)
    ran = []
    if running:
        check_folder(folder)
        if load_average() > results.QUIET_LOAD:
            click.secho(f"the machine is busy: load {load_average()}; the page will say so", fg="yellow", err=True)
        ran = list(
            results.run_all(
                todo,
                lambda task: results.command_for(task, folder, quick),
                lambda text: click.echo(text, err=True),
                60 * minutes,
            )
        )
    with reaching(page):
        page.parent.mkdir(parents=True, exist_ok=True)
        written = results.write_page(folder, page, page.parent / "pictures")
    failed = [one for one in ran if one.failed]
    if as_json:
        print_json(
            {
                "page": str(page),
                "pictures": len(written) - 1,
                "ran": [{"name": one.task.title, "seconds": round(one.seconds, 1)} for one in ran if not one.failed],
                "failed": {one.task.title: one.failed for one in failed},
            }
        )
    else:
        click.echo(f"{page} and {len(written) - 1} pictures")
        for one in failed:
            click.secho(f"failed: {one.task.title}: {one.failed}", fg="red")
    if failed:
        raise click.exceptions.Exit(1)
