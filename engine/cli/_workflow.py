"""What every command that takes a workflow file shares: its options, and opening the file."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from engine.cli.store import store_option
from engine.errors import BadInput

if TYPE_CHECKING:
    from engine.model.binding import Bound
    from engine.model.file import WorkflowFile
    from engine.model.workflow import Workflow


@dataclass(frozen=True)
class Given:
    """The workflow a person named, with what they change for this time."""

    file: Path
    params: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    plugins: tuple[Path, ...] = ()
    store: str | None = None

    def open(self) -> Bound:
        """Read the file and bind it. What is wrong with it is in its problems; what cannot be read raises."""
        from engine.model.file import load
        from engine.operators import load_plugin_file

        for plugin in self.plugins:
            load_plugin_file(plugin)
        return self._bind(load(self.file))

    def rebound(self, bound: Bound, workflow: Workflow) -> Bound:
        """Another workflow in the place of the one that was opened: same folder, parameters and settings."""
        from engine.model.file import WorkflowFile

        again = self._bind(WorkflowFile(workflow, bound.file or self.file))
        again.raise_errors()
        return again

    def _bind(self, file: WorkflowFile) -> Bound:
        from engine.model.binding import bind
        from engine.operators import catalogue
        from engine.store.sources import SourceSchemas

        return bind(
            file,
            catalogue(),
            parameters=dict(_pair(text, "--param") for text in self.params),
            settings=dict(_setting(text) for text in self.sets),
            discover=SourceSchemas(self.store).discover,
        )


def takes_workflow(function: Callable[..., None]) -> Callable[..., None]:
    """The file itself and what changes it, handed to the command as one `Given`."""

    @functools.wraps(function)
    def command(
        file: Path,
        params: tuple[str, ...],
        sets: tuple[str, ...],
        plugins: tuple[Path, ...],
        place: str | None,
        **others: Any,
    ) -> None:
        function(Given(file, params, sets, plugins, place), **others)

    path = click.Path(path_type=Path)
    for decorate in (
        store_option,
        click.option("--plugin", "plugins", multiple=True, type=path, metavar="FILE.py", help="Load its operators."),
        click.option("--set", "sets", multiple=True, metavar="NODE.KEY=VALUE", help="Change a node's setting."),
        click.option("--param", "params", multiple=True, metavar="K=V", help="Give a parameter a value."),
        click.argument("file", type=path),
    ):
        command = decorate(command)
    return command


def trust_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--trust`: this time the file's own code may run."""
    return click.option("--trust", is_flag=True, help="Let the file's own Python code run, this time.")(function)


def spark_conf(text: str) -> tuple[str, str]:
    """One of Spark's own settings, as `--spark-conf` gives it."""
    name, equals, value = text.partition("=")
    if not equals:
        raise BadInput(f"--spark-conf {text}: write it as name=value")
    return name, value


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
