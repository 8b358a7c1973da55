"""The monitor: who is a candidate, when a turn ends, when a unit has finished, and what is said on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.schedule.graph import ScheduleGraph
from engine.schedule.messages import Message
from engine.schedule.monitor import Monitor
from engine.schedule.policies.mc import MinimumCost
from engine.schedule.policies.mm import MinimumMemory
from engine.schedule.policies.rr import RoundRobin
from engine.schedule.queues import Pack
from engine.schedule.turn import Decided, Limits, Outcome, Step
from tests.schedule.graphs import Hand, monitor_of, queues, units

# ---------------------------------------------------------------- stopping (section 3.1)


def test_a_turn_takes_all_that_waits_and_ends_when_the_queue_is_empty():
    hand = Hand(monitor_of("s f w", "s>f f>w", RoundRobin()))
    hand.turn(10, 10, 10)
    hand.turn(5, 5, 5)
    assert hand.turns[-1] == ("f", Step.PROCESS, 3)


def test_a_turn_takes_no_more_than_the_consumer_has_room_for():
    hand = Hand(monitor_of("s f w", "s>f f>w", MinimumCost(), capacity=4))
    hand.turn(10, 10)
    hand.turn(20, 20)  # f gives twice what it takes
    hand.turn()
    hand.turn(10, 10, 10, 10)
    hand.turn(20, 20)
    assert hand.turns[-1] == ("f", Step.PROCESS, 2), "two packs of what was measured fill the four of its consumer"


def test_one_that_may_add_rows_shows_with_its_first_pack_how_many():
    specs = [replace(unit, group="", adds_rows=unit.id == "f") for unit in units("s f w")]
    graph = ScheduleGraph(tuple(specs), queues("s>f f>w", 9))
    hand = Hand(Monitor(graph, {"": MinimumCost()}, Limits(10)))
    hand.turn(*[10] * 9)
    hand.turn(10, 10, 10)  # f gives three times what it takes
    assert hand.turns[-1] == ("f", Step.PROCESS, 1)
    assert not hand.monitor.units["f"].outbox
    hand.turn(*[10] * 6)
    assert hand.turns[-1] == ("f", Step.PROCESS, 2), "two packs of what was measured fill the six that are left"


def test_the_packs_of_a_turn_come_from_one_queue_after_the_other():
    hand = Hand(monitor_of("s t f w", "s>f t>f f>w", RoundRobin(), capacity=3))
    hand.turn(10, 10)
    hand.turn(10, 10)
    activation = hand.decide()
    assert [(queue.spec.id, count) for queue, count in activation.take] == [("s>f", 2), ("t>f", 1)]


def test_a_reader_reads_as_many_packs_as_its_consumer_has_room_for():
    hand = Hand(monitor_of("s w", "s>w", RoundRobin(), capacity=7))
    assert hand.decide().read_packs == 7


def test_a_unit_whose_consumer_is_full_is_no_candidate():
    monitor = monitor_of("s w v", "s>w s>v", RoundRobin(), capacity=2)
    hand = Hand(monitor)
    hand.turn(10, 10)
    assert [unit.id for unit in monitor.groups[""].ready] == ["w", "v"]
    hand.turn()  # w has taken both, v has not: one full queue of two is enough to wait
    assert [unit.id for unit in monitor.groups[""].ready] == ["v"]
    hand.turn()
    assert [unit.id for unit in monitor.groups[""].ready] == ["s"]


def test_a_turn_under_minimum_memory_takes_as_many_packs_as_fit_into_the_slot():
    hand = Hand(monitor_of("s f w", "s>f f>w", MinimumMemory(), limits=Limits(10, slot_seconds=3.5)))
    assert hand.decide().read_packs == 1, "nothing is measured yet: one pack"
    hand = Hand(monitor_of("s f w", "s>f f>w", MinimumMemory(), limits=Limits(10, slot_seconds=3.5)))
    hand.turn(*[10] * 20)  # as if 20 packs had taken a second
    hand.turn(10, seconds=1.0)
    hand.turn(10, 10, 10, seconds=3.0)
    assert hand.turns[1:] == [("f", Step.PROCESS, 1), ("f", Step.PROCESS, 3)], "three seconds fit into 3.5 s"


def test_putting_rows_aside_ends_with_the_slot_too():
    hand = Hand(monitor_of("s b w", "s>b b>w", MinimumMemory(), limits=Limits(10, slot_seconds=2.0)))
    hand.turn(*[10] * 9)
    hand.turn(seconds=1.0)
    hand.turn(seconds=2.0)
    assert hand.turns[1:] == [("b", Step.ABSORB, 1), ("b", Step.ABSORB, 2)]


def test_round_robin_and_minimum_cost_have_no_slots():
    for policy in (RoundRobin(), MinimumCost()):
        hand = Hand(monitor_of("s b w", "s>b b>w", policy, limits=Limits(10, slot_seconds=0.001)))
        assert hand.decide().read_packs == 100


def test_what_a_turn_gives_beyond_the_room_waits_with_the_unit_and_counts_as_memory():
    monitor = monitor_of("s f w", "s>f f>w", MinimumCost(), capacity=2)
    hand = Hand(monitor)
    hand.turn(10, 10)
    hand.turn(10, 10, 10, 10, 10)  # twice as much and more
    assert len(monitor.queues["f>w"].packs) == 2
    assert monitor.statistics.packs == 5
    assert not monitor.units["f"].ready
    hand.turn()
    assert hand.turns[-1] == ("w", Step.ABSORB, 2)
    assert monitor.statistics.packs == 3
    hand.monitor.units["s"].exhausted = True  # nothing more to read
    hand.monitor._refresh(hand.monitor.units["s"])
    hand.turn()
    assert hand.turns[-1] == ("f", Step.DELIVER, 2)
    assert monitor.statistics.packs == 3


# ---------------------------------------------------------------- finishing (section 3.1)


def test_a_source_has_finished_when_it_is_exhausted_and_not_before():
    monitor = monitor_of("s w", "s>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(10)
    assert not monitor.units["s"].finished
    hand.turn()
    hand.turn(10, exhausted=True)
    assert monitor.units["s"].finished


def test_an_empty_source_finishes_and_so_does_all_behind_it():
    monitor = monitor_of("s f g w", "s>f f>g g>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(exhausted=True)
    assert [unit.id for unit in monitor.units.values() if unit.finished] == ["s", "f", "g"]
    assert hand.turn().step is Step.WHOLE, "a writer writes an empty table"
    assert monitor.finished


def test_a_unit_has_finished_when_its_producers_have_and_its_queues_are_empty():
    monitor = monitor_of("s t f w", "s>f t>f f>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(10, exhausted=True)  # s
    hand.turn(10)  # t, which has more
    hand.turn(20)
    assert not monitor.units["f"].finished, "its queues are empty, but t is not finished"
    hand.turn()  # w
    hand.turn(10, exhausted=True)  # t
    assert not monitor.units["f"].finished, "all producers are finished, but a pack waits"
    hand.turn(10)
    assert monitor.units["f"].finished


def test_a_blocking_unit_puts_aside_what_comes_and_works_on_it_when_its_producers_have_finished():
    monitor = monitor_of("s b w", "s>b b>w", MinimumCost())
    hand = Hand(monitor)
    hand.turn(10, 10)
    hand.turn()
    hand.turn(10, exhausted=True)
    hand.turn()
    hand.turn(7)
    hand.turn()
    hand.turn()
    assert hand.turns == [
        ("s", Step.READ, 100),
        ("b", Step.ABSORB, 2),
        ("s", Step.READ, 100),
        ("b", Step.ABSORB, 1),
        ("b", Step.WHOLE, 0),
        ("w", Step.ABSORB, 1),
        ("w", Step.WHOLE, 0),
    ]
    assert monitor.finished


def test_an_input_that_is_needed_whole_comes_before_the_first_pack():
    monitor = monitor_of("s r l w", "s>l r=>l l>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(10, exhausted=True)  # s: the main rows wait
    assert not monitor.units["l"].ready
    hand.turn(10)  # r, part of it
    assert hand.turn().step is Step.ABSORB
    assert not monitor.units["l"].ready, "r has more"
    hand.turn(10, exhausted=True)
    assert hand.turn().step is Step.ABSORB
    assert hand.turn(10).step is Step.PROCESS
    assert monitor.units["l"].finished


# ---------------------------------------------------------------- messages and flags (section 6)


def test_what_the_monitor_and_the_units_say_to_each_other():
    said = []
    monitor = monitor_of("s w", "s>w", RoundRobin(), on_message=lambda *message: said.append(message))
    hand = Hand(monitor)
    hand.turn(10)
    hand.turn()
    hand.turn(exhausted=True)
    hand.turn()
    assert said == [
        ("monitor", "s", Message.RESUME),
        ("s", "monitor", Message.STALL),
        ("monitor", "w", Message.RESUME),
        ("w", "monitor", Message.STALL),
        ("monitor", "s", Message.RESUME),
        ("s", "monitor", Message.STALL),
        ("s", "monitor", Message.TERMINATE),
        ("s", "w", Message.END_OF_DATA),
        ("monitor", "w", Message.RESUME),
        ("w", "monitor", Message.STALL),
        ("w", "monitor", Message.TERMINATE),
    ]


def test_the_flags_of_a_unit():
    monitor = monitor_of("s w", "s>w", RoundRobin())
    hand, source, writer = Hand(monitor), monitor.units["s"], monitor.units["w"]
    assert (source.stalled, source.last_message, source.finished) == (True, True, False)
    assert (writer.stalled, writer.last_message, writer.finished) == (True, False, False)
    activation = hand.decide()
    assert not source.stalled
    hand.report(activation, 10, exhausted=True)
    assert source.stalled
    assert source.finished
    assert writer.last_message
    hand.turn()
    hand.turn()
    assert writer.finished


def test_a_consumer_with_two_producers_has_its_last_message_when_both_ended():
    monitor = monitor_of("s t w", "s>w t>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(exhausted=True)
    assert not monitor.units["w"].last_message
    hand.turn(exhausted=True)
    assert monitor.units["w"].last_message


def test_a_producer_with_two_queues_to_one_consumer_ends_once():
    said = []
    monitor = monitor_of("s w", "s>w s=>w", RoundRobin(), on_message=lambda *message: said.append(message))
    Hand(monitor).turn(10, exhausted=True)
    assert said.count(("s", "w", Message.END_OF_DATA)) == 1
    assert monitor.units["w"].last_message


# ---------------------------------------------------------------- no deadlock (decision 6)


def test_where_a_rejoin_needs_one_side_whole_a_full_queue_spills_and_says_so():
    spilled, said = [], []
    monitor = monitor_of(
        "s b l w",
        "s>b s>l b=>l l>w",
        MinimumCost(),
        capacity=1,
        on_spill=lambda queue: spilled.append(queue.spec.id),
        on_message=lambda *message: said.append(message),
    )
    hand = Hand(monitor)
    hand.turn(10)
    hand.turn()  # b puts it aside; the same rows wait before l, which waits for b
    assert not monitor.idle_groups()
    assert monitor.unblock()
    assert spilled == ["s>l"]
    assert monitor.spills == 1
    assert [message for message in said if message[2] is Message.DUMMY_RESUME] == [
        ("monitor", name, Message.DUMMY_RESUME) for name in "sblw"
    ]
    hand.turn(10)
    assert len(monitor.queues["s>l"].packs) == 2
    monitor.check()


def test_a_queue_is_bounded_again_when_what_was_spilled_is_worked_off():
    monitor = monitor_of("s b l w", "s>b s>l b=>l l>w", MinimumCost(), capacity=1)
    hand = Hand(monitor)
    hand.turn(10)
    hand.turn()
    monitor.unblock()
    hand.turn(10, exhausted=True)
    while not monitor.finished:
        hand.turn(*[10] if monitor.idle_groups()[0].ready[0].id in "bl" else [])
    assert monitor.queues["s>l"].extra == 0


def test_where_all_is_finished_there_is_nothing_to_unblock():
    monitor = monitor_of("s w", "s>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(exhausted=True)
    hand.turn()
    assert monitor.finished
    assert monitor.unblock()


# ---------------------------------------------------------------- decisions


def test_a_decision_tells_its_candidates_and_their_scores():
    decided: list[Decided] = []
    monitor = monitor_of("s t w", "s>w t>w", MinimumCost(), on_decision=decided.append)
    hand = Hand(monitor)
    hand.turn(10)
    hand.decide()
    assert [(entry.activation.unit.id, entry.policy, entry.scores) for entry in decided] == [
        ("s", "mc", [("s", 0.0), ("t", 0.0)]),
        ("w", "mc", [("s", 0.0), ("t", 0.0), ("w", 10.0)]),
    ]


def test_one_unit_of_a_group_runs_at_a_time():
    monitor = monitor_of("s t w", "s>w t>w", RoundRobin())
    hand = Hand(monitor)
    hand.decide()
    assert monitor.idle_groups() == []


# ---------------------------------------------------------------- statistics


def test_queue_memory_is_averaged_over_time_from_the_beginning():
    monitor = monitor_of("s w", "s>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(10, 10, seconds=1.0)  # nothing is there yet
    hand.turn(seconds=3.0)  # both packs, for three seconds
    summary = monitor.statistics.summary()
    assert summary["avg_packs"] == pytest.approx(2 * 3 / 4)
    assert summary["avg_rows"] == pytest.approx(20 * 3 / 4)
    assert summary["avg_bytes"] == 200 * 3 / 4
    assert (summary["max_packs"], summary["max_rows"], summary["max_bytes"]) == (2, 20, 200)


def test_a_pack_that_two_share_counts_once_until_both_have_taken_it():
    monitor = monitor_of("s v w", "s>v s>w", RoundRobin())
    hand = Hand(monitor)
    hand.turn(10)
    assert monitor.statistics.packs == 1
    hand.turn()
    assert monitor.statistics.packs == 1
    hand.turn()
    assert (monitor.statistics.packs, monitor.statistics.rows, monitor.statistics.bytes) == (0, 0, 0)


def test_a_run_of_packs_is_delivered_and_taken_in_parts():
    monitor = monitor_of("s v w", "s>v s>w", MinimumMemory(), capacity=4, limits=Limits(10, slot_seconds=2.0))
    (group,) = monitor.idle_groups()
    both = (monitor.queues["s>v"], monitor.queues["s>w"])
    monitor.report(monitor.decide(group), Outcome(1.0, [(Pack(10, 100, "", 6), both)], 60, True), 1.0)
    monitor.check()
    assert [queue.count for queue in both] == [4, 4]
    assert (monitor.statistics.packs, monitor.statistics.rows) == (6, 60), "two wait in the outbox"
    taken = monitor.decide(group)
    assert (taken.unit.id, taken.packs) == ("v", 1), "nothing was measured of it yet"
    monitor.report(taken, Outcome(1.0), 2.0)
    monitor.check()
    assert [queue.count for queue in both] == [3, 4]
    assert monitor.statistics.packs == 6, "the other holds it still"
    last = monitor.decide(group)
    assert (last.unit.id, last.packs) == ("v", 2), "two in a slot of two seconds"


def test_packs_of_two_ports_are_two():
    alike = tuple(replace(unit, group="") for unit in units("s v w"))
    monitor = Monitor(ScheduleGraph(alike, queues("s>v s>w")), {"": RoundRobin()}, Limits(10))
    (group,) = monitor.idle_groups()
    activation = monitor.decide(group)
    first, second = monitor.queues["s>v"], monitor.queues["s>w"]
    monitor.report(activation, Outcome(1.0, [(Pack(4, 40), (first,)), (Pack(6, 60), (second,))], 10, True), 1.0)
    assert (monitor.statistics.packs, monitor.statistics.rows) == (2, 10)
    assert (first.rows, second.rows) == (4, 6)
    monitor.check()


def test_what_is_staged_is_no_queue_memory():
    monitor = monitor_of("s w", "s>w", RoundRobin(), capacity=None)
    hand = Hand(monitor)
    hand.turn(*[10] * 500)
    assert monitor.statistics.packs == 0
    assert monitor.units["s"].ready, "and never full"
