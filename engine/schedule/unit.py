"""A unit of a run, and the units that share a policy, as the monitor knows them."""

from __future__ import annotations

from collections import deque

from engine.schedule.graph import UnitSpec, Work
from engine.schedule.policy import Policy
from engine.schedule.queues import Pack, Queue

# Looked up once: an enumeration takes longer to give a member than a turn has time for.
_SOURCE, _BLOCK, _STREAM = Work.SOURCE, Work.BLOCK, Work.STREAM


class Unit:
    """A unit as the monitor knows it."""

    __slots__ = (
        "activations", "bounded", "exhausted", "finished", "group", "id", "inputs", "last_message", "number", "outbox",
        "outputs", "producers_left", "queue_packs", "queue_rows", "ready", "references", "rows_absorbed", "rows_in",
        "rows_out", "rows_read", "running", "seconds", "spec", "stalled", "work", "worked",
    )  # fmt: skip

    def __init__(self, spec: UnitSpec) -> None:
        self.spec = spec
        self.id = spec.id
        self.number = spec.number
        self.work = spec.work
        self.group: Group
        self.inputs: list[Queue] = []  # streamed, or absorbed by a blocking unit
        self.references: list[Queue] = []  # needed whole before the first pack is worked on
        self.outputs: list[Queue] = []
        self.bounded: list[Queue] = []  # those of the outputs that can be full
        self.outbox: deque[tuple[Pack, tuple[Queue, ...]]] = deque()
        self.producers_left = 0
        self.stalled = True
        self.last_message = False  # no producer will send any more
        self.finished = False
        self.running = False
        self.ready = False
        self.exhausted = False  # of a source: all of it is read
        self.worked = False  # of a blocking unit: it has worked on all it had
        self.queue_rows = 0
        self.queue_packs = 0
        self.rows_in = 0
        self.rows_out = 0
        self.rows_absorbed = 0
        self.rows_read = 0  # of a source
        self.seconds = 0.0
        self.activations = 0

    def has_room(self) -> bool:
        """Whether no consumer's queue is full."""
        for queue in self.bounded:  # noqa: SIM110 - asked at every turn, and a generator takes twice as long
            if queue.room <= 0:
                return False
        return True

    def references_whole(self) -> bool:
        """Whether all that it looks up in has come and was taken."""
        return all(queue.producer.finished and not queue.packs for queue in self.references)

    def can_go(self) -> bool:
        """Whether it is a candidate: it has something to do and room for what it gives."""
        if self.finished or self.running:
            return False
        if self.outbox:
            pack, queues = self.outbox[0]
            return all(queue.fits(pack) for queue in queues)
        if self.work is _BLOCK:
            return self.queue_packs > 0 or (self.last_message and not self.worked)
        if self.references and not self.references_whole():
            return any(queue.packs for queue in self.references)
        if self.work is _SOURCE:
            return not self.exhausted and self.has_room()
        return self.queue_packs > 0 and self.has_room()

    def is_done(self) -> bool:
        """The rule of section 3.1 for the set of finished nodes."""
        if self.outbox or self.running:
            return False
        if self.work is _SOURCE:
            return self.exhausted and not self.queue_packs
        if not self.last_message or self.queue_packs:
            return False
        return self.worked or self.work is _STREAM


class Group:
    """Units under one policy: all of them, or the units of one subflow. One of them runs at a time."""

    __slots__ = ("last", "left", "name", "policy", "ready", "running", "turn", "units", "waits_for")

    def __init__(self, name: str, policy: Policy, units: list[Unit], waits_for: set[str]) -> None:
        self.name = name
        self.policy = policy
        self.units = units
        self.waits_for = waits_for
        self.ready: list[Unit] = []  # the candidates, by number
        self.running: Unit | None = None
        self.last = -1
        self.turn = 0  # the number of its last turn
        self.left = len(units)
