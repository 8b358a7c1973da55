"""What never happens, whatever the workflow: a lost row, a doubled row, a hidden spill, a run that does not end."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings

from engine.schedule.graph import Work
from engine.schedule.mixed import scheduled
from engine.schedule.monitor import Monitor
from engine.schedule.queues import Queue
from engine.schedule.simulated import Simulated, Simulation
from engine.schedule.turn import Activation, Outcome
from tests.schedule.graphs import POLICIES, Case, cases

MOST_ACTIVATIONS = 200_000


class Watched(Simulation):
    """A simulation that looks at everything after every step."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.allowed: dict[str, int] = defaultdict(int)
        super().__init__(*arguments, on_spill=self._spilled, **options)
        report = self.monitor.report

        def watched(activation: Activation, outcome: Outcome, now: float) -> None:
            report(activation, outcome, now)
            self.look()
            assert self.monitor.activations < MOST_ACTIVATIONS, "the run does not end"

        self.monitor.report = watched  # type: ignore[method-assign]
        self.monitor.check()

    def _spilled(self, queue: Queue) -> None:
        self.allowed[queue.spec.id] += queue.spec.capacity_packs or 0

    def look(self) -> None:
        monitor = self.monitor
        monitor.check()
        assert monitor.running <= self.cores
        for id_, queue in monitor.queues.items():
            if queue.capacity is not None:
                assert queue.count <= queue.capacity + self.allowed[id_], "above its capacity, and nobody said so"
                stated = (queue.capacity_bytes or math.inf) * (1 + self.allowed[id_] / queue.capacity)
                assert queue.bytes <= stated or queue.count == 1, "more bytes than it may hold, and nobody said so"
        for unit in monitor.units.values():
            waiting = sum(queue.rows for queue in (*unit.inputs, *unit.references))
            passed = sum(queue.passed_rows for queue in (*unit.inputs, *unit.references))
            assert passed == unit.rows_in + waiting, "rows that entered its queues are taken or wait"
            assert unit.rows_absorbed <= unit.rows_in


def run(case: Case, policy: str) -> tuple[Simulated, Monitor]:
    graph, policies = scheduled(case.units, case.queues, policy, case.theta)
    simulation = Watched(
        graph,
        policies,
        case.costs,
        ports=case.ports,
        pack_rows=case.pack_rows,
        slot_ms=case.slot_ms,
        cores=case.cores,
    )
    return simulation.run(), simulation.monitor


def expected_rows(case: Case) -> dict[str, int]:
    """The rows that pass each queue, reckoned without any scheduling."""
    passed: dict[str, int] = {}
    for unit in case.units:
        cost = case.costs[unit.id]
        if unit.work is Work.SOURCE:
            worked_on = cost.rows
        else:
            worked_on = sum(
                passed[queue.id] for queue in case.queues if queue.consumer == unit.id and not queue.reference
            )
        for queue in case.queues:
            if queue.producer == unit.id:
                passed[queue.id] = int(worked_on * cost.shares.get(queue.id, cost.selectivity) + 1e-6)
    return passed


@settings(max_examples=450)
@given(cases())
def test_no_row_is_lost_or_doubled_and_every_run_ends_under_every_policy(case):
    check(case)


@pytest.mark.slow
@settings(max_examples=3000)
@given(cases())
def test_no_row_is_lost_or_doubled_in_thousands_of_cases(case):
    check(case)


def check(case):
    expected = expected_rows(case)
    for policy in POLICIES:
        result, monitor = run(case, policy)
        assert result.delivered == expected
        assert monitor.finished
        assert all(unit.finished and not unit.queue_packs for unit in monitor.units.values())
        for unit in monitor.units.values():
            cost = case.costs[unit.id]
            if unit.work is Work.SOURCE:
                assert unit.rows_read == cost.rows
            assert unit.rows_in == sum(expected[queue.id] for queue in case.queues if queue.consumer == unit.id)
        statistics = monitor.statistics
        assert (statistics.packs, statistics.rows, statistics.bytes) == (0, 0, 0), "all memory is given back"
        assert result.queue["avg_packs"] <= result.queue["max_packs"] + 1e-3
        assert result.busy_seconds <= result.seconds * case.cores + 1e-9


@settings(max_examples=100)
@given(cases())
def test_a_run_is_the_same_each_time(case):
    for policy in POLICIES:
        assert run(case, policy)[0] == run(case, policy)[0]


@settings(max_examples=100)
@given(cases())
def test_what_is_staged_never_spills(case):
    from dataclasses import replace

    staged = replace(
        case, queues=tuple(replace(queue, capacity_packs=None, capacity_bytes=None) for queue in case.queues)
    )
    for policy in POLICIES:
        result, _ = run(staged, policy)
        assert result.spills == 0
        assert result.queue["max_packs"] == 0, "what lies on disk is no queue memory"
