"""Secrets are never written down: a workflow names the environment variable that holds one."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from engine.errors import BadInput
from engine.model.meanings import Meaning, texts_of
from engine.model.operator import is_secret_reference
from engine.model.problems import Problem
from engine.model.workflow import Parameter, Workflow

if TYPE_CHECKING:
    from engine.model.binding import Catalogue

MESSAGE = "a secret is never written into the file; name an environment variable, as in `${env:PASSWORD}`"
_PARAMETER = re.compile(r"\$\{([^{}]+)\}")


@dataclass(frozen=True)
class Written:
    """A secret that stands in a workflow: the node, the steps to it in the settings, the parameter that holds it."""

    node: str
    steps: tuple[str | int, ...]
    parameter: str | None = None

    def problem(self) -> Problem:
        """What is said of it."""
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return Problem(MESSAGE, self.node, setting=place.removeprefix("."))


def secret_literals(workflow: Workflow | Mapping[str, Any], catalogue: Catalogue) -> list[Problem]:
    """Secrets written out in a workflow, or in its plain document; it must not be saved with any."""
    return [found.problem() for found in _written(workflow, catalogue)]


def refuse_secrets(workflow: Workflow | Mapping[str, Any], name: str, catalogue: Catalogue | None = None) -> None:
    """Complain where a secret is written out in what is about to be saved; `name` says what that is."""
    if catalogue is None:
        from engine.operators import catalogue as known

        catalogue = known() if any(True for _ in _nodes(workflow)) else {}
    problems = secret_literals(workflow, catalogue)
    if problems:
        raise BadInput("\n".join(problem.text(name) for problem in problems))


def without_secrets(document: Mapping[str, Any], catalogue: Catalogue) -> Mapping[str, Any]:
    """A plain document as it is but for the secrets that are written out in it."""
    found = list(_written(document, catalogue))
    if not found:
        return document
    kept = copy.deepcopy(dict(document))
    for one in found:
        if one.parameter is not None:
            kept["parameters"][one.parameter] = None
            continue
        holder = kept["nodes"][one.node]["settings"]
        for step in one.steps[:-1]:
            holder = holder[step]
        holder[one.steps[-1]] = ""
    return kept


def _written(workflow: Workflow | Mapping[str, Any], catalogue: Catalogue) -> Iterator[Written]:
    parameters = workflow.parameters if isinstance(workflow, Workflow) else workflow.get("parameters")
    parameters = parameters if isinstance(parameters, Mapping) else {}
    for id_, operator, settings in _nodes(workflow):
        kind = catalogue.get(operator)
        if kind is None or not secret_fields(kind):
            continue
        for steps, value in _secrets(kind, settings, ()):
            if value is None or value == "" or (isinstance(value, str) and is_secret_reference(value)):
                continue
            referred = _PARAMETER.fullmatch(value) if isinstance(value, str) else None
            if referred is None or referred.group(1) not in parameters:
                yield Written(id_, steps)
                continue
            default = _default(parameters[referred.group(1)])
            if default not in (None, "") and not (isinstance(default, str) and is_secret_reference(default)):
                yield Written(id_, steps, referred.group(1))


def _nodes(workflow: Workflow | Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The nodes with settings, of a workflow or of a document whose form nobody has checked."""
    if isinstance(workflow, Workflow):
        for id_, node in workflow.nodes.items():
            yield id_, node.operator, node.settings
        return
    nodes = workflow.get("nodes")
    for id_, data in nodes.items() if isinstance(nodes, Mapping) else ():
        if isinstance(data, Mapping):
            operator, settings = data.get("operator"), data.get("settings")
            if isinstance(operator, str) and isinstance(settings, Mapping):
                yield id_, operator, settings


def _default(parameter: Any) -> Any:
    if isinstance(parameter, Parameter):
        return parameter.default
    return parameter.get("default") if isinstance(parameter, Mapping) else parameter


@cache
def secret_fields(kind: type[BaseModel]) -> frozenset[str]:
    """The settings of an operator that are secrets, and those of the models in its settings."""
    found = set()
    for name, means, inner in texts_of(kind):
        if _is_secret(means) or _is_secret(inner):
            found.add(name)
        for model in _models(kind.model_fields[name].annotation):
            found |= secret_fields(model) if model is not kind else set()
    return frozenset(found)


def _is_secret(means: Any) -> bool:
    return means is not None and means.meaning is Meaning.SECRET


def _secrets(
    kind: type[BaseModel], settings: Mapping[str, Any], before: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value in plain settings where a secret belongs, with the steps to it."""
    for name, means, inner in texts_of(kind):
        info = kind.model_fields[name]
        key = info.alias if info.alias is not None and info.alias in settings else name
        if key not in settings:
            continue
        value, steps = settings[key], (*before, key)
        if _is_secret(means) or _is_secret(inner):
            yield from _leaves(value, steps)
            continue
        for model in _models(info.annotation):
            if isinstance(value, Mapping):
                yield from _secrets(model, value, steps)
            for number, item in enumerate(value) if isinstance(value, list) else ():
                if isinstance(item, Mapping):
                    yield from _secrets(model, item, (*steps, number))


def _leaves(value: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*steps, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(item, (*steps, number))
    else:
        yield steps, value


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The settings models that a field holds, as in `list[Column] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _models(inner)
