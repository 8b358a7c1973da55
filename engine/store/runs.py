"""A run's name, its folder, and where its events go besides."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from engine.errors import BadInput, EnvironmentProblem
from engine.events import Event, EventLog
from engine.store.store import papilio_home


def new_run_id(moment: datetime | None = None) -> str:
    """A run's name: when it began, and enough chance that two begun together differ."""
    moment = moment or datetime.now(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def run_folder(given: Path | None, run_id: str) -> Path:
    """The folder in which a run keeps its log and its files: the one given, or one of its own."""
    folder = given or papilio_home() / "runs" / run_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"{folder}: the run's folder cannot be made: {error.strerror}") from None
    if (folder / "events.jsonl").exists():
        raise BadInput(f"{folder}: holds another run already; name an empty folder")
    return folder.resolve()


def also_to(events: str, cleanup: contextlib.ExitStack) -> Callable[[Event], None]:
    """Writes events to another file as well, or to standard output."""
    if events == "-":

        def write(event: Event) -> None:
            sys.stdout.write(json.dumps(event.as_dict(), ensure_ascii=False, default=str) + "\n")
            sys.stdout.flush()

        return write
    try:
        Path(events).write_text("")
        second = EventLog(Path(events))
    except OSError as error:
        raise BadInput(f"--events {events}: cannot be written: {error.strerror}") from None
    cleanup.callback(second.close)
    return second.add
