"""A run's name, its folder, where its events go besides, and what earlier runs left."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import BadInput, EnvironmentProblem, PapilioError
from engine.events import Event, EventLog
from engine.store.home import papilio_home
from engine.store.peek import CannotPeek, list_runs, put_run
from engine.store.records import RunRecord

if TYPE_CHECKING:
    from engine.model.binding import Bound

LOG = "events.jsonl"
REMEMBERED = 200  # runs that are looked at for the last refresh of a target
NEWEST = 10  # of them


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
    if (folder / LOG).exists():
        raise BadInput(f"{folder}: holds another run already; name an empty folder")
    return folder.resolve()


def find_run(name: str, url: str | None = None) -> Path:
    """The folder of a run: by its id, the beginning of one, `last`, its folder, or the path of its log."""
    path = Path(name)
    if path.is_file():
        return path.resolve().parent
    for folder in (path, papilio_home() / "runs" / name):
        if (folder / LOG).is_file():
            return folder.resolve()
    runs = kept_runs(url)
    found = runs[:1] if name == "last" else [record for record in runs if record.run.startswith(name)]
    exact = [record for record in found if record.run == name] or found
    if len(exact) > 1:
        raise BadInput(f"{name}: several runs begin so: {', '.join(record.run for record in exact[:5])}")
    if not exact:
        raise BadInput(f"{name}: there is no such run, folder or log; `papilio history` lists the runs")
    folder = Path(exact[0].folder)
    if not (folder / LOG).is_file():
        raise BadInput(f"{name}: the log of that run is gone: {folder / LOG}")
    return folder


def kept_runs(
    url: str | None = None, *, workflow: str | None = None, status: str | None = None, limit: int | None = None
) -> list[RunRecord]:
    """The runs that the store knows, newest first."""
    with contextlib.suppress(CannotPeek):
        return list_runs(url, workflow, status, limit)
    from engine.store.store import MetadataStore

    with MetadataStore(url) as store:
        return store.list_runs(workflow, status, limit)


def keep_run(record: RunRecord, url: str | None = None) -> None:
    """Write a run down. A store that cannot be written must not stop it."""
    with contextlib.suppress(PapilioError):
        try:
            put_run(url, record)
        except CannotPeek:
            from engine.store.store import MetadataStore

            with MetadataStore(url) as store:
                store.put_run(record)


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


def last_refreshes(bound: Bound, url: str | None = None) -> dict[str, float | None]:
    """As of when each target holds data: the beginning of the last run, of any workflow, that loaded it.

    In seconds since 1970; None where no run is known. A store that fails only costs knowledge.
    """
    from engine.model.operator import Target

    place = bound.place()
    wanted: dict[str, list[str]] = {}
    found: dict[str, float | None] = {}
    for node, operator in bound.operators.items():
        if isinstance(operator, Target):
            found[node] = None
            with contextlib.suppress(Exception):  # a target that cannot be named was never loaded
                name = operator.identity(place)
                if not Path(name).is_absolute() or Path(name).exists():  # a file that is gone holds nothing
                    wanted.setdefault(name, []).append(node)
    with contextlib.suppress(PapilioError):
        for limit in (NEWEST, REMEMBERED):  # most often it is among the newest, and reading all of them takes a while
            for record in kept_runs(url, status="done", limit=limit) if wanted else ():
                for target in record.summary.get("targets", {}).values():
                    for node in wanted.pop(target.get("path"), ()):
                        found[node] = record.started.timestamp()
    return found
