"""Units for the granularity `fused`: as few Spark plans as sensible.

A producer with one consumer melts into it. A result that several read is computed once: they read the target
that holds it, if there is one, or a staged copy, unless computing it again is as cheap as reading the copy
would be. Rows that come from columnar files nearly as they are need not wait for their target either: whoever reads
the target computes them again beside it. What is written once (a target, a staging area, a staged copy) is the result
of one unit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import starmap

from engine.model.binding import Bound
from engine.model.operator import Carries, Category, Mode, Operator, Role, Source, Target, limits_of

SHORT = 3  # activities that are done again rather than waited for


class Held(StrEnum):
    """How a unit's result is kept."""

    TARGET = "target"
    STAGING = "staging"  # an intermediate recordset the person drew
    STAGED = "staged"  # a copy the engine keeps because several read it


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that run as one Spark plan, and the result it writes."""

    id: str
    result: str  # the node whose rows are written
    held: Held
    ports: tuple[str, ...]  # the result's ports that are kept
    nodes: tuple[str, ...]  # in the order rows pass through them
    reads: tuple[str, ...]  # units whose results this one reads


@dataclass
class FusedPlan:
    """Units in an order in which they can run, and where each shared result is read from."""

    units: list[Unit] = field(default_factory=list)
    # (node, port) → the unit whose result holds these rows
    holders: dict[tuple[str, str], str] = field(default_factory=dict)
    # target → the node and port whose rows it keeps and its readers compute again
    passed: dict[str, tuple[str, str]] = field(default_factory=dict)
    # node → the unit that counts its rows, of those that compute them
    counters: dict[str, str] = field(default_factory=dict)

    def unit(self, id_: str) -> Unit:
        """A unit by its id."""
        return next(unit for unit in self.units if unit.id == id_)

    def ways(self) -> dict[str, int]:
        """Of each unit, how many have to run one after the other from it on, itself among them."""
        ways: dict[str, int] = dict.fromkeys((unit.id for unit in self.units), 1)
        for unit in reversed(self.units):
            for read in unit.reads:
                ways[read] = max(ways[read], ways[unit.id] + 1)
        return ways

    def origin(self, node: str, port: str) -> tuple[str, str]:
        """Where the rows of a port are taken from: from where a target has them, where nobody waits for it."""
        while node in self.passed:
            node, port = self.passed[node]
        return node, port


def counted_ports(bound: Bound, node: str) -> list[str]:
    """The ports of refused rows that nothing reads: their rows are counted where the node runs."""
    operator = bound.operators[node]
    if limits_of(operator) is None:
        return []
    read = {link.source_port for link in bound.outgoing.get(node, ())}
    return [port.name for port in operator.output_ports() if port.carries is Carries.REFUSED and port.name not in read]


def fuse(
    bound: Bound,
    cheap_again: Callable[[str], bool] | None = None,
    kept: Collection[str] = (),
    there: Collection[str] | None = (),
) -> FusedPlan:
    """Divide a workflow into fused units.

    `cheap_again(node)` may overrule the built-in judgement of whether a shared node is better computed again; the rows
    of the nodes in `kept` are staged, whoever reads them. Targets in `there` have their rows already, or may be waited
    for, and are read; None is all of them.
    """
    plan = FusedPlan()
    beside: set[str] = set()  # targets that nobody waits for

    def is_awaited(keeper: str, node: str) -> bool:
        if there is None or keeper in there or keeper in kept or not _is_at_hand(bound, node, plan):
            return True
        beside.add(keeper)
        return False

    held: dict[str, tuple[Held, tuple[str, ...]]] = {}
    for node in bound.order:
        links = bound.outgoing.get(node, [])
        role = bound.role(node)
        if role is Role.TARGET:
            held[node] = (Held.TARGET, tuple(port.name for port in bound.operators[node].output_ports()))
            source, port = bound.producers(node)[0]
            if links and _keeps_all(bound.operators[node]) and not is_awaited(node, source):
                plan.passed[node] = source, port
        elif role is Role.STAGING:
            held[node] = (Held.STAGING, tuple(port.name for port in bound.operators[node].output_ports()))
        elif node in kept and links:
            held[node] = (Held.STAGED, tuple(dict.fromkeys(link.source_port for link in links)))
        elif len(links) > 1:
            keeper = _keeper(bound, node)
            if keeper is not None:
                if is_awaited(keeper, node):
                    plan.holders[node, links[0].source_port] = keeper
            elif not (cheap_again or _Cheap(bound, held))(node):
                held[node] = (Held.STAGED, tuple(dict.fromkeys(link.source_port for link in links)))
    for node, (_, ports) in held.items():
        for port in ports:
            plan.holders[node, port] = node
    position = {node: index for index, node in enumerate(bound.order)}
    for node in bound.order:
        if node in held:
            plan.units.append(_unit(bound, node, held, plan, position))
    # What a target keeps is counted with it: a run that goes on after a kill reads the target, if it is there.
    for unit in sorted(plan.units, key=lambda unit: unit.id not in beside):
        for member in unit.nodes:
            plan.counters.setdefault(member, unit.id)
    return plan


def _keeper(bound: Bound, node: str) -> str | None:
    """A target that holds a node's rows just as they are, so that the others can read them there."""
    links = bound.outgoing[node]
    if len({link.source_port for link in links}) > 1:
        return None
    for link in links:
        if _keeps_all(bound.operators[link.target]):
            return link.target
    return None


def _keeps_all(operator: Operator) -> bool:
    """Whether a target holds after the run the rows it was given, all of them and no others."""
    return isinstance(operator, Target) and operator.lossless and operator.mode is Mode.OVERWRITE


def _is_at_hand(bound: Bound, node: str, plan: FusedPlan, steps: int = SHORT) -> bool:
    """Whether rows are read from columnar files and left nearly as they are, by little work.

    Reading them from there takes no longer than reading them from the target that keeps them, which would have to be
    written first. Behind a filter the target may be much smaller than the files.
    """
    operator = bound.operators[node]
    if isinstance(operator, Source):
        return operator.columnar
    is_row_by_row = operator.category is Category.ROW_SYNCHRONIZED and operator.is_light()
    if steps == 0 or not is_row_by_row or not operator.is_repeatable():
        return False
    for source, port in starmap(plan.origin, bound.producers(node)):
        refused = [out.name for out in bound.operators[source].output_ports() if out.carries is Carries.REFUSED]
        if port in refused or not _is_at_hand(bound, source, plan, steps - 1):
            return False
    return True


class _Cheap:
    """Whether a shared result is as cheap to compute again as to read from a copy.

    It is, where only row-synchronized activities stand between it and columnar files: Spark then reads the
    few columns it needs, and a copy would have to be written first. Rows that are counted on the way must be
    counted once, and values that differ from time to time must be computed once.
    """

    def __init__(self, bound: Bound, held: dict[str, tuple[Held, tuple[str, ...]]]) -> None:
        self.bound = bound
        self.held = held

    def __call__(self, node: str) -> bool:
        waiting = [node]
        while waiting:
            at = waiting.pop()
            if at in self.held and at != node:
                continue
            operator = self.bound.operators[at]
            if counted_ports(self.bound, at) or not operator.is_repeatable():
                return False
            if isinstance(operator, Source):
                if not operator.columnar:
                    return False
            elif operator.category is not Category.ROW_SYNCHRONIZED or operator.needs_trust:
                return False
            producers = self.bound.producers(at)
            if len(producers) > 1:  # a lookup: its reference would be read again as well
                return False
            waiting.extend(source for source, _ in producers)
        return True


def _unit(
    bound: Bound,
    result: str,
    held: dict[str, tuple[Held, tuple[str, ...]]],
    plan: FusedPlan,
    position: dict[str, int],
) -> Unit:
    """The nodes that melt into the plan of one result: everything back to what is held elsewhere."""
    places = {position[result]}
    reads: dict[str, None] = {}
    waiting = [result]
    while waiting:
        at = waiting.pop()
        for link in bound.incoming.get(at, ()):
            source, port = plan.origin(link.source, link.source_port)
            holder = plan.holders.get((source, port))
            if holder is not None and holder != result:
                reads[holder] = None
            elif (place := position[source]) not in places:
                places.add(place)
                waiting.append(source)
    kind, ports = held[result]
    ordered = tuple([bound.order[place] for place in sorted(places)])
    return Unit(result, result, kind, ports, ordered, tuple(sorted(reads, key=position.__getitem__)))
