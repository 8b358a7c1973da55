"""The ports of a node while it is drawn, also where its settings do not hold yet or its operator is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from engine.model.operator import Operator, Port, Role
from engine.model.workflow import Edge, Node, UnknownReference, Workflow, substitute

Catalogue = Mapping[str, type[Operator]]


@dataclass(frozen=True)
class Ports:
    """The places where rows enter and leave a node."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def input(self, name: str | None) -> Port | None:
        """An input by its name; without one the first, as in the file."""
        return _find(self.inputs, name)

    def output(self, name: str | None) -> Port | None:
        """An output by its name; without one the first, as in the file."""
        return _find(self.outputs, name)


def _find(ports: tuple[Port, ...], name: str | None) -> Port | None:
    if name is None:
        return ports[0] if ports else None
    return next((port for port in ports if port.name == name), None)


class PortTable:
    """Answers which ports a node has. A node that did not change is not asked twice."""

    def __init__(self, workflow: Workflow, catalogue: Catalogue) -> None:
        self.workflow = workflow
        self.catalogue = catalogue
        self._known: dict[str, tuple[Node, Ports]] = {}
        self._named: dict[str, tuple[set[str], set[str]]] = {}
        self._edges: list[Edge] | None = None

    def of(self, id_: str) -> Ports:
        """The ports of a node: its operator's, and any other that an edge names."""
        node = self.workflow.nodes[id_]
        known = self._known.get(id_)
        if known is None or known[0] is not node:
            known = node, self.of_operator(node)
            self._known[id_] = known
        own = known[1]
        into, out = self._names(id_)
        more_in = tuple(Port(name, required=False, many=True) for name in sorted(into) if own.input(name) is None)
        more_out = tuple(Port(name, required=False) for name in sorted(out) if own.output(name) is None)
        return Ports(own.inputs + more_in, own.outputs + more_out) if more_in or more_out else own

    def of_operator(self, node: Node) -> Ports:
        """What a node's operator says; an unknown one has an input and an output."""
        kind = self.catalogue.get(node.operator)
        if kind is None:
            return Ports((Port("in", required=False, many=True),), (Port("out", required=False),))
        if kind.input_ports is Operator.input_ports and kind.output_ports is Operator.output_ports:
            return Ports(kind.inputs, kind.outputs)
        values = {name: parameter.default for name, parameter in self.workflow.parameters.items()}
        try:
            operator = kind.model_validate(substitute(node.settings, {**values, **self.workflow.roots}))
        except (ValidationError, UnknownReference):
            return Ports(kind.inputs, kind.outputs)
        return Ports(operator.input_ports(), operator.output_ports())

    def role(self, id_: str) -> Role:
        """Whether a node is a recordset or an activity."""
        kind = self.catalogue.get(self.workflow.nodes[id_].operator)
        return kind.role if kind else Role.ACTIVITY

    def ends(self, edge: Edge) -> tuple[str, str, str, str]:
        """An edge's source, its port, its target and its port, both ports named."""
        out = self.of(edge.source).output(edge.source_port)
        into = self.of(edge.target).input(edge.target_port)
        source_port = out.name if out else edge.source_port or "out"
        return edge.source, source_port, edge.target, into.name if into else edge.target_port or "in"

    def _names(self, id_: str) -> tuple[set[str], set[str]]:
        if self._edges is not self.workflow.edges:
            self._edges = self.workflow.edges
            self._named = {}
            for edge in self.workflow.edges:
                if edge.source_port:
                    self._named.setdefault(edge.source, (set(), set()))[1].add(edge.source_port)
                if edge.target_port:
                    self._named.setdefault(edge.target, (set(), set()))[0].add(edge.target_port)
        return self._named.get(id_, (set(), set()))
