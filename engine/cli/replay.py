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
    help="So many of its seconds in one of ours; 1 unless given.",
)
@click.option("--designer", is_flag=True, help="Replay it in the designer, with a timeline to scrub.")
@store_option
def command(run: str, speed: float | None, designer: bool, place: str | None) -> None:
    """Replay a recorded run in the terminal, at any speed; also one whose log was cut off.

    RUN is a run's id or the beginning of it, `last`, its folder or its log.
    """
    from engine.control import is_alive
    from engine.recording import RunRecording
    from engine.store.runs import LOG, find_run

    folder = find_run(run, place)
    log = Path(run) if Path(run).is_file() else folder / LOG
    if designer:
        from engine.cli.design import open_designer

        open_designer("--replay", str(log.resolve()), *(["--speed", f"{speed:g}"] if speed is not None else []))
    speed = speed or 1.0
    over = not is_alive(folder)  # first: what it wrote before it ended is read after
    recording = RunRecording.load(log)
    recording.over = over
    if recording.started is None:
        raise BadInput(recording.flaw or f"{log}: holds no run")
    from rich.console import Console
    from rich.live import Live

    from engine.cli._watching import picture

    console = Console()
    begun = time.monotonic()
    with Live(console=console, auto_refresh=False) as live:
        while True:
            at = min((time.monotonic() - begun) * speed, recording.end)
            ended = at >= recording.end
            if console.is_terminal or ended:
                live.update(picture(recording, at, recording.status if ended else None, console.height), refresh=True)
            if ended:
                return
            time.sleep(min(FRAME_SECONDS, max(0.0, (recording.end - at) / speed)))
