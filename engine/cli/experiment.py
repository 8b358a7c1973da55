"""`papilio experiment`: a paper's table or figure made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.cli.store import json_option, print_json

if TYPE_CHECKING:
    from engine.experiments.experiment import Report, Table

_COLOURS = {"reproduced": "green", "not reproduced": "red", "not reproducible on this machine": "yellow"}
_WIDTH = max(map(len, _COLOURS)) + 2


@click.command(name="experiment")
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="A smaller one, in a minute or less.")
@click.option("--scale", type=click.FloatRange(min=0, min_open=True), help="The largest scale, where it runs on data.")
@click.option(
    "--folder",
    "data_folder",
    type=click.Path(path_type=Path),
    default=Path("build/experiments"),
    show_default=True,
    help="Where data and targets of the experiment are kept, where it has any, and what it finds.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    help="Write tables (CSV) and charts (SVG, PNG) there. Default: a folder of its name in --folder.",
)
@click.option("--strict", is_flag=True, help="End with 1 where a claim is not reproduced.")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the report in this folder, for `papilio results`.",
)
@json_option
def command(
    name: str | None,
    quick: bool,
    scale: float | None,
    data_folder: Path,
    folder: Path | None,
    strict: bool,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Make a paper's table or figure again and judge its claims. Without a name (or with `list`), list them."""
    if name is None or name.lower() == "list":
        from engine.experiments.named import summaries

        for known, summary in summaries("experiment", "experiment").items():
            click.echo(f"{known:<16}{summary}")
        return
    from engine.drawing import INSTALL, can_draw
    from engine.errors import BadInput, check_folder, reaching
    from engine.experiments.experiment import Options, find, has_scale
    from engine.experiments.kept import Kept, clock
    from engine.experiments.kept import keep as keep_result
    from engine.experiments.svg import draw

    if scale is not None and not has_scale(name):
        raise BadInput(f"the experiment `{name}` has no scale: its sizes are the paper's")
    folder = folder or data_folder / name
    for place in (folder, data_folder, keep):
        if place is not None:
            check_folder(place)
    options = Options(quick, lambda text: click.secho(text, dim=True, err=True), scale, data_folder.resolve())
    kept = Kept("experiment", name, {}, options={"quick": quick, "scale": scale})
    with clock(kept), reaching(data_folder):
        report = find(name)(options)
    if as_json:
        print_json(report.as_dict())
    else:
        _print(report)
    if keep is not None:
        kept.report, kept.charts = report.as_dict(), [draw(chart) for chart in report.charts]
        keep_result(kept, keep)
    for file in report.write(folder):
        click.secho(f"written: {file}", dim=True, err=True)
    if report.charts and not can_draw():
        click.secho(f"no PNG beside the SVG: resvg, which paints it, is not installed: {INSTALL}", err=True)
    if strict and not report.stands:
        raise click.exceptions.Exit(1)


def _print(report: Report) -> None:
    click.secho(report.title, bold=True)
    for table in report.tables:
        _print_table(table)
    for claim in report.claims:
        click.secho(f"{claim.verdict.value:<{_WIDTH}}", fg=_COLOURS[claim.verdict.value], nl=False)
        click.echo(f"{claim.text}\n{'':<{_WIDTH}}{claim.figures}")


def _print_table(table: Table) -> None:
    from engine.experiments.finite import finite

    def text(cell: object) -> str:
        if cell is None:
            return "-"
        if isinstance(cell, float):
            return f"{cell:,.4g}" if abs(cell) < 100 else f"{cell:,.0f}"
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    if table.title:
        click.echo(f"\n{table.title}")
    rows = [[text(finite(cell)) for cell in row] for row in table.rows]
    numeric = [
        all(isinstance(row[column], (int, float, type(None))) for row in table.rows)
        for column in range(len(table.headings))
    ]
    widths = [max(map(len, column)) for column in zip(table.headings, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        sides = zip(cells, widths, numeric, strict=True)
        return "  " + "  ".join(f"{cell:>{width}}" if right else f"{cell:<{width}}" for cell, width, right in sides)

    click.secho(line(list(table.headings)).rstrip(), bold=True)
    for row in rows:
        click.echo(line(row).rstrip())
    click.echo()
