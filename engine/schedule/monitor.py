"""The monitor: decides which unit goes on, keeps the queues, knows when each unit has finished.

A state machine without I/O (scheduling, sections 3.1 and 6). A backend asks `decide` what to do, does it, and tells
with `report` what came of it. The same monitor drives Spark and the simulation.

A unit's turn ends when its time slot is over, when its queues are empty, or when a consumer's queue is full; how many
packs it may take is reckoned beforehand from the queues and from what was measured. A unit is finished when its
producers are finished and its queues are empty, a source when it is exhausted. What a turn gives beyond the room of
a queue waits in the unit's own outbox, so that a queue is never fuller than its capacity.

While its `pace` is held the monitor offers nobody a turn; what runs goes on to the end of its turn and is reported.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from engine.schedule.graph import ScheduleGraph, Work
from engine.schedule.messages import Message
from engine.schedule.pace import Pace
from engine.schedule.policy import Policy
from engine.schedule.queues import MANY, Pack, Queue, QueueStatistics
from engine.schedule.turn import Activation, Decided, Limits, Outcome, Step
from engine.schedule.unit import Group, Unit

_number = attrgetter("number")
_turn = attrgetter("turn")

# Looked up once: an enumeration takes longer to give a member than a turn has time for.
_SOURCE, _BLOCK, _STREAM = Work.SOURCE, Work.BLOCK, Work.STREAM
_READ, _PROCESS, _ABSORB, _WHOLE, _DELIVER = Step.READ, Step.PROCESS, Step.ABSORB, Step.WHOLE, Step.DELIVER


class Monitor:
    """All units and queues of a run, and who goes on."""

    def __init__(
        self,
        graph: ScheduleGraph,
        policies: Mapping[str, Policy],
        limits: Limits,
        *,
        on_decision: Callable[[Decided], None] | None = None,
        on_spill: Callable[[Queue], None] | None = None,
        on_message: Callable[[str, str, Message], None] | None = None,
    ) -> None:
        """`policies` holds one for each group of the graph."""
        self.graph = graph
        self.limits = limits
        self.pace = Pace()
        self.statistics = QueueStatistics()
        self.activations = 0
        self.spills = 0
        self.running = 0
        self.unfinished = len(graph.units)
        self._on_decision, self._on_spill, self._on_message = on_decision, on_spill, on_message
        self.units = {spec.id: Unit(spec) for spec in graph.units}
        self.queues: dict[str, Queue] = {}
        for spec in graph.queues:
            producer, consumer = self.units[spec.producer], self.units[spec.consumer]
            queue = self.queues[spec.id] = Queue(spec, producer, consumer)
            (consumer.references if spec.reference else consumer.inputs).append(queue)
            producer.outputs.append(queue)
            if queue.capacity is not None:
                producer.bounded.append(queue)
        for unit in self.units.values():
            unit.producers_left = len({queue.producer for queue in graph.inputs[unit.id]})
        providers = graph.providers()
        self.groups: dict[str, Group] = {}
        for name, specs in graph.groups().items():
            units = [self.units[spec.id] for spec in specs]
            group = self.groups[name] = Group(name, policies[name], units, set(providers[name]))
            for unit in units:
                unit.group = group
            group.policy.begin(graph)
        self._in_order = tuple(self.groups.values())
        for unit in self.units.values():
            unit.last_message = unit.producers_left == 0
            self._refresh(unit)

    # -- deciding

    @property
    def finished(self) -> bool:
        """Whether every unit has finished: V = V_FIN."""
        return self.unfinished == 0

    def idle_groups(self) -> list[Group]:
        """The groups whose turn it can be: candidates, nobody running, their providers finished; none if paused.

        Where there are more of them than cores they share these fairly, as threads do (section 5.3): the one whose
        last turn is longest ago comes first. So those that are waited for together also end about together.
        """
        idle = []
        for group in self._in_order:
            if group.ready and group.running is None and not group.waits_for:
                idle.append(group)
        if len(idle) > 1:
            idle.sort(key=_turn)
        return idle if self.pace.left is None else idle[: self.pace.left]

    def decide(self, group: Group) -> Activation:
        """Pick the next unit of a group with candidates, by its policy, and say how much it may do."""
        policy, ready = group.policy, group.ready
        unit = policy.pick(ready, group.last)
        assert isinstance(unit, Unit)
        if self.pace.left:
            self.pace.decided()
        activation = self._turn(unit, policy)
        if self._on_decision is not None:
            scores = policy.scores(ready, group.last)
            self._on_decision(Decided(activation, policy.name, group.name, tuple(ready), scores))
        self._begin(group, unit)
        return activation

    def replay(self, unit: Unit, step: Step, take: list[tuple[Queue, int]], deliver: int) -> Activation:
        """Begin a turn that was decided before, by a run that is being resumed."""
        self.activations += 1
        self._begin(unit.group, unit)
        return Activation(self.activations, unit, step, take, deliver=deliver)

    def _begin(self, group: Group, unit: Unit) -> None:
        group.last = unit.number
        group.turn = self.activations
        group.running = unit
        self.running += 1
        unit.running = True
        unit.stalled = False
        if self._on_message is not None:
            self._on_message("monitor", unit.id, Message.RESUME)
        if unit.ready:
            unit.ready = False
            del group.ready[bisect_left(group.ready, unit.number, key=_number)]

    def _turn(self, unit: Unit, policy: Policy) -> Activation:
        """What the unit does in this turn, and with how many packs (the stopping rules, reckoned beforehand)."""
        self.activations = number = self.activations + 1
        slot = self.limits.slot_seconds if policy.timed else 0.0
        if unit.outbox:
            return Activation(number, unit, _DELIVER, (), 0, self._deliverable(unit, slot))
        work = unit.work
        if work is _STREAM and not unit.references:
            allowed = self._allowed(unit, unit.rows_in - unit.rows_absorbed, slot)
            return Activation(number, unit, _PROCESS, _taken(unit.inputs, allowed))
        if work is _BLOCK:
            if unit.queue_packs:
                return Activation(number, unit, _ABSORB, _taken(unit.inputs, self._absorbed(unit, slot)))
            return Activation(number, unit, _WHOLE)
        if any(queue.packs for queue in unit.references):
            return Activation(number, unit, _ABSORB, _taken(unit.references, self._absorbed(unit, slot)))
        if work is _SOURCE:
            allowed = min(self._allowed(unit, unit.rows_read, slot), self._worked_off(unit, slot))
            return Activation(number, unit, _READ, (), allowed)
        allowed = self._allowed(unit, unit.rows_in - unit.rows_absorbed, slot)
        return Activation(number, unit, _PROCESS, _taken(unit.inputs, allowed))

    def _absorbed(self, unit: Unit, slot: float) -> int:
        """How many packs a unit puts aside in one slot; all of them where there is none."""
        return self._in_slot(unit.rows_absorbed, unit.seconds, slot) if slot else MANY

    def _in_slot(self, rows: int, seconds: float, slot: float) -> int:
        """The packs that fit into a slot at a measured rate; one where nothing was measured yet."""
        if seconds <= 0:
            return 1
        packs = int(slot * rows / seconds / self.limits.pack_rows)
        return packs if packs > 1 else 1

    def _allowed(self, unit: Unit, rows: int, slot: float) -> int:
        """How many packs: as its measured rate fits into the slot, and as the consumers' queues can take.

        What they take is known from what it gave so far. One that may add rows shows with a single pack how many: else
        a whole turn of it would lie in its outbox.
        """
        if not rows and unit.spec.adds_rows and unit.bounded:
            return 1
        allowed = self._in_slot(rows, unit.seconds, slot) if slot else MANY
        for queue in unit.bounded:
            share = queue.passed_rows / rows if rows else 1.0
            room = queue.room
            if share * allowed > room:
                allowed = max(1, int(room / share))
        return allowed

    def _worked_off(self, unit: Unit, slot: float) -> int:
        """The packs that the slowest consumer works off in one slot: more would only wait in its queue."""
        least = MANY
        if slot:
            for queue in unit.bounded:
                consumer = queue.consumer
                packs = self._in_slot(consumer.rows_in, consumer.seconds, slot)
                if packs < least:
                    least = packs
        return least

    def _deliverable(self, unit: Unit, slot: float) -> int:
        """How many packs of the outbox have room; with a time slot, no more than it made in such a time."""
        most = MANY
        if slot and unit.bounded:
            most = min(self._worked_off(unit, slot), self._in_slot(unit.rows_out, unit.seconds, slot))
        found = 0
        added: dict[Queue, tuple[int, int]] = {}
        for pack, queues in unit.outbox:
            if found >= most:
                break
            some = wanted = min(pack.count, most - found)
            for queue in queues:
                packs, size = added.get(queue, (0, 0))
                some = min(some, queue.room - packs)
                if queue.capacity_bytes is not None:
                    some = _not_too_heavy(queue, pack, packs, size, some)
            if some > 0:
                found += some
                for queue in queues:
                    packs, size = added.get(queue, (0, 0))
                    added[queue] = packs + some, size + pack.bytes * some
            if some < wanted:
                break
        return found

    # -- what came of it

    def report(self, activation: Activation, outcome: Outcome, now: float) -> None:
        """A turn is over: its packs leave the queues, what it gave enters those that have room."""
        unit, step, statistics = activation.unit, activation.step, self.statistics
        statistics.clock(now)
        if activation.take:
            taken = unit.queue_rows
            for queue, count in activation.take:
                self._take(queue, count)
            taken -= unit.queue_rows
            unit.rows_in += taken
            if step is _ABSORB:
                unit.rows_absorbed += taken
        elif step is _WHOLE:
            unit.worked = True
        unit.seconds += outcome.seconds
        unit.activations += 1
        unit.rows_read += outcome.rows_read
        if outcome.exhausted:
            unit.exhausted = True
        outbox = unit.outbox
        if outcome.produced:
            outbox.extend(outcome.produced)
        if step is _DELIVER:
            self._deliver(unit, activation.deliver, waited=unit.work is not _BLOCK)
        elif outbox:
            timed = step is _WHOLE and unit.group.policy.timed
            self._deliver(unit, self._deliverable(unit, self.limits.slot_seconds) if timed else MANY)
            if outbox and unit.work is not _BLOCK:  # a blocking unit's results lie in its own area
                for pack, queues in outbox:
                    if any(queue.capacity is not None for queue in queues):
                        statistics.hold(pack.count, pack.rows * pack.count, pack.bytes * pack.count)
        self._end(unit)

    def _take(self, queue: Queue, count: int) -> None:
        """Packs leave a queue; its producer may have room again."""
        packs, rows, size, roomy = queue.count, queue.rows, queue.bytes, queue.extra == 0
        queue.take(count)
        if queue.capacity is not None:
            if len(queue.beside) == 1:
                self.statistics.release(count, rows - queue.rows, size - queue.bytes)
            else:
                left = queue.beside_it()
                if left[0] < queue.count:
                    left = queue.count, queue.rows, queue.bytes
                if left[0] < packs:  # what others hold too is not gone yet
                    self.statistics.release(packs - left[0], rows - left[1], size - left[2])
        producer = queue.producer
        # One that could go on still can: there is only more room, unless the queue was beyond its capacity.
        if not ((producer.ready and roomy) or producer.finished):
            self._refresh(producer)

    def _end(self, unit: Unit) -> None:
        """The unit has stopped: stalled, or finished."""
        unit.group.running = None
        self.running -= 1
        unit.running = False
        unit.stalled = True
        if self._on_message is not None:
            self._on_message(unit.id, "monitor", Message.STALL)
        if unit.is_done():
            self._finish(unit)
        else:
            self._refresh(unit)

    def _deliver(self, unit: Unit, most: int, waited: bool = False) -> None:
        """Packs of the outbox enter all queues that read them, in order, while there is room in each.

        Those that `waited` there took memory already, and were counted.
        """
        outbox = unit.outbox
        while outbox and most > 0:
            pack, queues = outbox[0]
            count = pack.count
            some = count if count < most else most
            bounded = False
            for queue in queues:
                if queue.capacity is not None:  # what is staged lies on disk, and is no queue memory
                    bounded = True
                    if queue.room < some:
                        some = queue.room
                    if queue.capacity_bytes is not None:  # then one pack after the other
                        some = min(some, 1 if queue.fits(pack) else 0)
            if some <= 0:
                break
            if some == count:
                outbox.popleft()
            else:
                outbox[0] = Pack(pack.rows, pack.bytes, pack.name, count - some), queues
                pack = Pack(pack.rows, pack.bytes, pack.name, some)
            most -= some
            rows = pack.rows * some
            unit.rows_out += rows
            for queue in queues:
                queue.put(pack, queues)
            if bounded and not waited:
                self.statistics.hold(some, rows, pack.bytes * some)
            for queue in queues:
                consumer = queue.consumer
                if not (consumer.ready or consumer.running):  # one that could go on still can
                    self._refresh(consumer)

    def _finish(self, unit: Unit) -> None:
        """A unit joins the finished ones, and its consumers hear that nothing more comes."""
        waiting = [unit]
        while waiting:
            done = waiting.pop()
            if done.finished:
                continue
            done.finished = True
            self.unfinished -= 1
            self._refresh(done)
            self._say(done.id, "monitor", Message.TERMINATE)
            group = done.group
            group.left -= 1
            if group.left == 0:
                for other in self.groups.values():
                    other.waits_for.discard(group.name)
            for consumer in dict.fromkeys(queue.consumer for queue in done.outputs):
                self._say(done.id, consumer.id, Message.END_OF_DATA)
                consumer.producers_left -= 1
                consumer.last_message = consumer.producers_left == 0
                if consumer.is_done() and not consumer.finished:
                    waiting.append(consumer)
                else:
                    self._refresh(consumer)

    def _say(self, sender: str, receiver: str, message: Message) -> None:
        if self._on_message is not None:
            self._on_message(sender, receiver, message)

    def _refresh(self, unit: Unit) -> None:
        """Bring the list of candidates up to date for one unit."""
        ready = unit.can_go()
        if ready is unit.ready:
            return
        unit.ready = ready
        candidates = unit.group.ready
        place = bisect_left(candidates, unit.number, key=_number)
        if ready:
            candidates.insert(place, unit)
        else:
            del candidates[place]

    # -- no deadlock

    def unblock(self) -> bool:
        """Nothing can go on and nothing runs: look at all flags again, then let one full queue spill.

        A queue fills up for good where its consumer waits for the whole of another input that comes from the
        same rows. Such a queue may then hold twice its capacity, and more the next time.
        """
        for unit in self.units.values():
            if not unit.finished:
                self._say("monitor", unit.id, Message.DUMMY_RESUME)
                if unit.is_done():
                    self._finish(unit)
                else:
                    self._refresh(unit)
        if self.finished or self.idle_groups():
            return True
        full = [queue for queue in self.queues.values() if _is_full(queue) and not queue.consumer.finished]
        if not full:
            return False
        waiting = [queue for queue in full if queue.consumer.references and not queue.consumer.references_whole()]
        queue = min(waiting or full, key=lambda queue: (queue.bytes, queue.rows, queue.spec.id))
        queue.spill()
        self.spills += 1
        if self._on_spill is not None:
            self._on_spill(queue)
        self._refresh(queue.producer)
        return True

    def check(self) -> None:
        """Every invariant, for tests: counts add up, nothing is beyond its capacity, flags are true."""
        for queue in self.queues.values():
            assert queue.count == sum(pack.count for pack in queue.packs)
            assert queue.rows == sum(pack.rows * pack.count for pack in queue.packs)
            assert queue.bytes == sum(pack.bytes * pack.count for pack in queue.packs)
            assert queue.capacity is None or queue.count <= queue.capacity + queue.extra
            assert queue.bytes <= queue.limit_bytes or queue.count == 1
            full = queue.capacity is not None and queue.bytes >= queue.limit_bytes
            room = MANY if queue.capacity is None else queue.capacity + queue.extra - queue.count
            assert queue.room == (0 if full else room)
        for unit in self.units.values():
            queues = [*unit.inputs, *unit.references]
            assert unit.queue_rows == sum(queue.rows for queue in queues)
            assert unit.queue_packs == sum(queue.count for queue in queues)
            assert unit.ready == unit.can_go() == (unit in unit.group.ready)
            assert not unit.finished or (not unit.queue_packs and not unit.outbox)
            assert unit.last_message == all(queue.producer.finished for queue in queues)
        # Of the queues that get the same packs each holds the last of those that the longest holds.
        held: list[tuple[int, int]] = []
        for shared in {frozenset(queue.beside) for queue in self.queues.values()}:
            contents = [_one_by_one(queue.packs) for queue in shared if queue.capacity is not None]
            longest = max(contents, key=len, default=[])
            assert all(longest[len(longest) - len(content) :] == content for content in contents)
            held += longest
        for unit in self.units.values():
            if unit.work is not _BLOCK:
                waiting = [pack for pack, to in unit.outbox if any(q.capacity is not None for q in to)]
                held += _one_by_one(waiting)
        assert self.statistics.packs == len(held)
        assert self.statistics.rows == sum(rows for rows, _ in held)
        assert self.statistics.bytes == sum(size for _, size in held)


def _one_by_one(packs: Iterable[Pack]) -> list[tuple[int, int]]:
    """The rows and bytes of each pack."""
    return [(pack.rows, pack.bytes) for pack in packs for _ in range(pack.count)]


def _taken(queues: Sequence[Queue], most: int) -> list[tuple[Queue, int]]:
    """So many packs from the front of the queues, one queue after the other."""
    take = []
    for queue in queues:
        count = queue.count
        if count:
            if count >= most:
                take.append((queue, most))
                break
            take.append((queue, count))
            most -= count
    return take


def _not_too_heavy(queue: Queue, pack: Pack, packs: int, size: int, most: int) -> int:
    """How many packs of a run a queue takes by its bytes, behind those `packs` of `size` bytes that go in before."""
    limit = queue.limit_bytes
    for some in range(most):
        if queue.bytes + size + pack.bytes * (some + 1) > limit and (queue.count or packs + some):
            return some
    return most


def _is_full(queue: Queue) -> bool:
    """Whether its producer has to wait for it."""
    waiting = queue.producer.outbox
    return queue.room <= 0 or bool(waiting and queue in waiting[0][1] and not queue.fits(waiting[0][0]))
