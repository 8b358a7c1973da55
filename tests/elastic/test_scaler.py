"""The scaler: it settles, it holds, it never flaps, and it goes on where a limit is out of reach."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.elastic.decision import Stage
from engine.elastic.scaler import Sample, Scaler, Start, Stop, Unreachable
from engine.model.elastic import Elastic

BUSY = Sample(queues_mb=[60])
IDLE = Sample(queues_mb=[1, 1])
TRANSFORMATION = Stage.TRANSFORMATION


def limits(**more) -> Elastic:
    given = {
        "pool": 8,
        "settle_s": 10,
        "hold_s": 30,
        "rate": {"kind": "ramp", "from_rows_s": 1, "to_rows_s": 2, "seconds": 9},
    }
    return Elastic.model_validate(given | more)


def grown(scaler: Scaler, now: float = 0) -> float:
    """One more transformation node, settled."""
    (order,) = scaler.sample(now, BUSY)
    assert isinstance(order, Start)
    scaler.started(order.stage, now + 1)
    return now + 1 + scaler.limits.settle_s


def test_a_full_queue_takes_a_node_from_the_pool():
    scaler = Scaler(limits())
    assert scaler.ready == 3
    (order,) = scaler.sample(0, BUSY)
    assert order == Start(TRANSFORMATION, 1, "a queue holds 60.0 MB, above its limit of 50 MB")
    assert scaler.ready == 2
    assert scaler.nodes()["transformation"] == 1  # until it is there
    scaler.started(TRANSFORMATION, 3)
    assert scaler.nodes()["transformation"] == 2


def test_a_stage_is_left_alone_until_its_node_is_there_and_has_settled():
    scaler = Scaler(limits())
    scaler.sample(0, BUSY)
    assert scaler.sample(2, BUSY) == []
    scaler.started(TRANSFORMATION, 5)
    assert scaler.sample(14.9, BUSY) == []
    assert len(scaler.sample(15, BUSY)) == 1


def test_stages_do_not_wait_for_each_other():
    scaler = Scaler(limits())
    orders = scaler.sample(0, Sample(extraction_s=[9], queues_mb=[60]))
    assert [order.stage for order in orders] == [Stage.EXTRACTION, TRANSFORMATION]


def test_scale_in_needs_its_condition_to_hold_without_a_break():
    scaler = Scaler(limits())
    now = grown(scaler)
    assert scaler.sample(now, IDLE) == []
    assert scaler.sample(now + 29, IDLE) == []
    assert scaler.sample(now + 29.5, Sample(queues_mb=[1, 40])) == []  # the break
    assert scaler.sample(now + 30, IDLE) == []
    (order,) = scaler.sample(now + 60, IDLE)
    assert isinstance(order, Stop)
    assert (order.leaves, order.takes_over) == ((0,), (1,))
    assert order.reason.endswith("for 30 s")
    scaler.stopped(TRANSFORMATION, now + 61)
    assert scaler.ready == 3


def test_a_switch_leaves_after_the_rate_was_low_for_a_time_of_its_own():
    """Figure 7: "for a specific time", which need not be that of the other stages."""
    scaler = Scaler(limits(switch={"limit_rows_s": 100, "margin_rows_s": 10, "hold_s": 50}))
    (order,) = scaler.sample(0, Sample(switch_rows_s=[101]))
    assert (type(order), order.stage) == (Start, Stage.SWITCH)
    scaler.started(Stage.SWITCH, 0)
    low = Sample(switch_rows_s=[44, 45])
    assert [scaler.sample(now, low) for now in (10, 40, 59)] == [[], [], []]
    (order,) = scaler.sample(60, low)
    assert isinstance(order, Stop)
    assert order.reason == "89 rows/s pass two switches together, less than the limit minus Z (90), for 50 s"


def test_a_condition_holds_at_least_until_a_change_has_settled():
    scaler = Scaler(limits(switch={"limit_rows_s": 100, "hold_s": 1}))
    scaler.sample(0, Sample(switch_rows_s=[101]))
    scaler.started(Stage.SWITCH, 0)
    low = Sample(switch_rows_s=[10, 10])
    assert [scaler.sample(now, low) for now in (10, 12, 19)] == [[], [], []]
    assert isinstance(scaler.sample(20, low)[0], Stop)


def test_rows_that_take_too_long_ask_for_a_node_also_where_the_queue_is_short():
    scaler = Scaler(limits(transformation={"limit_s": 4}))
    (order,) = scaler.sample(0, Sample(queues_mb=[1], transformation_s=4.5))
    assert order.reason == "rows took 4.500 s to be transformed, more than their limit of 4 s"
    scaler.started(TRANSFORMATION, 1)
    for now in range(11, 100, 10):  # one node would need four seconds again, and more with any noise
        assert scaler.sample(now, Sample(queues_mb=[1, 1], transformation_s=2)) == []


def test_a_machine_stays_that_another_stage_on_it_needs():
    hosted = frozenset({TRANSFORMATION, Stage.WAREHOUSE})
    scaler = Scaler(limits(warehouse={"every_s": 9, "load_limit_s": 5}), hosted=hosted)
    now = grown(scaler)
    busy = Sample(queues_mb=[1, 1], load_s=3)  # with one machine it would be six
    assert [scaler.sample(now + later, busy) for later in range(0, 100, 10)] == [[]] * 10
    calm = Sample(queues_mb=[1, 1], load_s=2)
    assert scaler.sample(now + 100, calm) == []
    assert isinstance(scaler.sample(now + 130, calm)[0], Stop)
    alone = Scaler(limits(warehouse={"every_s": 9, "load_limit_s": 5}))  # on machines of their own
    now = grown(alone)
    alone.sample(now, busy)
    assert isinstance(alone.sample(now + 30, busy)[0], Stop)


def test_a_stage_keeps_its_least_nodes():
    scaler = Scaler(limits(transformation={"nodes": {"min": 2}}))
    assert [scaler.sample(now, IDLE) for now in range(0, 200, 10)] == [[]] * 20


def test_an_empty_pool_is_told_once_and_everything_goes_on():
    scaler = Scaler(limits(pool=5))
    (order,) = scaler.sample(0, BUSY)
    assert isinstance(order, Unreachable)
    assert order.reason.endswith("no node is ready: all 5 of the pool are at work")
    assert scaler.sample(2, BUSY) == []
    assert scaler.sample(4, Sample(queues_mb=[10])) == []  # better again
    assert len(scaler.sample(6, BUSY)) == 1  # and worse: worth telling


def test_a_stage_at_its_most_nodes_says_so():
    scaler = Scaler(limits(transformation={"nodes": {"max": 1}}))
    (order,) = scaler.sample(0, BUSY)
    assert "the transformation may have 1 nodes at most" in order.reason


def test_a_node_that_does_not_start_is_ready_again_and_tried_again_later():
    scaler = Scaler(limits())
    scaler.sample(0, BUSY)
    scaler.failed(TRANSFORMATION, 4)
    assert scaler.ready == 3
    assert scaler.sample(13, BUSY) == []
    assert isinstance(scaler.sample(14, BUSY)[0], Start)


def test_a_lost_node_is_replaced_at_once():
    scaler = Scaler(limits())
    scaler.sample(0, BUSY)
    order = scaler.lost(Stage.WAREHOUSE, "worker-2 died")
    assert order == Start(Stage.WAREHOUSE, 1, "worker-2 died: it is replaced", replaces=True)
    scaler.started(Stage.WAREHOUSE, 5)
    assert scaler.nodes()["warehouse"] == 1
    scaler.check()


def test_a_replacement_that_fails_is_tried_again_also_where_enough_nodes_are_left():
    scaler = Scaler(limits())
    now = grown(scaler)
    order = scaler.lost(TRANSFORMATION, "worker-2 died")
    scaler.failed(TRANSFORMATION, now, order.number, replaces=True)
    busy_enough = Sample(queues_mb=[40])
    assert scaler.sample(now + 9, busy_enough) == []
    (again,) = scaler.sample(now + 10, busy_enough)
    assert (type(again), again.number, again.replaces) == (Start, 1, True)
    assert "1 of its nodes died and could not be replaced: another try" in again.reason
    scaler.started(TRANSFORMATION, now + 12)
    assert scaler.nodes()["transformation"] == 2
    assert scaler.sample(now + 30, busy_enough) == []


def test_a_replacement_that_fails_is_tried_again_while_an_order_waits_for_it():
    scaler = Scaler(limits(warehouse={"every_s": 9, "load_limit_s": 5}))
    (out,) = scaler.sample(0, Sample(load_s=6))
    order = scaler.lost(Stage.WAREHOUSE, "worker-1 died")
    scaler.failed(Stage.WAREHOUSE, 1, order.number, replaces=True)
    assert scaler.sample(10, Sample()) == []
    (again,) = scaler.sample(11, Sample())
    assert (again.number, again.replaces) == (1, True)
    scaler.started(Stage.WAREHOUSE, 12, again.number)
    scaler.started(Stage.WAREHOUSE, 13, out.number)
    assert scaler.nodes()["warehouse"] == 2
    scaler.check()


def test_a_replacement_for_which_no_node_is_ready_is_told_once():
    scaler = Scaler(limits(pool=5))
    order = scaler.lost(TRANSFORMATION, "worker-1 died")
    scaler.failed(TRANSFORMATION, 0, order.number, replaces=True)
    scaler.stages[Stage.EXTRACTION].nodes = 2  # which took the machine
    (told,) = scaler.sample(10, Sample(queues_mb=[40]))
    assert isinstance(told, Unreachable)
    assert "no node is ready" in told.reason
    assert scaler.sample(12, Sample(queues_mb=[40])) == []


def test_a_node_that_dies_while_one_is_to_leave_is_the_one_that_leaves():
    scaler = Scaler(limits())
    now = grown(scaler)
    scaler.sample(now, IDLE)
    (order,) = scaler.sample(now + 30, IDLE)
    assert isinstance(order, Stop)
    assert scaler.leaving(TRANSFORMATION) == 1
    assert scaler.lost(TRANSFORMATION, "worker-2 died") is None  # the order absorbs it
    assert scaler.leaving(TRANSFORMATION) == 0
    assert isinstance(scaler.lost(TRANSFORMATION, "worker-1 died"), Start)  # and no more than that
    scaler.stopped(TRANSFORMATION, now + 31)
    scaler.started(TRANSFORMATION, now + 33)
    assert scaler.nodes()["transformation"] == 1
    scaler.check()


def test_a_stage_whose_nodes_nobody_adds_says_so_and_keeps_them():
    scaler = Scaler(limits(transformation={"nodes": {"min": 2}}), fixed={TRANSFORMATION: "local Spark adds no nodes"})
    (told,) = scaler.sample(0, BUSY)
    assert isinstance(told, Unreachable)
    assert told.reason.endswith("above its limit of 50 MB; local Spark adds no nodes")
    assert [scaler.sample(now, IDLE) for now in range(10, 100, 10)] == [[]] * 9


def test_between_two_extractions_every_queue_is_short_and_that_is_no_reason_to_scale_in():
    scaler = Scaler(limits(extraction={"every_s": 60}))
    now = grown(scaler)
    for second in range(0, 600, 5):
        full = second % 60 == 0
        assert scaler.sample(now + second, Sample(queues_mb=[40, 40] if full else [0, 0])) == []
    assert scaler.sample(now + 600, IDLE) == []
    assert isinstance(scaler.sample(now + 665, IDLE)[0], Stop)  # when a whole extraction's queues were short


def test_many_nodes_at_a_time_where_a_share_is_asked_for():
    scaler = Scaler(limits(pool=100, step_share=0.5, transformation={"nodes": {"min": 10}}))
    (order,) = scaler.sample(0, BUSY)
    assert order.number == 5
    scaler.started(TRANSFORMATION, 1, 5)
    idle = Sample(queues_mb=[1] * 14 + [40])
    assert scaler.sample(11, idle) == []
    (order,) = scaler.sample(41, idle)
    assert isinstance(order, Stop)
    assert order.number == 5  # seven could go, but ten must stay


class Cluster:
    """Nodes whose queues are what the rate makes them; carries orders out after a while."""

    def __init__(self, scaler: Scaler, delays: list[int], fails: list[bool]) -> None:
        self.scaler = scaler
        self.delays, self.fails = delays, fails
        self.doing: list[tuple[float, Start | Stop]] = []
        self.changes: list[tuple[float, int]] = []

    def lose(self, now: float, stage: Stage) -> None:
        """A node of the stage dies, whatever is under way."""
        if (order := self.scaler.lost(stage, "it died")) is not None:
            self.doing.append((now + (self.delays.pop() if self.delays else 1), order))
        self.scaler.check()

    def step(self, now: float, load_mb: float, load_s: float) -> None:
        for due, order in [item for item in self.doing if item[0] <= now]:
            self.doing.remove((due, order))
            if isinstance(order, Stop):
                left = self.scaler.nodes()[order.stage.value]
                self.scaler.stopped(order.stage, now)
                if self.scaler.nodes()[order.stage.value] < left:
                    self.changes.append((now, -1))
            elif self.fails and self.fails.pop():
                self.scaler.failed(order.stage, now, order.number, order.replaces)
            else:
                self.scaler.started(order.stage, now, order.number)
                self.changes.append((now, 1))
            self.scaler.check()
        nodes = self.scaler.nodes()
        count = max(1, nodes["transformation"])  # the queues stay when the last node dies
        sample = Sample(queues_mb=[load_mb / count] * count, load_s=load_s / max(1, nodes["warehouse"]))
        for order in self.scaler.sample(now, sample):
            if not isinstance(order, Unreachable):
                self.doing.append((now + (self.delays.pop() if self.delays else 1), order))
        self.scaler.check()


@settings(max_examples=60)
@given(
    loads=st.lists(st.tuples(st.floats(0, 300), st.floats(0, 30)), min_size=1, max_size=60),
    losses=st.lists(st.sampled_from([(), (), (), (TRANSFORMATION,), (Stage.WAREHOUSE,), (TRANSFORMATION,) * 2])),
    delays=st.lists(st.integers(0, 20), max_size=30),
    fails=st.lists(st.booleans(), max_size=20),
    pool=st.integers(5, 12),
    share=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_whatever_the_load_and_whoever_dies_the_pool_is_never_overdrawn_and_limits_of_nodes_are_kept(
    loads, losses, delays, fails, pool, share
):
    cluster = Cluster(
        Scaler(limits(pool=pool, step_share=share, warehouse={"every_s": 9, "load_limit_s": 5})), delays, fails
    )
    for number, (load, load_s) in enumerate(loads):
        for stage in losses.pop() if losses else ():
            cluster.lose(number * 5.0, stage)
        cluster.step(number * 5.0, load, load_s)
    # Nobody dies any more, and those who died are replaced.
    for number in range(len(loads), len(loads) + 60):
        cluster.fails.clear()
        cluster.step(number * 5.0, 30, 3)
    assert all(state.nodes >= state.limits.min for state in cluster.scaler.stages.values())


@settings(max_examples=60)
@given(load=st.floats(0, 500), share=st.sampled_from([0.0, 0.2, 0.5, 1.0]), seconds=st.floats(0, 30))
def test_under_a_steady_load_the_scaler_comes_to_rest(load, share, seconds):
    """It never flaps: a steady load is followed by changes in one direction only, and then by none."""
    scaler = Scaler(limits(pool=40, step_share=share, warehouse={"every_s": 9, "load_limit_s": 5}))
    cluster = Cluster(scaler, [], [])
    for number in range(400):
        cluster.step(number * 5.0, load, seconds)
    assert not any(moment > 1500 for moment, _ in cluster.changes)
    count = scaler.nodes()["transformation"]
    assert load / count <= 50
    if share == 0:
        assert {change for _, change in cluster.changes} <= {1}


@settings(max_examples=60)
@given(
    load=st.floats(0, 200), seconds=st.floats(0, 30), loading=st.floats(0, 30), share=st.sampled_from([0.0, 0.5, 1.0])
)
def test_under_a_steady_load_stages_on_the_same_machines_come_to_rest(load, seconds, loading, share):
    """The nodes of two stages share machines, and their times fall with the machines."""
    limited = limits(
        pool=40, step_share=share, extraction={"every_s": 5}, transformation={"limit_s": 4},
        warehouse={"every_s": 9, "load_limit_s": 5},
    )  # fmt: skip
    scaler = Scaler(limited, hosted=frozenset({TRANSFORMATION, Stage.WAREHOUSE}))
    changes: list[tuple[Stage, type]] = []
    for number in range(600):
        nodes = scaler.nodes()
        machines = max(nodes["transformation"], nodes["warehouse"])
        queues = [load / nodes["transformation"]] * nodes["transformation"]
        sample = Sample(queues_mb=queues, transformation_s=seconds / machines, load_s=loading / machines)
        for order in scaler.sample(number * 5.0, sample):
            if isinstance(order, Start):
                scaler.started(order.stage, number * 5.0, order.number)
            elif isinstance(order, Stop):
                scaler.stopped(order.stage, number * 5.0)
            if not isinstance(order, Unreachable):
                changes.append((order.stage, type(order)))
                assert number < 500, changes
    for stage in (TRANSFORMATION, Stage.WAREHOUSE):
        kinds = [kind for changed, kind in changes if changed is stage]
        assert share or kinds == sorted(kinds, key=lambda kind: kind is Stop), "out after in: it flaps"


@pytest.mark.parametrize("nodes", [{"min": 3, "max": 2}])
def test_more_at_least_than_at_most_is_refused(nodes):
    with pytest.raises(ValueError, match="at least 3 nodes and at most 2 contradict each other"):
        limits(buffer={"nodes": nodes})
