"""The simulated backend: the same monitor on a virtual clock, from costs and selectivities instead of Spark.

Each unit needs so many microseconds a row and gives so many rows for each it takes. A turn also costs what the
engine of the scheduling paper needs to wake a thread. Round robin also pays for the threads that it wakes in vain
(appendix A). Groups of the mixed policy run side by side on the cores.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from engine.schedule.graph import ScheduleGraph
from engine.schedule.monitor import Monitor
from engine.schedule.policy import Policy
from engine.schedule.queues import Pack, Queue
from engine.schedule.turn import Activation, Decided, Limits, Outcome, Step
from engine.schedule.unit import Group, Unit

# The values the scheduling paper tuned (section 7.2, table 3).
PACK_ROWS = 400
QUEUE_PACKS = 100
SLOT_MS = 70.0
STALL_MS = 4.0

# Looked up once, not each turn.
_READ, _PROCESS, _ABSORB, _DELIVER = Step.READ, Step.PROCESS, Step.ABSORB, Step.DELIVER

ROW_BYTES = 100
SNAPSHOT_MS = 100.0  # of the virtual clock
CORES = 2  # as the paper's machine had, and as ours has


class Deadlock(AssertionError):
    """Nothing can go on although not all is finished. The monitor never lets it come to this."""


@dataclass(frozen=True)
class UnitCost:
    """What a unit costs and gives."""

    cost_us: float = 5.0  # of each row it takes (a source: of each row it reads)
    rows: int = 0  # of a source: how many it has
    selectivity: float = 1.0  # rows it gives for each row it takes
    shares: Mapping[str, float] = field(default_factory=dict)  # queue → its own selectivity, where ports differ
    row_bytes: int = ROW_BYTES
    whole_us: float = 0.0  # of a blocking unit: of each row it took, once all are there


@dataclass
class Simulated:
    """What a simulated run came to."""

    seconds: float
    activations: int
    idle_calls: int  # threads that were woken although they had nothing to do
    spills: int
    queue: dict[str, float]
    rows_in: dict[str, int]
    rows_out: dict[str, int]
    delivered: dict[str, int]  # queue → all rows that ever passed
    busy_seconds: float  # of all cores together


class _Port:
    """The queues that share the packs of one output."""

    __slots__ = ("given", "queues", "share", "taken")

    def __init__(self, queues: tuple[Queue, ...], share: float) -> None:
        self.queues = queues
        self.share = share
        self.taken = 0
        self.given = 0


class Worker:
    """Carries out the turns of one unit."""

    __slots__ = ("left", "pack_bytes", "pack_rows", "ports", "row_bytes", "row_seconds", "whole_us")

    def __init__(self, cost: UnitCost, outputs: list[tuple[Queue, ...]], pack_rows: int) -> None:
        self.row_seconds = cost.cost_us / 1e6
        self.whole_us = cost.whole_us
        self.left = cost.rows  # of a source
        self.ports = [_Port(port, cost.shares.get(port[0].spec.id, cost.selectivity)) for port in outputs]
        self.pack_rows = pack_rows
        self.row_bytes = cost.row_bytes
        self.pack_bytes = pack_rows * cost.row_bytes

    def carry_out(self, activation: Activation) -> Outcome:
        """What comes of a turn, and how long it takes."""
        step = activation.step
        if step is _PROCESS or step is _ABSORB:
            rows = 0
            for queue, count in activation.take:
                rows += queue.rows if count == queue.count else queue.rows_of(count)
            return Outcome(rows * self.row_seconds, self._packs(rows) if step is _PROCESS else ())
        if step is _DELIVER:
            return Outcome(0.0)
        if step is _READ:
            rows = min(self.left, activation.read_packs * self.pack_rows)
            self.left -= rows
            return Outcome(rows * self.row_seconds, self._packs(rows), rows, self.left == 0)
        rows = activation.unit.rows_absorbed
        return Outcome(rows * self.whole_us / 1e6, self._packs(rows))

    def _packs(self, rows: int) -> list[tuple[Pack, tuple[Queue, ...]]]:
        """What leaves by each port after so many more rows were taken; fractions of a row are carried on."""
        produced: list[tuple[Pack, tuple[Queue, ...]]] = []
        for port in self.ports:
            port.taken = taken = port.taken + rows
            owed = int(taken * port.share + 1e-6) - port.given
            port.given += owed
            full, rest = divmod(owed, self.pack_rows)
            if full:
                produced.append((Pack(self.pack_rows, self.pack_bytes, "", full), port.queues))
            if rest:
                produced.append((Pack(rest, rest * self.row_bytes), port.queues))
        return produced


class Simulation:
    """One simulated run."""

    def __init__(
        self,
        graph: ScheduleGraph,
        policies: Mapping[str, Policy],
        costs: Mapping[str, UnitCost],
        *,
        ports: Mapping[str, list[list[str]]] | None = None,
        pack_rows: int = PACK_ROWS,
        slot_ms: float = SLOT_MS,
        stall_ms: float = STALL_MS,
        cores: int = CORES,
        on_decision: Callable[[Decided], None] | None = None,
        on_spill: Callable[[Queue], None] | None = None,
        on_turn: Callable[[Activation, int, Outcome], None] | None = None,
        on_snapshot: Callable[[float, Monitor], None] | None = None,
        on_clock: Callable[[float], None] | None = None,
        on_held: Callable[[], None] | None = None,
        snapshot_ms: float = SNAPSHOT_MS,
        **listeners: Any,
    ) -> None:
        """`ports` says which queues of a unit share packs; left out, each unit gives the same to all of them.

        `on_clock` is called before the virtual clock goes to a moment, so that whoever watches can make it wait;
        `on_held` while the run is paused: the clock stands still until it lets a decision through.
        """
        self.now = 0.0
        self.monitor = Monitor(
            graph, policies, Limits(pack_rows, slot_ms / 1000), on_decision=on_decision, on_spill=on_spill, **listeners
        )
        self.costs = costs
        self.pack_rows = pack_rows
        # A stalled thread looks into its mailbox every `stall_ms`: it wakes after half of that, on average.
        self.switch = stall_ms / 2000
        self.idle_calls = 0
        self._unfinished: dict[str, list[int]] = {}
        self.cores = cores
        self.on_turn = on_turn
        self.on_snapshot = on_snapshot
        self.on_clock = on_clock
        self.on_held = on_held
        self.snapshot_seconds = snapshot_ms / 1000
        self.busy = 0.0
        self.workers: dict[Unit, Worker] = {}
        for unit in self.monitor.units.values():
            names = (ports or {}).get(unit.id)
            queues = self.monitor.queues
            shared = [tuple(queues[name] for name in port) for port in names] if names else [tuple(unit.outputs)]
            self.workers[unit] = Worker(costs[unit.id], [port for port in shared if port], pack_rows)

    def full_bytes(self) -> int | None:
        """What the queues hold when all of them are full; None where none is limited."""
        each = {id_: self.pack_rows * cost.row_bytes for id_, cost in self.costs.items()}
        full = [
            min(queue.capacity * each[queue.producer.id], queue.limit_bytes)
            for queue in self.monitor.queues.values()
            if queue.capacity is not None
        ]
        return int(sum(full)) if full else None

    def run(self) -> Simulated:
        """Until every unit has finished."""
        monitor, workers, cores = self.monitor, self.workers, self.cores
        heap: list[tuple[float, int, Activation, Outcome]] = []
        next_snapshot = 0.0
        monitor.statistics.clock(self.now)  # the time until the first turn is over counts too
        while monitor.unfinished:
            if self.on_held is not None:
                while monitor.pace.held:  # the virtual world stands still, with what runs in the middle of its turn
                    self.on_held()
            free = cores - len(heap)
            if free > 0:
                for group in monitor.idle_groups()[:free]:
                    last = group.last
                    activation = monitor.decide(group)
                    outcome = workers[activation.unit].carry_out(activation)
                    seconds = outcome.seconds + self.switch
                    if group.policy.calls_idle:
                        idle = self._passed_over(group, last, activation.unit.number)
                        self.idle_calls += idle
                        seconds += idle * self.switch
                    self.busy += seconds
                    heappush(heap, (self.now + seconds, activation.number, activation, outcome))
            if not heap:
                if not monitor.unblock():
                    raise Deadlock(f"{monitor.unfinished} units cannot go on")
                continue
            if self.on_held is not None and monitor.pace.held:
                continue
            end, _, activation, outcome = heappop(heap)
            if self.on_snapshot is not None:
                while next_snapshot < end:
                    if self.on_clock is not None:
                        self.on_clock(next_snapshot)
                    self.on_snapshot(next_snapshot, monitor)
                    next_snapshot += self.snapshot_seconds
            if self.on_clock is not None:
                self.on_clock(end)
            self.now = end
            if self.on_turn is None:
                monitor.report(activation, outcome, end)
            else:
                before = activation.unit.rows_in
                monitor.report(activation, outcome, end)
                self.on_turn(activation, activation.unit.rows_in - before, outcome)
        return Simulated(
            seconds=self.now,
            activations=monitor.activations,
            idle_calls=self.idle_calls,
            spills=monitor.spills,
            queue=monitor.statistics.summary(),
            rows_in={id_: unit.rows_in for id_, unit in monitor.units.items()},
            rows_out={id_: unit.rows_out for id_, unit in monitor.units.items()},
            delivered={id_: queue.passed_rows for id_, queue in monitor.queues.items()},
            busy_seconds=self.busy,
        )

    def _passed_over(self, group: Group, last: int, number: int) -> int:
        """How many unfinished units of a group stand between the last one that was called and this one."""
        unfinished = self._unfinished.get(group.name)
        if unfinished is None or len(unfinished) != group.left:
            unfinished = [unit.number for unit in group.units if not unit.finished]
            self._unfinished[group.name] = unfinished
        passed = bisect_left(unfinished, number) - bisect_right(unfinished, last)
        return passed if number > last else passed + len(unfinished)
