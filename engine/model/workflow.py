"""What a workflow is: nodes, edges, parameters and roots. The same classes describe the file's format."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from engine.model.elastic import Elastic
from engine.model.kept import Kept

FORMAT_VERSION = 1
FILE_ENDING = ".butterfly.yaml"

NodeId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*$", max_length=200)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Endpoint = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)?$")]
Scalar = str | int | float | bool | None

_REFERENCE = re.compile(r"\$(\$|\{([^{}]*)\})")


class Hints(Kept):
    """What a person knows of a node's size and effort, for the planner and for simulated runs."""

    selectivity: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Rows that leave for each row that enters, by any port."
    )
    cost_us: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Microseconds that it takes for one row that enters."
    )
    rows: int | None = Field(None, ge=0, description="Rows that leave; of a source, those it holds.")
    alpha_s: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Of a streaming table: seconds that an update takes at least."
    )
    beta: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Of a streaming table: seconds more for each second's data."
    )
    scan_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Of a streaming table: how much of an update is reading its sources, which one job can share.",
    )


class Node(Kept):
    """One recordset or activity: an operator with its settings, and what a person wrote about it."""

    operator: str = Field(description="The operator's name.")
    title: str | None = Field(None, description="What the canvas shows instead of the id.")
    note: str | None = Field(None, description="Free text about this node.")
    settings: dict[str, Any] = Field(default_factory=dict, description="The operator's settings.")
    threads: int | None = Field(
        None, ge=1, description="A row-synchronized activity's rows are worked on by so many at a time, in order."
    )
    hints: Hints | None = Field(None, description="What is known of its rows and its cost; never what it does.")


class Edge(Kept):
    """Data flows from a node's output port to another node's input port.

    A node without a port means its first port.
    """

    from_: Endpoint = Field(alias="from", description="node.port that the rows leave by")
    to: Endpoint = Field(description="node.port that the rows enter by")

    @property
    def source(self) -> str:
        """The node the rows come from."""
        return self.from_.partition(".")[0]

    @property
    def source_port(self) -> str | None:
        """The output port, where the file names one."""
        return self.from_.partition(".")[2] or None

    @property
    def target(self) -> str:
        """The node the rows go to."""
        return self.to.partition(".")[0]

    @property
    def target_port(self) -> str | None:
        """The input port, where the file names one."""
        return self.to.partition(".")[2] or None


class Parameter(Kept):
    """A value that a run may change; settings refer to it as `${name}`."""

    default: Scalar = Field(None, description="Its value unless the run gives another.")
    description: str | None = Field(None, description="What it is for.")


def _parameter(value: Any) -> Any:
    return value if isinstance(value, (Mapping, Parameter)) else {"default": value}


class PartLimit(Kept):
    """A part of the workflow that may cost so much at most."""

    nodes: list[NodeId] = Field(min_length=1, description="The part's nodes; sorters on and before them count.")
    cost: float = Field(ge=0, allow_inf_nan=False, description="What they may cost together, as the cost model counts.")


class Planning(Kept):
    """What a person asks of the physical plan."""

    pin: dict[NodeId, str] = Field(default_factory=dict, description="Nodes with the implementation they must have.")
    forbid: dict[NodeId, list[str]] = Field(
        default_factory=dict, description="Nodes with the implementations they must not have."
    )
    memory_rows: int | None = Field(None, ge=0, description="How many rows one implementation may keep in memory.")
    resumption: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="What may have to be done again after a failure."
    )
    limits: list[PartLimit] = Field(default_factory=list, description="What parts of the workflow may cost.")
    as_drawn: list[NodeId] = Field(
        default_factory=list, description="Aggregates that are not to be offered to be answered from a finer one."
    )


class Workflow(Kept):
    """A butterfly workflow: a graph of recordsets and activities, and what its settings refer to."""

    papilio: int = Field(FORMAT_VERSION, description="The version of this file format.")
    name: str | None = Field(None, description="The workflow's name.")
    description: str | None = Field(None, description="What it does and for whom.")
    parameters: dict[Name, Annotated[Parameter, BeforeValidator(_parameter)]] = Field(
        default_factory=dict, description="Values that a run may change, referred to as ${name}."
    )
    roots: dict[Name, str] = Field(
        default_factory=dict,
        description="Folders that paths must stay in, referred to as ${name}. Relative to this file.",
    )
    nodes: dict[NodeId, Node] = Field(default_factory=dict, description="The nodes by their ids.")
    edges: list[Edge] = Field(default_factory=list, description="The edges.")
    plan: Planning | None = Field(None, description="What is asked of the physical plan.")
    elastic: Elastic | None = Field(None, description="Limits of time and size, and the nodes to keep them with.")
    layout: dict[str, Any] = Field(
        default_factory=dict, description="Where things stand on the canvas; never what they do."
    )

    def document(self) -> dict[str, Any]:
        """The workflow as plain data in the order the file has: sorted, empty things left out."""
        data = self.model_dump(by_alias=True, exclude_none=True)
        known = ("papilio", "name", "description", "parameters", "roots", "nodes", "edges")
        result: dict[str, Any] = {key: data[key] for key in known if data.get(key) not in (None, {}, [])}
        result.setdefault("papilio", FORMAT_VERSION)
        for section in ("parameters", "roots"):
            if section in result:
                result[section] = dict(sorted(result[section].items()))
        if "nodes" in result:
            result["nodes"] = {id_: _node_data(data["nodes"][id_]) for id_ in sorted(data["nodes"])}
        if "edges" in result:
            result["edges"] = sorted(data["edges"], key=lambda edge: (edge["from"], edge["to"]))
        if self.plan is not None:
            asked = {key: value for key, value in data["plan"].items() if value not in ({}, [])}
            if asked:
                result["plan"] = _sorted_deep(asked)
        if self.elastic is not None:
            # What a person left out stays out: only limits that were set are limits.
            result["elastic"] = _sorted_deep(
                self.elastic.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
            )
        result.update({key: data[key] for key in sorted(self.model_extra or {})})
        if self.layout:
            result["layout"] = _sorted_deep(self.layout)
        return result

    def content_hash(self) -> str:
        """A hash of everything but the layout: the same for workflows that do the same."""
        document = self.document()
        document.pop("layout", None)
        text = json.dumps(document, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def _node_data(data: dict[str, Any]) -> dict[str, Any]:
    known = ("operator", "title", "note")
    node = {key: data[key] for key in known if key in data}
    if data.get("settings"):
        # Settings by their names; what stands inside one keeps its writer's order: the columns of a file have one.
        node["settings"] = dict(sorted(data["settings"].items()))
    node.update({key: data[key] for key in sorted(data) if key not in (*known, "settings")})
    return node


def _sorted_deep(value: Any) -> Any:
    """Mappings by their keys, however deep; what stands inside lists keeps its writer's order."""
    if isinstance(value, dict):
        return {key: _sorted_deep(value[key]) for key in sorted(value)}
    return value


class UnknownReference(ValueError):
    """`${name}` where the workflow has neither a parameter nor a root of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def references(value: Any) -> Iterator[str]:
    """The names inside every `${…}` of a setting, however deep."""
    if isinstance(value, str):
        for match in _REFERENCE.finditer(value):
            if match.group(2) is not None:
                yield match.group(2)
    elif isinstance(value, dict):
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def substitute(value: Any, values: Mapping[str, Any]) -> Any:
    """`value` with its `${name}` references replaced; `${env:NAME}` stays, `$${` becomes `${`.

    A text that is nothing but one reference takes the parameter's own type.
    """
    if isinstance(value, str):
        if "$" not in value:
            return value
        whole = _REFERENCE.fullmatch(value)
        if whole and whole.group(2) is not None and not whole.group(2).startswith("env:"):
            return _lookup(whole.group(2), values)

        def replacement(match: re.Match[str]) -> str:
            name = match.group(2)
            if name is None:
                return "$"
            if name.startswith("env:"):
                return match.group(0)
            found = _lookup(name, values)
            return "" if found is None else str(found)

        return _REFERENCE.sub(replacement, value)
    if isinstance(value, dict):
        return {key: substitute(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, values) for item in value]
    return value


def _lookup(name: str, values: Mapping[str, Any]) -> Any:
    try:
        return values[name]
    except KeyError:
        raise UnknownReference(name) from None
