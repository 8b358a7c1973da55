"""The automatic scaler (elastic, figure 1, component 13): samples in, orders out, no I/O.

Each stage is decided on its own. After a change it is left alone until it has settled; a node is removed only when the
condition has held without a break. The nodes of all stages come from one pool of ready nodes and go back to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from engine.elastic.decision import Action, Decision, Stage, keep
from engine.elastic.stages import buffer, extraction, switch, transformation, warehouse
from engine.model.elastic import Elastic, StageNodes


@dataclass(frozen=True)
class Sample:
    """What the scaler looks at: of each stage the measure that decides, node by node."""

    extraction_s: Sequence[float] = ()
    queues_mb: Sequence[float] = ()
    transformation_s: float | None = None
    memory_mb: Sequence[float] = ()
    disk_mb: Sequence[float] = ()
    switch_rows_s: Sequence[float] = ()
    load_s: float | None = None
    query_s: float | None = None


@dataclass(frozen=True)
class Start:
    """Take nodes from the pool and put them to work in a stage."""

    stage: Stage
    number: int
    reason: str
    replaces: bool = False  # nodes that died: it waits for no other order


@dataclass(frozen=True)
class Stop:
    """Set nodes of a stage on standby; their work goes to others. No numbers: any of them.

    Nodes that die before it is carried out have left already: `Scaler.leaving` tells how many are still to go.
    """

    stage: Stage
    number: int
    reason: str
    leaves: tuple[int, ...] = ()
    takes_over: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unreachable:
    """A limit cannot be kept: no node is ready, or the stage may have no more. Told once; everything goes on."""

    stage: Stage
    reason: str


Order = Start | Stop | Unreachable


@dataclass
class StageState:
    """What the scaler knows of a stage."""

    limits: StageNodes
    nodes: int
    starting: int = 0
    stopping: int = 0
    missing: int = 0  # that died, and whose replacement did not start
    quiet_until: float = -math.inf
    low_since: float | None = None
    told: bool = False  # that its limit is unreachable

    @property
    def most(self) -> float:
        """How many nodes it may have."""
        return math.inf if self.limits.max is None else self.limits.max


@dataclass
class Scaler:
    """Decides for all stages. Whoever carries the orders out reports back: started, failed, stopped or lost."""

    limits: Elastic
    followed: Set[Stage] = frozenset()  # whose nodes somebody else adds and removes, and not from this pool
    fixed: Mapping[Stage, str] = field(default_factory=dict)  # whose nodes nobody adds or removes, and why
    hosted: Set[Stage] = frozenset()  # whose nodes are on the same machines: as many as the stage with most has
    stages: dict[Stage, StageState] = field(init=False)

    def __post_init__(self) -> None:
        self.stages = {
            stage: StageState(nodes, nodes.min)
            for stage in Stage
            for nodes in (getattr(self.limits, stage.value).nodes,)
        }

    @property
    def ready(self) -> int:
        """The nodes in the pool that no stage has."""
        ours = (state for stage, state in self.stages.items() if stage not in self.followed)
        return self.limits.pool - sum(state.nodes + state.starting for state in ours)

    def nodes(self) -> dict[str, int]:
        """The nodes at work in each stage."""
        return {stage.value: state.nodes for stage, state in self.stages.items()}

    # -- deciding

    def sample(self, now: float, sample: Sample) -> list[Order]:
        """What is to be done after a look at the stages."""
        orders = []
        decisions = {stage: self._decide(stage, sample) for stage in self.stages}
        for stage, state in self.stages.items():
            if stage in self.followed and stage not in self.fixed:
                continue
            # Those that died are replaced also while something else is under way, which may wait for them.
            order = self._again(stage, state) if now >= state.quiet_until else None
            if order is None:
                if state.starting or state.stopping or now < state.quiet_until:
                    # What is measured now is still of the old nodes.
                    state.low_since = None
                    continue
                order = self._decided(stage, state, self._kept(stage, decisions), now)
            if order is not None:
                orders.append(order)
        return orders

    def _decide(self, stage: Stage, sample: Sample) -> Decision:
        limits = self.limits
        match stage:
            case Stage.EXTRACTION:
                return extraction.decide(sample.extraction_s, limits.extraction)
            case Stage.TRANSFORMATION:
                every_s = limits.extraction.every_s
                return transformation.decide(sample.queues_mb, limits.transformation, sample.transformation_s, every_s)
            case Stage.BUFFER:
                return buffer.decide(sample.memory_mb, sample.disk_mb, limits.buffer)
            case Stage.SWITCH:
                return switch.decide(sample.switch_rows_s, limits.switch)
            case Stage.WAREHOUSE:
                return warehouse.decide(sample.load_s, sample.query_s, limits.warehouse)

    def _kept(self, stage: Stage, decisions: Mapping[Stage, Decision]) -> Decision:
        """A stage's decision; no scale-in where another stage needs the machine that would leave with its node."""
        decision = decisions[stage]
        if decision.action is not Action.IN or stage not in self.hosted:
            return decision
        for other in self.hosted - {stage}:
            busy = decisions[other].tight or decisions[other].action is Action.OUT
            if busy and self.stages[stage].nodes > self.stages[other].nodes:
                return keep(f"the {other.value} is on the same machines: {decisions[other].reason}")
        return decision

    def _again(self, stage: Stage, state: StageState) -> Order | None:
        """Another try to replace those that died, where the pool has a node for one."""
        number = min(state.missing, self.ready)
        if number < 1:
            if not state.missing or state.told:
                return None
            state.told = True
            why = f"no node is ready: all {self.limits.pool} of the pool are at work"
            return Unreachable(stage, f"{state.missing} of its nodes died and could not be replaced; {why}")
        state.missing -= number
        state.starting += number
        return Start(stage, number, f"{number} of its nodes died and could not be replaced: another try", replaces=True)

    def _decided(self, stage: Stage, state: StageState, decision: Decision, now: float) -> Order | None:
        if decision.action is not Action.IN:
            state.low_since = None
        if decision.action is not Action.OUT and not state.missing:
            state.told = False
        if decision.action is Action.OUT:
            return self._out(stage, state, decision)
        if decision.action is Action.IN and state.nodes > state.limits.min and stage not in self.fixed:
            return self._in(stage, state, decision, now)
        return None

    def _out(self, stage: Stage, state: StageState, decision: Decision) -> Order | None:
        wanted = max(1, math.ceil(self.limits.step_share * state.nodes))
        number = int(min(wanted, self.ready, state.most - state.nodes))
        fixed = self.fixed.get(stage)
        if number > 0 and fixed is None:
            state.starting = number
            state.told = False
            return Start(stage, number, decision.reason)
        if state.told:
            return None
        state.told = True
        why = (
            f"the {stage.value} may have {state.nodes} nodes at most"
            if state.nodes >= state.most
            else f"no node is ready: all {self.limits.pool} of the pool are at work"
            if number <= 0 or fixed is None
            else fixed
        )
        return Unreachable(stage, f"{decision.reason}; {why}")

    def _in(self, stage: Stage, state: StageState, decision: Decision, now: float) -> Order | None:
        if state.low_since is None:
            state.low_since = now
        asked = self.limits.hold_s if decision.hold_s is None else decision.hold_s
        hold = max(asked, self.limits.settle_s, self._turn_s(stage))
        if now - state.low_since < hold:
            return None
        state.low_since = None
        state.missing = 0  # fewer are enough
        # Half of the nodes at most: the others then have twice as much each, which is within the limit.
        wanted = max(1, math.floor(min(self.limits.step_share, 0.5) * state.nodes))
        able = len(decision.leaves) or wanted
        number = min(wanted, able, state.nodes - state.limits.min)
        state.stopping = number
        reason = f"{decision.reason}, for {hold:g} s"
        return Stop(stage, number, reason, decision.leaves[:number], decision.takes_over[:number])

    def _turn_s(self, stage: Stage) -> float:
        """From one measure of a stage that is worth something to the next: rows come once in each extraction.

        Between two of them every queue is short, whatever the rate.
        """
        every = self.limits.extraction.every_s
        if stage in (Stage.SWITCH, Stage.WAREHOUSE):
            every = max(every, self.limits.warehouse.every_s)
        return every

    # -- what became of it

    def leaving(self, stage: Stage) -> int:
        """How many nodes of a stage are still to go, now that its `Stop` is carried out."""
        state = self.stages[stage]
        return max(0, min(state.stopping, state.nodes - state.limits.min))

    def started(self, stage: Stage, now: float, number: int = 1) -> None:
        """Nodes that were started are at work."""
        state = self.stages[stage]
        state.starting -= number
        state.nodes += number
        self._settle(state, now)

    def failed(self, stage: Stage, now: float, number: int = 1, replaces: bool = False) -> None:
        """Nodes did not start; they are in the pool again, and after the settling time another try is made."""
        state = self.stages[stage]
        state.starting -= number
        if replaces:
            state.missing += number
        self._settle(state, now)

    def stopped(self, stage: Stage, now: float) -> None:
        """A `Stop` was carried out: those that were still to go are on standby, and the pool has them again."""
        state = self.stages[stage]
        state.nodes -= self.leaving(stage)
        state.stopping = 0
        self._settle(state, now)

    def lost(self, stage: Stage, reason: str) -> Start | None:
        """A node died: it is replaced at once, out of turn. The machine that it ran on is ready for another.

        Where one was to go anyway, it has gone, and nothing is to be done.
        """
        state = self.stages[stage]
        state.low_since = None
        if self.leaving(stage):
            state.nodes -= 1
            state.stopping -= 1
            return None
        number = min(1, state.nodes)  # none: it died as it began, and is among those that are started
        state.nodes -= number
        state.starting += number
        return Start(stage, number, f"{reason}: it is replaced", replaces=True)

    def follow(self, stage: Stage, nodes: int) -> None:
        """So many nodes does somebody else give a stage now."""
        self.stages[stage].nodes = nodes

    def _settle(self, state: StageState, now: float) -> None:
        state.quiet_until = now + self.limits.settle_s
        state.low_since = None

    def check(self) -> None:
        """What always holds; for tests."""
        assert self.ready >= 0
        for stage, state in self.stages.items():
            assert state.starting >= 0
            assert state.stopping >= 0
            assert state.missing >= 0
            assert state.nodes >= 0
            assert state.nodes + state.starting <= state.most
            assert state.nodes + state.starting + state.missing >= state.limits.min
            assert self.leaving(stage) == 0 or state.nodes - self.leaving(stage) >= state.limits.min
