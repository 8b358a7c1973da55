"""`papilio replay`: see a recorded run again."""

from __future__ import annotations

import time
from pathlib import Path

import click

from engine.cli.store import store_option
from engine.errors import BadInput

FRAME_SECONDS = 0.1


@click.command(name="replay")
@click.argument("run")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="So many of its seconds in one of ours.",
)
@click.option("--designer", is_flag=True, help="Replay it in the designer, with a timeline to scrub.")
@store_option
def command(run: str, speed: float, designer: bool, place: str | None) -> None:
    """Replay a recorded run in the terminal, at any speed; also one whose log was cut off.

    RUN is a run's id or the beginning of it, `last`, its folder or its log.
    """
    from engine.recording import RunRecording
    from engine.store.runs import LOG, find_run

    folder = find_run(run, place)
    log = Path(run) if Path(run).is_file() else folder / LOG
    if designer:
        from engine.cli.design import open_designer

        open_designer("--replay", str(log.resolve()))
    recording = RunRecording.load(log)
    if recording.started is None:
        raise BadInput(recording.damage or f"{log}: holds no run")
    from rich.console import Console
    from rich.live import Live

    from engine.cli._watching import picture

    console = Console()
    begun = time.monotonic()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            at = min((time.monotonic() - begun) * speed, recording.end)
            over = at >= recording.end
            if console.is_terminal or over:
                live.update(picture(recording, at, recording.status if over else None, console.height), refresh=True)
            if over:
                return
            time.sleep(min(FRAME_SECONDS, max(0.0, (recording.end - at) / speed)))
