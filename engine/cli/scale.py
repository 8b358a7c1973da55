"""`papilio scale`: elastic ETL+Q, simulated or live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from engine.cli.store import json_option, print_json, store_option
from engine.errors import BadInput

_SHOWN = 40  # decisions that a person reads; the log has all
_FILE = click.Path(path_type=Path)


@click.group(name="scale")
def command() -> None:
    """Keep the time limits that a workflow file states, by adding and removing nodes."""


@command.command()
@click.argument("file", type=_FILE)
@click.option("--plot", type=_FILE, metavar="F.svg", help="Draw rate, nodes, times, queues and buffers there.")
@click.option("--run-dir", type=_FILE, help="Where the run keeps its log and its files.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@store_option
@json_option
def simulate(
    file: Path, plot: Path | None, run_dir: Path | None, events: str | None, place: str | None, as_json: bool
) -> None:
    """Reckon what the scaler would do: the file's data rate against a model of the stages."""
    from engine.elastic.simulation import launch_simulation
    from engine.model.file import load, write_text

    opened = load(file)
    summary, result = launch_simulation(opened, folder=run_dir, store=place, events=events)
    if plot is not None:
        from engine.elastic.record import limits_of
        from engine.experiments.elastic_charts import charts
        from engine.experiments.svg import stacked

        if not plot.parent.is_dir():
            raise BadInput(f"--plot {plot}: there is no folder {plot.parent}")
        write_text(plot, stacked(charts(limits_of(opened), result)))
        summary["plot"] = str(plot)
    if as_json:
        print_json(summary)
    elif events != "-":
        _print(summary)


def _print(summary: dict[str, Any]) -> None:
    times, buffer, cost = summary["times"], summary["buffer"], summary["cost"]
    click.secho(f"{summary['seconds']:,.0f} s simulated in {summary['wall_seconds']:.1f} s", bold=True)
    rows = summary["rows"]
    click.echo(
        f"rows        {rows['generated']:,} generated, {rows['loaded']:,} loaded, {rows['waiting']:,} on their way"
    )
    nodes = "  ".join(f"{stage} {found['least']}–{found['most']}" for stage, found in summary["nodes"].items())
    click.echo(f"nodes       {nodes}")
    limit = f", limit {times['etl_limit_s']:g} s" if times["etl_limit_s"] is not None else ""
    query = f", query {times['query_max_s']:.2f}" if times["query_max_s"] is not None else ""
    click.echo(
        f"at most     extraction {times['extraction_max_s']:.2f} s, "
        f"transformation {times['transformation_max_s']:.2f}, load {times['load_max_s']:.2f}{query}; "
        f"all three {times['etl_max_s']:.2f} s{limit}"
    )
    click.echo(
        f"            queue {summary['queue_max_mb']:,.1f} MB, buffer memory {buffer['memory_max_mb']:,.1f} MB, "
        f"disk {buffer['disk_max_mb']:,.1f} MB"
    )
    moved = sum(one["moved_mb"] for one in summary["rebalancings"])
    seconds = sum(one["seconds"] for one in summary["rebalancings"])
    click.echo(f"rebalanced  {len(summary['rebalancings'])} times, {moved:,.0f} MB in {seconds:,.1f} s")
    share = f", {cost['share_of_peak']:.0%} of the peak's all the time" if cost["share_of_peak"] else ""
    click.echo(f"cost        {cost['node_hours']:,.1f} node hours{share}")
    decisions = summary["decisions"]
    colours = {"scale out": "green", "scale in": "cyan", "unreachable": "red"}
    for decision in decisions[:_SHOWN]:
        number = f" {decision['number']:+d}" if decision["kind"] == "scale out" else ""
        click.echo(f"{decision['at_s']:>10,.0f} s  {decision['rate_rows_s']:>12,} rows/s  ", nl=False)
        click.secho(f"{decision['stage']} {decision['kind']}{number}", fg=colours[decision["kind"]], nl=False)
        click.echo(f": {decision['reason']}")
    if len(decisions) > _SHOWN:
        click.echo(f"            … and {len(decisions) - _SHOWN:,} more in {summary['folder']}/events.jsonl")
    for stage in summary["unreachable"]:
        click.secho(f"! the limit of the {stage} could not be kept with the nodes there are", fg="yellow")
    if "plot" in summary:
        click.echo(f"drawn: {summary['plot']}")
