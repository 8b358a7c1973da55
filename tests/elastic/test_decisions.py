"""Every branch of the elastic paper's flowcharts (figures 3 to 9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.elastic.decision import Action
from engine.elastic.stages import buffer, extraction, switch, transformation, warehouse, warehouse_load, warehouse_query
from engine.model.elastic import Buffer, Extraction, Switch, Transformation, Warehouse

OUT, IN, KEEP = Action.OUT, Action.IN, Action.KEEP


@pytest.mark.parametrize(
    ("times", "limits", "action", "reason"),
    [
        # Figure 3: with a limit, and without one by the next extraction instant.
        ([0.4, 1.01], {"limit_s": 1}, OUT, "took 1.010 s, more than its limit of 1 s"),
        ([0.6, 1.0], {"limit_s": 1}, KEEP, "within 1 s"),
        ([3.2], {}, OUT, "not done by the next instant, after 3 s"),
        ([2.9, 3.0], {}, KEEP, "within 3 s"),
        # Figure 4: half of the limit (or of the frequency) minus X, of two nodes at least.
        ([0.39, 0.3, 0.9], {"limit_s": 1, "margin_s": 0.1}, IN, "less than half of the limit minus X (0.400 s)"),
        ([0.45, 0.45, 0.9], {"limit_s": 1, "margin_s": 0.1}, KEEP, "within 1 s"),
        ([0.1, 0.9], {"limit_s": 1}, KEEP, "within 1 s"),
        ([1.4, 1.3], {}, IN, "less than half of the frequency minus X (1.500 s)"),
        ([], {}, KEEP, "nothing was extracted yet"),
    ],
)
def test_extraction(times, limits, action, reason):
    decision = extraction.decide(times, Extraction(every_s=3, **limits))
    assert decision.action is action
    assert reason in decision.reason


def test_the_idlest_extraction_node_leaves_and_the_next_takes_over():
    decision = extraction.decide([0.3, 0.9, 0.1], Extraction(every_s=3, limit_s=1))
    assert (decision.leaves, decision.takes_over) == ((2,), (0,))


@pytest.mark.parametrize(
    ("queues", "action", "reason"),
    [
        ([10, 50.5], OUT, "a queue holds 50.5 MB, above its limit of 50 MB"),
        ([50, 30], KEEP, "within 50 MB"),
        ([24, 10, 40], IN, "two queues hold 10.0 and 24.0 MB, less than half of the limit"),
        ([24, 25], KEEP, "within 50 MB"),
        ([3], KEEP, "within 50 MB"),
        ([], KEEP, "no queue yet"),
    ],
)
def test_transformation(queues, action, reason):
    decision = transformation.decide(queues, Transformation(queue_mb=100))
    assert decision.action is action
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("queues", "limit_s", "seconds", "action", "reason", "tight"),
    [
        # Section 5.2: the transformation may take 1 s as well, whatever its queues hold.
        ([1, 1], 1, 1.01, OUT, "rows took 1.010 s to be transformed, more than their limit of 1 s", False),
        ([60, 1], 1, 0.1, OUT, "a queue holds 60.0 MB", False),
        ([1, 1], 1, 0.5, KEEP, "not less than half of 1 s", True),
        ([1, 1], 1, 0.49, IN, "two queues hold", False),
        ([1, 1], 5, 1.6, KEEP, "not less than half of 3 s", True),  # one node would not be done when the next come
        ([1, 1], None, 1.5, KEEP, "not less than half of 3 s", True),
        ([1, 1], None, 9, KEEP, "not less than half of 3 s", True),  # no limit, no other node
        ([1, 1], None, 1.4, IN, "two queues hold", False),
        ([1, 1], 1, None, IN, "two queues hold", False),
        ([25], None, 0.1, KEEP, "within 50 MB", True),
        ([24], None, 0.1, KEEP, "within 50 MB", False),
    ],
)
def test_transformation_within_its_time(queues, limit_s, seconds, action, reason, tight):
    decision = transformation.decide(queues, Transformation(queue_mb=100, limit_s=limit_s), seconds, every_s=3)
    assert (decision.action, decision.tight) == (action, tight)
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("memory", "disk", "more", "action", "reason"),
    [
        ([100, 20], [0, 0], {}, OUT, "memory is full"),
        ([60, 20], [901, 0], {}, OUT, "disk holds 901 MB, above 90%"),
        ([60, 20], [900, 0], {}, KEEP, "and swaps to disk"),
        ([50, 20], [0, 0], {}, KEEP, "50 of 100 MB in memory"),
        # Scale-in is by request, and only where the data of one fit into another.
        ([40, 20], [100, 100], {"scale_in": True}, IN, "fit into another, which holds 140 MB"),
        ([40, 20], [450, 430], {"scale_in": True}, IN, "fit into another"),  # 900 MB: just what one disk may hold
        ([40, 20], [450, 431], {"scale_in": True}, KEEP, "in memory"),
        ([60, 50], [10, 10], {"scale_in": True}, KEEP, "in memory"),  # what comes would fill the memory of one
        ([40], [0], {"scale_in": True}, KEEP, "in memory"),
        ([], [], {}, KEEP, "no buffer yet"),
    ],
)
def test_buffer(memory, disk, more, action, reason):
    decision = buffer.decide(memory, disk, Buffer(memory_mb=100, disk_mb=1000, **more))
    assert decision.action is action
    assert reason in decision.reason


def test_a_buffer_swaps_from_above_half_of_its_memory_until_it_is_empty():
    limits = Buffer(memory_mb=100)
    assert not buffer.swaps(50, False, limits)
    assert buffer.swaps(51, False, limits)
    assert buffer.swaps(1, True, limits)
    assert not buffer.swaps(0, True, limits)
    assert not buffer.swaps(1, False, limits)


@pytest.mark.parametrize(
    ("rates", "action", "reason"),
    [
        ([101, 5], OUT, "101 rows/s pass a switch, above its limit of 100"),
        ([100], KEEP, "within 100"),
        ([40, 45, 90], IN, "85 rows/s pass two switches together, less than the limit minus Z (90)"),
        ([45, 45, 90], KEEP, "within 100"),
        ([1], KEEP, "within 100"),
        ([], KEEP, "no switch yet"),
    ],
)
def test_switch(rates, action, reason):
    decision = switch.decide(rates, Switch(limit_rows_s=100, margin_rows_s=10, hold_s=7))
    assert decision.action is action
    assert reason in decision.reason
    assert decision.hold_s == (7 if action is IN else None)
    assert (decision.leaves, decision.takes_over) == (((0,), (1,)) if action is IN else ((), ()))


def test_a_buffer_says_that_it_swaps_from_above_half_of_its_memory():
    limits = Buffer(memory_mb=100)
    assert "swaps" not in buffer.decide([50], [0], limits).reason
    assert "swaps" in buffer.decide([50.5], [0], limits).reason


@pytest.mark.parametrize("measure", ["load", "query"])
@pytest.mark.parametrize(
    ("seconds", "limit", "action", "reason"),
    [
        (61, 60, OUT, "limit of 60 s: rebalance"),
        (60, 60, KEEP, "within 60 s"),
        (24, 60, IN, "less than half of the limit minus X (25.000 s)"),
        (25, 60, KEEP, "within 60 s"),
        (61, None, KEEP, "has no limit"),
        (None, 60, KEEP, "yet"),
    ],
)
def test_warehouse(measure, seconds, limit, action, reason):
    stage = warehouse_load if measure == "load" else warehouse_query
    limits = Warehouse(every_s=600, margin_s=5, **({f"{measure}_limit_s": limit} if limit else {}))
    decision = stage.decide(seconds, limits)
    assert decision.action is action
    assert reason in decision.reason


@pytest.mark.parametrize(
    ("load", "query", "more", "action"),
    [
        (61, 1, {"query_limit_s": 60, "sessions": 1}, OUT),
        (1, 61, {"query_limit_s": 60, "sessions": 1}, OUT),
        (1, 40, {"query_limit_s": 60, "sessions": 1}, KEEP),
        (40, 1, {"query_limit_s": 60, "sessions": 1}, KEEP),
        (1, 1, {"query_limit_s": 60, "sessions": 1}, IN),
        (1, None, {"query_limit_s": 60, "sessions": 1}, KEEP),  # nobody knows yet how long queries take
        (1, None, {"query_limit_s": 60, "sessions": 0}, IN),  # nobody asks
        (1, None, {}, IN),
    ],
)
def test_the_warehouse_grows_for_either_and_shrinks_only_where_both_allow_it(load, query, more, action):
    assert warehouse.decide(load, query, Warehouse(every_s=600, load_limit_s=60, **more)).action is action


def test_a_warehouse_without_limits_is_left_alone():
    assert warehouse.decide(100, 100, Warehouse()).action is KEEP


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_who_leaves_and_who_takes_over_keep_within_the_limit_together(values):
    """So a scale-in never makes a scale-out at once: what two nodes had, one can do."""
    for decision, limit in (
        (extraction.decide(values, Extraction(every_s=50)), 50),
        (transformation.decide(values, Transformation(queue_mb=100)), 50),
        (switch.decide(values, Switch(limit_rows_s=50)), 50),
    ):
        if decision.action is IN:
            assert len(set(decision.leaves) | set(decision.takes_over)) == 2 * len(decision.leaves) > 0
            for leaves, takes_over in zip(decision.leaves, decision.takes_over, strict=True):
                assert values[leaves] + values[takes_over] <= limit


@given(st.lists(st.tuples(st.floats(0, 99), st.floats(0, 900)), min_size=2, max_size=6))
def test_a_buffer_that_leaves_never_fills_the_one_that_takes_over(held):
    limits = Buffer(memory_mb=100, disk_mb=1000, scale_in=True)
    memory, disk = [one for one, _ in held], [other for _, other in held]
    decision = buffer.decide(memory, disk, limits)
    if decision.action is IN:
        (leaves,), (takes_over,) = decision.leaves, decision.takes_over
        after = [*disk]
        after[takes_over] += disk[leaves] + memory[leaves]
        assert buffer.decide([sum(memory) / (len(held) - 1)], [after[takes_over]], limits).action is not OUT
