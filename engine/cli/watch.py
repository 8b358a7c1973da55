"""`papilio watch`: look at a run while it goes on, or at one that has ended."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli.store import json_option, print_json, store_option

if TYPE_CHECKING:
    from engine.recording import RunRecording

LOOK_SECONDS = 0.2
ENDS = {"done": 0, "failed": 1, "interrupted": 1, "cancelled": 3}


@click.command(name="watch")
@click.argument("run")
@click.option("--designer", is_flag=True, help="Watch it in the designer, where it can also be driven.")
@click.option("--once", is_flag=True, help="Show how it stands now, and end.")
@json_option
@store_option
def command(run: str, designer: bool, once: bool, as_json: bool, place: str | None) -> None:
    """Watch a run: nodes with their rows, queues, memory, and why the policy picks whom.

    RUN is a run's id or the beginning of it, `last`, its folder or its log. Ends when the run ends, with its exit
    code: 0 done, 1 failed or interrupted, 3 cancelled. Ctrl-C ends watching, not the run.
    """
    from engine.control import is_alive
    from engine.recording import RunRecording
    from engine.store.runs import LOG, find_run

    folder = find_run(run, place)
    log = Path(run) if Path(run).is_file() else folder / LOG
    if designer:
        from engine.cli.design import open_designer

        open_designer("--watch", str(log.resolve()))
    recording = RunRecording(log)

    def look() -> str:
        """Take what is new, and say how the run stands."""
        alive = is_alive(folder)  # first: what it wrote before it ended is read after
        while recording.read():
            pass
        recording.over = not alive
        return recording.state().status if alive or recording.finished else "interrupted"

    status = look()
    if as_json or once:
        _tell(recording, status, as_json)
        return
    try:
        status = _follow(recording, look, status)
    except KeyboardInterrupt:
        return
    sys.exit(ENDS.get(status, 1))


def _follow(recording: RunRecording, look: Any, status: str) -> str:
    """Show the run until it ends."""
    from rich.console import Console
    from rich.live import Live

    from engine.cli._watching import picture

    console = Console()
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            if console.is_terminal or status in ENDS:
                live.update(picture(recording, recording.end, status, console.height), refresh=True)
            if status in ENDS:
                return status
            time.sleep(LOOK_SECONDS)
            status = look()


def _tell(recording: RunRecording, status: str, as_json: bool) -> None:
    """How the run stands, once."""
    if not as_json:
        from rich.console import Console

        from engine.cli._watching import picture

        Console().print(picture(recording, recording.end, status, 200))
        return
    state = recording.state()
    print_json(
        {
            "run": recording.name,
            "status": status,
            "seconds": round(state.at, 3),
            "policy": recording.policy,
            "nodes": {id_: dataclasses.asdict(node) for id_, node in state.nodes.items()},
            "queues": {id_: {**dataclasses.asdict(queue), "level": queue.level} for id_, queue in state.queues.items()},
            "memory_bytes": state.memory_bytes,
            "disk_bytes": state.disk_bytes,
            "targets": state.committed,
            "events": recording.count,
            "damage": recording.flaw,
        }
    )
