"""What a person sees of a run in the terminal: a bar for each part, then what landed where."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from engine.events import (
    Event,
    PlanChosen,
    QueueSpilled,
    Remark,
    RowsRefused,
    RunPaused,
    RunResumed,
    SparkReady,
    UnitActivated,
    UnitFailed,
    UnitFinished,
    UnitProgress,
    UnitStarted,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from engine.model.binding import Bound


class Display:
    """A live display of a run on standard error, so that standard output stays clean."""

    def __init__(self, bound: Bound, quiet: bool = False) -> None:
        self.bound = bound
        self.quiet = quiet
        self._bars: dict[str, TaskID] = {}
        self._rows: dict[str, int] = {}
        self._live = sys.stderr.isatty() and not quiet
        if self._live:
            from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                SpinnerColumn(finished_text="[green]✓"),
                TextColumn("{task.description}"),
                BarColumn(bar_width=28),
                TextColumn("{task.fields[note]}"),
                TimeElapsedColumn(),
                console=self.console,
            )

    @cached_property
    def console(self) -> Console:
        """The terminal, loaded when there is something to show on it."""
        from rich.console import Console

        return Console(stderr=True)

    def __enter__(self) -> Display:
        if self._live:
            self._progress.start()
            self._bars["spark"] = self._progress.add_task("Spark", total=None, note="starting")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def begun(self, run: str, folder: Path) -> None:
        """Tell the run's name, by which it can be watched and driven."""
        self.console.print(
            f"[dim]run {run}  (`papilio watch {run}` shows it, `papilio control {run} pause` pauses it)[/dim]"
        )

    def show(self, event: Event) -> None:
        """Show what an event changes."""
        if self.quiet:
            return
        match event:
            case SparkReady():
                self._say("spark", f"Spark {event.version} on {event.master}", event.seconds)
            case PlanChosen():
                told = f"plan {event.signature}  {event.cost:,.0f} {event.unit} ({event.model})"
                self.console.print(told, style="dim", markup=False, highlight=False)
                for remark in event.remarks:
                    self.console.print(f"[yellow]! {remark}[/yellow]")
            case UnitStarted() if self._live:
                self._bars[event.unit] = self._progress.add_task(self._title(event.unit), total=None, note="")
            case UnitProgress() if self._live:
                self._progress.update(
                    self._bars[event.unit],
                    total=event.tasks_total,
                    completed=event.tasks_done,
                    note=f"{event.tasks_done}/{event.tasks_total} tasks",
                )
            case UnitActivated() if self._live:
                self._rows[event.unit] = self._rows.get(event.unit, 0) + (event.rows_out or event.rows_in)
                self._progress.update(self._bars[event.unit], note=f"{self._rows[event.unit]:,} rows")
            case QueueSpilled():
                self.console.print(
                    f"[yellow]! the queue {event.queue} spills: nothing else could go on "
                    f"(it may hold {event.packs:,} packs now)[/yellow]"
                )
            case UnitFinished():
                rows = "" if event.rows is None else f"{event.rows:,} rows"
                self._say(event.unit, self._title(event.unit), event.seconds, rows)
                self._rows.pop(event.unit, None)
            case UnitFailed():
                self.console.print(f"[red]✗ {self._title(event.unit)}: node `{event.node}`: {event.reason}[/red]")
            case RowsRefused():
                self.console.print(
                    f"[yellow]! {event.node}: {event.rows:,} of {event.total:,} rows refused "
                    f"(port `{event.port}` is not connected)[/yellow]"
                )
            case RunPaused() if not event.running:
                self.console.print("[yellow]‖ paused[/yellow]")
            case RunResumed():
                self.console.print("[green]▶ goes on[/green]")
            case Remark():
                self.console.print(f"[yellow]! {event.message}[/yellow]")

    def _title(self, unit: str) -> str:
        node = self.bound.workflow.nodes.get(unit)
        return (node.title if node and node.title else unit) if node else unit

    def _say(self, id_: str, title: str, seconds: float, note: str = "") -> None:
        if self._live and id_ in self._bars:
            task = self._bars[id_]
            self._progress.update(task, description=title, total=1, completed=1, note=note)
        elif not self._live:
            self.console.print(f"✓ {title}  {note}  {seconds:.1f} s".replace("    ", "  "))

    def print_summary(self, summary: dict[str, Any]) -> None:
        """What landed where, and how long each part took."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading, justify in (
            ("target", "left"),
            ("rows", "right"),
            ("seconds", "right"),
            ("where", "left"),
        ):
            table.add_column(heading, justify=justify)  # type: ignore[arg-type]
        for node, target in summary["targets"].items():
            seconds = summary["units"][node]["seconds"]
            table.add_row(self._title(node), f"{target['rows']:,}", f"{seconds:.1f}", target["path"])
        others = [unit for unit in summary["units"] if unit not in summary["targets"]]
        for unit in others:
            info = summary["units"][unit]
            turns = info.get("activations")
            note = "staged for several readers" if turns is None else f"{turns} turn{'s' if turns != 1 else ''}"
            table.add_row(
                f"[dim]{self._title(unit)}", f"[dim]{info['rows']:,}", f"[dim]{info['seconds']:.1f}", f"[dim]{note}"
            )
        self.console.print(table)
        self.console.print(
            f"[green]Done in {summary['seconds']:.1f} s[/green]  run {summary['run']}  log {summary['folder']}"
        )
        self.console.print(_queue_text(summary))


def print_simulated(summary: dict[str, Any]) -> None:
    """What a simulated run came to, on standard error. Plain lines: it was over before a display could be loaded."""
    clock = click.style(f"{summary['seconds']:,.2f} s", fg="green")
    click.echo(
        f"{clock} simulated  policy {summary['policy']}  granularity {summary['granularity']}  "
        f"run {summary['run']}  log {summary['folder']}",
        err=True,
    )
    click.echo(_queue_text(summary), err=True)
    if summary["assumed"]:
        nodes = ", ".join(summary["assumed"])
        click.secho(f"! Nobody said how many rows pass {nodes}; hints in the file would tell.", fg="yellow", err=True)


def _queue_text(summary: dict[str, Any]) -> str:
    """Turns, and what the queues held where rows travelled in packs."""
    queue, turns = summary["queue"], f"{summary['activations']:,} turns"
    if not queue["max_packs"]:
        return f"{turns}  no rows waited in queues"
    return (
        f"{turns}  queues hold {queue['avg_bytes'] / 2**20:,.1f} MB on average, {queue['max_bytes'] / 2**20:,.1f} MB "
        f"at most ({queue['avg_packs']:,.1f} and {queue['max_packs']:,} packs, {queue['avg_rows']:,.0f} and "
        f"{queue['max_rows']:,} rows)"
    )
