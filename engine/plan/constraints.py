"""What a person asks of a plan: choices pinned or forbidden, and limits (physical design, section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.errors import BadInput
from engine.model.problems import did_you_mean
from engine.model.workflow import Planning
from engine.plan.graph import Activity, Graph


@dataclass(frozen=True)
class Limit:
    """Some nodes, with the sorters in front of them, may cost so much together at most."""

    nodes: frozenset[str]
    cost: float  # in the units of the cost model
    name: str  # as the person said it


@dataclass(frozen=True)
class Constraints:
    """All that a person asks of a plan."""

    pinned: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, frozenset[str]] = field(default_factory=dict)
    memory_rows: int | None = None  # what one implementation may keep in memory
    limits: tuple[Limit, ...] = ()
    resumption: float | None = None  # what may have to be done again after a failure, in the model's units

    def check(self, graph: Graph) -> None:
        """Name the first choice that does not exist, or that another one contradicts."""
        bans = ((node, name) for node, names in self.forbidden.items() for name in sorted(names))
        for node, name in (*self.pinned.items(), *bans):
            check_choice(graph, node, name)
        for node, name in self.pinned.items():
            if name in self.forbidden.get(node, ()):
                raise BadInput(f"node `{node}` is pinned to `{name}`, which is forbidden for it")
        for node, names in self.forbidden.items():
            known = implementations(graph.activity(node))
            if names >= set(known):
                raise BadInput(f"node `{node}`: all its implementations ({', '.join(known)}) are forbidden")
        for limit in self.limits:
            for node in limit.nodes:
                if node not in graph.nodes:
                    raise BadInput(
                        f"the limit {limit.name}: there is no node `{node}`{did_you_mean(node, graph.nodes)}"
                    )

    def allows(self, node: str, name: str) -> bool:
        """Whether an implementation may be chosen."""
        return self.pinned.get(node, name) == name and name not in self.forbidden.get(node, ())

    def parts(self, graph: Graph) -> list[Limit]:
        """The limits on parts, and for resumption one on each stretch between stored recordsets."""
        found = list(self.limits)
        if self.resumption is not None:
            for stretch in stretches(graph):
                names = ", ".join(node for node in graph.nodes if node in stretch)
                found.append(Limit(stretch, self.resumption, f"resumption ({names})"))
        return found


def constraints(
    pins: Iterable[tuple[str, str]] = (),
    bans: Iterable[tuple[str, str]] = (),
    *,
    memory_rows: int | None = None,
    limits: Iterable[Limit] = (),
    resumption: float | None = None,
    planning: Planning | None = None,
) -> Constraints:
    """What the workflow's file asks for, and what is asked for this time; two pins of one node contradict each other.

    A pin or a number that is given this time goes before the file's; what is forbidden stays forbidden.
    """
    asked = planning or Planning()
    pinned: dict[str, str] = {}
    for node, name in pins:
        if pinned.setdefault(node, name) != name:
            raise BadInput(f"node `{node}` is pinned to `{pinned[node]}` and to `{name}`; it can have one only")
    forbidden = {node: frozenset(names) for node, names in asked.forbid.items()}
    for node, name in bans:
        forbidden[node] = forbidden.get(node, frozenset()) | {name}
    own = [
        Limit(frozenset(one.nodes), one.cost, f"{','.join(one.nodes)}={one.cost:.12g}") for one in asked.limits
    ]  # fmt: skip
    return Constraints(
        {**asked.pin, **pinned},
        forbidden,
        asked.memory_rows if memory_rows is None else memory_rows,
        (*own, *limits),
        asked.resumption if resumption is None else resumption,
    )


def implementations(activity: Activity | None) -> list[str]:
    """The names of an activity's implementations."""
    return [one.name for one in activity.physical.implementations] if activity else []


def stretches(graph: Graph) -> list[frozenset[str]]:
    """Activities between the recordsets that store what was done: after a failure a stretch is done again."""
    found: list[frozenset[str]] = []
    seen: set[str] = set()
    for start in graph.nodes:
        if start in seen or graph.activity(start) is None:
            continue
        members = [start]
        seen.add(start)
        for at in members:  # grows while it is walked
            ends = [*(edge.target for edge in graph.outgoing[at]), *(edge.source for edge in graph.incoming[at])]
            for other in ends:
                if other not in seen and graph.activity(other) is not None:
                    seen.add(other)
                    members.append(other)
        found.append(frozenset(members))
    return found


def check_choice(graph: Graph, node: str, name: str) -> None:
    """Refuse an implementation that a node does not have."""
    if node not in graph.nodes:
        raise BadInput(f"{node}={name}: there is no node `{node}`{did_you_mean(node, graph.nodes)}")
    activity = graph.activity(node)
    if activity is None:
        raise BadInput(f"{node}={name}: `{node}` is a recordset, for which nothing is chosen")
    known = implementations(activity)
    if name not in known:
        near = did_you_mean(name, known)
        raise BadInput(f"node `{node}` has no implementation `{name}`; it has {', '.join(known)}{near}")
