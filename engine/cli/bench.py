"""`papilio bench`: side-by-side benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.cli.store import json_option, print_json

_SHOWN = {"seconds", "median", "spread", "peak_mb", "failed"}


@click.command(name="bench")
@click.argument("name", required=False)
@click.option("--rounds", type=click.IntRange(1), help="Default: 3, and 1 for a benchmark that takes minutes.")
@click.option("--scale", type=float, help="TPC-H scale, where the benchmark takes one.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("build/bench"),
    show_default=True,
    help="Where data and targets of the benchmark are kept.",
)
@click.option(
    "--seconds", type=click.FloatRange(10), help="How long each contender runs, where the benchmark lets one choose."
)
@click.option("--full", is_flag=True, help="Also the contenders that take long.")
@click.option(
    "--strict", is_flag=True, help="End with 1 where a claim does not hold, targets differ or a contender fails."
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Keep the report in this folder, for `papilio results`.",
)
@json_option
def command(
    name: str | None,
    rounds: int | None,
    scale: float | None,
    folder: Path,
    seconds: float | None,
    full: bool,
    strict: bool,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Run contenders side by side and compare them. Without a name, list the benchmarks."""
    if name is None:
        from engine.experiments.named import summaries

        for known, summary in summaries("bench", "benchmark").items():
            click.echo(f"{known:<14}{summary}")
        return
    from engine.errors import check_folder, reaching
    from engine.experiments.bench import Options, find, usual_rounds
    from engine.experiments.kept import Kept, clock
    from engine.experiments.kept import keep as keep_result

    rounds = rounds or usual_rounds(name)
    for place in (folder, keep):
        if place is not None:
            check_folder(place)
    options = Options(
        rounds, scale, folder.resolve(), lambda text: click.secho(text, dim=True, err=True), full, seconds=seconds
    )
    kept = Kept("bench", name, {}, options={"rounds": rounds, "scale": scale, "seconds": seconds, "full": full})
    with clock(kept), reaching(folder):
        found = find(name)(options)
    report = found.as_dict()
    if as_json:
        print_json(report)
    else:
        _print(report)
    if keep is not None:
        kept.report = report
        keep_result(kept, keep)
    if strict and not found.stands:
        raise click.exceptions.Exit(1)


def _print(report: dict[str, Any]) -> None:
    width = max((len(name) for name in report["contenders"]), default=0) + 2
    for name, figures in report["contenders"].items():
        seconds = figures["seconds"]
        spread = f"{min(seconds):.2f}-{max(seconds):.2f} s" if seconds else "-"
        median = f"{figures['median']:.2f} s" if seconds else "-"
        memory = f"  peak {figures['peak_mb']:,.0f} MB" if "peak_mb" in figures else ""
        others = [f"{key} {value:,.4g}" for key, value in figures.items() if key not in _SHOWN]
        click.echo(f"{name:<{width}}{median:>10}  ({spread}){memory}{''.join(f'  {text}' for text in others)}")
        if "failed" in figures:
            click.secho(f"{'':<{width}}failed: {figures['failed']}", fg="red")
    for name, value in report["ratios"].items():
        click.echo(f"{name}: {value:.2f}")
    for name, value in report["facts"].items():
        click.echo(f"{name}: {value}")
    for claim, holds in report["claims"].items():
        figures = f" ({report['evidence'][claim]})" if claim in report["evidence"] else ""
        click.secho(f"{'holds' if holds else 'DOES NOT HOLD'}: {claim}{figures}", fg="green" if holds else "red")
    if report["identical"] is not None:
        click.echo("targets are identical" if report["identical"] else "TARGETS DIFFER")
