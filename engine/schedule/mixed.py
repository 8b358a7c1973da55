"""Mixed policy: subflows side by side, each under the policy that fits it (scheduling, section 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.errors import BadInput
from engine.schedule.graph import QueueSpec, ScheduleGraph, UnitSpec
from engine.schedule.policies.mc import MinimumCost
from engine.schedule.policies.mm import MinimumMemory
from engine.schedule.policy import MIXED, Policy, policy_named

DEFAULT_THETA = 4  # memory-intensive activities that a subflow may have and still run under MC


def memory_intensive(units: tuple[UnitSpec, ...]) -> int:
    """How many activities of a subflow hold rows."""
    return sum(unit.memory_intensive for unit in units)


def mixed_policies(
    graph: ScheduleGraph, theta: int = DEFAULT_THETA, thetas: Mapping[str, int] | None = None
) -> dict[str, Policy]:
    """MM for a subflow with more than theta memory-intensive activities, MC for the others (ExecuteSISS)."""
    own = thetas or {}
    groups = graph.groups()
    for name in own:
        if name not in groups:
            raise BadInput(f"--theta {name}={own[name]}: there is no subflow `{name}`; there are {', '.join(groups)}")
    return {
        name: MinimumMemory() if memory_intensive(units) > own.get(name, theta) else MinimumCost()
        for name, units in groups.items()
    }


def scheduled(
    units: tuple[UnitSpec, ...],
    queues: tuple[QueueSpec, ...],
    policy: str,
    theta: int = DEFAULT_THETA,
    thetas: Mapping[str, int] | None = None,
) -> tuple[ScheduleGraph, dict[str, Policy]]:
    """The graph as a policy sees it, and the policy of each of its groups.

    A single policy has one group of all units. Under the mixed policy each subflow is a group, and what passes
    from one to the next is staged, for a subflow begins when those it reads from have ended.
    """
    if policy != MIXED:
        alike = tuple(replace(unit, group="") for unit in units)
        graph = ScheduleGraph(alike, queues)
        return graph, dict.fromkeys(graph.groups(), policy_named(policy)())
    group_of = {unit.id: unit.group for unit in units}
    staged = tuple(
        replace(queue, capacity_packs=None, capacity_bytes=None)
        if group_of[queue.producer] != group_of[queue.consumer]
        else queue
        for queue in queues
    )
    graph = ScheduleGraph(units, staged)
    return graph, mixed_policies(graph, theta, thetas)
