"""What can be said of a workflow while it is drawn: problems, schemas, wings, trees, subflows, strata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from designer.document.document import Document
from engine.errors import PapilioError
from engine.model.binding import Bound, Discover, Known, Link, bind
from engine.model.inference import Scope
from engine.model.operator import Inputs, Operator, Port
from engine.model.problems import Level, Problem
from engine.model.shape import Archetype, Shape, shape
from engine.model.types import Schema
from engine.model.workflow import Workflow
from engine.partition.flow import flow_of, levels
from engine.partition.subflows import Subflows, break_into_subflows
from engine.partition.trees import execution_trees


@dataclass
class Analysis:
    """A bound workflow and what follows from it. Parts that are seldom looked at are computed when they are."""

    bound: Bound
    problems: list[Problem]
    by_node: Mapping[str, list[Problem]] = field(default_factory=dict)
    # For each node the edges that end at it: source, its port, and the node's own port.
    feeding: Mapping[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    drawn: Bound = field(default_factory=lambda: Bound(Workflow(), None))  # all nodes, also those that do not hold yet

    @cached_property
    def shape(self) -> Shape:
        """The wings and the archetype."""
        try:
            return shape(self.drawn)
        except (KeyError, ValueError):  # a flow in a circle has no shape
            return Shape((), (), (), Archetype.OTHER)

    @cached_property
    def wings(self) -> dict[str, str]:
        """Each node's part of the butterfly: left, body or right."""
        parts = {"left": self.shape.left, "body": self.shape.body, "right": self.shape.right}
        return {node: wing for wing, nodes in parts.items() for node in nodes}

    @cached_property
    def trees(self) -> list[tuple[str, tuple[str, ...]]]:
        """The execution trees with their nodes."""
        return [(tree.id, tree.nodes) for tree in execution_trees(flow_of(self.drawn)).trees] if self.whole else []

    @cached_property
    def subflows(self) -> list[tuple[str, tuple[str, ...]]]:
        """The subflows with their nodes."""
        return [(part.id, part.nodes) for part in self._parts.subflows] if self._parts else []

    @cached_property
    def strata(self) -> list[tuple[str, tuple[str, ...]]]:
        """The strata with the nodes of their subflows."""
        if not self._parts:
            return []
        nodes = {part.id: part.nodes for part in self._parts.subflows}
        return [
            (str(number), tuple(node for id_ in stratum for node in nodes[id_]))
            for number, stratum in enumerate(self._parts.strata, start=1)
        ]

    @cached_property
    def _parts(self) -> Subflows | None:
        return break_into_subflows(flow_of(self.drawn)) if self.whole else None

    @property
    def whole(self) -> bool:
        """Whether every node has its place in the order: nothing goes in a circle."""
        return bool(self.drawn.order) and len(self.drawn.order) == len(self.drawn.operators)

    def level(self, node: str) -> Level | None:
        """How bad the worst of a node's problems is."""
        levels = {problem.level for problem in self.by_node.get(node, ())}
        return Level.ERROR if Level.ERROR in levels else Level.WARNING if levels else None

    def first_place(self, node: str) -> str | None:
        """The setting that a node's first problem is about: an error's before a warning's."""
        found = [problem for problem in self.by_node.get(node, ()) if problem.setting is not None]
        return min(found, key=lambda problem: problem.level is not Level.ERROR).setting if found else None

    @property
    def of_workflow(self) -> list[Problem]:
        """The problems of the workflow itself, and of no node."""
        return [problem for problem in self.problems if problem.node is None]

    def schema(self, node: str, port: str) -> Schema | None:
        """The columns that leave by an output port."""
        return self.bound.schemas.get((node, port))

    def inputs(self, node: str) -> Inputs:
        """The schemas on a node's input ports, also of one whose settings do not hold yet."""
        by_port: dict[str, list[Schema | None]] = {}
        for source, source_port, target_port in self.feeding.get(node, ()):
            by_port.setdefault(target_port, []).append(self.schema(source, source_port))
        return Inputs(by_port)

    def input_schema(self, node: str, port: str) -> Schema | None:
        """The columns that enter by an input port, of its first edge."""
        return self.inputs(node).of(port)

    def scope(self, node: str, place: str, port: str, kind: type[Operator] | None) -> Scope:
        """What an expression at a place in a node's settings may name."""
        inputs = self.inputs(node)
        operator = self.bound.operators.get(node)
        if operator is not None:
            special = operator.scope_of(place, inputs)
            if special is not None:
                return special
        ports: tuple[Port, ...] = operator.input_ports() if operator else kind.inputs if kind else ()
        qualified = {one.name: inputs.of(one.name) for one in ports}
        schema = inputs.of(port) if port in qualified else inputs.first()
        return Scope(schema, qualified if len(qualified) > 1 else {})


def analyse(document: Document, discover: Discover | None = None, known: Known | None = None) -> Analysis:
    """Bind a document and sort its problems by node. Never starts Spark, never raises.

    `known` is what the analysis before found: only what an edit reaches is looked at again.
    """
    try:
        bound = bind(document.as_file(), document.catalogue, discover=discover, known=known)
        if not bound.errors and any(operator.family == "streams" for operator in bound.operators.values()):
            from engine.partition.tables import cut, is_streaming  # loads every operator that a warehouse may have

            if is_streaming(bound):
                bound.problems.extend(cut(bound)[1])
    except (PapilioError, OSError, ValueError, RecursionError) as error:
        bound = Bound(document.workflow, document.path)
        bound.problems = [Problem(str(error))]
    feeding: dict[str, list[tuple[str, str, str]]] = {}
    links = []
    nodes = document.workflow.nodes
    whole = len(bound.operators) == len(nodes) and len(bound.links) == len(document.workflow.edges)
    if whole:
        for target, incoming in bound.incoming.items():
            feeding[target] = [(link.source, link.source_port, link.target_port) for link in incoming]
    for edge in () if whole else document.workflow.edges:
        if edge.source in nodes and edge.target in nodes:
            source, source_port, target, target_port = document.ports.ends(edge)
            feeding.setdefault(target, []).append((source, source_port, target_port))
            links.append(Link(source, source_port, target, target_port))
    if len(bound.operators) < len(nodes):
        drawn = _as_drawn(document, bound, links)
        problems = [problem for problem in bound.problems if not _only_follows(problem, bound, drawn)]
    else:
        drawn, problems = bound, bound.problems
    by_node: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.node is not None:
            by_node.setdefault(problem.node, []).append(problem)
    return Analysis(bound, problems, by_node, feeding, drawn)


def _as_drawn(document: Document, bound: Bound, links: list[Link]) -> Bound:
    """The workflow with all its nodes and edges, so that a shape is seen before all settings are there."""
    drawn = Bound(document.workflow, document.path)
    for id_, node in document.workflow.nodes.items():
        kind = document.catalogue.get(node.operator, _Unknown)
        drawn.operators[id_] = bound.operators.get(id_) or kind.model_construct()
    for link in dict.fromkeys(links):
        drawn.links.append(link)
        drawn.outgoing.setdefault(link.source, []).append(link)
        drawn.incoming.setdefault(link.target, []).append(link)
    level = levels(drawn.operators, list(dict.fromkeys((link.source, link.target) for link in drawn.links)))
    drawn.order = sorted(level, key=lambda id_: (level[id_], id_))
    return drawn


class _Unknown(Operator):
    """Stands for an operator that is not there."""


def _only_follows(problem: Problem, bound: Bound, drawn: Bound) -> bool:
    """Whether a problem says that a port is not connected which is, to a node whose settings do not hold yet."""
    node, port = problem.node, problem.port
    if node is None or port is None or problem.setting is not None or node not in bound.operators:
        return False
    operator = bound.operators[node]
    if any(one.name == port for one in operator.input_ports()) and not bound.producers(node, port):
        return bool(drawn.producers(node, port))
    if any(one.name == port for one in operator.output_ports()) and not bound.consumers(node):
        return bool(drawn.consumers(node))
    return False
