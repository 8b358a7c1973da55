"""What a run looks like at one moment: every node, every queue, and the run itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

GREEN, YELLOW = 0.60, 0.85  # of a queue's capacity: NiFi's three colours


class State(StrEnum):
    """How far a unit, and so each node of it, has come."""

    WAITING = "waiting"  # it had no turn yet
    RUNNING = "running"
    STALLED = "stalled"  # it had turns, and waits for the next
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit, from its turns up to the moment."""

    state: State
    since: float | None  # of a running one: when its turn began
    turns: int
    packs_in: int
    rows_in: int
    packs_out: int
    rows_out: int
    seconds: float
    rows_per_second: float  # of late
    progress: float | None = None  # of a running one: the part of its Spark tasks that is done
    message: str | None = None  # why it failed


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node: the state of its unit, and its own rows where they are known."""

    state: State
    rows_in: int | None
    rows_out: int | None
    count: str | None  # exact, sampled, fused, simulated; None while nothing is known
    rows_per_second: float | None
    message: str | None = None
    progress: float | None = None  # while it runs: the part of its unit's Spark tasks that is done


@dataclass(frozen=True, slots=True)
class QueueState:
    """What a queue holds."""

    packs: int
    rows: int
    bytes: int
    capacity: int | None  # packs; None is staged on disk

    @property
    def fill(self) -> float | None:
        """How full it is; past 1 only where it spills. None where it has no capacity."""
        return self.packs / self.capacity if self.capacity else None

    @property
    def level(self) -> str:
        """Green up to 60 %, yellow to 85 %, red above."""
        fill = self.fill or 0.0
        return "green" if fill <= GREEN else "yellow" if fill <= YELLOW else "red"


@dataclass(frozen=True)
class RunState:
    """A run at a moment, in seconds since its start."""

    at: float
    status: str  # running, paused, done, failed, cancelled
    reason: str | None
    units: dict[str, UnitState] = field(default_factory=dict)
    nodes: dict[str, NodeState] = field(default_factory=dict)
    queues: dict[str, QueueState] = field(default_factory=dict)
    memory_bytes: int = 0
    disk_bytes: int = 0
    committed: dict[str, int] = field(default_factory=dict)  # target → rows

    @property
    def packs(self) -> int:
        """In all queues."""
        return sum(queue.packs for queue in self.queues.values())

    @property
    def rows(self) -> int:
        """In all queues."""
        return sum(queue.rows for queue in self.queues.values())

    @property
    def bytes(self) -> int:
        """In all queues."""
        return sum(queue.bytes for queue in self.queues.values())


@dataclass(frozen=True)
class Decision:
    """Why a unit was picked: the candidates with their scores."""

    number: int  # in the order of the log
    time: float
    activation: int
    unit: str
    step: str
    packs: int
    policy: str
    group: str
    candidates: list[tuple[str, float]]


@dataclass(frozen=True)
class Spill:
    """A queue went beyond its capacity, to disk."""

    time: float
    queue: str
    packs: int  # that it may hold from then on
