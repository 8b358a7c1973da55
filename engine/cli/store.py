"""`papilio store`: the metadata store."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from engine.store import MetadataStore, Record, WorkflowInfo

_F = TypeVar("_F", bound=Callable[..., Any])

_VERSION = click.IntRange(1, 2**31 - 1)


def store_option(function: _F) -> _F:
    """The option that names the store, for every command that uses it."""
    return click.option(
        "--store",
        "place",
        metavar="URL",
        help="SQLAlchemy URL or SQLite file. Default: $PAPILIO_STORE, else store.db in $PAPILIO_HOME.",
    )(function)


def json_option(function: _F) -> _F:
    """The option for an answer that a program reads."""
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)


def print_json(answer: object) -> None:
    """Print an answer for a program."""
    import json

    click.echo(json.dumps(answer, indent=2))


@contextlib.contextmanager
def opened(place: str | None) -> Iterator[MetadataStore]:
    """The store a command works on."""
    from engine.store import MetadataStore

    with MetadataStore(place) as store:
        yield store


@click.group(name="store")
def command() -> None:
    """Keep workflows with their versions, and move the whole store as XML."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="Name in the store. Default: the workflow's name, else the file's.")
@click.option("--comment", default="", help="What changed.")
@json_option
@store_option
def put(file: Path, name: str | None, comment: str, as_json: bool, place: str | None) -> None:
    """Save a workflow; a changed one becomes its next version."""
    from engine.store.documents import read_document
    from engine.store.saving import Saver

    document, text = read_document(file)
    version, new = Saver(place).put_workflow(
        name or _own_name(document, file), document, text, author=_author(), comment=comment
    )
    if as_json:
        print_json({**_describe(version), "new": new})
    elif new:
        click.echo(f"{version.name}: saved as version {version.version}.")
    else:
        click.echo(f"{version.name}: unchanged since version {version.version}.")


@command.command()
@click.argument("name")
@click.option("--version", type=_VERSION, help="Default: the latest.")
@click.option("--to", "target", type=click.Path(path_type=Path), help="File to write. Default: standard output.")
@store_option
def get(name: str, version: int | None, target: Path | None, place: str | None) -> None:
    """Give back a workflow exactly as it was saved."""
    with opened(place) as store:
        found = store.get_workflow(name, version)
    with _written(target) as file:
        file.write(found.text.encode("utf-8", "surrogatepass"))


@command.command(name="list")
@json_option
@store_option
def list_(as_json: bool, place: str | None) -> None:
    """List the workflows, each with its latest version."""
    with opened(place) as store:
        found = store.list_workflows()
    _print_infos(found, as_json, with_name=True)


@command.command()
@click.argument("name")
@json_option
@store_option
def versions(name: str, as_json: bool, place: str | None) -> None:
    """List the versions of a workflow, oldest first."""
    with opened(place) as store:
        found = store.list_versions(name)
        if not found:
            store.get_workflow(name)  # says that there is none, and which name is near
    _print_infos(found, as_json, with_name=False)


@command.command()
@click.argument("name")
@click.argument("before", metavar="A", type=_VERSION)
@click.argument("after", metavar="B", type=_VERSION)
@json_option
@store_option
def diff(name: str, before: int, after: int, as_json: bool, place: str | None) -> None:
    """Show which nodes, edges and settings changed from version A to version B."""
    from dataclasses import asdict

    from engine.store.diff import diff_documents

    with opened(place) as store:
        old, new = store.get_workflow(name, before), store.get_workflow(name, after)
    changes = diff_documents(old.document, new.document)
    if as_json:
        print_json({"name": name, "before": before, "after": after, "changes": [asdict(one) for one in changes]})
        return
    if not changes:
        same = old.text == new.text
        click.echo("Nothing changed." if same else "Only the text changed (comments, spaces, order), not the workflow.")
    for change in changes:
        sign, colour = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}[change.action]
        click.secho(f"{sign} {change.kind} {change.where}{_values(change)}", fg=colour)


@command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@store_option
def export(file: Path | None, place: str | None) -> None:
    """Write the whole store as XML, to FILE or to standard output."""
    import io

    from engine.store.xml import store_to_xml

    with opened(place) as store, _written(file) as target:
        out = io.TextIOWrapper(target, encoding="utf-8", newline="\n", write_through=True)
        counts = store_to_xml(store, out)
        out.detach()
    if file:
        click.echo(f"{file}: {_counted(counts)}.")


@command.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--max-mib", type=click.IntRange(1), default=64, show_default=True, help="Refuse a larger file.")
@store_option
def import_(file: Path, max_mib: int, place: str | None) -> None:
    """Take an exported store into this one: all of it or, on any problem, nothing."""
    from engine.store.saving import Saver
    from engine.store.xml import store_from_xml

    counts = store_from_xml(file, Saver(place), max_bytes=max_mib * 2**20)
    click.echo(f"Imported {_counted(counts)}." if any(counts.values()) else "Everything was here already.")


def _own_name(document: dict[str, Any], file: Path) -> str:
    name = document.get("name")
    if isinstance(name, str) and name.strip():
        return name
    return file.name.removesuffix(".yaml").removesuffix(".yml").removesuffix(".butterfly")


def _author() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return ""


def _describe(info: WorkflowInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "version": info.version,
        "saved": info.saved.isoformat(),
        "author": info.author,
        "comment": info.comment,
        "content_hash": info.content_hash,
    }


def _print_infos(infos: list[WorkflowInfo], as_json: bool, with_name: bool) -> None:
    if as_json:
        print_json([_describe(info) for info in infos])
        return
    if not infos:
        click.echo("The store holds no workflow yet. Save one with: papilio store put FILE")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = (
        Table("Workflow", "Version", "Saved", "Author", "Comment")
        if with_name
        else Table("Version", "Saved", "Author", "Comment")
    )
    for info in infos:
        saved = f"{info.saved.astimezone():%Y-%m-%d %H:%M}"
        cells = [info.name, str(info.version), saved, info.author, info.comment]
        table.add_row(*(Text(cell) for cell in cells[0 if with_name else 1 :]))
    Console().print(table)


def _values(change: Any) -> str:
    if change.kind == "edge":
        return ""
    if change.kind == "node" and change.action != "changed":
        node = change.after or change.before
        operator = node.get("operator") if isinstance(node, dict) else None
        return f" ({operator})" if operator and "." not in change.where else ""
    if change.action == "changed":
        return f": {_short(change.before)} → {_short(change.after)}"
    return f": {_short(change.after if change.action == 'added' else change.before)}"


def _short(value: object, most: int = 60) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _counted(counts: dict[type[Record], int]) -> str:
    words = ("source schema", "operator", "workflow version", "plan", "run")
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for word, count in zip(words, counts.values(), strict=True)]
    return ", ".join(parts)


@contextlib.contextmanager
def _written(target: Path | None) -> Iterator[Any]:
    """A file that appears whole or not at all; standard output without a name."""
    import os
    import tempfile

    from engine.errors import BadInput

    if target is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise BadInput(f"{target}: cannot be written: {error.strerror}.") from error
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        os.replace(beside, target)
    except OSError as error:
        raise BadInput(f"{target}: cannot be written: {error.strerror}.") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
