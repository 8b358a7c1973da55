"""`papilio control`: drive a run that is under way, in whatever process."""

from __future__ import annotations

import time

import click

from engine.cli.store import store_option
from engine.errors import BadInput, RunFailed

ANSWER_SECONDS = 10.0
ANSWERS = {
    "pause": (b"run-paused", b"run-finished"),
    "step": (b"run-stepped", b"run-finished"),
    "resume": (b"run-resumed", b"run-finished"),
    "cancel": (b"run-finished",),
    "speed": (b"speed-changed", b"run-finished"),
}


@click.command(name="control")
@click.argument("run")
@click.argument("action", type=click.Choice(list(ANSWERS)))
@click.argument("value", required=False, metavar="[N|max]")
@store_option
def command(run: str, action: str, value: str | None, place: str | None) -> None:
    """Pause, step, resume or cancel a run; or change the speed of a simulated one: `control RUN speed 10`.

    RUN is a run's id or the beginning of it, `last`, its folder or its log. A step is one scheduling decision.
    """
    from engine.control import send_to
    from engine.events import LogTail
    from engine.store.runs import LOG, find_run

    folder = find_run(run, place)
    speed = _speed(action, value)
    tail = LogTail(folder / LOG)
    state = _state(tail.lines())
    if action == "resume" and state != "paused":
        raise BadInput(f"{run}: it is not paused")
    if action == "pause" and state == "paused":
        click.echo("It is paused already.")
        return
    send_to(folder, action, speed)
    deadline = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < deadline:
        for line in tail.lines():
            if any(answer in line[:60] for answer in ANSWERS[action]):
                click.echo("The run has ended." if b"run-finished" in line[:60] else _done(action, speed))
                return
        time.sleep(0.05)
    raise RunFailed(f"{folder}: the run has not answered within {ANSWER_SECONDS:.0f} s; it may be in a long turn")


def _speed(action: str, value: str | None) -> float | None:
    if action != "speed":
        if value is not None:
            raise BadInput(f"{action} takes no number")
        return None
    if value == "max":
        return None
    try:
        return float(value or "")
    except ValueError:
        raise BadInput("speed: write how many simulated seconds pass in one of ours, such as 10, or max") from None


def _state(lines: list[bytes]) -> str:
    """Whether the log says last that the run is paused."""
    state = "running"
    for line in lines:
        start = line[:40]
        if b'"run-paused"' in start:
            state = "paused"
        elif b'"run-resumed"' in start or b'"run-started"' in start:
            state = "running"
    return state


def _done(action: str, speed: float | None) -> str:
    words = {"pause": "Paused.", "step": "One decision more.", "resume": "It goes on.", "cancel": "Cancelled."}
    if action == "speed":
        return "As fast as it goes." if speed is None else f"{speed:g} simulated seconds in one of ours."
    return words[action]
