"""What a simulated run is reckoned from, and the run itself as the command line tells it.

How many rows flow where comes from hints in the file, else from a recorded run, else from the footers of the sources,
else from assumptions (`engine.plan.rows`). What a row costs comes from hints, else from a recorded run, else from the
defaults below, one for each category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.operator import Category, Role
from engine.model.types import Schema
from engine.partition.flow import is_reference
from engine.partition.granularity import Granularity
from engine.plan.rows import Rows, rows_of
from engine.schedule.build import PackUnits, pack_units
from engine.schedule.graph import Work
from engine.schedule.mixed import DEFAULT_THETA, scheduled
from engine.schedule.monitor import Monitor
from engine.schedule.queues import Queue
from engine.schedule.simulated import (
    CORES,
    PACK_ROWS,
    QUEUE_PACKS,
    ROW_BYTES,
    SLOT_MS,
    SNAPSHOT_MS,
    STALL_MS,
    Simulated,
    Simulation,
    UnitCost,
)
from engine.schedule.turn import Activation, Decided, Outcome

# Microseconds for a row, where nobody knows better: of the order of an engine that reads and writes text files on a
# machine like the scheduling paper's. Reading and writing are dear, passing on is cheap.
READ_US = 10.0
WRITE_US = 10.0
COST_US = {
    Category.ROW_SYNCHRONIZED: 3.0,
    Category.SEMI_BLOCKING: 8.0,
    Category.BLOCKING: 8.0,
}
ABSORBED = (
    0.5  # the part of its cost that a blocking activity has while it puts rows aside; the rest comes when it works
)

_WIDTHS = {"tinyint": 1, "smallint": 2, "int": 4, "float": 4, "boolean": 1, "date": 4, "string": 24, "binary": 24}


@dataclass(frozen=True)
class Reckoned:
    """The costs of a workflow's units, and which of their queues share packs."""

    costs: dict[str, UnitCost]
    ports: dict[str, list[list[str]]]


def unit_costs(bound: Bound, made: PackUnits, rows: Rows) -> Reckoned:
    """What each unit costs and gives, from what its nodes cost and give."""
    costs = {}
    for unit in made.units:
        nodes = unit.nodes
        inside = set(nodes)
        taken, entering = 0, dict.fromkeys(nodes, 0)
        for node in nodes:
            for link in bound.incoming.get(node, ()):
                count = rows.of_port(link.source, link.source_port)
                entering[node] += count
                # What is only looked up in is no row that the unit works on; a blocking unit takes all alike.
                if link.source not in inside and (unit.work is Work.BLOCK or not is_reference(bound, link)):
                    taken += count
        if unit.work is Work.SOURCE:
            taken = entering[nodes[0]] = rows.out(nodes[0])
        spent = {node: cost_us(bound, node, rows) * entering[node] for node in nodes}
        absorbed, whole = _shared_out(bound, nodes, spent) if unit.work is Work.BLOCK else (sum(spent.values()), 0.0)
        given = {
            queue: rows.of_port(node, port) / taken if taken else 0.0
            for (node, port), queues in made.ports[unit.id].items()
            for queue in queues
        }
        costs[unit.id] = UnitCost(
            cost_us=absorbed / taken if taken else 0.0,
            whole_us=whole / taken if taken else 0.0,
            rows=taken if unit.work is Work.SOURCE else 0,
            shares=given,
            row_bytes=_width(bound, nodes[-1]),
        )
    ports = {unit: [list(queues) for queues in found.values()] for unit, found in made.ports.items()}
    return Reckoned(costs, ports)


def cost_us(bound: Bound, node: str, rows: Rows) -> float:
    """Microseconds for one row that enters a node (of a source: that it reads)."""
    hints = bound.workflow.nodes[node].hints
    if hints is not None and hints.cost_us is not None:
        return hints.cost_us
    measured = rows.cost_us(node)
    if measured is not None:
        return measured
    match bound.role(node):
        case Role.SOURCE:
            return READ_US
        case Role.TARGET:
            return WRITE_US
        case Role.STAGING:
            return 0.0
        case _:
            return COST_US[bound.operators[node].category]


def _shared_out(bound: Bound, nodes: tuple[str, ...], spent: Mapping[str, float]) -> tuple[float, float]:
    """What a blocking unit costs while it puts rows aside, and when it works on them."""
    first = nodes[0]
    if bound.role(first) is Role.TARGET:
        return sum(spent.values()), 0.0  # a writer writes what it takes
    absorbed = ABSORBED * spent[first] if bound.operators[first].category is not Category.ROW_SYNCHRONIZED else 0.0
    return absorbed, sum(spent.values()) - absorbed


def _width(bound: Bound, node: str) -> int:
    """About how many bytes a row has that leaves a node."""
    ports = bound.operators[node].output_ports()
    schema: Schema | None = bound.schemas.get((node, ports[0].name)) if ports else None
    return sum(_WIDTHS.get(kind, 8) for kind in schema.values()) if schema else ROW_BYTES


@dataclass(frozen=True)
class Listeners:
    """Who wants to hear what a simulated run does: its decisions, its spills, its queues from time to time."""

    on_decision: Callable[[Decided], None] | None = None
    on_spill: Callable[[Queue], None] | None = None
    on_turn: Callable[[Activation, int, Outcome], None] | None = None
    on_snapshot: Callable[[float, Monitor], None] | None = None
    on_clock: Callable[[float], None] | None = None  # before the virtual clock goes to a moment
    on_held: Callable[[], None] | None = None  # while the run is paused


@dataclass(frozen=True)
class SimulationSettings:
    """How to simulate; the defaults are the values that the scheduling paper tuned."""

    granularity: Granularity = Granularity.OPERATOR
    policy: str = "mc"
    theta: int = DEFAULT_THETA
    thetas: Mapping[str, int] = field(default_factory=dict)
    pack_rows: int = PACK_ROWS
    queue_packs: int = QUEUE_PACKS
    queue_mb: float | None = None
    slot_ms: float = SLOT_MS
    stall_ms: float = STALL_MS
    cores: int = CORES
    snapshot_ms: float = SNAPSHOT_MS

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data."""
        return {**asdict(self), "granularity": self.granularity.value, "thetas": dict(self.thetas)}


def simulate(
    bound: Bound,
    settings: SimulationSettings,
    rows: Rows | None = None,
    listeners: Listeners | None = None,
) -> dict[str, Any]:
    """A simulated run of a workflow, told as a real one is; its seconds are those of the virtual clock."""
    simulation, made, known = prepare(bound, settings, rows, listeners or Listeners())
    return told(bound, settings, made, known, simulation, simulation.run())


def told(
    bound: Bound,
    settings: SimulationSettings,
    made: PackUnits,
    known: Rows,
    simulation: Simulation,
    result: Simulated,
) -> dict[str, Any]:
    """What a simulated run came to, as the summary of a real one says it."""
    monitor = simulation.monitor
    passed = dict(known.by_port)
    for id_, link in made.links.items():
        passed[link.source, link.source_port] = passed[made.sources[id_]] = result.delivered[id_]
    nodes = {}
    for node in bound.order:
        producers = [(link.source, link.source_port) for link in bound.incoming.get(node, ())]
        ports = dict.fromkeys(link.source_port for link in bound.outgoing.get(node, ()))
        taken = sum(passed[producer] for producer in producers)
        given = sum(passed[node, port] for port in ports) if ports else taken
        nodes[node] = {"rows_in": taken, "rows_out": given, "count": "simulated"}
    return {
        "status": "done",
        "backend": "simulated",
        "seconds": round(result.seconds, 6),
        "policy": settings.policy,
        "granularity": settings.granularity.value,
        "nodes": nodes,
        "targets": {
            node: {"rows": monitor.units[node].rows_in, "path": None}
            for node in bound.order
            if bound.role(node) is Role.TARGET
        },
        "units": {
            id_: {
                "nodes": list(unit.spec.nodes),
                "rows_in": unit.rows_in,
                "rows_out": unit.rows_out,
                "seconds": round(unit.seconds, 6),
                "activations": unit.activations,
            }
            for id_, unit in monitor.units.items()
        },
        "queue": result.queue,
        "activations": result.activations,
        "idle_calls": result.idle_calls,
        "spills": result.spills,
        "busy_seconds": round(result.busy_seconds, 6),
        "assumed": known.assumed(),
    }


def prepare(
    bound: Bound, settings: SimulationSettings, rows: Rows | None, listeners: Listeners
) -> tuple[Simulation, PackUnits, Rows]:
    """A simulation of a workflow, ready to run."""
    if settings.granularity is Granularity.FUSED:
        raise BadInput(
            "--granularity fused: a simulated run schedules row packs, and fused units pass none; "
            "choose operator, subflow or tree"
        )
    known = rows if rows is not None else rows_of(bound)
    size = None if settings.queue_mb is None else int(settings.queue_mb * 2**20)
    made = pack_units(bound, settings.granularity, settings.queue_packs, size)
    reckoned = unit_costs(bound, made, known)
    graph, policies = scheduled(made.units, made.queues, settings.policy, settings.theta, settings.thetas)
    simulation = Simulation(
        graph,
        policies,
        reckoned.costs,
        ports=reckoned.ports,
        pack_rows=settings.pack_rows,
        slot_ms=settings.slot_ms,
        stall_ms=settings.stall_ms,
        cores=settings.cores,
        snapshot_ms=settings.snapshot_ms,
        on_decision=listeners.on_decision,
        on_spill=listeners.on_spill,
        on_turn=listeners.on_turn,
        on_snapshot=listeners.on_snapshot,
        on_clock=listeners.on_clock,
        on_held=listeners.on_held,
    )
    return simulation, made, known
