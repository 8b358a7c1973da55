"""Pausing at any point, stepping and resuming: the result is the same, no progress is lost, no decision slips through."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.schedule.mixed import scheduled
from engine.schedule.monitor import Monitor
from engine.schedule.pace import Pace
from engine.schedule.simulated import Simulated, Simulation
from engine.schedule.turn import Activation, Limits
from tests.schedule.graphs import POLICIES, Case, cases
from tests.schedule.test_properties import expected_rows


def simulated(case: Case, policy: str, **hooks: Any) -> tuple[Simulation, list[Any]]:
    graph, policies = scheduled(case.units, case.queues, policy, case.theta)
    trace: list[Any] = []
    simulation = Simulation(
        graph, policies, case.costs, ports=case.ports, pack_rows=case.pack_rows, slot_ms=case.slot_ms,
        cores=case.cores,
        on_turn=lambda activation, rows, outcome: trace.append(
            (simulation.now, activation.number, activation.unit.id, activation.step, rows, outcome.seconds)
        ),
        on_snapshot=lambda moment, monitor: trace.append((moment, monitor.statistics.bytes)),
        **hooks,
    )  # fmt: skip
    return simulation, trace


def test_a_step_is_one_decision_and_pausing_is_idempotent() -> None:
    pace = Pace()
    assert not pace.paused
    pace.pause()
    pace.pause()
    assert pace.held
    pace.step()
    assert (pace.paused, pace.held) == (True, False)
    pace.decided()
    assert pace.held
    pace.resume()
    pace.decided()
    assert not pace.paused
    pace.step()  # of a run that goes on: one more, then paused
    pace.decided()
    assert pace.held


@settings(max_examples=60)
@given(cases(), st.sampled_from(POLICIES), st.integers(0, 2**32))
def test_a_simulated_run_that_is_paused_and_stepped_is_the_same_run(case: Case, policy: str, seed: int) -> None:
    chance = random.Random(seed)
    plain, expected = simulated(case, policy)
    result = plain.run()

    decided, allowed = 0, 0

    def on_clock(moment: float) -> None:
        if chance.random() < 0.3:
            held.monitor.pace.pause()
        while held.monitor.pace.held:
            on_held()

    def on_held() -> None:
        nonlocal decided, allowed
        assert held.monitor.activations - decided <= allowed or not allowed
        decided, allowed = held.monitor.activations, 0
        if chance.random() < 0.7:
            held.monitor.pace.step()
            allowed = 1
        else:
            held.monitor.pace.resume()

    held, trace = simulated(case, policy, on_clock=on_clock, on_held=on_held)
    held.monitor.pace.pause()  # before the first decision, too
    again: Simulated = held.run()
    assert trace == expected
    assert again == result


@settings(max_examples=60)
@given(cases(), st.sampled_from(POLICIES), st.integers(0, 2**32))
def test_turns_that_end_while_the_run_is_paused_are_reported_and_nothing_is_lost(
    case: Case, policy: str, seed: int
) -> None:
    """As on Spark: turns cannot be frozen, they end in any order, paused or not."""
    chance = random.Random(seed)
    graph, policies = scheduled(case.units, case.queues, policy, case.theta)
    carrier = Simulation(
        graph, policies, case.costs, ports=case.ports, pack_rows=case.pack_rows, slot_ms=case.slot_ms
    )  # its costs, its packs; the loop is ours
    monitor: Monitor = carrier.monitor
    assert monitor.limits == Limits(case.pack_rows, case.slot_ms / 1000)
    running: list[Activation] = []
    now, steps = 0.0, 0
    monitor.statistics.clock(now)
    while not monitor.finished:
        match chance.randrange(6):
            case 0:
                monitor.pace.pause()
                steps = 0
            case 1 if monitor.pace.paused:
                monitor.pace.step()
                steps += 1
            case 2:
                monitor.pace.resume()
        before = monitor.activations
        for group in monitor.idle_groups()[: case.cores - len(running)]:
            running.append(monitor.decide(group))
        if monitor.pace.paused:
            assert monitor.activations - before <= steps
            steps -= monitor.activations - before
        if running and chance.random() < 0.7:
            activation = running.pop(chance.randrange(len(running)))
            outcome = carrier.workers[activation.unit].carry_out(activation)
            now += 0.01 + outcome.seconds
            monitor.report(activation, outcome, now)
            monitor.check()
        elif not running and not monitor.pace.held:
            assert monitor.idle_groups() or monitor.unblock()
    assert {id_: queue.passed_rows for id_, queue in monitor.queues.items()} == expected_rows(case)
    assert (monitor.statistics.packs, monitor.statistics.bytes) == (0, 0)
