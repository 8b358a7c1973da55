"""What every command that takes a workflow file shares: its options, and opening the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.errors import BadInput

if TYPE_CHECKING:
    from engine.model.binding import Bound

_F = TypeVar("_F", bound=Callable[..., Any])


def workflow_options(function: _F) -> _F:
    """The file itself, and what changes it for this time."""
    for decorate in reversed(
        (
            click.argument("file", type=click.Path(path_type=Path)),
            click.option("--param", "params", multiple=True, metavar="K=V", help="Give a parameter a value."),
            click.option("--set", "sets", multiple=True, metavar="NODE.KEY=VALUE", help="Change a node's setting."),
            click.option(
                "--plugin",
                "plugins",
                multiple=True,
                type=click.Path(path_type=Path),
                metavar="FILE.py",
                help="Load operators from a Python file.",
            ),
        )
    ):
        function = decorate(function)
    return function


def open_workflow(
    file: Path,
    params: tuple[str, ...] = (),
    sets: tuple[str, ...] = (),
    plugins: tuple[Path, ...] = (),
    store: str | None = None,
) -> Bound:
    """Read a file and bind it. What is wrong with it is in its problems; what cannot be read raises."""
    from engine.model.binding import bind
    from engine.model.file import load
    from engine.operators import catalogue, load_plugin_file
    from engine.store.sources import SourceSchemas

    for plugin in plugins:
        load_plugin_file(plugin)
    return bind(
        load(file),
        catalogue(),
        parameters=dict(_pair(text, "--param") for text in params),
        settings=dict(_setting(text) for text in sets),
        discover=SourceSchemas(store).discover,
    )


def _pair(text: str, option: str) -> tuple[str, Any]:
    from engine.model.yamldata import read_yaml

    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadInput(f"{option} {text}: write it as name=value")
    return name, read_yaml(value, f"{option} {name}")[0] if value else ""


def _setting(text: str) -> tuple[tuple[str, str], Any]:
    name, value = _pair(text, "--set")
    node, dot, key = name.partition(".")
    if not dot or not key:
        raise BadInput(f"--set {text}: write it as node.setting=value")
    return (node, key), value
