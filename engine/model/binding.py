"""A workflow bound to its operators: ports resolved, schemas known, everything wrong with it named.

This is what the rest of the house works on. Binding never starts Spark, reads a row or opens a socket; all it
may look at are the footers and headers of source files, through the function it is given.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.errors import BadInput
from engine.model.checks import check_texts
from engine.model.elastic import unheeded
from engine.model.file import WorkflowFile
from engine.model.meanings import Meaning
from engine.model.operator import Finding, Inputs, Operator, Place, Port, Role, Source
from engine.model.paths import OutsideRoots, resolve_path, resolve_roots
from engine.model.problems import Level, Problem, did_you_mean
from engine.model.secrets import MESSAGE, secret_fields
from engine.model.star_queries import strange_tables
from engine.model.types import Schema
from engine.model.workflow import Edge, Node, UnknownReference, Workflow, substitute
from engine.model.yamldata import collector_paused

Catalogue = Mapping[str, type[Operator]]
# Reads the schema of a source where the settings do not declare it; None where it cannot be told.
Discover = Callable[[Source, Place], Schema | None]


@dataclass(frozen=True, slots=True)
class Link:
    """An edge with both its ports resolved."""

    source: str
    source_port: str
    target: str
    target_port: str


@dataclass
class Bound:
    """A workflow with its operators, links and schemas, and its problems."""

    workflow: Workflow
    file: Path | None
    operators: dict[str, Operator] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    incoming: dict[str, list[Link]] = field(default_factory=dict)
    outgoing: dict[str, list[Link]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # topological
    schemas: dict[tuple[str, str], Schema | None] = field(default_factory=dict)
    source_schemas: dict[str, Schema] = field(default_factory=dict)  # the columns of what a node itself reads
    problems: list[Problem] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)  # parameters and roots
    roots: dict[str, Path] = field(default_factory=dict)

    @property
    def errors(self) -> list[Problem]:
        """The problems that keep the workflow from running."""
        return [problem for problem in self.problems if problem.level is Level.ERROR]

    @property
    def name(self) -> str:
        """The workflow's name, or its file's."""
        if self.workflow.name:
            return self.workflow.name
        return self.file.name.split(".")[0] if self.file else "workflow"

    def role(self, node: str) -> Role:
        """Whether a node is a source, a staging area, a target or an activity."""
        return self.operators[node].role

    def producers(self, node: str, port: str | None = None) -> list[tuple[str, str]]:
        """The (node, port) pairs that feed a node, or one port of it."""
        return [
            (link.source, link.source_port)
            for link in self.incoming.get(node, ())
            if port is None or link.target_port == port
        ]

    def consumers(self, node: str, port: str | None = None) -> list[tuple[str, str]]:
        """The (node, port) pairs that a node, or one port of it, feeds."""
        return [
            (link.target, link.target_port)
            for link in self.outgoing.get(node, ())
            if port is None or link.source_port == port
        ]

    def place(self, secrets: Mapping[str, str] | None = None) -> Place:
        """Where paths and secrets lead. Without `secrets`, a secret cannot be read."""
        base = self.file.parent if self.file else Path.cwd()

        def secret(text: str) -> str:
            name = text[6:-1]
            if secrets is None or name not in secrets:
                raise BadInput(f"the environment variable `{name}` is not set")
            return secrets[name]

        return Place(lambda text: resolve_path(text, self.roots, base), secret)

    def raise_errors(self) -> None:
        """Stop here with every error named, if there is one."""
        errors = self.errors
        if errors:
            file = str(self.file) if self.file else self.name
            shown = [problem.text(file) for problem in errors[:20]]
            if len(errors) > 20:
                shown.append(f"{file}: and {len(errors) - 20} more problems")
            raise BadInput("\n".join(shown))


def with_settings(bound: Bound, settings: Mapping[tuple[str, str], Any]) -> Bound:
    """The same workflow with some settings changed that leave its ports and schemas as they are."""
    changed: dict[str, dict[str, Any]] = {}
    for (node, setting), value in settings.items():
        changed.setdefault(node, {})[setting] = value
    operators = {
        node: type(operator).model_validate({**operator.model_dump(by_alias=True), **changed[node]})
        if node in changed
        else operator
        for node, operator in bound.operators.items()
    }
    return replace(bound, operators=operators)


@dataclass
class Known:
    """What the last binding found of each node, for the next one of the same workflow while it is edited.

    A node with the same settings and the same columns on its inputs is not looked at again. The dictionaries are
    replaced whole, never changed, so that one thread may bind while another begins to.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    operators: Mapping[str, tuple[Node, Operator]] = field(default_factory=dict)
    checked: Mapping[str, Checked] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """What an operator says of its inputs."""

    operator: Operator
    by_port: Mapping[str, Sequence[Schema | None]]
    source: Schema | None
    findings: tuple[Finding, ...]
    outputs: Mapping[str, Schema | None]


def bind(
    source: WorkflowFile | Workflow,
    catalogue: Catalogue,
    *,
    parameters: Mapping[str, Any] | None = None,
    settings: Mapping[tuple[str, str], Any] | None = None,
    discover: Discover | None = None,
    known: Known | None = None,
) -> Bound:
    """Resolve a workflow against the operators there are and check all that can be checked without Spark.

    `parameters` and `settings` override the file's for this time. `discover` reads the schema of a source that
    does not declare one. `known` is what the last binding found, and takes what this one does.
    """
    if isinstance(source, Workflow):
        source = WorkflowFile(source, Path())
        bound = Bound(source.workflow, None)
    else:
        bound = Bound(source.workflow, source.path)
    with collector_paused():
        _Binder(bound, source, catalogue, discover, known or Known()).run(parameters or {}, settings or {})
    return bound


class _Binder:
    """Binding, step by step; each step goes on after problems so that all of them are told at once."""

    def __init__(
        self, bound: Bound, file: WorkflowFile, catalogue: Catalogue, discover: Discover | None, known: Known
    ) -> None:
        self.bound = bound
        self.file = file
        self.catalogue = catalogue
        self.discover = discover
        self.known = known
        # What is wrong only because something else is, which is told already.
        self.broken_roots: set[str] = set()
        self.beside_broken: set[str] = set()

    def run(self, parameters: Mapping[str, Any], settings: Mapping[tuple[str, str], Any]) -> None:
        self.resolve_values(parameters)
        self.check_limits()
        self.make_operators(settings)
        self.check_queries()
        self.resolve_links()
        self.check_ports()
        self.check_recordsets()
        if self.sort():
            self.propagate()
        self.bound.problems.sort(key=lambda problem: (problem.line or 0, problem.node or ""))

    def problem(self, message: str, node: str | None = None, **where: Any) -> None:
        line = self.file.line_of(node)
        self.bound.problems.append(Problem(message, node, line=line, **where))

    # -- parameters and roots

    def resolve_values(self, given: Mapping[str, Any]) -> None:
        workflow, bound = self.bound.workflow, self.bound
        for name in given:
            if name not in workflow.parameters:
                near = did_you_mean(name, workflow.parameters)
                self.problem(f"the run gives a parameter `{name}` that the workflow does not have{near}")
        for name, parameter in workflow.parameters.items():
            bound.values[name] = given.get(name, parameter.default)
            if isinstance(bound.values[name], (list, dict)):
                self.problem(
                    f"the parameter `{name}` takes one value, not {bound.values[name]!r}", setting=f"parameters.{name}"
                )
            if name in workflow.roots:
                self.problem(f"`{name}` is both a parameter and a root", setting=f"parameters.{name}")
        base = bound.file.parent if bound.file else Path.cwd()
        bound.roots = {} if workflow.roots else resolve_roots({}, base)
        for name, text in workflow.roots.items():
            reason = self.resolve_root(name, text, base)
            if reason is not None:
                self.broken_roots.add(name)
                self.problem(reason, setting=f"roots.{name}")
        bound.values.update({name: str(path) for name, path in bound.roots.items() if name})

    def resolve_root(self, name: str, text: str, base: Path) -> str | None:
        """Find the folder of a root, or say why there is none."""
        try:
            found = substitute(text, self.bound.values)
            if found is None:
                return f"the root `{name}` is `{text}`, which has no value"
            self.bound.roots.update(resolve_roots({name: str(found)}, base))
        except UnknownReference as error:
            return f"the root `{name}` refers to `${{{error.name}}}`, which is no parameter"
        except OutsideRoots as error:
            return str(error)
        return None

    def check_limits(self) -> None:
        limits = self.bound.workflow.elastic
        for reason in unheeded(limits) if limits is not None else ():
            self.problem(reason, level=Level.WARNING)

    def check_queries(self) -> None:
        limits = self.bound.workflow.elastic
        if limits is None or not isinstance(limits.warehouse.queries, dict):
            return
        if limits.live.facts in self.bound.operators:  # else nobody asks: it is simulated
            for name, reason in strange_tables(limits.warehouse.queries, self.bound.operators.items()):
                self.problem(f"`elastic.warehouse.queries`: query `{name}`: {reason}", setting="elastic.warehouse")

    # -- operators

    def make_operators(self, overrides: Mapping[tuple[str, str], Any]) -> None:
        for id_, key in overrides:
            if id_ not in self.bound.workflow.nodes:
                near = did_you_mean(id_, self.bound.workflow.nodes)
                self.problem(f"the run sets `{id_}.{key}`, and there is no node `{id_}`{near}")
        by_node: dict[str, dict[str, Any]] = defaultdict(dict)
        for (id_, key), value in overrides.items():
            by_node[id_][key] = value
        before = self.known.operators if self.known.values == self.bound.values and not overrides else {}
        made: dict[str, tuple[Node, Operator]] = {}
        for id_, node in self.bound.workflow.nodes.items():
            if id_ in before and before[id_][0] is node:
                made[id_] = before[id_]
                self.bound.operators[id_] = made[id_][1]
                continue
            kind = self.catalogue.get(node.operator)
            if kind is None:
                near = did_you_mean(node.operator, self.catalogue)
                self.problem(f"there is no operator `{node.operator}`{near}", id_)
                continue
            settings = {**node.settings, **by_node[id_]} if id_ in by_node else node.settings
            try:
                settings = substitute(settings, self.bound.values)
            except UnknownReference as error:
                if error.name not in self.broken_roots:
                    near = did_you_mean(error.name, self.bound.values)
                    self.problem(f"`${{{error.name}}}` is neither a parameter nor a root{near}", id_)
                continue
            try:
                operator = self.bound.operators[id_] = kind.model_validate(settings)
                made[id_] = node, operator
            except ValidationError as error:
                self.settings_problems(id_, kind, error)
        if not overrides:
            self.known.values, self.known.operators = self.bound.values, made

    def settings_problems(self, id_: str, kind: type[Operator], error: ValidationError) -> None:
        for item in error.errors(include_url=False, include_context=False)[:10]:
            place = ".".join(str(step) for step in item["loc"]) or None
            if item["type"] == "extra_forbidden":
                last = str(item["loc"][-1])
                known = kind.model_fields if len(item["loc"]) == 1 else ()
                message = f"`{kind.name}` has no setting `{last}`{did_you_mean(last, known)}"
            elif item["type"] == "missing":
                message = f"`{kind.name}` needs the setting `{place}`"
            elif item["loc"] and item["loc"][-1] in secret_fields(kind):
                message = MESSAGE  # and not what it is
            else:
                message = item["msg"].removeprefix("Value error, ")
                if not isinstance(item.get("input"), (dict, list)) and item["type"] != "value_error":
                    message += f" (it is {item.get('input')!r})"
            self.problem(message, id_, setting=place)

    # -- edges and ports

    def resolve_links(self) -> None:
        bound, seen = self.bound, set()
        # One string for each node, whoever names it: what is looked up by it is then found without reading it.
        names = {id_: id_ for id_ in bound.operators}
        for edge in bound.workflow.edges:
            source, _, source_port = edge.from_.partition(".")
            target, _, target_port = edge.to.partition(".")
            if source not in bound.operators or target not in bound.operators:
                self.missing_end(edge)
                continue
            source, target = names[source], names[target]
            out = self.port(source, source_port, "output", edge)
            into = self.port(target, target_port, "input", edge)
            if out is None or into is None:
                self.beside_broken.update((source, target))
                continue
            link = Link(source, out.name, target, into.name)
            if link in seen:
                self.problem(f"the edge {_arrow(edge)} stands twice", target, port=into.name)
                continue
            seen.add(link)
            bound.links.append(link)
            bound.outgoing.setdefault(source, []).append(link)
            bound.incoming.setdefault(target, []).append(link)

    def missing_end(self, edge: Edge) -> None:
        nodes = self.bound.workflow.nodes
        self.beside_broken.update((edge.source, edge.target))
        missing = [id_ for id_ in (edge.source, edge.target) if id_ not in nodes]
        if missing:  # a node that is there but has no operator has its own problem, told already
            near = did_you_mean(missing[0], nodes)
            self.problem(f"the edge {_arrow(edge)} names a node `{missing[0]}` that does not exist{near}")

    def port(self, node: str, name: str, side: str, edge: Edge) -> Port | None:
        """The port that an edge names, or the node's first where it names none."""
        operator = self.bound.operators[node]
        ports = operator.output_ports() if side == "output" else operator.input_ports()
        if not ports:
            self.problem(f"the edge {_arrow(edge)}: a `{operator.name}` has no {side}", node)
            return None
        if not name:
            return ports[0]
        for port in ports:
            if port.name == name:
                return port
        names = [port.name for port in ports]
        near = did_you_mean(name, names) or f"; it has {', '.join(f'`{known}`' for known in names)}"
        self.problem(f"the edge {_arrow(edge)}: a `{operator.name}` has no {side} port `{name}`{near}", node, port=name)
        return None

    def check_ports(self) -> None:
        for id_, operator in self.bound.operators.items():
            fed = [link.target_port for link in self.bound.incoming.get(id_, ())]
            for port in operator.input_ports():
                edges = fed.count(port.name)
                if edges == 0 and port.required and id_ not in self.beside_broken:
                    self.problem(f"nothing feeds the port `{port.name}`", id_, port=port.name)
                elif edges > 1 and not port.many:
                    self.problem(
                        f"{edges} edges end on the port `{port.name}`, which takes one; use a union",
                        id_,
                        port=port.name,
                    )
            if operator.role is Role.TARGET:
                continue
            if not self.bound.outgoing.get(id_) and id_ not in self.beside_broken:
                rows = [port.name for port in operator.output_ports() if port.required]
                if rows:
                    self.problem("nothing reads what this node gives", id_, port=rows[0])

    def check_recordsets(self) -> None:
        for link in self.bound.links:
            ends = [self.bound.operators[link.source].role, self.bound.operators[link.target].role]
            if Role.ACTIVITY not in ends:
                self.problem(
                    f"the recordset `{link.source}` feeds the recordset `{link.target}`; "
                    "an activity must stand between them (`copy` changes nothing)",
                    link.target,
                    port=link.target_port,
                )
        if not self.bound.workflow.nodes:
            self.problem("the workflow has no nodes")

    # -- order

    def sort(self) -> bool:
        """Put the nodes in topological order; a cycle is told with its nodes."""
        bound = self.bound
        waiting = {id_: len(bound.incoming.get(id_, ())) for id_ in bound.operators}
        ready = deque(sorted(id_ for id_, count in waiting.items() if count == 0))
        while ready:
            id_ = ready.popleft()
            bound.order.append(id_)
            for link in bound.outgoing.get(id_, ()):
                waiting[link.target] -= 1
                if waiting[link.target] == 0:
                    ready.append(link.target)
        if len(bound.order) == len(bound.operators):
            return True
        cycle = self.find_cycle({id_ for id_, count in waiting.items() if count > 0})
        self.problem(f"the flow goes in a circle: {' → '.join([*cycle, cycle[0]])}", cycle[0])
        return False

    def find_cycle(self, nodes: set[str]) -> list[str]:
        """One circle among nodes that each wait for another of them."""
        at = min(nodes)
        path: list[str] = []
        seen: dict[str, int] = {}
        while at not in seen:
            seen[at] = len(path)
            path.append(at)
            at = next(link.source for link in self.bound.incoming[at] if link.source in nodes)
        return path[seen[at] :][::-1]

    # -- schemas

    def propagate(self) -> None:
        bound = self.bound
        place = bound.place()
        before, checked = self.known.checked, {}
        for id_ in bound.order:
            operator = bound.operators[id_]
            by_port: dict[str, list[Schema | None]] = {}
            for link in bound.incoming.get(id_, ()):
                given = bound.schemas.get((link.source, link.source_port))
                by_port.setdefault(link.target_port, []).append(given)
            fine = self.check_paths(id_, operator, place)
            schema = self.source_schema(operator, place) if fine and isinstance(operator, Source) else None
            if schema is not None:
                bound.source_schemas[id_] = schema
            said = before.get(id_)
            if said is None or said.operator is not operator or (said.by_port, said.source) != (by_port, schema):
                said = check_operator(operator, by_port, schema)
            checked[id_] = said
            for finding in said.findings:
                self.problem(finding.message, id_, port=finding.port, setting=finding.setting, level=finding.level)
            for port, made in said.outputs.items():
                bound.schemas[id_, port] = made
        self.known.checked = checked

    def check_paths(self, id_: str, operator: Operator, place: Place) -> bool:
        fine = True
        if not operator.has_paths():
            return True
        for setting, text, means in operator.texts():
            if means.meaning is Meaning.PATH:
                try:
                    place.path(text)
                except OutsideRoots as error:
                    fine = False
                    self.problem(str(error), id_, setting=setting)
        return fine

    def source_schema(self, operator: Source, place: Place) -> Schema | None:
        declared = operator.declared()
        if declared is not None or self.discover is None:
            return declared
        return self.discover(operator, place)


def check_operator(
    operator: Operator, by_port: Mapping[str, Sequence[Schema | None]], source: Schema | None
) -> Checked:
    """Let an operator look at its inputs: what is wrong, and the columns that leave it."""
    inputs = Inputs(by_port, source)
    findings = (*check_texts(operator, inputs), *operator.check(inputs))
    return Checked(operator, by_port, source, findings, operator.output_schemas(inputs))


def _arrow(edge: Edge) -> str:
    return f"{edge.from_} → {edge.to}"
