"""`papilio scale`: elastic ETL+Q, simulated or live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli._workflow import Given, spark_conf, takes_workflow, trust_option
from engine.cli.store import json_option, print_json, store_option

if TYPE_CHECKING:
    from engine.events import Event

_SHOWN = 40  # decisions that a person reads; the log has all
_COLOURS = {"scale out": "green", "scale in": "cyan", "unreachable": "red"}
_FILE = click.Path(path_type=Path)


@click.group(name="scale")
def command() -> None:
    """Keep the time limits that a workflow file states, by adding and removing nodes."""


@command.command()
@click.argument("file", type=_FILE)
@click.option("--plot", type=_FILE, metavar="F.svg|F.png", help="Draw rate, nodes, times, queues and buffers there.")
@click.option("--run-dir", type=_FILE, help="Where the run keeps its log and its files.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@store_option
@json_option
def simulate(
    file: Path, plot: Path | None, run_dir: Path | None, events: str | None, place: str | None, as_json: bool
) -> None:
    """Reckon what the scaler would do: the file's data rate against a model of the stages."""
    from engine.drawing import check_picture, write_picture
    from engine.elastic.record import ElasticRecord
    from engine.elastic.simulation import launch_simulation
    from engine.model.file import load

    if plot is not None:
        check_picture("--plot", plot)
    record = ElasticRecord(load(file), backend="simulated", folder=run_dir, store=place, events=events)
    summary, result = launch_simulation(record)
    if plot is not None:
        from engine.experiments.elastic_charts import charts
        from engine.experiments.svg import stacked

        write_picture(stacked(charts(record.limits, result)), plot)
        summary["plot"] = str(plot)
    if as_json:
        print_json(summary)
    elif events != "-":
        _print(summary)


@command.command()
@takes_workflow
@click.option(
    "--master",
    help="An existing cluster (spark://…, k8s://…, yarn), which scales by Spark's dynamic allocation. Default: a "
    "cluster on this machine whose Workers are started and stopped.",
)
@click.option("--driver-memory", type=click.IntRange(512), default=1024, show_default=True, metavar="MB")
@click.option("--spark-conf", "confs", multiple=True, metavar="K=V", help="One of Spark's own settings.")
@click.option("--run-dir", type=_FILE, help="Where the run keeps its log and the warehouse.")
@click.option("--events", metavar="-|FILE", help="Also write the events there; - is standard output.")
@trust_option
@json_option
def run(
    given: Given,
    master: str | None,
    driver_memory: int,
    confs: tuple[str, ...],
    run_dir: Path | None,
    events: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Run it live: TPC-H rows at the asked rate into a partitioned warehouse on Spark.

    Rows that are not there yet are generated first. Ctrl-C stops everything that was started.
    """
    from engine.elastic.record import ElasticRecord
    from engine.experiments.elastic_data import make_lines
    from engine.model.file import load
    from engine.partition.batches import refuse_blocking
    from engine.store.trust import refuse_untrusted

    quiet = as_json or events == "-"
    record = ElasticRecord(
        load(given.file),
        backend="spark",
        master=master,
        folder=run_dir,
        store=given.store,
        events=events,
        listener=None if quiet else _show,
    )
    bound = given.open()
    refuse_untrusted(bound, trust)
    refuse_blocking(bound, record.limits.live)
    make_lines(bound, record.limits.live, lambda text: None if quiet else click.secho(text, dim=True, err=True))
    bound = given.open()
    bound.raise_errors()
    from engine.elastic.launch import launch_live

    summary = launch_live(
        bound, record, driver_memory_mb=driver_memory, confs=dict(spark_conf(text) for text in confs), trusted=trust
    )
    if as_json:
        print_json(summary)
    elif not quiet:
        rows, warehouse = summary["rows"], summary["warehouse"]
        click.secho(f"done in {summary['seconds']:.1f} s", bold=True, nl=False)
        click.echo(f"  run {summary['run']}  log {summary['folder']}")
        click.echo(f"rows       {rows['generated']:,} generated, {rows['warehouse']:,} in the warehouse")
        click.echo(f"warehouse  {warehouse['nodes']} nodes, {warehouse['bytes'] / 1e6:,.1f} MB, {warehouse['folder']}")
        _print_times(summary["times"])
        _print_unreachable(summary)


def _show(event: Event) -> None:
    """What a person wants to see of a live run as it happens."""
    from engine.events import LoadFinished, NodeChanged, Rebalanced, Remark, ScalingDecided, SparkReady

    match event:
        case SparkReady():
            click.echo(f"Spark {event.version} on {event.master} after {event.seconds:.1f} s")
        case ScalingDecided():
            click.secho(f"{event.stage} {event.action}", fg=_COLOURS[event.action], nl=False)
            click.echo(f": {event.reason}")
        case NodeChanged():
            colour = "red" if event.change in ("failed", "lost") else None
            why = f": {event.reason}" if event.reason else ""
            click.secho(f"{event.stage} node {event.change} {event.node or ''}".rstrip() + why, fg=colour, nl=False)
            click.echo(f"  ({event.nodes} nodes, {event.seconds:.1f} s)")
        case Rebalanced():
            click.echo(
                f"rebalanced {event.nodes_before} → {event.nodes_after} nodes: {event.bytes / 1e6:,.1f} MB in "
                f"{event.seconds:.1f} s"
            )
        case LoadFinished():
            click.secho(f"loaded {event.rows:,} rows in {event.seconds:.2f} s, {event.total_rows:,} in all", dim=True)
        case Remark():
            click.secho(f"! {event.message}", fg="yellow")


def _print_unreachable(summary: dict[str, Any]) -> None:
    for stage in summary["unreachable"]:
        click.secho(f"! the limit of the {stage} could not be kept with the nodes there are", fg="yellow")


def _print_times(times: dict[str, Any]) -> None:
    limit = f", limit {times['etl_limit_s']:g} s" if times["etl_limit_s"] is not None else ""
    query = f", query {times['query_max_s']:.2f}" if times["query_max_s"] is not None else ""
    click.echo(
        f"at most     extraction {times['extraction_max_s']:.2f} s, "
        f"transformation {times['transformation_max_s']:.2f}, load {times['load_max_s']:.2f}{query}; "
        f"all three {times['etl_max_s']:.2f} s{limit}"
    )
    if times["slowest"] is not None:
        click.secho(
            f"! all three took more than {times['etl_limit_s']:g} s in {times['late_share']:.1%} of the looks; the "
            f"{times['slowest']} took longest",
            fg="yellow",
        )


def _print(summary: dict[str, Any]) -> None:
    times, buffer, cost = summary["times"], summary["buffer"], summary["cost"]
    click.secho(f"{summary['seconds']:,.0f} s simulated in {summary['wall_seconds']:.1f} s", bold=True)
    rows = summary["rows"]
    click.echo(
        f"rows        {rows['generated']:,} generated, {rows['loaded']:,} loaded, {rows['waiting']:,} on their way"
    )
    nodes = "  ".join(f"{stage} {found['least']}–{found['most']}" for stage, found in summary["nodes"].items())
    click.echo(f"nodes       {nodes}")
    _print_times(times)
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
    for decision in decisions[:_SHOWN]:
        number = f" {decision['number']:+d}" if decision["kind"] == "scale out" else ""
        click.echo(f"{decision['at_s']:>10,.0f} s  {decision['rate_rows_s']:>12,} rows/s  ", nl=False)
        click.secho(f"{decision['stage']} {decision['kind']}{number}", fg=_COLOURS[decision["kind"]], nl=False)
        click.echo(f": {decision['reason']}")
    if len(decisions) > _SHOWN:
        click.echo(f"            … and {len(decisions) - _SHOWN:,} more in {summary['folder']}/events.jsonl")
    for warning in summary["warnings"]:
        click.secho(f"! {warning}", fg="yellow")
    if buffer["full_s"]:
        click.secho(
            f"! the buffers were full for {buffer['full_s']:,.1f} s, and rows waited in the transformation's queues",
            fg="yellow",
        )
    _print_unreachable(summary)
    if "plot" in summary:
        click.echo(f"drawn: {summary['plot']}")
