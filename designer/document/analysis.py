"""What can be said of a workflow while it is drawn: problems, schemas, wings, trees, subflows, strata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from designer.document.document import Document
from engine.errors import PapilioError
from engine.model.binding import Bound, Discover, bind
from engine.model.inference import Scope
from engine.model.operator import Inputs, Operator, Port
from engine.model.problems import Level, Problem
from engine.model.shape import Archetype, Shape, shape
from engine.model.types import Schema
from engine.partition.flow import flow_of
from engine.partition.subflows import Subflows, break_into_subflows
from engine.partition.trees import execution_trees


@dataclass
class Analysis:
    """A bound workflow and what follows from it. Parts that are seldom looked at are computed when they are."""

    bound: Bound
    problems: list[Problem]
    by_node: Mapping[str, list[Problem]] = field(default_factory=dict)

    @cached_property
    def shape(self) -> Shape:
        """The wings and the archetype."""
        try:
            return shape(self.bound)
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
        return [(tree.id, tree.nodes) for tree in execution_trees(flow_of(self.bound)).trees] if self.whole else []

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
        return break_into_subflows(flow_of(self.bound)) if self.whole else None

    @property
    def whole(self) -> bool:
        """Whether every node has its place in the order: none is unknown, nothing goes in a circle."""
        return bool(self.bound.order) and len(self.bound.order) == len(self.bound.operators)

    def level(self, node: str) -> Level | None:
        """How bad the worst of a node's problems is."""
        levels = {problem.level for problem in self.by_node.get(node, ())}
        return Level.ERROR if Level.ERROR in levels else Level.WARNING if levels else None

    def schema(self, node: str, port: str) -> Schema | None:
        """The columns that leave by an output port."""
        return self.bound.schemas.get((node, port))

    def inputs(self, node: str) -> Inputs:
        """The schemas on a node's input ports."""
        by_port: dict[str, list[Schema | None]] = {}
        for link in self.bound.incoming.get(node, ()):
            by_port.setdefault(link.target_port, []).append(self.schema(link.source, link.source_port))
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


def analyse(document: Document, discover: Discover | None = None) -> Analysis:
    """Bind a document and sort its problems by node. Never starts Spark, never raises."""
    try:
        bound = bind(document.as_file(), document.catalogue, discover=discover)
    except (PapilioError, OSError, ValueError, RecursionError) as error:
        bound = Bound(document.workflow, document.path)
        bound.problems = [Problem(str(error))]
    by_node: dict[str, list[Problem]] = {}
    for problem in bound.problems:
        if problem.node is not None:
            by_node.setdefault(problem.node, []).append(problem)
    return Analysis(bound, bound.problems, by_node)
