"""What a person sees of a streaming warehouse in the terminal: every table's staleness, as it changes."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from engine.events import Event, Remark, RowsRefused, SparkReady, TableStaleness, UpdateFinished, UpdateStarted

BAR = 24
REDRAW_S = 0.25


class StreamDisplay:
    """A live table on standard error, so that standard output stays clean."""

    def __init__(self, tables: Sequence[str], quiet: bool = False) -> None:
        from rich.console import Console

        self.quiet = quiet
        self.console = Console(stderr=True)
        self.stale: dict[str, tuple[float, float]] = {}  # when it was told, and what
        self.bounds: dict[str, float | None] = {}
        self.updates: dict[str, int] = dict.fromkeys(tables, 0)
        self.rows: dict[str, int] = dict.fromkeys(tables, 0)
        self.late: dict[str, int] = dict.fromkeys(tables, 0)
        self.running: dict[int, str] = {}
        self._live: Any = None
        self._drawn = 0.0

    def __enter__(self) -> StreamDisplay:
        if sys.stderr.isatty() and not self.quiet:
            from rich.live import Live

            self._live = Live(console=self.console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take in what an event tells."""
        if self.quiet:
            return
        match event:
            case SparkReady():
                self.console.print(f"✓ Spark {event.version} on {event.master}  {event.seconds:.1f} s; Ctrl-C stops")
            case TableStaleness():
                self.stale[event.table] = event.time, event.staleness
                self.bounds[event.table] = event.bound
            case UpdateStarted():
                self.running[event.track] = ", ".join(event.tables)
            case UpdateFinished():
                self.running.pop(event.track, None)
                for table in event.tables:
                    self.updates[table] = self.updates.get(table, 0) + 1
                    self.rows[table] = self.rows.get(table, 0) + event.rows
                    self.late[table] = self.late.get(table, 0) + event.late
            case Remark():
                self.console.print(f"[yellow]! {event.message}[/yellow]", highlight=False)
            case RowsRefused():
                self.console.print(f"[yellow]! {event.node}: {event.rows:,} rows refused[/yellow]")
        if self._live is not None and time.monotonic() - self._drawn > REDRAW_S:
            self._drawn = time.monotonic()
            self._live.update(self._table(), refresh=True)

    def _table(self) -> Any:
        from rich.table import Table

        now = time.time()
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("table", "stale", "", "bound", "updates", "rows written", "late"):
            table.add_column(name, justify="left" if name in ("table", "") else "right")
        longest = max([1.0, *(now - at + value for at, value in self.stale.values())])
        busy = set(self.running.values())
        for name in self.updates:
            at, value = self.stale.get(name, (now, 0.0))
            stale = now - at + value
            bound = self.bounds.get(name)
            broken = bound is not None and stale > bound
            bar = "█" * max(1, round(BAR * stale / longest))
            colour = "red" if broken else "green" if name in busy else "cyan"
            table.add_row(
                name, f"{stale:.1f} s", f"[{colour}]{bar}[/{colour}]", "" if bound is None else f"{bound:g} s",
                f"{self.updates[name]:,}", f"{self.rows[name]:,}", f"{self.late.get(name, 0):,}",
            )  # fmt: skip
        return table

    def print_summary(self, summary: dict[str, Any]) -> None:
        """How fresh the tables were, and which bounds were broken."""
        import click

        click.echo(
            f"{summary['seconds']:,.0f} s, {summary['jobs']:,} updates, {summary['rows']:,} rows written, tracks "
            f"{summary['utilization']:.0%} busy, weighted staleness {summary['weighted_staleness']:,.2f} s"
        )
        print_tables(summary["tables"])


def print_tables(tables: dict[str, dict[str, Any]]) -> None:
    """The staleness and the bound of every table."""
    import click

    for name, table in tables.items():
        bound = ""
        if table["bound_s"] is not None:
            kept = f"broken {table['bound_broken']} times" if table["bound_broken"] else "kept"
            bound = f"  bound {table['bound_s']:g} s {kept}"
        late = f"  {table['late_rows']:,} late" if table.get("late_rows") else ""
        click.echo(
            f"  {name:24} {table['staleness_avg_s']:8.2f} s on average, {table['staleness_max_s']:8.2f} s at most, "
            f"{table['updates']:,} updates{late}{bound}"
        )


def print_simulated(summary: dict[str, Any]) -> None:
    """What a simulated warehouse came to."""
    import click

    click.echo(
        f"{summary['events']:,} events, {summary['clock_s']:,.0f} s of the virtual clock in {summary['seconds']:.2f} s"
        f", {summary['jobs']:,} updates, tracks {summary['utilization']:.0%} busy"
    )
    click.secho(
        f"relative lateness {summary['relative_lateness']:.3f}, "
        f"weighted staleness {summary['weighted_staleness']:,.2f} s",
        bold=True,
    )
    print_tables(summary["tables"])
    broken = summary["bounds"]["broken"]
    if broken or summary["bounds"]["kept"]:
        kept = len(summary["bounds"]["kept"])
        click.secho(f"{kept} bounds kept, {len(broken)} broken", fg="red" if broken else "green")
    if not summary["fits"]:
        click.secho("! not every track has a feasible schedule: more tracks, or another sharing", fg="yellow", err=True)
    if summary["assumed"]:
        names = ", ".join(summary["assumed"][:5]) + (" and others" if len(summary["assumed"]) > 5 else "")
        click.secho(f"! assumed what an update costs, for nothing is known of it: {names}", fg="yellow", err=True)
    if not summary["logged"]:
        click.secho("The log has no updates: there are too many to read.", dim=True, err=True)
    click.secho(f"replay: papilio watch {summary['folder']}", dim=True, err=True)
