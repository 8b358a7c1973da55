"""Small schedule graphs written as text, and random ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from engine.schedule.graph import QueueSpec, ScheduleGraph, UnitSpec, Work
from engine.schedule.mixed import scheduled
from engine.schedule.monitor import Monitor
from engine.schedule.policy import Policy
from engine.schedule.queues import Pack
from engine.schedule.simulated import Simulated, Simulation, UnitCost
from engine.schedule.turn import Activation, Limits, Outcome, Step

POLICIES = ("rr", "mc", "mm", "mixed")
_WORK = {"s": Work.SOURCE, "t": Work.SOURCE, "r": Work.SOURCE, "b": Work.BLOCK, "w": Work.BLOCK}


def units(names: str, groups: dict[str, str] | None = None) -> tuple[UnitSpec, ...]:
    """Units by name: `s…`, `t…` and `r…` are sources, `b…` and `w…` are blocking, the others pass packs on."""
    return tuple(
        UnitSpec(
            name, number, _WORK.get(name[0], Work.STREAM), (name,), int(name[0] == "b"), (groups or {}).get(name, name)
        )
        for number, name in enumerate(names.split())
    )


def queues(text: str, capacity: int | None = 100) -> tuple[QueueSpec, ...]:
    """Queues as in `s>f f>w`; `r=>l` is one whose rows are needed whole."""
    made = []
    for edge in text.split():
        producer, _, consumer = edge.replace("=>", ">").partition(">")
        made.append(QueueSpec(edge, producer, consumer, capacity, reference="=>" in edge))
    return tuple(made)


def monitor_of(
    names: str,
    edges: str,
    policy: Policy,
    *,
    capacity: int | None = 100,
    limits: Limits | None = None,
    **listeners: Any,
) -> Monitor:
    """A monitor over one group under one policy, whose turns a test carries out itself."""
    alike = tuple(replace(unit, group="") for unit in units(names))
    return Monitor(ScheduleGraph(alike, queues(edges, capacity)), {"": policy}, limits or Limits(10), **listeners)


class Hand:
    """Carries out what the monitor decides as a test says, and keeps the time."""

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor
        self.now = 0.0
        self.turns: list[tuple[str, Step, int]] = []
        monitor.statistics.clock(0.0)

    def decide(self) -> Activation:
        (group,) = self.monitor.idle_groups()
        activation = self.monitor.decide(group)
        self.turns.append((activation.unit.id, activation.step, activation.packs))
        return activation

    def turn(self, *packs: int, seconds: float = 1.0, exhausted: bool = False) -> Activation:
        """One turn that gives packs of so many rows to all of the unit's queues; the policy picks the unit."""
        activation = self.decide()
        self.report(activation, *packs, seconds=seconds, exhausted=exhausted)
        return activation

    def report(self, activation: Activation, *packs: int, seconds: float = 1.0, exhausted: bool = False) -> None:
        self.now += seconds
        to = tuple(activation.unit.outputs)
        produced = [(Pack(rows, rows * 10), to) for rows in packs]
        read = sum(packs) if activation.step is Step.READ else 0
        self.monitor.report(activation, Outcome(seconds, produced, read, exhausted), self.now)
        self.monitor.check()


def simulate(
    specs: tuple[UnitSpec, ...],
    between: tuple[QueueSpec, ...],
    costs: dict[str, UnitCost],
    policy: str,
    theta: int = 4,
    **options: Any,
) -> Simulated:
    graph, policies = scheduled(specs, between, policy, theta)
    return Simulation(graph, policies, costs, **options).run()


# ---------------------------------------------------------------- random graphs


@dataclass(frozen=True)
class Case:
    """A random workflow of units with all that a simulated run needs."""

    units: tuple[UnitSpec, ...]
    queues: tuple[QueueSpec, ...]
    costs: dict[str, UnitCost]
    ports: dict[str, list[list[str]]]
    pack_rows: int
    slot_ms: float
    cores: int
    theta: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Units with splits, rejoins and inputs that are needed whole; any selectivity, empty sources, tiny queues."""
    size = draw(st.integers(1, 9))
    pack_rows = draw(st.integers(1, 50))
    capacity = draw(st.sampled_from((1, 1, 2, 3, 100)))
    heavy = draw(st.sampled_from((None, None, 500, 5000)))  # bytes; a row has 100
    works: list[Work] = []
    between: list[QueueSpec] = []
    for number in range(size):
        fed = number > 0 and draw(st.integers(0, 3)) > 0
        feeders = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3)) if fed else []
        work = draw(st.sampled_from((Work.STREAM, Work.STREAM, Work.BLOCK))) if fed else Work.SOURCE
        if feeders and draw(st.integers(0, 9)) == 0:
            work = Work.SOURCE  # a tree whose first activity reads a recordset and that looks up what others made
        works.append(work)
        main = draw(st.integers(0, len(feeders) - 1)) if feeders else -1
        for place, feeder in enumerate(feeders):
            whole = work is Work.SOURCE or (work is Work.STREAM and place != main and draw(st.booleans()))
            between.append(QueueSpec(f"{feeder}>{number}.{place}", f"u{feeder}", f"u{number}", capacity, heavy, whole))
    specs = tuple(
        UnitSpec(f"u{number}", number, work, (), int(work is Work.BLOCK)) for number, work in enumerate(works)
    )
    specs = _grouped(draw, specs)
    selectivities = st.one_of(st.sampled_from((0.0, 0.5, 1.0, 3.0)), st.floats(0, 3, allow_nan=False))
    costs = {}
    ports: dict[str, list[list[str]]] = {}
    for unit in specs:
        outgoing = [queue.id for queue in between if queue.producer == unit.id]
        if len(outgoing) > 1 and draw(st.booleans()):  # a router: each way has its own packs
            ports[unit.id] = [[id_] for id_ in outgoing]
        costs[unit.id] = UnitCost(
            cost_us=draw(st.sampled_from((0.0, 1.0, 1000.0))),
            whole_us=draw(st.sampled_from((0.0, 5.0))),
            rows=draw(st.sampled_from((0, 0, 1, 7, 60, 333))) if unit.work is Work.SOURCE else 0,
            selectivity=draw(selectivities),
            shares={id_: draw(selectivities) for id_ in outgoing} if unit.id in ports else {},
        )
    return Case(
        specs,
        tuple(between),
        costs,
        ports,
        pack_rows,
        slot_ms=draw(st.sampled_from((0.0, 0.1, 70.0))),
        cores=draw(st.integers(1, 3)),
        theta=draw(st.integers(0, 2)),
    )


def _grouped(draw: st.DrawFn, specs: tuple[UnitSpec, ...]) -> tuple[UnitSpec, ...]:
    """Neighbours in topological order as one subflow, so that no subflow waits for itself."""
    group, made = 0, []
    for unit in specs:
        group += draw(st.integers(0, 2)) == 0
        made.append(replace(unit, group=f"g{group}"))
    return tuple(made)
